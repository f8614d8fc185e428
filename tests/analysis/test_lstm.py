import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from app.analysis.lstm import maps
from app.analysis.lstm.delivery import delivery_of, logit_parts, promoted
from app.analysis.lstm.memory import hidden_parts, implied_pattern, memory_of, retention
from app.analysis.lstm.snapshot import summarize
from app.analysis.lstm.tensors import LSTM_TABLE, from_snapshot, from_trace
from app.errors import NotFound, OutOfRange
from app.lm.lstm import LoadedLstm, load_lstm
from app.lm.lstm_trace import LstmTrace
from app.settings import Settings
from tests.lm.lstm_reference import NETWORKS, Step, random_tensors, run_reference, steps_of, write_folder

TEXT = "abc de fgh ab cde"
# The stated tolerance of every sum.
CLOSES = 1e-5


def _record(loaded: LoadedLstm, text: str = TEXT) -> LstmTrace:
    return loaded.record(tuple(token.id for token in loaded.encode(text)))


def _ignore(stage: str, fraction: float) -> None:
    """Progress that nobody watches."""


def _error(left: Tensor, right: Tensor) -> float:
    return float((left - right).abs().max() / right.abs().max())


@pytest.fixture(params=NETWORKS)
def tiny(request: pytest.FixtureRequest, tmp_path: Path) -> LoadedLstm:
    seed, units, layers, attention, window = NETWORKS[request.param]
    tensors = random_tensors(seed, units, layers, attention)
    return load_lstm(request.param, write_folder(tmp_path / "tiny", tensors, window), Settings())


@pytest.fixture(scope="session")
def textgenrnn(textgenrnn_folder: Path) -> LoadedLstm:
    return load_lstm("textgenrnn", textgenrnn_folder, Settings())


# By hand


def _two_units(folder: Path) -> LoadedLstm:
    """Two units that see only the letter: a writes into unit 0, b into unit 1, c writes nothing.

    Unit 0 forgets half at each step and unit 1 nothing; input gates are ½, output gates 1, up to rounding.
    """
    far = 40.0
    weight_ih = np.zeros((8, 3), dtype=np.float32)
    weight_ih[4, 0] = weight_ih[5, 1] = math.atanh(0.5)
    bias = np.array([0, 0, 0, far, 0, 0, far, far], dtype=np.float32)
    embedding = np.zeros((10, 3), dtype=np.float32)
    embedding[1:4] = np.eye(3)
    output = np.zeros((10, 2), dtype=np.float32)
    output[1], output[2] = [1, 0], [0, 2]
    tensors = {
        "embedding.weight": embedding, "output.weight": output, "output.bias": np.full(10, 0.25, dtype=np.float32),
        "lstm.weight_ih_l0": weight_ih, "lstm.weight_hh_l0": np.zeros((8, 2), dtype=np.float32),
        "lstm.bias_ih_l0": bias, "lstm.bias_hh_l0": np.zeros(8, dtype=np.float32),
    }  # fmt: skip
    return load_lstm("hand", write_folder(folder, tensors, None), Settings())


def test_two_units_solved_by_hand_halve_or_keep_what_they_took_in(tmp_path: Path) -> None:
    trace = _record(_two_units(tmp_path / "hand"), "acb")
    memory = memory_of(trace.run(2))
    # Unit 0: written ½ · ½ at a, halved twice. Unit 1: written ½ · ½ at b, just now.
    torch.testing.assert_close(memory.keep[0], torch.tensor([[0.25, 1.0], [0.5, 1.0], [1.0, 1.0]]))
    torch.testing.assert_close(memory.weight[0], torch.tensor([[0.125, 0.5], [0.25, 0.5], [0.5, 0.5]]))
    torch.testing.assert_close(memory.carried[0], torch.tensor([[0.0625, 0.0], [0.0, 0.0], [0.0, 0.25]]))
    torch.testing.assert_close(memory.total[0], torch.tensor([0.0625, 0.25]))
    torch.testing.assert_close(retention(memory)[0], torch.tensor([0.25, 1.0, 1.0]))
    expected = torch.tensor([math.sqrt((0.125**2 + 0.5**2) / 2), math.sqrt((0.25**2 + 0.5**2) / 2), 0.5])
    torch.testing.assert_close(implied_pattern(memory)[0], expected)


