"""What the cells at the end of a run still hold of every source.

Unrolling c_t = f_t ⊙ c_{t−1} + i_t ⊙ g_t gives, exactly,

    c_t = Σ_s keep_ts ⊙ i_s ⊙ g_s  +  keep_t0 ⊙ c_start,      keep_ts = Π_{r=s+1..t} f_r

so a cell is a sum over sources like a head's output: the *implied weight* keep_ts ⊙ i_s, one number for each unit,
stands where a pattern has one number for each head, and the *message* is the candidate g_s. Padding that a network
reads before the text is gathered in one term, that of the state it leaves. The read-out h = o ⊙ tanh(c) is not linear;
with the ratio tanh(c) / c frozen at its own value it splits over the same sources:

    h_t = Σ_s (o_t ⊙ tanh(c_t) / c_t) ⊙ carried_ts + the same of the start

keep is a product of numbers in (0, 1), multiplied from the reader backwards: nothing is divided, so units that forget
everything give exact zeros.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from app.lm.lstm_trace import Gates, Run


@dataclass(frozen=True)
class Memory:
    """The cells of one reader as a sum. `keep`, `weight`, `written` and `carried` are per layer, source and unit."""

    keep: Float[Tensor, "layer source unit"]
    weight: Float[Tensor, "layer source unit"]
    written: Float[Tensor, "layer source unit"]
    carried: Float[Tensor, "layer source unit"]
    start_keep: Float[Tensor, "layer unit"]
    start: Float[Tensor, "layer unit"]

    @property
    def total(self) -> Float[Tensor, "layer unit"]:
        """The sum of every term; it closes to the cell state."""
        return self.carried.sum(1) + self.start


@dataclass(frozen=True)
class HiddenParts:
    """The hidden state of one reader as a sum over sources and the start, the ratio tanh(c) / c frozen."""

    sources: Float[Tensor, "layer source unit"]
    start: Float[Tensor, "layer unit"]

    @property
    def total(self) -> Float[Tensor, "layer unit"]:
        """The sum of every term; it closes to the hidden state."""
        return self.sources.sum(1) + self.start


def memory_of(run: Run) -> Memory:
    """What the last cells of a run hold of each of its sources, and of the start."""
    gates, padding = run.gates, run.n_padding
    forget = gates.forget_gate[:, padding:]
    after = torch.cat([forget[:, 1:], torch.ones_like(forget[:, :1])], 1)
    keep = after.flip(1).cumprod(1).flip(1)
    input_gate, candidate = gates.input_gate[:, padding:], gates.candidate[:, padding:]
    weight, written = keep * input_gate, input_gate * candidate
    start_keep = keep[:, 0] * forget[:, 0]
    return Memory(keep, weight, written, keep * written, start_keep, start_keep * start_cell(run))


def start_cell(run: Run) -> Float[Tensor, "layer unit"]:
    """The cells before the first source: what the padding left, or zeros."""
    cell = run.gates.cell
    return cell[:, run.n_padding - 1] if run.n_padding else torch.zeros_like(cell[:, 0])


def readout_ratio(gates: Gates) -> Float[Tensor, "layer step unit"]:
    """o ⊙ tanh(c) / c, the factor by which a cell's content appears in the hidden state; o itself where c is 0."""
    cell = gates.cell
    safe = torch.where(cell == 0, 1.0, cell)
    return gates.output_gate * torch.where(cell == 0, 1.0, safe.tanh() / safe)


def hidden_parts(run: Run, memory: Memory) -> HiddenParts:
    """The last hidden state of a run, split over sources."""
    ratio = readout_ratio(run.gates)[:, -1]
    return HiddenParts(memory.carried * ratio[:, None], memory.start * ratio)


def implied_pattern(memory: Memory) -> Float[Tensor, "layer source"]:
    """One number for each source: the root mean square over units of the implied weight, between 0 and 1."""
    return _rms(memory.weight)


def start_pattern(memory: Memory) -> Float[Tensor, " layer"]:
    """The same for the start: the root mean square over units of what all forget gates together let through."""
    return _rms(memory.start_keep)


def retention(memory: Memory) -> Float[Tensor, "layer source"]:
    """|carried| / |written|: the share of what a source wrote that the cells still hold, between 0 and 1.

    1 where a source wrote nothing at all: there is nothing that could be forgotten.
    """
    written = memory.written.norm(dim=-1)
    carried = memory.carried.norm(dim=-1)
    return torch.where(written == 0, 1.0, carried / torch.where(written == 0, 1.0, written))


def _rms(x: Float[Tensor, "*any unit"]) -> Float[Tensor, "*any"]:
    return x.square().mean(-1).sqrt()
