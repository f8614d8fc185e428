"""The snapshot of an LSTM's trace: what a page needs to open, small enough to store."""

import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import torch

from app.analysis.lstm.ledger import LstmLedger
from app.analysis.lstm.maps import Maps, half_life, scan_runs, seen
from app.analysis.predictions import Predictions, predictions_of
from app.domain.snapshot import Snapshot
from app.lm.lstm import LoadedLstm
from app.lm.lstm_trace import LstmTrace
from app.lm.protocol import Progress

# Maps of longer texts are computed from the trace when they are asked for.
STORE_MAPS_UP_TO = 128
SHOWN = 5

T = TypeVar("T")


def summarize(loaded: LoadedLstm, trace: LstmTrace, progress: Progress) -> Snapshot:
    """The snapshot: `meta` has next, top, surprisal, entropy, ledger, cost_s, notes and window."""
    cost: dict[str, float] = {}

    def timed(stage: str, work: Callable[[], T]) -> T:
        progress(stage, 0.0)
        start = time.perf_counter()
        result = work()
        cost[stage] = round(time.perf_counter() - start, 4)
        return result

    checks = LstmLedger(trace)
    with torch.inference_mode():
        maps = timed("runs", lambda: scan_runs(trace, checks.take, progress))
        predictions = timed(
            "predictions",
            lambda: predictions_of(trace.token_ids, len(trace.output_bias), trace.logits, progress),
        )
        ledger = timed("ledger", lambda: checks.finish(loaded))
        tensors = {name: tensor.numpy() for name, tensor in {**step_tensors(trace), **_mapped(trace, maps)}.items()}
    meta: dict[str, object] = {
        "ledger": ledger.to_json(),
        "cost_s": cost,
        "window": trace.window,
        "notes": notes(loaded, trace),
        **_predicted(loaded, predictions),
    }
    return Snapshot(meta, tensors)


def step_tensors(trace: LstmTrace) -> dict[str, torch.Tensor]:
    """Means of the gates over units, and norms, per layer and position."""
    gates = trace.gates
    return {
        "input_gate_mean": gates.input_gate.mean(-1),
        "forget_gate_mean": gates.forget_gate.mean(-1),
        "output_gate_mean": gates.output_gate.mean(-1),
        "candidate_norm": gates.candidate.norm(dim=-1),
        "written_norm": (gates.input_gate * gates.candidate).norm(dim=-1),
        "cell_norm": gates.cell.norm(dim=-1),
        "hidden_norm": gates.hidden.norm(dim=-1),
    }


def notes(loaded: LoadedLstm, trace: LstmTrace) -> list[str]:
    """What has to be said about this run, in sentences."""
    unit = loaded.vocabulary.unit
    said = []
    if trace.window is not None:
        said.append(
            f"This network was trained on windows of {trace.window} {unit}s. For every {unit} it starts afresh and "
            f"reads the last {trace.window}, padded on the left: what lies further back cannot reach a prediction. "
            "The padding is read like text, so the state before the first of them is not zero."
        )
    unknown = trace.unknown_positions
    if unknown:
        shown = ", ".join(str(position) for position in unknown[:12]) + (" …" if len(unknown) > 12 else "")
        many = len(unknown) > 1
        also = " (which is also its padding)" if trace.unknown_id == loaded.vocabulary.padding_id else ""
        said.append(
            f"{len(unknown)} {unit}{'s are' if many else ' is'} not in the vocabulary, at position"
            f"{'s' if many else ''} {shown}; the network reads id {trace.unknown_id}{also} instead."
        )
    return said


def _mapped(trace: LstmTrace, maps: Maps) -> dict[str, torch.Tensor]:
    kept = {
        "start_pattern": maps.start_pattern,
        "start_norm": maps.start_norm,
        "readout_start": maps.readout_start,
        "half_life": half_life(maps.retention, seen(trace)),
    }
    if trace.n_pos > STORE_MAPS_UP_TO:
        return kept
    return {
        **kept,
        "implied_pattern": maps.implied_pattern,
        "carried_norm": maps.carried_norm,
        "retention": maps.retention,
        "readout_pattern": maps.readout_pattern,
        "delivered_norm": maps.delivered_norm,
    }


def _predicted(loaded: LoadedLstm, predictions: Predictions) -> dict[str, object]:
    label = loaded.vocabulary.label
    columns = (predictions.top_ids, predictions.top_probabilities, predictions.top_logits)
    rows = [
        [
            {"id": token_id, "label": label(token_id), "probability": probability, "logit": logit}
            for token_id, probability, logit in zip(*row, strict=True)
        ]
        for row in zip(*(column[:, :SHOWN].tolist() for column in columns), strict=True)
    ]
    surprisal = [None, *predictions.surprisal[1:].tolist()]
    return {"next": rows[-1], "top": rows, "surprisal": surprisal, "entropy": predictions.entropy.tolist()}


def stored_mask(window: int | None, n_pos: int) -> np.ndarray:
    """Which sources each reader can see, from what a snapshot says: [query_pos, key_pos]."""
    at = np.arange(n_pos)
    visible = at[None, :] <= at[:, None]
    return visible if window is None else visible & (at[None, :] > at[:, None] - window)