def test_logits_of_the_hand_solved_network_come_from_the_letter_that_wrote(tmp_path: Path) -> None:
    trace = _record(_two_units(tmp_path / "hand"), "acb")
    delivery = delivery_of(trace, trace.run(2))
    parts = logit_parts(trace, delivery, 2)
    torch.testing.assert_close(parts.per_source, torch.tensor([0.0, 0.0, 2 * math.tanh(0.25)]))
    torch.testing.assert_close(logit_parts(trace, delivery, 1).per_source, torch.tensor([math.tanh(0.0625), 0.0, 0.0]))
    assert float(parts.total) == pytest.approx(2 * math.tanh(0.25) + 0.25, rel=1e-6)


def test_half_life_by_hand_is_the_first_reader_that_holds_no_more_than_half(tmp_path: Path) -> None:
    trace = _record(_two_units(tmp_path / "hand"), "acb")
    scanned = maps.scan_runs(trace, lambda run, memory, delivery: None)
    # a is halved by the next step; c wrote nothing, and b has no reader after it.
    lives = maps.half_life(scanned.retention, maps.seen(trace))
    assert lives.tolist() == [[1.0, math.inf, math.inf]]


# Conservation


def test_sources_and_the_start_add_up_to_cell_hidden_state_and_logits(tiny: LoadedLstm) -> None:
    trace = _record(tiny)
    for run in trace.runs():
        memory, delivery, at = memory_of(run), delivery_of(trace, run), run.reader
        assert _error(memory.total, trace.gates.cell[:, at]) < CLOSES
        assert _error(hidden_parts(run, memory).total, trace.gates.hidden[:, at]) < CLOSES
        assert _error(delivery.total, trace.pooled[at]) < CLOSES
        logits = trace.logits(at, at + 1)[0]
        start = delivery.start @ trace.output_weight.T + trace.output_bias
        assert _error(promoted(trace, delivery).sum(0) + start, logits) < CLOSES


def test_a_logit_split_by_source_or_by_unit_is_the_same_logit(tiny: LoadedLstm) -> None:
    trace = _record(tiny)
    logits = trace.logits(trace.n_pos - 1, trace.n_pos)[0]
    delivery = delivery_of(trace, trace.run(trace.n_pos - 1))
    for target in (1, 4):
        parts = logit_parts(trace, delivery, target)
        scale = float(logits.abs().max())
        by_source = parts.per_source.sum() + parts.start.sum() + parts.bias
        assert float(by_source) == pytest.approx(float(logits[target]), abs=CLOSES * scale)
        assert float(parts.per_feature.sum() + parts.bias) == pytest.approx(float(logits[target]), abs=CLOSES * scale)
        difference = logit_parts(trace, delivery, target, foil=2).total
        assert float(difference) == pytest.approx(float(logits[target] - logits[2]), abs=2 * CLOSES * scale)


def test_shares_are_shares(tiny: LoadedLstm) -> None:
    trace = _record(tiny)
    scanned, visible = maps.scan_runs(trace, lambda run, memory, delivery: None), maps.seen(trace)
    for shares in (scanned.implied_pattern, scanned.retention):
        assert float(shares.min()) >= 0.0
        assert float(shares.max()) <= 1.0 + 1e-6
        assert float(shares[:, ~visible].abs().max()) == 0.0
    rows = scanned.readout_pattern.sum(-1) + scanned.readout_start
    torch.testing.assert_close(rows, torch.ones_like(rows))


# An independent float64 reference


def _carried(steps: list[Step], source: int) -> np.ndarray:
    """Every factor multiplied one after the other, from the source to the last step."""
    value = steps[source].i * steps[source].g
    for step in steps[source + 1 :]:
        value = value * step.f
    return value


def test_what_is_carried_and_delivered_is_that_of_a_slow_float64_network(tiny: LoadedLstm) -> None:
    seed, units, layers, attention, window = NETWORKS[tiny.id]
    trace = _record(tiny)
    tensors = random_tensors(seed, units, layers, attention)
    for reader in (0, 5, trace.n_pos - 1):
        run = trace.run(reader)
        expected = run_reference(tensors, steps_of(list(trace.token_ids), reader, window))
        memory, delivery = memory_of(run), delivery_of(trace, run)
        for layer, steps in enumerate(expected.steps):
            for source in range(len(run.sources)):
                theirs = _carried(steps, run.n_padding + source)
                np.testing.assert_allclose(memory.carried[layer, source].numpy(), theirs, atol=1e-5)
        for layer, place in trace.layout.layers:
            for source in range(len(run.sources)):
                total = np.zeros(units)
                for at in range(run.n_padding + source, len(expected.weights)):
                    step = expected.steps[layer][at]
                    through = step.o * np.tanh(step.c) / step.c
                    carried = _carried(expected.steps[layer][: at + 1], run.n_padding + source)
                    total += expected.weights[at] * through * carried
                np.testing.assert_allclose(delivery.sources[source, place].numpy(), total, atol=2e-5)


