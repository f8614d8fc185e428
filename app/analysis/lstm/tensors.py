"""The tensor table of LSTMs: everything that can be asked for by name, as for transformers in `analysis.tensors`."""

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor

from app.analysis.lstm import maps
from app.analysis.lstm.delivery import delivery_of, logit_parts
from app.analysis.lstm.memory import implied_pattern, memory_of, retention, start_pattern
from app.analysis.lstm.snapshot import step_tensors, stored_mask
from app.analysis.tensors import Answer, Computed, Entry, computed, entry_of, needed_of, sliced
from app.domain.axes import TensorSpec
from app.domain.snapshot import Snapshot
from app.errors import OutOfRange
from app.lm.lstm_trace import LstmTrace, Run

Row = Callable[[LstmTrace, Run], Tensor]


def _map(row: Callable[..., Tensor]) -> Callable[..., Computed]:
    """A map of one number for each source of a run."""

    def compute(trace: LstmTrace, **fixed: int) -> Computed:
        def of_run(run: Run) -> Tensor:
            return row(trace, run, **fixed)

        return maps.map_of(trace, of_run), maps.seen(trace)

    return compute


def _start(row: Callable[..., Tensor]) -> Callable[..., Computed]:
    """A number of the start for each layer and reader."""
    return lambda trace: (torch.stack([row(run) for run in trace.runs()], -1), None)


def _half_life(trace: LstmTrace) -> Computed:
    retained = torch.zeros(trace.n_layers, trace.n_pos, trace.n_pos)
    for run in trace.runs():
        retained[:, run.reader, run.first : run.reader + 1] = retention(memory_of(run))
    return maps.half_life(retained, maps.seen(trace)), None


def _effect(trace: LstmTrace, run: Run, vocab: int) -> Tensor:
    return logit_parts(trace, delivery_of(trace, run), vocab).per_source


def _unit_effect(trace: LstmTrace, vocab: int, query_pos: int) -> Computed:
    """Contributions of the units of every layer; those of a layer that the read-out does not read are 0."""
    parts = logit_parts(trace, delivery_of(trace, trace.run(query_pos)), vocab)
    effect = torch.zeros(trace.n_layers, trace.n_units)
    for layer, place in trace.layout.layers:
        effect[layer] = parts.per_feature[place]
    return effect, None


def _entry(
    name: str, axes: str, unit: str, about: str, compute: Callable[..., Computed], needs: str = ""
) -> Entry:  # fmt: skip
    return Entry(TensorSpec(name, tuple(axes.split()), unit, about), tuple(needs.split()), compute)


def _gate(name: str, unit: str, about: str) -> Entry:
    return _entry(name, "layer pos unit", unit, about, lambda trace: (getattr(trace.gates, name), None))


def _step(name: str, unit: str, about: str) -> Entry:
    return _entry(name, "layer pos", unit, about, lambda trace: (step_tensors(trace)[name], None))


_PAIRS = "query_pos key_pos"

