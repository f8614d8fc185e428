"""Direct logit attribution: the frozen final scale, raw weights, and every row."""

import pytest
import torch

from app.analysis.attribution import attribute, readout
from app.analysis.stream import all_head_write_norms, all_message_norms
from tests.lm.test_families import ADDITIVE, FLOAT32, worst
from tests.lm.tiny import PROMPT, model_of
from tests.lm.tiny_loaded import run_of, trace_of, untouched_logits

N = len(PROMPT)


def test_components_of_a_gpt2_on_raw_weights_sum_to_the_last_stream_and_its_norm_to_the_logits() -> None:
    trace, model = trace_of("gpt2"), model_of("gpt2")
    total = model.transformer.wte.weight[list(PROMPT)] + model.transformer.wpe.weight[:N]
    for layer, block in enumerate(trace.anatomy.blocks):
        for head in range(block.n_heads):
            total = (
                total + trace.z(layer)[:, head] @ model.transformer.h[layer].attn.c_proj.weight[head * 8 : head * 8 + 8]
            )
        total = total + model.transformer.h[layer].attn.c_proj.bias + trace.mlp_write[layer]
    assert worst(total, trace.stream[-1]) < FLOAT32
    normed = torch.nn.functional.layer_norm(total, (32,), model.transformer.ln_f.weight, model.transformer.ln_f.bias)
    assert worst(normed @ model.lm_head.weight.T, untouched_logits(model)) < FLOAT32


@pytest.mark.parametrize("name", ["gpt2", "llama", "gemma2", "phi", "granite"])
def test_a_difference_of_two_logits_is_the_difference_of_their_attributions(name: str) -> None:
    trace = trace_of(name)
    both, one, other = attribute(trace, 8, 3, foil=50), attribute(trace, 8, 3), attribute(trace, 8, 50)
    size = run_of(name).uncapped[8].std() + 1
    for row in ("embed", "heads", "attn_bias", "mlp", "final_norm_bias", "unembed_bias", "logit", "total"):
        assert torch.allclose(getattr(both, row), getattr(one, row) - getattr(other, row), atol=FLOAT32 * size)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_the_scale_is_that_of_the_last_stream_and_not_of_each_layer(name: str) -> None:
    trace, norm = trace_of(name), trace_of(name).anatomy.final_norm
    assert norm is not None
    direction = trace.anatomy.unembed_direction(9)
    write, last = trace.mlp_write[0, 5], trace.stream[-1, 5]
    frozen = norm.linear(write, norm.inverse_scale(last)) @ direction
    with_its_own = norm.linear(write, norm.inverse_scale(trace.stream[0, 5])) @ direction
    got = attribute(trace, 5, 9).mlp[0]
    assert float(got) == pytest.approx(float(frozen), rel=1e-4)
    assert float(got) != pytest.approx(float(with_its_own), rel=0.05)


@pytest.mark.parametrize("name", ADDITIVE)
def test_a_read_out_is_linear_in_the_writes(name: str) -> None:
    trace = trace_of(name)
    read = readout(trace, 4, 7)
    logit = trace.stream[-1, 4] @ read.direction + read.norm_bias + read.unembed_bias
    assert abs(float(logit) - run_of(name).uncapped[4, 7]) < FLOAT32 * abs(run_of(name).uncapped[4]).max()


def test_output_biases_have_a_row_of_their_own() -> None:
    trace, model = trace_of("llama"), model_of("llama")
    read = readout(trace, 6, 2)
    bias = attribute(trace, 6, 2).attn_bias
    expected = [model.model.layers[layer].self_attn.o_proj.bias @ read.direction for layer in range(3)]
    assert worst(bias, torch.stack(expected)) < FLOAT32


def test_the_bias_of_the_unembedding_has_a_row_of_its_own() -> None:
    trace, model = trace_of("phi"), model_of("phi")
    assert float(attribute(trace, 6, 2).unembed_bias) == pytest.approx(float(model.lm_head.bias[2]))


def test_layers_without_heads_have_no_number_and_are_not_zero() -> None:
    trace = trace_of("lfm2")
    for table in (all_message_norms(trace), all_head_write_norms(trace), attribute(trace, 3, 1).heads[:, :, None]):
        assert table[[0, 2]].isnan().all()
        assert not table[1].isnan().any()
