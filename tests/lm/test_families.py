"""Every family on tiny random models: what is recorded is what the model computes, taken apart exactly.

Compared with the untouched model, with conservation laws, and with a second implementation in float64 that shares no
code with the program (tests/lm/references.py).
"""

import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from app.analysis.attribution import attribute, readout
from app.analysis.heads import scan_heads
from app.analysis.ledger import check_ledger
from app.analysis.messages import messages
from app.analysis.predictions import last_logits
from app.errors import Unsupported
from app.lm.families import FAMILIES, read_anatomy
from app.lm.trace import Trace
from tests.lm.references import Norm
from tests.lm.tiny import BY_NAME, CASES, HYBRIDS, PROMPT, build, model_of
from tests.lm.tiny_loaded import decoder_of, load, loaded_of, run_of, trace_of, untouched_logits

NAMES = [case.name for case in CASES]
ADDITIVE = [name for name in NAMES if name != "opt-norm-of-sum"]
N = len(PROMPT)
# float32 keeps 1.2e-7 of each number; the sums here have up to a few hundred terms and pass through three layers.
FLOAT32 = 1e-5

every_family = pytest.mark.parametrize("name", NAMES)


def worst(left: Any, right: Any) -> float:
    """The largest difference, relative to the largest entry on the right."""
    left, right = np.asarray(left, dtype=np.float64), np.asarray(right, dtype=np.float64)
    assert left.shape == right.shape
    return float(np.abs(left - right).max() / np.abs(right).max())


def test_every_family_has_a_tiny_model() -> None:
    assert {case.model_type for case in (*CASES, *HYBRIDS)} == set(FAMILIES)


@every_family
def test_recorded_logits_are_those_of_the_untouched_model(name: str) -> None:
    assert worst(last_logits(trace_of(name), 0, N), untouched_logits(model_of(name))) < FLOAT32


@every_family
def test_logits_equal_the_reference(name: str) -> None:
    assert worst(last_logits(trace_of(name), 0, N), run_of(name).logits) < FLOAT32


@every_family
def test_streams_and_writes_equal_the_reference(name: str) -> None:
    trace, expected = trace_of(name), run_of(name)
    assert worst(trace.stream, expected.streams) < FLOAT32
    assert worst(trace.attn_write, expected.attn_writes) < FLOAT32
    assert worst(trace.mlp_write, expected.mlp_writes) < FLOAT32


@every_family
def test_patterns_equal_the_reference_and_see_no_further(name: str) -> None:
    trace, expected = trace_of(name), run_of(name)
    for layer, pattern in enumerate(expected.patterns):
        recorded = trace.pattern(layer).numpy()
        assert worst(recorded, pattern) < FLOAT32
        seen = trace.seen(layer).numpy()
        assert (seen == np.isfinite(expected.scores[layer][0])).all()
        assert (recorded[:, ~seen] == 0).all()


@every_family
def test_entries_above_the_diagonal_are_exactly_zero(name: str) -> None:
    for layer in trace_of(name).attention_layers:
        pattern = trace_of(name).pattern(layer)
        assert (pattern[:, *torch.triu_indices(N, N, 1)] == 0).all()


@every_family
def test_each_head_delivers_the_messages_of_the_reference(name: str) -> None:
    trace, expected = trace_of(name), run_of(name)
    for layer in trace.attention_layers:
        delivered = [
            trace.pattern(layer)[head] @ messages(trace, layer, head) * trace.reader_scale(layer)[:, None]
            for head in range(trace.block(layer).n_heads)
        ]
        assert worst(torch.stack(delivered), expected.head_outputs[layer]) < FLOAT32


@every_family
def test_values_are_those_that_attention_used(name: str) -> None:
    trace, expected = trace_of(name), run_of(name)
    for layer in trace.attention_layers:
        assert worst(trace.v(layer), expected.values[layer]) < FLOAT32


@every_family
def test_the_ledger_holds(name: str) -> None:
    trace = trace_of(name)
    ledger = check_ledger(loaded_of(name), trace, scan_heads(trace).replay)
    assert ledger.holds, [row for row in ledger.rows if not row.holds]
    rows = {row.name for row in ledger.rows}
    assert rows >= {"logits", "embedding", "stream", "heads", "replay", "concatenated"}
    assert ("attribution" in rows) == (name in ADDITIVE)