# Tables and snapshots


def test_every_tensor_of_the_table_can_be_asked_for_and_has_its_axes(tiny: LoadedLstm) -> None:
    trace = _record(tiny)
    for name, entry in LSTM_TABLE.items():
        fixed = dict.fromkeys(entry.needs, 0)
        answer = from_trace(trace, name, fixed)
        assert answer.axes == tuple(axis for axis in entry.spec.axes if axis not in fixed)
        assert answer.array.ndim == len(answer.axes)


def test_what_a_snapshot_stores_is_what_the_trace_gives(tiny: LoadedLstm) -> None:
    trace = _record(tiny)
    snapshot = summarize(tiny, trace, _ignore)
    assert set(snapshot.tensors) <= set(LSTM_TABLE)
    for name in snapshot.tensors:
        fixed = dict.fromkeys(LSTM_TABLE[name].needs, 0)
        stored, computed = from_snapshot(snapshot, name, fixed), from_trace(trace, name, fixed)
        assert stored is not None
        np.testing.assert_allclose(stored.array, computed.array, atol=1e-6, err_msg=name)
        assert (stored.mask is None) == (computed.mask is None)
        if stored.mask is not None and computed.mask is not None:
            np.testing.assert_array_equal(stored.mask, computed.mask)


def test_the_ledger_of_every_kind_of_network_holds(tiny: LoadedLstm) -> None:
    rows = summarize(tiny, _record(tiny), _ignore).meta["ledger"]
    assert isinstance(rows, list)
    assert [row["name"] for row in rows if not row["holds"]] == []
    assert {"logits", "replay", "cell", "hidden", "readout", "logit_sources", "logit_units"} == {
        row["name"] for row in rows
    }


def test_a_snapshot_survives_being_stored(tiny: LoadedLstm) -> None:
    snapshot = summarize(tiny, _record(tiny, "abzd"), _ignore)
    again = type(snapshot).from_bytes(snapshot.to_bytes())
    assert json.dumps(again.meta) == json.dumps(snapshot.meta)
    assert any("position 2" in str(note) for note in again.meta["notes"])  # type: ignore[attr-defined]


def test_bad_questions_say_what_there_is(tiny: LoadedLstm) -> None:
    trace = _record(tiny)
    with pytest.raises(NotFound, match="implied_pattern"):
        from_trace(trace, "pattern", {})
    with pytest.raises(OutOfRange, match="one layer at a time"):
        from_trace(trace, "implied_pattern", {})
    with pytest.raises(OutOfRange, match="unit runs from 0 to"):
        from_trace(trace, "carried", {"layer": 0, "unit": 99})


# The pretrained network


@pytest.mark.real_model
def test_every_sum_of_textgenrnn_closes_on_a_text_longer_than_its_window(textgenrnn: LoadedLstm) -> None:
    text = 'When Mary and John went to the store, she said: "How do you make it?"\nHe did not know 東京.'
    snapshot = summarize(textgenrnn, _record(textgenrnn, text), _ignore)
    rows = snapshot.meta["ledger"]
    assert isinstance(rows, list)
    assert [row for row in rows if not row["holds"]] == []
    assert all(row["tolerance"] <= 1e-5 for row in rows if row["name"] != "logits")


@pytest.mark.real_model
def test_the_first_layer_of_textgenrnn_remembers_longer_than_the_second(textgenrnn: LoadedLstm) -> None:
    trace = _record(textgenrnn, "When Mary and John went to the store, John gave a drink to Mary.")
    scanned = maps.scan_runs(trace, lambda run, memory, delivery: None)
    lives = maps.half_life(scanned.retention, maps.seen(trace))
    assert float(lives[0].median()) > 2 * float(lives[1].median())