LSTM_TABLE: dict[str, Entry] = {
    entry.spec.name: entry
    for entry in (
        _gate("input_gate", "0 to 1", "How much of its candidate each unit takes in."),
        _gate("forget_gate", "0 to 1", "How much of its old state each unit keeps."),
        _gate("output_gate", "0 to 1", "How much of its state each unit shows."),
        _gate("candidate", "−1 to 1", "What each unit would take in: the message g."),
        _gate("cell", "cell state", "The cell state c."),
        _gate("hidden", "−1 to 1", "The hidden state h = o ⊙ tanh(c)."),
        _step("input_gate_mean", "0 to 1", "Mean of the input gates over units."),
        _step("forget_gate_mean", "0 to 1", "Mean of the forget gates over units."),
        _step("output_gate_mean", "0 to 1", "Mean of the output gates over units."),
        _step("candidate_norm", "norm", "Norm of the candidate g."),
        _step("written_norm", "norm", "Norm of what is written, i ⊙ g."),
        _step("cell_norm", "norm", "Norm of the cell state."),
        _step("hidden_norm", "norm", "Norm of the hidden state."),
        _entry(
            "half_life", "layer key_pos", "steps",
            "Steps until the cells hold half of what a source wrote; infinite where the text or the window ends first.",
            _half_life,
        ),
        _entry(
            "implied_pattern", f"layer {_PAIRS}", "0 to 1",
            "Weight that the cells at a reader give to a source, (Π f) ⊙ i: root mean square over units.",
            _map(lambda trace, run, layer: implied_pattern(memory_of(run))[layer]), "layer",
        ),
        _entry(
            "carried_norm", f"layer {_PAIRS}", "norm", "Norm of what the cells at a reader still hold of a source.",
            _map(lambda trace, run, layer: memory_of(run).carried[layer].norm(dim=-1)), "layer",
        ),
        _entry(
            "retention", f"layer {_PAIRS}", "share", "Norm of what is still held over the norm of what was written.",
            _map(lambda trace, run, layer: retention(memory_of(run))[layer]), "layer",
        ),
        _entry(
            "implied_weight", f"layer unit {_PAIRS}", "0 to 1", "The weight (Π f) ⊙ i of one unit.",
            _map(lambda trace, run, layer, unit: memory_of(run).weight[layer, :, unit]), "layer unit",
        ),
        _entry(
            "carried", f"layer unit {_PAIRS}", "cell state", "What one unit still holds of a source, (Π f) ⊙ i ⊙ g.",
            _map(lambda trace, run, layer, unit: memory_of(run).carried[layer, :, unit]), "layer unit",
        ),
        _entry(
            "start_pattern", "layer pos", "0 to 1", "Weight of the state before the text: rms over units of Π f.",
            _start(lambda run: start_pattern(memory_of(run))),
        ),
        _entry(
            "start_norm", "layer pos", "norm", "Norm of what is left of the state before the text.",
            _start(lambda run: memory_of(run).start.norm(dim=-1)),
        ),
        _entry(
            "readout_pattern", _PAIRS, "probability", "Where the read-out attends.",
            _map(lambda trace, run: run.readout[run.n_padding :]),
        ),
        _entry(
            "readout_start", "pos", "probability", "Attention of the read-out on padding.",
            _start(lambda run: run.readout[: run.n_padding].sum()),
        ),
        _entry(
            "delivered_norm", _PAIRS, "norm", "Norm of what a source brings to a reader's read-out.",
            _map(lambda trace, run: delivery_of(trace, run).sources.norm(dim=-1)),
        ),
        _entry(
            "effect", f"vocab {_PAIRS}", "logits", "What each source adds to the logit of one possible next token.",
            _map(_effect), "vocab",
        ),
        _entry(
            "unit_effect", "vocab query_pos layer unit", "logits", "What each unit adds to that logit.",
            _unit_effect, "vocab query_pos",
        ),
    )
}  # fmt: skip


def from_snapshot(snapshot: Snapshot, name: str, fixed: Mapping[str, int]) -> Answer | None:
    """The answer from what is stored, or None where the snapshot does not hold it. Raises as for transformers."""
    entry = entry_of(name, LSTM_TABLE)
    array = snapshot.tensors.get(name)
    if array is None:
        return None
    axes = entry.spec.axes
    mask = None
    if axes[-2:] == tuple(_PAIRS.split()):
        window = snapshot.meta.get("window")
        assert window is None or isinstance(window, int)
        mask = np.broadcast_to(stored_mask(window, array.shape[-1]), array.shape).astype(np.uint8)
    return sliced(entry, axes, array, mask, fixed, {})


def from_trace(trace: LstmTrace, name: str, fixed: Mapping[str, int]) -> Answer:
    """The answer computed from a trace. Raises as for transformers."""
    entry = entry_of(name, LSTM_TABLE)
    needed = needed_of(entry, fixed)
    sizes = {
        "layer": trace.n_layers, "unit": trace.n_units, "vocab": len(trace.output_bias), "query_pos": trace.n_pos,
    }  # fmt: skip
    for axis, index in needed.items():
        if not 0 <= index < sizes[axis]:
            raise OutOfRange(
                f"There is no {axis} {index}; {axis} runs from 0 to {sizes[axis] - 1}.",
                axis=axis, index=index, size=sizes[axis],
            )  # fmt: skip
    return computed(entry, trace, needed, fixed)
