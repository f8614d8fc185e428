"""What of every source reaches a prediction: the logits of the next character as a sum over sources and units.

The read-out of reader t gives the output weights W the vector pooled_t = Σ_s a_s read_s over the steps s of its run.
With hidden states split as in `memory`, the part of layer l that source r brings is

    arrived_r = ( Σ_{s ≥ r} a_s · ratio_s ⊙ Π_{q=r+1..s} f_q ) ⊙ i_r ⊙ g_r,      ratio = o ⊙ tanh(c) / c

The bracket obeys B_r = a_r ratio_r + f_{r+1} ⊙ B_{r+1} and is computed backwards once for all targets. A read-out that
reads embeddings adds a_r e_r. Everything that padding brings, the state it leaves and the steps of it that are read,
is the start's. Then, exactly,

    logit_y = Σ_r arrived_r · W[y] + start · W[y] + b[y]

These are direct contributions, as in direct logit attribution: what a source does by changing later gates and
candidates is not its own but that of the sources whose gates it changed.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from app.analysis.lstm.memory import readout_ratio, start_cell
from app.lm.lstm_trace import LstmTrace, Run


@dataclass(frozen=True)
class Delivery:
    """What the read-out of one reader receives, in d_read: from every source, and from the start."""

    sources: Float[Tensor, "source d_read"]
    start: Float[Tensor, " d_read"]

    @property
    def total(self) -> Float[Tensor, " d_read"]:
        """The sum of every term; it closes to what the output weights are given."""
        return self.sources.sum(0) + self.start


@dataclass(frozen=True)
class LogitParts:
    """One logit, or a difference of two, as a sum over sources and read features, the start and the output bias."""

    sources: Float[Tensor, "source d_read"]
    start: Float[Tensor, " d_read"]
    bias: Float[Tensor, ""]

    @property
    def per_source(self) -> Float[Tensor, " source"]:
        """Logits for each source, over all features."""
        return self.sources.sum(-1)

    @property
    def per_feature(self) -> Float[Tensor, " d_read"]:
        """Logits for each feature that the read-out reads, units among them, over all sources and the start."""
        return self.sources.sum(0) + self.start

    @property
    def total(self) -> Float[Tensor, ""]:
        """The sum of every part; it closes to the logit."""
        return self.sources.sum() + self.start.sum() + self.bias


def delivery_of(trace: LstmTrace, run: Run) -> Delivery:
    """What each source brings to the read-out of a run's last step."""
    padding, layout = run.n_padding, trace.layout
    attended = run.readout[padding:]
    sources = torch.zeros(len(run.sources), run.read.shape[1])
    start = run.readout[:padding] @ run.read[:padding]
    if layout.embed is not None:
        sources[:, layout.embed] = attended[:, None] * run.embed[padding:]
    gates, ratio, first = run.gates, readout_ratio(run.gates), start_cell(run)
    for layer, place in layout.layers:
        forget = gates.forget_gate[layer, padding:]
        bracket = attended[:, None] * ratio[layer, padding:]
        for source in range(len(bracket) - 2, -1, -1):
            bracket[source] += forget[source + 1] * bracket[source + 1]
        sources[:, place] = bracket * gates.input_gate[layer, padding:] * gates.candidate[layer, padding:]
        start[place] += forget[0] * bracket[0] * first[layer]
    return Delivery(sources, start)


def logit_parts(trace: LstmTrace, delivery: Delivery, target: int, foil: int | None = None) -> LogitParts:
    """The contributions to the logit of a target, or to target − foil."""
    column, bias = trace.output_weight[target], trace.output_bias[target]
    if foil is not None:
        column, bias = column - trace.output_weight[foil], bias - trace.output_bias[foil]
    return LogitParts(delivery.sources * column, delivery.start * column, bias)


def promoted(trace: LstmTrace, delivery: Delivery) -> Float[Tensor, "source vocab"]:
    """What every source adds to every logit."""
    return delivery.sources @ trace.output_weight.T