@every_family
def test_windows_and_sharing_are_read_from_the_configuration(name: str) -> None:
    for block, expected in zip(trace_of(name).anatomy.blocks, decoder_of(name).blocks, strict=True):
        assert block.window == expected.window
        assert (block.n_heads, block.n_kv_heads) == (expected.heads, expected.kv_heads)
        assert block.has_rotary == (expected.rotation is not None)
        assert trace_of(name).anatomy.parallel == bool(expected.parallel)


@pytest.mark.parametrize("name", ADDITIVE)
def test_attribution_of_every_component_equals_the_reference(name: str) -> None:
    expected, decoder, position = run_of(name), decoder_of(name), N - 1
    target = int(expected.logits[position].argmax())
    got = attribute(trace_of(name), position, target)
    last = expected.streams[-1][position]
    constant = decoder.unembed(np.zeros_like(last))

    def share(write: np.ndarray) -> float:
        frozen = decoder.final_norm.frozen(write, last) if isinstance(decoder.final_norm, Norm) else write
        return float((decoder.unembed(frozen) - constant)[target] * decoder.logit_scale)

    heads = [[share(output[position]) for output in layer] for layer in expected.head_outputs]
    size = max(1.0, abs(float(expected.uncapped[position, target])), float(np.abs(heads).max()))
    assert np.abs(got.heads.numpy() - heads).max() < FLOAT32 * size
    assert np.abs(got.mlp.numpy() - [share(write[position]) for write in expected.mlp_writes]).max() < FLOAT32 * size
    assert abs(float(got.total) - expected.uncapped[position, target]) < FLOAT32 * size
    assert abs(float(got.logit) - expected.uncapped[position, target]) < FLOAT32 * size


@pytest.mark.parametrize("name", ADDITIVE)
def test_attribution_sums_to_every_logit_at_every_position(name: str) -> None:
    trace, uncapped = trace_of(name), run_of(name).uncapped
    for position in (0, 5, N - 1):
        for target in (0, 17, 60):
            total = float(attribute(trace, position, target).total)
            assert abs(total - uncapped[position, target]) < FLOAT32 * np.abs(uncapped[position]).max()


# What single families are there for


def test_rows_with_sinks_sum_to_what_the_sink_leaves() -> None:
    trace, expected = trace_of("gpt-oss"), run_of("gpt-oss")
    for layer, block in enumerate(trace.anatomy.blocks):
        assert block.sinks is not None
        sums = trace.pattern(layer).sum(-1)
        assert (sums < 1).all()
        scores = np.where(np.isfinite(expected.scores[layer]), expected.scores[layer], -1e30)
        sink = np.exp(block.sinks.double().numpy())[:, None]
        assert worst(1 - sums.numpy(), sink / (sink + np.exp(scores).sum(-1))) < FLOAT32


@pytest.mark.parametrize("name", [name for name in NAMES if name != "gpt-oss"])
def test_rows_without_sinks_sum_to_one(name: str) -> None:
    for layer in trace_of(name).attention_layers:
        assert worst(trace_of(name).pattern(layer).sum(-1), np.ones((trace_of(name).block(layer).n_heads, N))) < FLOAT32


