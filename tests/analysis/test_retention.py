"""What the stream keeps: projections of the float64 reference's streams and writes, and the hand-solved example."""

import numpy as np
import pytest

from app.analysis import retention
from app.errors import OutOfRange, Unsupported
from tests.analysis.test_by_hand import by_hand, near
from tests.lm.references import Array
from tests.lm.test_families import NAMES, worst
from tests.lm.tiny_loaded import run_of, trace_of

# Dot products of 32 numbers that partly cancel, against the largest of them.
CLOSE = 5e-5
every_family = pytest.mark.parametrize("name", NAMES)


def dots(a: Array, b: Array) -> Array:
    return (a * b).sum(-1)


def length(a: Array) -> Array:
    return np.sqrt(dots(a, a))


@every_family
def test_projections_on_the_stream_that_a_write_enters(name: str) -> None:
    trace, expected = trace_of(name), run_of(name)
    streams, attn, mlp = (np.array(each) for each in (expected.streams, expected.attn_writes, expected.mlp_writes))
    entered = streams[:-1]
    assert worst(retention.attn_along(trace), dots(attn, entered) / length(entered)) < CLOSE
    if name != "opt-norm-of-sum":
        middle = entered if trace.anatomy.parallel else entered + attn
        assert worst(retention.mlp_along(trace), dots(mlp, middle) / length(middle)) < CLOSE
    for layer in trace.attention_layers:
        along = dots(expected.head_outputs[layer], entered[layer]) / length(entered[layer])
        assert worst(retention.head_along(trace, layer), along) < CLOSE


@every_family
def test_what_later_streams_hold_of_a_write(name: str) -> None:
    trace, expected = trace_of(name), run_of(name)
    streams = np.array(expected.streams)
    for computed, writes in (
        (retention.attn_retention(trace), np.array(expected.attn_writes)),
        (retention.mlp_retention(trace), np.array(expected.mlp_writes)),
    ):
        assert worst(computed, dots(streams[-1], writes) / dots(writes, writes)) < CLOSE
    for layer in trace.attention_layers:
        heads = expected.head_outputs[layer]
        assert worst(retention.head_retention(trace, layer), dots(streams[-1], heads) / dots(heads, heads)) < CLOSE
        write = expected.attn_writes[layer]
        assert worst(retention.attn_held(trace, layer), dots(streams, write) / dots(write, write)) < CLOSE
    write = expected.mlp_writes[1]
    assert worst(retention.mlp_held(trace, 1), dots(streams, write) / dots(write, write)) < CLOSE


@every_family
def test_cosines_between_layers(name: str) -> None:
    trace, streams = trace_of(name), np.array(run_of(name).streams)
    unit = streams / length(streams)[..., None]
    assert worst(retention.step_cosine(trace), dots(unit[1:], unit[:-1])) < CLOSE
    assert worst(retention.stream_cosine(trace, 5), unit[:, 5] @ unit[:, 5].T) < CLOSE


def test_the_first_stream_holds_the_whole_embedding_where_positions_are_not_added_to_it() -> None:
    held = retention.embed_retention(trace_of("llama"))
    assert held[0].tolist() == pytest.approx([1.0] * 12, abs=1e-6)
    assert held[-1].tolist() != pytest.approx([1.0] * 12, abs=1e-2)


def test_on_paper() -> None:
    # Reader 1: x = (1, 3), o = (−1/2, 3/2), last stream (1/2, 9/2).
    _, trace = by_hand()
    assert float(retention.attn_along(trace)[0, 1]) == near(4 / np.sqrt(10))
    assert float(retention.head_along(trace, 0)[0, 1]) == near(4 / np.sqrt(10))
    # x_1 · o / o · o = (−1/4 + 27/4) / (5/2)
    assert float(retention.head_retention(trace, 0)[0, 1]) == near(6.5 / 2.5)
    # x_1 · e / e · e = (1/2 + 27/2) / 10
    assert retention.embed_retention(trace)[:, 1].tolist() == near([1.0, 1.4])
    assert float(retention.step_cosine(trace)[0, 1]) == near(14 / np.sqrt(10 * (1 / 4 + 81 / 4)))


def test_what_was_never_written_has_no_share() -> None:
    # The MLP of the example writes nothing: 0 / 0 is undefined and neither 0 nor 1.
    _, trace = by_hand()
    assert np.isnan(retention.mlp_retention(trace).numpy()).all()


def test_between_is_the_stream_after_attention_and_does_not_exist_everywhere() -> None:
    expected = run_of("gpt2")
    middle = np.array(expected.streams[:-1]) + np.array(expected.attn_writes)
    assert worst(retention.between_norms(trace_of("gpt2")), length(middle)) < CLOSE
    for name in ("gpt-neox-parallel", "opt-norm-of-sum"):
        with pytest.raises(Unsupported):
            retention.between_norms(trace_of(name))


def test_a_layer_or_position_that_does_not_exist_is_said() -> None:
    with pytest.raises(OutOfRange, match="There is no layer 3"):
        retention.mlp_held(trace_of("gpt2"), 3)
    with pytest.raises(OutOfRange, match="There is no pos 12"):
        retention.stream_cosine(trace_of("gpt2"), 12)
