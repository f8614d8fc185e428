"""An LSTM's characters summed into another model's tokens, so that both can be read along one axis.

A token is read once its last character is: as a reader it is that character's run. As a source it is all of its
characters: what they are still holding, or bring to a prediction, is added as vectors before any norm is taken, so the
sum over tokens is the sum over characters, exactly. Gates do not add; a token shows the mean and the range of its
characters' means over units. A token without a character of its own (an added one, or a piece of a split character that
a later piece completes) reads what the token before it has read, and sends nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from app.analysis.lstm.delivery import delivery_of, logit_parts
from app.analysis.lstm.memory import memory_of
from app.analysis.tensors import Answer, Computed, Entry, computed, entry_of, needed_of
from app.domain.axes import TensorSpec
from app.errors import OutOfRange
from app.lm.lstm_trace import LstmTrace, Run

Span = tuple[int, int]


@dataclass(frozen=True)
class Groups:
    """For every token, the positions of its characters: `firsts[j]` to `ends[j]` − 1, none where these are equal."""

    firsts: tuple[int, ...]
    ends: tuple[int, ...]

    @property
    def n_tokens(self) -> int:
        """Tokens of the other model."""
        return len(self.firsts)

    @property
    def readers(self) -> tuple[int, ...]:
        """The last character that each token has read, its own or an earlier one; −1 where there is none yet."""
        return tuple(end - 1 for end in self.ends)

    def sums(self, run: Run) -> Float[Tensor, "token source"]:
        """1 where a source of a run belongs to a token: multiplied from the left, it sums sources into tokens."""
        sources = torch.tensor(list(run.sources))
        firsts, ends = torch.tensor(self.firsts)[:, None], torch.tensor(self.ends)[:, None]
        return ((sources >= firsts) & (sources < ends)).float()


def group(tokens: Sequence[Span], characters: Sequence[Span]) -> Groups:
    """The characters (or words) of each token, from both models' spans in the same text.

    A character belongs to the token that holds its last code point; where several do (pieces of a split character),
    to the last of them.
    """
    firsts, ends = [], []
    done = 0
    for index, (_, end) in enumerate(tokens):
        shared = index + 1 < len(tokens) and tokens[index + 1][1] == end and tokens[index + 1][0] < end
        stop = done
        while not shared and stop < len(characters) and characters[stop][1] <= end:
            stop += 1
        firsts.append(done)
        ends.append(stop)
        done = stop
    return Groups(tuple(firsts), tuple(ends))


@dataclass(frozen=True)
class Grouped:
    """A trace seen through another model's tokens; what the tensors below are computed from."""

    trace: LstmTrace
    groups: Groups


def _pairs(row: Callable[..., Tensor]) -> Callable[..., Computed]:
    """A map [reading token, source token]; `row` gives the reader's numbers from its run and the matrix of sums."""

    def compute(grouped: Grouped, **fixed: int) -> Computed:
        n = grouped.groups.n_tokens
        whole, visible = torch.zeros(n, n), torch.zeros(n, n, dtype=torch.bool)
        read = [(token, reader) for token, reader in enumerate(grouped.groups.readers) if reader >= 0]
        runs = grouped.trace.runs([reader for _, reader in read])
        for (token, _), run in zip(read, runs, strict=True):
            sums = grouped.groups.sums(run)
            whole[token] = row(grouped.trace, run, sums, **fixed)
            # A token that a window has cut is seen by what is left of it.
            visible[token] = sums.any(-1)
        return whole, visible

    return compute


def _implied(trace: LstmTrace, run: Run, sums: Tensor, layer: int) -> Tensor:
    weights: Tensor = sums @ memory_of(run).weight[layer]
    return weights.square().mean(-1).sqrt()


def _carried(trace: LstmTrace, run: Run, sums: Tensor, layer: int) -> Tensor:
    return _norms(sums @ memory_of(run).carried[layer])


def _delivered(trace: LstmTrace, run: Run, sums: Tensor) -> Tensor:
    return _norms(sums @ delivery_of(trace, run).sources)


def _norms(x: Tensor) -> Tensor:
    norms: Tensor = torch.linalg.vector_norm(x, dim=-1)
    return norms


def _effect(trace: LstmTrace, run: Run, sums: Tensor, vocab: int) -> Tensor:
    return sums @ logit_parts(trace, delivery_of(trace, run), vocab).per_source


def _readout(trace: LstmTrace, run: Run, sums: Tensor) -> Tensor:
    return sums @ run.readout[run.n_padding :]


