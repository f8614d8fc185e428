"""Maps [reader, source] over a whole text: one walk over every run, each reduced and dropped.

A reader sees the sources that its run has read: none after it, and with a window none that has left it. The rest is
masked, which is not the same as forgotten.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from app.analysis.lstm.delivery import Delivery, delivery_of
from app.analysis.lstm.memory import Memory, implied_pattern, memory_of, retention, start_pattern
from app.lm.lstm_trace import LstmTrace, Run
from app.lm.protocol import Progress

Take = Callable[[Run, Memory, Delivery], None]


@dataclass(frozen=True)
class Maps:
    """Everything about pairs of reader and source, and what belongs to the start; masked cells are 0."""

    implied_pattern: Float[Tensor, "layer query_pos key_pos"]
    carried_norm: Float[Tensor, "layer query_pos key_pos"]
    retention: Float[Tensor, "layer query_pos key_pos"]
    readout_pattern: Float[Tensor, "query_pos key_pos"]
    delivered_norm: Float[Tensor, "query_pos key_pos"]
    start_pattern: Float[Tensor, "layer pos"]
    start_norm: Float[Tensor, "layer pos"]
    readout_start: Float[Tensor, " pos"]


def seen(trace: LstmTrace) -> Bool[Tensor, "query_pos key_pos"]:
    """Which sources each reader's run has read."""
    at = torch.arange(trace.n_pos)
    first = torch.tensor([trace.first_source(reader) for reader in range(trace.n_pos)])
    return (at[None, :] <= at[:, None]) & (at[None, :] >= first[:, None])


def map_of(trace: LstmTrace, row: Callable[[Run], Float[Tensor, " source"]]) -> Float[Tensor, "query_pos key_pos"]:
    """Any quantity of a run that has one number for each source, as a map."""
    whole = torch.zeros(trace.n_pos, trace.n_pos)
    with torch.inference_mode():
        for run in trace.runs():
            whole[run.reader, run.first : run.reader + 1] = row(run)
    return whole


def scan_runs(trace: LstmTrace, take: Take, progress: Progress | None = None) -> Maps:
    """Every map at once. `take` sees each run with its memory and its delivery before they are dropped."""
    n, layers = trace.n_pos, trace.n_layers
    maps = Maps(
        implied_pattern=torch.zeros(layers, n, n),
        carried_norm=torch.zeros(layers, n, n),
        retention=torch.zeros(layers, n, n),
        readout_pattern=torch.zeros(n, n),
        delivered_norm=torch.zeros(n, n),
        start_pattern=torch.zeros(layers, n),
        start_norm=torch.zeros(layers, n),
        readout_start=torch.zeros(n),
    )
    with torch.inference_mode():
        for run in trace.runs():
            memory, delivery = memory_of(run), delivery_of(trace, run)
            at, cells = run.reader, slice(run.first, run.reader + 1)
            maps.implied_pattern[:, at, cells] = implied_pattern(memory)
            maps.carried_norm[:, at, cells] = memory.carried.norm(dim=-1)
            maps.retention[:, at, cells] = retention(memory)
            maps.readout_pattern[at, cells] = run.readout[run.n_padding :]
            maps.delivered_norm[at, cells] = delivery.sources.norm(dim=-1)
            maps.start_pattern[:, at] = start_pattern(memory)
            maps.start_norm[:, at] = memory.start.norm(dim=-1)
            maps.readout_start[at] = run.readout[: run.n_padding].sum()
            take(run, memory, delivery)
            if progress is not None and at % 16 == 0:
                progress("runs", at / n)
    return maps


def half_life(
    retained: Float[Tensor, "layer query_pos key_pos"], visible: Bool[Tensor, "query_pos key_pos"]
) -> Float[Tensor, "layer key_pos"]:
    """Steps after a source at which the cells first hold half, or less, of what it wrote.

    Infinite where that does not happen while the source can be seen: the text ends, or the window leaves it behind.
    """
    n = retained.shape[-1]
    halved = (retained <= 0.5) & visible
    first = torch.where(halved, torch.arange(n)[:, None], n).amin(1)
    distance = first - torch.arange(n)
    return torch.where(first == n, torch.inf, distance.float())
