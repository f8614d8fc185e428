"""Maps of one head: scores, the pattern without the first source, and effects on a logit."""

import numpy as np
import pytest
import torch

from app.analysis.attribution import attribute
from app.analysis.head_maps import effect_map, pattern_without_first, score_map
from app.analysis.tensors import from_trace
from app.errors import InvalidInput, UnknownToken
from tests.lm.test_families import ADDITIVE, FLOAT32, NAMES, worst
from tests.lm.tiny import PROMPT
from tests.lm.tiny_loaded import run_of, trace_of

N = len(PROMPT)
# Sums of 32 products that partly cancel.
CLOSE = 1e-4


@pytest.mark.parametrize("name", NAMES)
def test_scores_before_the_softmax_are_those_of_the_reference(name: str) -> None:
    trace, expected = trace_of(name), run_of(name)
    for layer in trace.attention_layers:
        for head in (0, trace.block(layer).n_heads - 1):
            scores, seen = score_map(trace, layer, head)
            theirs = expected.scores[layer][head]
            assert (np.isfinite(theirs) == seen.numpy()).all()
            assert np.isnan(scores.numpy()[~seen.numpy()]).all()
            # A softmax does not change when a row moves; ALiBi is written either way.
            ours = scores.numpy().astype(np.float64)
            for i in range(N):
                row = seen[i].numpy()
                a, b = ours[i][row], theirs[i][row]
                assert np.abs((a - a[-1]) - (b - b[-1])).max() < CLOSE * max(1.0, np.abs(b).max())


def test_without_the_first_source_rows_add_up_to_one_and_keep_their_proportions() -> None:
    trace = trace_of("llama")
    pattern = trace.pattern(1)[2]
    rest, seen = pattern_without_first(trace, 1, 2)
    assert not seen[:, 0].any()
    assert (rest[:, 0] == 0).all()
    assert rest[1:].sum(-1).tolist() == pytest.approx([1.0] * (N - 1), abs=1e-6)
    for i in range(2, N):
        assert float(rest[i, 1] / rest[i, i]) == pytest.approx(float(pattern[i, 1] / pattern[i, i]), rel=1e-5)
    assert (rest[0] == 0).all()


def test_a_sink_is_left_out_of_the_rescaled_rows_too() -> None:
    rest, _ = pattern_without_first(trace_of("gpt-oss"), 0, 0)
    assert rest[1:].sum(-1).tolist() == pytest.approx([1.0] * (N - 1), abs=1e-6)


@pytest.mark.parametrize("name", ADDITIVE)
def test_effects_of_all_sources_add_up_to_the_head_row_of_the_attribution(name: str) -> None:
    trace = trace_of(name)
    for target, foil in ((9, None), (9, 4)):
        effects, _ = effect_map(trace, 1, 0, target, foil)
        for reader in (0, 5, N - 1):
            found = attribute(trace, reader, target, foil)
            size = float(found.heads.nan_to_num().abs().max())
            assert float(effects[reader].sum()) == pytest.approx(float(found.heads[1, 0]), abs=CLOSE * size)


def test_effects_are_weighted_messages_on_the_reference_direction() -> None:
    # In float64: A m, through the final norm with the reader's own scale, on the column of the target.
    name, layer, head, target = "gpt2", 2, 3, 17
    expected, trace = run_of(name), trace_of(name)
    weights = {key: value.double().numpy() for key, value in _model(name).state_dict().items()}
    last = expected.streams[-1]
    deviation = np.sqrt(last.var(-1) + 1e-5)
    direction = weights["transformer.ln_f.weight"] * weights["lm_head.weight"][target]
    delivered = expected.patterns[layer][head][:, :, None] * expected.messages[layer][head][None]
    centred = delivered - delivered.mean(-1, keepdims=True)
    effects = (centred / deviation[:, None, None]) @ direction
    assert worst(effect_map(trace, layer, head, target)[0], effects) < FLOAT32 * 10


def test_without_a_target_every_reader_is_measured_on_the_token_that_follows_it() -> None:
    trace = trace_of("llama")
    own, _ = effect_map(trace, 0, 1)
    for reader in (0, 4, N - 2):
        chosen, _ = effect_map(trace, 0, 1, PROMPT[reader + 1])
        assert torch.allclose(own[reader], chosen[reader], atol=1e-7)


def test_only_a_tensor_that_is_measured_on_a_token_takes_one() -> None:
    from app.analysis.tensors import TABLE, require_aimable

    aimed = from_trace(trace_of("llama"), "attribution_map", {"layer": 0, "head": 1}, {"target": 5, "foil": 6})
    assert worst(aimed.array, effect_map(trace_of("llama"), 0, 1, 5, 6)[0]) == 0
    assert aimed.mask is not None
    with pytest.raises(InvalidInput, match="pattern has no target"):
        require_aimable(TABLE["pattern"])
    with pytest.raises(UnknownToken):
        from_trace(trace_of("llama"), "attribution_map", {"layer": 0, "head": 1}, {"target": 99})


def _model(name: str) -> torch.nn.Module:
    from tests.lm.tiny import model_of

    model: torch.nn.Module = model_of(name)
    return model
