"""Properties over random configurations: heads, key/value heads, head size, window, caps, and lengths from 1 to 40.

Each example builds a model, records it, and compares it with the untouched model and with the reference in float64.
"""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from app.analysis.attribution import attribute
from app.analysis.heads import scan_heads
from app.analysis.ledger import check_ledger
from app.analysis.messages import messages
from app.analysis.predictions import last_logits
from tests.lm.reference_families import reference
from tests.lm.references import run
from tests.lm.test_families import FLOAT32, worst
from tests.lm.tiny import BY_NAME, TWO_ROTARY, VOCAB, build
from tests.lm.tiny_loaded import load, untouched_logits

# One small model with two layers takes about 30 ms; the bound is on the number of examples, not on the time of one.
bounded = settings(max_examples=40, deadline=None, derandomize=True)
prompts = st.lists(st.integers(0, VOCAB - 1), min_size=1, max_size=40).map(tuple)
# Query heads and how many of them share one key/value head.
sharing = st.sampled_from([(1, 1), (2, 1), (3, 3), (4, 2), (6, 3), (8, 4), (8, 8)])
head_sizes = st.sampled_from([2, 4, 6, 10, 16])
window_or_none = st.one_of(st.none(), st.integers(1, 12))
caps = st.one_of(st.none(), st.floats(0.5, 3.0))
seeds = st.integers(0, 2**16)


def check(config: Any, prompt: tuple[int, ...], seed: int) -> None:
    """Everything that holds for every model and every prompt."""
    model = build(config, seed)
    loaded = load(model)
    trace = loaded.record(prompt)
    decoder = reference(config.model_type, config, model.state_dict())
    expected = run(decoder, prompt)
    logits = last_logits(trace, 0, len(prompt))
    assert worst(logits, untouched_logits(model, prompt)) < FLOAT32
    assert worst(logits, expected.logits) < FLOAT32
    for layer, block in enumerate(trace.anatomy.blocks):
        pattern = trace.pattern(layer)
        assert worst(pattern, expected.patterns[layer]) < FLOAT32
        assert (pattern.numpy()[:, ~np.isfinite(expected.scores[layer][0])] == 0).all()
        scale = trace.reader_scale(layer)[:, None]
        for head in range(block.n_heads):
            delivered = pattern[head] @ messages(trace, layer, head) * scale
            assert worst(delivered, expected.head_outputs[layer][head]) < 10 * FLOAT32
    position = len(prompt) - 1
    target = int(expected.logits[position].argmax())
    largest = np.abs(expected.uncapped[position]).max()
    assert (
        abs(float(attribute(trace, position, target).total) - expected.uncapped[position, target]) < FLOAT32 * largest
    )
    ledger = check_ledger(loaded, trace, scan_heads(trace).replay)
    assert ledger.holds, [row for row in ledger.rows if not row.holds]


@bounded
@given(prompt=prompts, heads=sharing, d_head=head_sizes, window=window_or_none, bias=st.booleans(), seed=seeds)
def test_grouped_query_rotary_models(
    prompt: tuple[int, ...], heads: tuple[int, int], d_head: int, window: int | None, bias: bool, seed: int
) -> None:
    name, extra = ("mistral", {"sliding_window": window}) if window else ("llama", {"attention_bias": bias})
    config = BY_NAME[name].config(
        num_attention_heads=heads[0], num_key_value_heads=heads[0] // heads[1], head_dim=d_head, num_hidden_layers=2,
        hidden_size=heads[0] * 4, **extra,
    )  # fmt: skip
    check(config, prompt, seed)


@bounded
@given(prompt=prompts, heads=st.sampled_from([1, 2, 3, 6]), d_head=head_sizes, by_layer=st.booleans(), seed=seeds)
def test_multi_head_models_with_learned_positions(
    prompt: tuple[int, ...], heads: int, d_head: int, by_layer: bool, seed: int
) -> None:
    config = BY_NAME["gpt2"].config(
        n_head=heads, n_embd=heads * d_head, n_layer=2, n_inner=24, scale_attn_by_inverse_layer_idx=by_layer
    )
    check(config, prompt, seed)


