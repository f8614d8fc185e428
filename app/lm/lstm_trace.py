"""The trace of an LSTM: one run for every reader, and what can be replayed from it exactly.

In a run, per layer and step, with the gates in (0, 1) and the candidate in (−1, 1):

    i, f, o = σ(x W + h W' + b)      g = tanh(x W + h W' + b)
    c_t = f_t ⊙ c_{t−1} + i_t ⊙ g_t      h_t = o_t ⊙ tanh(c_t)      from h = c = 0
    pooled_t = Σ_s a_ts read_s,      logits_t = pooled_t W + b

A network without a window reads the whole text in one run, and the run of reader t is its first t + 1 steps. A network
with a window (textgenrnn: 40) starts afresh for every reader, with the last 40 characters, padded on the left: each
reader has a run of its own, and the same character's gates differ a little from run to run. A trace keeps each run's
last step, which is linear in the text; the rest of a run is replayed when it is asked for.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from app.errors import OutOfRange

# Runs that are replayed at a time: enough for fast products, 16 MB for textgenrnn.
RUNS_AT_A_TIME = 64


@dataclass(frozen=True, eq=False)
class Gates:
    """Gates, candidate and states of every layer, at the steps of one run or at the last steps of many."""

    input_gate: Float[Tensor, "layer step unit"]
    forget_gate: Float[Tensor, "layer step unit"]
    candidate: Float[Tensor, "layer step unit"]
    output_gate: Float[Tensor, "layer step unit"]
    cell: Float[Tensor, "layer step unit"]
    hidden: Float[Tensor, "layer step unit"]

    def tensors(self) -> tuple[Tensor, ...]:
        """All of them, in the order of the fields."""
        return (self.input_gate, self.forget_gate, self.candidate, self.output_gate, self.cell, self.hidden)


@dataclass(frozen=True, eq=False)
class Run:
    """The run whose last step is one reader. `n_padding` steps of padding come first, then the text from `first` on."""

    reader: int
    first: int
    n_padding: int
    gates: Gates
    embed: Float[Tensor, "step d_embed"]
    read: Float[Tensor, "step d_read"]
    readout: Float[Tensor, " step"]

    @property
    def sources(self) -> range:
        """The positions of the text that this run has read."""
        return range(self.first, self.reader + 1)

    @property
    def pooled(self) -> Float[Tensor, " d_read"]:
        """What the read-out gives to the output weights: Σ_s a_s read_s."""
        return self.readout @ self.read


@dataclass(frozen=True, eq=False)
class ReadLayout:
    """Where the parts of what the read-out reads lie in d_read: the embedding (if it is read) and each layer read."""

    embed: slice | None
    layers: tuple[tuple[int, slice], ...]


@dataclass(frozen=True, eq=False)
class LstmTrace:
    """One analysis: the last step of every reader's run, float32."""

    token_ids: tuple[int, ...]
    gates: Gates
    pooled: Float[Tensor, "pos d_read"]
    output_weight: Float[Tensor, "vocab d_read"]
    output_bias: Float[Tensor, " vocab"]
    layout: ReadLayout
    window: int | None
    unknown_id: int
    replay: Callable[[Sequence[int]], Iterator[Run]]

    @property
    def n_pos(self) -> int:
        """Characters, or words, of the text."""
        return len(self.token_ids)

    @property
    def n_layers(self) -> int:
        """LSTM layers."""
        return int(self.gates.cell.shape[0])

    @property
    def n_units(self) -> int:
        """Cells of each layer."""
        return int(self.gates.cell.shape[2])

    @property
    def size_bytes(self) -> int:
        """Memory that the trace holds."""
        tensors = [*self.gates.tensors(), self.pooled]
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)

    @property
    def unknown_positions(self) -> list[int]:
        """Where the text holds something that the vocabulary does not."""
        return [position for position, token_id in enumerate(self.token_ids) if token_id == self.unknown_id]

    def runs(self, readers: Sequence[int] | None = None) -> Iterator[Run]:
        """The runs of some readers, or of all, replayed.

        Raises:
            OutOfRange: there is no such reader.
        """
        chosen = range(self.n_pos) if readers is None else readers
        wrong = [reader for reader in chosen if not 0 <= reader < self.n_pos]
        if wrong:
            raise OutOfRange(
                f"There is no position {wrong[0]}; positions run from 0 to {self.n_pos - 1}.", size=self.n_pos
            )
        return self.replay(chosen)

    def run(self, reader: int) -> Run:
        """The run of one reader. Raises as `runs`."""
        return next(self.runs([reader]))

    def first_source(self, reader: int) -> int:
        """The earliest position that a reader's run has read."""
        return 0 if self.window is None else max(0, reader + 1 - self.window)

    def logits(self, start: int, end: int) -> Float[Tensor, "pos vocab"]:
        """Logits of what follows positions start..end−1."""
        return self.pooled[start:end] @ self.output_weight.T + self.output_bias


@dataclass(frozen=True, eq=False)
class StepTensors:
    """What stepping through a batch of runs gives: the six tensors of `Gates`, each [layer, run, step, unit]."""

    stacked: Float[Tensor, "6 layer run step unit"]

    def of_run(self, run: int, end: int | None = None) -> Gates:
        """The gates of one run, up to a step."""
        return Gates(*self.stacked[:, :, run, :end])

    def last(self) -> Gates:
        """The last step of every run: runs take the place of steps."""
        return Gates(*self.stacked[:, :, :, -1])

    def all_steps(self) -> Gates:
        """Every step of the only run."""
        return Gates(*self.stacked[:, :, 0])


def windows(
    token_ids: Int[Tensor, " pos"], window: int, padding_id: int, readers: Sequence[int]
) -> Int[Tensor, "run step"]:
    """The steps of each reader's run: the last `window` ids up to and with the reader, padded on the left."""
    padded = torch.cat([torch.full((window - 1,), padding_id), token_ids])
    return torch.stack([padded[reader : reader + window] for reader in readers])
