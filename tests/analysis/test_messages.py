"""What heads send: messages, and norms that are computed without them."""

import numpy as np
import pytest
import torch

from app.analysis.messages import delivered_norms, head_write_norms, message_norms, messages, values_per_head
from app.errors import OutOfRange
from tests.lm.test_families import FLOAT32, NAMES, worst
from tests.lm.tiny_loaded import run_of, trace_of

every_family = pytest.mark.parametrize("name", NAMES)
# Norms come from a Gram matrix: squares of numbers with 1.2e-7 relative error are summed and rooted.
NORMS = 5e-5


@every_family
def test_message_norms_are_the_lengths_of_the_messages(name: str) -> None:
    trace = trace_of(name)
    for layer in trace.attention_layers:
        lengths = [messages(trace, layer, head).norm(dim=-1) for head in range(trace.block(layer).n_heads)]
        assert worst(message_norms(trace, layer), torch.stack(lengths)) < NORMS


@every_family
def test_head_write_norms_are_the_lengths_of_what_each_head_adds(name: str) -> None:
    trace, expected = trace_of(name), run_of(name)
    for layer in trace.attention_layers:
        lengths = np.linalg.norm(expected.head_outputs[layer], axis=-1)
        assert worst(head_write_norms(trace, layer), lengths) < NORMS


@every_family
def test_delivered_norms_are_the_lengths_of_the_weighted_messages(name: str) -> None:
    trace, expected = trace_of(name), run_of(name)
    for layer in trace.attention_layers:
        for head in (0, trace.block(layer).n_heads - 1):
            sent = messages(trace, layer, head).double().numpy()
            weighted = expected.patterns[layer][head][:, :, None] * sent[None]
            lengths = np.linalg.norm(weighted, axis=-1) * trace.reader_scale(layer).numpy()[:, None]
            assert worst(delivered_norms(trace, layer, head), lengths) < NORMS


def test_without_a_norm_after_attention_messages_are_those_of_the_reference() -> None:
    for name in ("gpt2", "llama-eight-over-two", "falcon-grouped"):
        for layer in range(3):
            trace = trace_of(name)
            sent = torch.stack([messages(trace, layer, head) for head in range(trace.block(layer).n_heads)])
            assert worst(sent, run_of(name).messages[layer]) < FLOAT32


def test_values_are_repeated_for_neighbouring_heads() -> None:
    trace = trace_of("llama-eight-over-two")
    repeated = values_per_head(trace, 1)
    for head in range(8):
        assert torch.equal(repeated[head], trace.v(1)[head // 4])


def test_a_layer_that_does_not_exist_is_said() -> None:
    with pytest.raises(OutOfRange, match="There is no layer 3; layers run from 0 to 2"):
        message_norms(trace_of("gpt2"), 3)