@bounded
@given(
    prompt=prompts, heads=sharing, d_head=head_sizes, window=st.integers(1, 12), attention_cap=caps, logit_cap=caps,
    scalar=st.integers(1, 40), seed=seeds,
)  # fmt: skip
def test_models_with_caps_windows_and_norms_after_each_sub_layer(
    prompt: tuple[int, ...], heads: tuple[int, int], d_head: int, window: int, attention_cap: float | None,
    logit_cap: float | None, scalar: int, seed: int,
) -> None:  # fmt: skip
    config = BY_NAME["gemma2"].config(
        num_attention_heads=heads[0], num_key_value_heads=heads[0] // heads[1], head_dim=d_head, num_hidden_layers=2,
        hidden_size=heads[0] * 4, sliding_window=window, layer_types=["sliding_attention", "full_attention"],
        attn_logit_softcapping=attention_cap, final_logit_softcapping=logit_cap, query_pre_attn_scalar=scalar,
    )  # fmt: skip
    check(config, prompt, seed)


@bounded
@given(prompt=prompts, heads=sharing, d_head=st.sampled_from([4, 8]), window=st.integers(1, 12), seed=seeds)
def test_models_with_sinks_and_experts(
    prompt: tuple[int, ...], heads: tuple[int, int], d_head: int, window: int, seed: int
) -> None:
    config = BY_NAME["gpt-oss"].config(
        num_attention_heads=heads[0], num_key_value_heads=heads[0] // heads[1], head_dim=d_head, num_hidden_layers=2,
        hidden_size=heads[0] * 4, sliding_window=window, layer_types=["sliding_attention", "full_attention"],
    )  # fmt: skip
    check(config, prompt, seed)


@bounded
@given(
    prompt=prompts, heads=st.sampled_from([1, 2, 3, 4, 6, 8]), kind=st.sampled_from(["bloom", "mpt", "falcon"]),
    clip=st.one_of(st.none(), st.floats(0.3, 2.0)), parallel=st.booleans(), shared=st.booleans(), seed=seeds,
)  # fmt: skip
def test_models_that_attend_by_themselves(
    prompt: tuple[int, ...], heads: int, kind: str, clip: float | None, parallel: bool, shared: bool, seed: int
) -> None:
    width = heads * 8
    if kind == "bloom":
        config = BY_NAME["bloom"].config(hidden_size=width, n_head=heads, n_layer=2)
    elif kind == "mpt":
        config = BY_NAME["mpt"].config(d_model=width, n_heads=heads, n_layers=2, attn_config={"clip_qkv": clip})
    else:
        config = BY_NAME["falcon-multi-query"].config(
            hidden_size=width,
            num_attention_heads=heads,
            num_hidden_layers=2,
            multi_query=shared,
            parallel_attn=parallel,
        )
    check(config, prompt, seed)


@bounded
@given(prompt=prompts, window=st.integers(1, 12), local=st.booleans(), heads=st.sampled_from([1, 2, 4]), seed=seeds)
def test_models_with_local_attention_or_two_rotations(
    prompt: tuple[int, ...], window: int, local: bool, heads: int, seed: int
) -> None:
    if local:
        config = BY_NAME["gpt-neo"].config(
            num_heads=heads, num_layers=2, window_size=window, attention_types=[[["global", "local"], 1]]
        )
    else:
        config = BY_NAME["gemma3"].config(
            num_attention_heads=4, num_key_value_heads=heads, num_hidden_layers=2, sliding_window=window, **TWO_ROTARY,
            layer_types=["sliding_attention", "full_attention"],
        )  # fmt: skip
    check(config, prompt, seed)
