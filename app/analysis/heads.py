"""One walk over every pattern of a trace: thumbnails, head summaries, and the proof that the replay is exact.

For each layer the pattern is replayed in blocks of query rows; each block is reduced and dropped. Per head and query i
(n_i sources can be seen, A_ij is the pattern):

    entropy          −Σ_j A_ij log2 A_ij, averaged over queries                                        bits
    distance         Σ_j A_ij (i − j), averaged                                                        tokens
    previous_token   A_i,i−1, averaged over i ≥ 1
    first_token      A_i0, averaged over i ≥ 1
    self             A_ii, averaged
    duplicate_token  Σ A_ij over earlier j with the same token, averaged over queries that have one
    induction        Σ A_ij over j whose previous token equals token i, j − 1 < i, averaged over queries that have one

Scores are shares of attention, 0 to 1; NaN where no query qualifies. Rows of models with attention sinks sum to less
than 1 and are taken as they are.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from app.analysis.residue import Worst
from app.lm.recorder import Progress
from app.lm.trace import PatternRows, Trace

THUMBNAIL_SIZE = 32
SUMMARIES = ("entropy", "distance", "previous_token", "first_token", "self", "duplicate_token", "induction")


@dataclass(frozen=True)
class HeadScan:
    """What one walk gives: thumbnails (weights, pooled by maximum), summaries by name, and the worst |A v − z|."""

    thumbnails: np.ndarray
    summaries: dict[str, np.ndarray]
    replay: Worst


@dataclass(frozen=True)
class Matches:
    """Where tokens repeat: `duplicate[i, j]` the same token stands at j < i; `induction[i, j]` it stands at j − 1."""

    duplicate: Bool[Tensor, "query_pos key_pos"]
    induction: Bool[Tensor, "query_pos key_pos"]


def matches(token_ids: tuple[int, ...], device: torch.device) -> Matches:
    """The repetition masks of a prompt."""
    ids = torch.tensor(token_ids, device=device)
    same = ids[:, None] == ids[None, :]
    duplicate = same.tril(-1)
    induction = torch.zeros_like(duplicate)
    induction[:, 1:] = duplicate[:, :-1]
    return Matches(duplicate, induction)


def scan_heads(trace: Trace, progress: Progress | None = None) -> HeadScan:
    """Walks all layers once. Layers without softmax attention have NaN summaries and empty thumbnails."""
    n_layers, n_heads = trace.anatomy.n_layers, max(block.n_heads for block in trace.anatomy.blocks)
    size = -(-trace.n_pos // thumbnail_stride(trace.n_pos))
    thumbnails = np.zeros((n_layers, n_heads, size, size), dtype=np.float32)
    summaries = {name: np.full((n_layers, n_heads), np.nan, dtype=np.float32) for name in SUMMARIES}
    repeated = matches(trace.token_ids, trace.stream.device)
    worst = Worst()
    with torch.inference_mode():
        for layer in trace.attention_layers:
            scan = _LayerScan(trace, layer, size, repeated)
            for rows in trace.pattern_blocks(layer):
                scan.add(rows, worst)
            heads = trace.block(layer).n_heads
            thumbnails[layer, :heads] = scan.pooled.cpu().numpy()
            for name, per_head in scan.means().items():
                summaries[name][layer, :heads] = per_head.cpu().numpy()
            if progress is not None:
                progress("patterns", (layer + 1) / n_layers)
    return HeadScan(thumbnails, summaries, worst)


class _LayerScan:
    """Sums over the queries of one layer, block by block."""

    def __init__(self, trace: Trace, layer: int, size: int, repeated: Matches) -> None:
        self._trace, self._layer, self._repeated = trace, layer, repeated
        device, heads = trace.stream.device, trace.block(layer).n_heads
        self._z = trace.z(layer)
        self.pooled = torch.zeros(heads, size, size, device=device)
        self._totals = {name: torch.zeros(heads, device=device) for name in SUMMARIES}
        self._counts = dict.fromkeys(SUMMARIES, 0)
        self._stride = thumbnail_stride(trace.n_pos)

    def add(self, rows: PatternRows, worst: Worst) -> None:
        start, end, pattern = rows.start, rows.end, rows.pattern.float()
        worst.compare(
            rows.z.float().flatten(1),
            self._z[start:end].flatten(1),
            lambda i: f"layer {self._layer}, token {start + i}",
        )
        self._pool(pattern, start, end)
        queries = torch.arange(start, end, device=pattern.device)
        keys = torch.arange(end, device=pattern.device, dtype=torch.float32)
        self._sum("entropy", torch.special.entr(pattern).sum((-1, -2)) / math.log(2), end - start)
        total = pattern.sum(-1)
        mean_key = pattern @ keys
        self._sum("distance", (total * queries - mean_key).sum(-1), end - start)
        at = torch.arange(end - start, device=pattern.device)
        self._sum("self", pattern[:, at, queries].sum(-1), end - start)
        later = queries > 0
        if bool(later.any()):
            self._sum("previous_token", pattern[:, at[later], queries[later] - 1].sum(-1), int(later.sum()))
            self._sum("first_token", pattern[:, at[later], 0].sum(-1), int(later.sum()))
        self._sum_masked("duplicate_token", pattern, self._repeated.duplicate[start:end, :end])
        self._sum_masked("induction", pattern, self._repeated.induction[start:end, :end])

    def means(self) -> dict[str, Float[Tensor, " head"]]:
        return {
            name: total / self._counts[name] if self._counts[name] else torch.full_like(total, torch.nan)
            for name, total in self._totals.items()
        }

    def _sum(self, name: str, amount: Float[Tensor, " head"], count: int) -> None:
        self._totals[name] += amount
        self._counts[name] += count

    def _sum_masked(self, name: str, pattern: Float[Tensor, "head q k"], mask: Bool[Tensor, "q k"]) -> None:
        cells = mask.nonzero(as_tuple=True)
        if cells[0].numel():
            self._sum(name, pattern[:, cells[0], cells[1]].sum(-1), int(mask.any(-1).sum()))

    def _pool(self, pattern: Float[Tensor, "head q k"], start: int, end: int) -> None:
        stride = self._stride
        padded = torch.nn.functional.pad(pattern, (0, -end % stride))
        columns = padded.unflatten(-1, (-1, stride)).amax(-1)
        for pixel in range(start // stride, (end - 1) // stride + 1):
            first, last = max(pixel * stride, start) - start, min((pixel + 1) * stride, end) - start
            band = self.pooled[:, pixel, : columns.shape[-1]]
            torch.maximum(band, columns[:, first:last].amax(1), out=band)


def thumbnail_stride(n_pos: int) -> int:
    """Tokens for each side of a thumbnail's pixel."""
    return -(-n_pos // THUMBNAIL_SIZE)


def thumbnail_bytes(thumbnails: np.ndarray) -> np.ndarray:
    """Thumbnails as u1, each head scaled so that its largest weight is 255."""
    largest = thumbnails.max(axis=(-1, -2), keepdims=True)
    return np.round(thumbnails / np.where(largest > 0, largest, 1) * 255).astype(np.uint8)
