"""The ledger catches what it is there to catch: each row fails, and says where, when its claim is made false."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from app.analysis.heads import scan_heads
from app.analysis.ledger import TOLERANCE, check_ledger, spread, tolerance_of
from app.analysis.residue import Worst
from app.domain.ledger import LedgerRow
from app.lm.recorder import Mask
from app.lm.trace import Trace
from tests.lm.tiny import BY_NAME, PROMPT, build
from tests.lm.tiny_loaded import load, loaded_of


def rows_of(name: str, damage: Callable[[Trace], Trace | None]) -> dict[str, LedgerRow]:
    """The ledger of a trace that was recorded from a fresh model and then damaged."""
    loaded = load(build(BY_NAME[name].config()))
    trace = loaded.record(PROMPT)
    with torch.inference_mode():
        trace = damage(trace) or trace
    return {row.name: row for row in check_ledger(loaded, trace, scan_heads(trace).replay).rows}


def broken(rows: dict[str, LedgerRow]) -> set[str]:
    return {name for name, row in rows.items() if not row.holds}


def test_a_whole_trace_has_no_broken_row() -> None:
    assert broken(rows_of("gpt2", lambda trace: None)) == set()


def test_a_lost_mlp_write_breaks_the_stream_row_in_its_layer() -> None:
    def damage(trace: Trace) -> None:
        trace.mlp_write[1, 4] = 0

    rows = rows_of("gpt2", damage)
    assert "stream" in broken(rows)
    assert rows["stream"].where == "layer 1, token 4"


def test_a_write_that_heads_do_not_explain_breaks_the_heads_row() -> None:
    def damage(trace: Trace) -> None:
        trace.attn_write[2, 7] *= 1.01

    rows = rows_of("llama", damage)
    assert rows["heads"].where == "layer 2, token 7"
    assert {"heads", "stream"} <= broken(rows)


def test_a_pattern_that_sees_the_future_breaks_the_replay_row() -> None:
    def damage(trace: Trace) -> None:
        for layer, replay in trace.recording.replay.items():
            see_all = Mask(lambda b, h, q, k: k >= 0)
            trace.recording.replay[layer] = replace(replay, mask=see_all)

    def see_too_little(trace: Trace) -> None:
        for layer, replay in trace.recording.replay.items():
            trace.recording.replay[layer] = replace(replay, mask=Mask(lambda b, h, q, k: (k <= q) & (k > q - 3)))

    assert "replay" in broken(rows_of("gpt2", see_too_little))
    # Blocks of rows end with the last reader's key, so all of the future is cut off but that within a block.
    assert "replay" in broken(rows_of("gpt2", damage))


def test_a_value_changed_after_the_fact_breaks_the_replay_row() -> None:
    def damage(trace: Trace) -> None:
        trace.recording.v[0] = trace.recording.v[0].clone()
        trace.recording.v[0][0, 3] += 0.1

    rows = rows_of("llama", damage)
    assert "replay" in broken(rows)
    assert rows["replay"].where.startswith("layer 0")


def test_a_wrong_last_stream_breaks_the_logits_row() -> None:
    def damage(trace: Trace) -> None:
        trace.stream[-1, 5] += torch.linspace(0, 1, trace.anatomy.d_model)

    rows = rows_of("gpt2", damage)
    assert {"logits", "stream"} <= broken(rows)
    assert rows["logits"].where == "token 5"


def test_a_lost_position_embedding_breaks_the_embedding_row() -> None:
    assert "embedding" in broken(rows_of("gpt2", lambda trace: replace(trace, pos_embed=None)))


def test_a_component_left_out_breaks_the_attribution_row() -> None:
    def damage(trace: Trace) -> None:
        trace.mlp_write[0, -1] = 0

    assert "attribution" in broken(rows_of("llama", damage))


def test_numbers_that_are_not_finite_never_hold() -> None:
    def damage(trace: Trace) -> None:
        trace.attn_write[0, 0, 0] = torch.nan

    rows = rows_of("gpt2", damage)
    assert {"stream", "heads"} <= broken(rows)
    assert rows["stream"].worst_rel != rows["stream"].worst_rel


def test_the_tolerance_follows_the_number_type_of_the_model() -> None:
    trace = loaded_of("llama").record(PROMPT)
    assert tolerance_of(trace) == TOLERANCE
    model = deepcopy(loaded_of("llama").model).to(torch.bfloat16)
    assert tolerance_of(load(model).record(PROMPT)) == pytest.approx(16 * 2**-7)


@pytest.mark.parametrize(("n", "most"), [(1, 5), (2, 5), (5, 5), (12, 4), (1000, 128)])
def test_positions_are_spread_evenly_and_hold_the_last(n: int, most: int) -> None:
    positions = spread(n, most)
    assert positions == sorted(set(positions))
    assert len(positions) <= min(n, most)
    assert positions[-1] == n - 1
    assert positions[0] == (0 if min(n, most) > 1 else n - 1)
    gaps = {after - before for before, after in pairwise(positions)}
    assert not gaps or max(gaps) - min(gaps) <= 1


# Comparing


def test_the_error_is_relative_to_the_vector_itself() -> None:
    worst = Worst()
    worst.compare(torch.tensor([[1000.0, 0.0], [1.1, 0.0]]), torch.tensor([[1000.1, 0.0], [1.0, 0.0]]), str)
    assert worst.relative == pytest.approx(0.1, rel=1e-5)
    assert worst.absolute == pytest.approx(0.1, rel=1e-3)
    assert worst.where == "1"


def test_an_error_against_exact_zeros_is_not_excused() -> None:
    worst = Worst()
    worst.compare(torch.tensor([[1e-8]]), torch.tensor([[0.0]]))
    assert worst.relative > 1


def test_comparing_nothing_proves_nothing() -> None:
    assert not Worst().row("empty", "Nothing equals nothing.", 1.0).holds


def test_nan_stays_the_worst_whatever_follows() -> None:
    worst = Worst()
    worst.compare(torch.tensor([[float("nan")]]), torch.tensor([[1.0]]), lambda i: "here")
    worst.compare(torch.tensor([[2.0]]), torch.tensor([[1.0]]), lambda i: "there")
    assert worst.relative != worst.relative
    assert worst.where == "here"