@pytest.mark.parametrize("name", ["llama-eight-over-two", "llama-eight-over-one"])
def test_heads_share_keys_and_values_in_neighbouring_groups(name: str) -> None:
    trace = trace_of(name)
    n_kv_heads = trace.block(0).n_kv_heads

    def z_if(reads: list[int]) -> torch.Tensor:
        return torch.einsum("hqk,hkd->qhd", trace.pattern(0), trace.v(0)[reads])

    assert worst(z_if([head // (8 // n_kv_heads) for head in range(8)]), trace.z(0)) < FLOAT32
    if n_kv_heads > 1:
        assert worst(z_if([head % n_kv_heads for head in range(8)]), trace.z(0)) > 0.1


@pytest.mark.parametrize(("name", "windowed"), [("gpt-neo", [1]), ("gemma2", [0, 2]), ("mistral", [0, 1, 2])])
def test_a_window_masks_beyond_it_in_its_layers_only(name: str, windowed: list[int]) -> None:
    for layer in range(3):
        beyond = trace_of(name).pattern(layer)[:, *torch.tril_indices(N, N, -4)]
        assert (beyond == 0).all() if layer in windowed else (beyond > 0).all()


def test_soft_caps_bite_and_attribution_closes_before_the_cap() -> None:
    trace, expected = trace_of("gemma2"), run_of("gemma2")
    assert trace.anatomy.logit_cap == 2.0
    assert np.abs(expected.uncapped).max() > 2 > np.abs(expected.logits).max()
    target = int(expected.logits[-1].argmax())
    total = attribute(trace, N - 1, target).total
    assert worst(trace.anatomy.cap(total), untouched_logits(model_of("gemma2"))[-1, target]) < FLOAT32
    rows = check_ledger(loaded_of("gemma2"), trace, scan_heads(trace).replay).rows
    assert next(row.note for row in rows if row.name == "attribution") == "before the soft cap"
    no_cap = run_without_caps()
    assert worst(no_cap, run_of("gemma2").patterns[0]) > 0.05


def run_without_caps() -> np.ndarray:
    """The reference pattern of layer 0 without its cap: what an uncapped replay would show."""
    scores = run_of("gemma2").scores[0]
    uncapped = 1.5 * np.arctanh(np.clip(scores / 1.5, -1 + 1e-12, 1 - 1e-12))
    e = np.exp(np.where(np.isfinite(scores), uncapped, -np.inf))
    return np.asarray(e / e.sum(-1, keepdims=True))


@pytest.mark.parametrize("name", ["olmo", "mpt"])
def test_values_are_clipped_as_attention_saw_them(name: str) -> None:
    for layer in range(3):
        assert float(trace_of(name).v(layer).abs().max()) == pytest.approx(0.8)


def test_the_value_bias_counts_once_inside_the_message_and_the_output_bias_in_no_head() -> None:
    model, trace = model_of("llama"), trace_of("llama")
    attention = model.model.layers[1].self_attn
    block, x = trace.block(1), model.model.layers[1].input_layernorm(trace.stream[1])
    for head in range(block.n_heads):
        own = slice(head // 2 * 8, head // 2 * 8 + 8)
        value = x @ attention.v_proj.weight[own].T + attention.v_proj.bias[own]
        sent = value @ attention.o_proj.weight[:, head * 8 : head * 8 + 8].T
        assert worst(messages(trace, 1, head), sent) < FLOAT32
    assert block.b_O is not None
    assert torch.equal(block.b_O, attention.o_proj.bias)


def test_a_post_norm_multiplies_messages_by_its_gain_and_readers_by_its_scale() -> None:
    trace, model = trace_of("olmo2"), model_of("olmo2")
    norm = model.model.layers[0].post_attention_layernorm
    before = torch.einsum("qhd,hdm->qm", trace.z(0), trace.block(0).W_O) / norm.weight
    scale = (before.square().mean(-1) + norm.variance_epsilon).rsqrt()
    assert worst(trace.reader_scale(0), scale) < FLOAT32
    assert worst(before * norm.weight * scale[:, None], trace.attn_write[0]) < FLOAT32


def test_a_residual_multiplier_is_part_of_what_is_written() -> None:
    trace, model = trace_of("granite"), model_of("granite")
    raw = model.model.layers[0].self_attn.o_proj.weight
    assert worst(trace.block(0).W_O.flatten(0, 1), 0.4 * raw.T) < FLOAT32
    assert worst(trace.embed, 3.0 * model.model.embed_tokens.weight[list(PROMPT)]) < FLOAT32


def test_a_model_that_normalises_the_sum_says_so_and_refuses_attribution() -> None:
    trace = trace_of("opt-norm-of-sum")
    total = trace.stream[0] + trace.attn_write[0] + trace.mlp_write[0]
    assert worst(total, trace.stream[1]) > 0.1
    rows = check_ledger(loaded_of("opt-norm-of-sum"), trace, scan_heads(trace).replay).rows
    stream = next(row for row in rows if row.name == "stream")
    assert stream.holds
    assert "not the plain sum" in stream.claim
    assert trace.anatomy.to_json()["normalises_sum"] is True
    with pytest.raises(Unsupported, match="do not add up"):
        readout(trace, 0, 0)


def test_falcon_with_alibi_shows_the_default_path_and_says_so() -> None:
    trace, name = trace_of("falcon-alibi"), "falcon-alibi"
    assert "sdpa" in trace.anatomy.notes[0]
    eager = build(BY_NAME[name].config(attn_implementation="eager"))
    eager.config._attn_implementation = "eager"
    assert worst(untouched_logits(eager), last_logits(trace, 0, N)) > 1e-3


def test_the_embedding_that_enters_the_stream_is_the_one_after_projection_or_norm() -> None:
    for name in ("opt-projected", "bloom"):
        trace = trace_of(name)
        assert trace.embed.shape == (N, trace.anatomy.d_model)
        positions = 0 if trace.pos_embed is None else trace.pos_embed
        assert worst(trace.embed + positions, trace.stream[0]) < FLOAT32


def test_parallel_blocks_are_read_from_the_configuration_and_not_from_the_class() -> None:
    assert trace_of("gpt-neox-parallel").anatomy.parallel
    assert not trace_of("gpt-neox-sequential").anatomy.parallel


def test_anatomy_tells_what_a_page_needs() -> None:
    shape = trace_of("gemma3").anatomy.to_json()
    assert shape["windows"] == [4, None, 4]
    assert shape["qk_norm"] is True
    assert shape["post_norms"] is True
    assert trace_of("smollm3").anatomy.to_json()["rotary_layers"] == [0, 2]
    assert trace_of("bloom").anatomy.to_json()["positions"] == "alibi"


# What is not taken apart


@pytest.mark.parametrize("name", [case.name for case in HYBRIDS])
def test_a_layer_without_softmax_attention_says_why_and_the_others_work(name: str) -> None:
    trace = trace_of(name)
    assert trace.attention_layers == (1,)
    with pytest.raises(Unsupported, match="Layer 0 has no attention pattern: it "):
        trace.pattern(0)
    with pytest.raises(Unsupported):
        trace.block(2)
    assert set(trace.anatomy.to_json()["unsupported_layers"]) == {"0", "2"}  # type: ignore[call-overload]
    assert worst(last_logits(trace, 0, N), untouched_logits(model_of(name))) < FLOAT32
    ledger = check_ledger(loaded_of(name), trace, scan_heads(trace).replay)
    assert ledger.holds
    attribution = attribute(trace, N - 1, 5)
    assert attribution.heads[0].isnan().all()
    assert not attribution.heads[1].isnan().any()
    assert float(attribution.total) == pytest.approx(float(attribution.logit), rel=FLOAT32, abs=FLOAT32)


def test_an_unknown_family_is_refused_with_the_list_of_known_ones() -> None:
    model = build(BY_NAME["llama"].config())
    model.config.model_type = "unheard-of"
    with pytest.raises(Unsupported, match=r"type unheard-of are not supported; supported are: .*bloom, .*starcoder2"):
        read_anatomy(model)


@pytest.mark.parametrize(
    ("name", "changes", "reason"),
    [
        ("gemma3", {"use_bidirectional_attention": True}, "attends in both directions"),
        ("bloom", {"apply_residual_connection_post_layernorm": True}, "replaces the stream"),
        ("jamba", {"attn_layer_period": 8, "attn_layer_offset": 4}, "No layer of this jamba model has softmax"),
        ("bloom", {"slow_but_exact": True, "pretraining_tp": 2}, "slices of its output projection"),
    ],
)
def test_a_variant_that_cannot_be_exact_is_refused_with_its_reason(
    name: str, changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(Unsupported, match=reason):
        read_anatomy(build(BY_NAME[name].config(**changes)))


def test_a_part_that_is_not_where_the_family_keeps_it_is_named() -> None:
    model = build(BY_NAME["llama"].config())
    del model.model.layers[1].mlp
    with pytest.raises(Unsupported, match="no part named mlp"):
        read_anatomy(model)


# Several models in one process


def test_models_recorded_in_turn_give_the_numbers_of_a_fresh_model() -> None:
    names = ("gemma2", "gpt2", "bloom", "mistral", "falcon-alibi")
    fresh: dict[str, Trace] = {name: load(build(BY_NAME[name].config())).record(PROMPT) for name in names}
    for name in (*names, *reversed(names)):
        again = loaded_of(name).record(PROMPT)
        for layer in range(3):
            assert torch.equal(again.pattern(layer), fresh[name].pattern(layer))
        assert torch.equal(again.stream, fresh[name].stream)


@every_family
def test_recording_leaves_no_trace_in_the_model(name: str) -> None:
    model = model_of(name)
    before = untouched_logits(model)
    plain = model.config._attn_implementation
    loaded_of(name).record(PROMPT)
    assert model.config._attn_implementation == plain
    hooks = [m for m in model.modules() if m._forward_hooks or m._forward_pre_hooks]
    assert hooks == []
    assert torch.equal(untouched_logits(model), before)


# The page about families


def test_the_documentation_lists_every_family_and_no_other() -> None:
    page = (Path(__file__).parents[2] / "docs" / "families.md").read_text()
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == sorted(FAMILIES)


def test_the_example_of_the_documentation_is_the_code() -> None:
    page = (Path(__file__).parents[2] / "docs" / "families.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert textwrap.dedent(example).strip() == inspect.getsource(FAMILIES["cohere"]).strip()