def _retention(grouped: Grouped, layer: int) -> Computed:
    """What a later token's cells hold of a source token, over what they held of it when it had just been read."""
    held, visible = _pairs(_carried)(grouped, layer=layer)
    fresh = held.diagonal().clone()
    return torch.where(fresh == 0, 0.0, held / torch.where(fresh == 0, 1.0, fresh)), visible


def _at_end(values: Callable[[LstmTrace], Tensor]) -> Callable[..., Computed]:
    """[layer, character] at each token's last character; NaN before anything has been read."""

    def compute(grouped: Grouped) -> Computed:
        per_character = values(grouped.trace)
        rows = torch.full((per_character.shape[0], grouped.groups.n_tokens), torch.nan)
        for token, reader in enumerate(grouped.groups.readers):
            if reader >= 0:
                rows[:, token] = per_character[:, reader]
        return rows, None

    return compute


def _over(gate: str, reduce: Callable[[Tensor], Tensor]) -> Callable[..., Computed]:
    """A reduction over a token's characters of a gate's mean over units; NaN for a token without characters."""

    def compute(grouped: Grouped) -> Computed:
        means = getattr(grouped.trace.gates, gate).mean(-1)
        rows = torch.full((means.shape[0], grouped.groups.n_tokens), torch.nan)
        for token, (first, end) in enumerate(zip(grouped.groups.firsts, grouped.groups.ends, strict=True)):
            if first < end:
                rows[:, token] = reduce(means[:, first:end])
        return rows, None

    return compute


def _mean(x: Tensor) -> Tensor:
    return x.mean(-1)


def _least(x: Tensor) -> Tensor:
    return x.amin(-1)


def _most(x: Tensor) -> Tensor:
    return x.amax(-1)


def _entry(
    name: str, axes: str, unit: str, about: str, compute: Callable[..., Computed], needs: str = ""
) -> Entry:  # fmt: skip
    return Entry(TensorSpec(name, tuple(axes.split()), unit, about), tuple(needs.split()), compute)


_GATES = tuple(
    _entry(f"{gate}_{name}", "layer pos", "0 to 1", f"{word} {gate.replace('_', ' ')} of a token's characters.",
           _over(gate, reduce))
    for gate in ("input_gate", "forget_gate", "output_gate")
    for name, word, reduce in (("mean", "Mean", _mean), ("low", "Smallest", _least), ("high", "Largest", _most))
)  # fmt: skip

TOKEN_TABLE: Mapping[str, Entry] = {
    entry.spec.name: entry
    for entry in (
        *_GATES,
        _entry("cell_norm", "layer pos", "norm", "Norm of the cell state after each token.",
               _at_end(lambda trace: trace.gates.cell.norm(dim=-1))),
        _entry("hidden_norm", "layer pos", "norm", "Norm of the hidden state after each token.",
               _at_end(lambda trace: trace.gates.hidden.norm(dim=-1))),
        _entry("implied_pattern", "layer query_pos key_pos", "rms weight",
               "Weights (Π f) ⊙ i of a token's characters, added for each unit; root mean square over units.",
               _pairs(_implied), "layer"),
        _entry("carried_norm", "layer query_pos key_pos", "norm", "Norm of what the cells still hold of a token.",
               _pairs(_carried), "layer"),
        _entry("retention", "layer query_pos key_pos", "share",
               "What the cells hold of a token, over what they held of it just after it.", _retention, "layer"),
        _entry("delivered_norm", "query_pos key_pos", "norm", "Norm of what a token brings to the read-out.",
               _pairs(_delivered)),
        _entry("readout_pattern", "query_pos key_pos", "probability", "Attention of the read-out on a token.",
               _pairs(_readout)),
        _entry("effect", "vocab query_pos key_pos", "logits", "What a token adds to the logit of a next character.",
               _pairs(_effect), "vocab"),
    )
}  # fmt: skip


def from_tokens(trace: LstmTrace, groups: Groups, name: str, fixed: Mapping[str, int]) -> Answer:
    """A tensor of an LSTM along another model's tokens.

    Raises:
        NotFound: there is no such tensor. OutOfRange: an index outside its axis, or one that is missing.
    """
    entry = entry_of(name, TOKEN_TABLE)
    needed = needed_of(entry, fixed)
    sizes = {"layer": trace.n_layers, "vocab": len(trace.output_bias)}
    for axis, index in needed.items():
        if not 0 <= index < sizes[axis]:
            raise OutOfRange(f"There is no {axis} {index}; {axis} runs from 0 to {sizes[axis] - 1}.", axis=axis)
    return computed(entry, Grouped(trace, groups), needed, fixed)
