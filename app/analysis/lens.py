"""The logit lens: what each stream would predict if the model ended there.

    lens(x) = unembed(final_norm(x)),       the norm with x's own statistics, the soft cap included

The stream is read at points: 2l is the stream before layer l, 2l + 1 the stream between attention and MLP of layer l
(not in parallel models, where nothing stands between them), 2 n_layers the last stream, where the lens is the model.

For a row (point, position) with p = softmax of its lens and f = softmax of the model's own logits at the position:

    entropy = −Σ p log2 p        kl = Σ f log2(f / p)        rank = how many tokens have a larger logit than the target

Logits of [row, vocab] exist for one block of rows at a time.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import torch
from jaxtyping import Float, Int
from torch import Tensor

from app.analysis.indices import require_index, require_token
from app.analysis.predictions import last_logits
from app.errors import OutOfRange
from app.lm.anatomy import Anatomy
from app.lm.trace import Trace

# Logits of 64 rows of a large vocabulary are a dozen MB: enough to keep two cores busy, little enough to wait for.
ROWS = 64


@dataclass(frozen=True)
class Point:
    """A place at which the stream is read. `layer` is the layer it stands before or in; None at the end."""

    point: int
    stream: int
    where: str
    layer: int | None

    @property
    def label(self) -> str:
        """The point in words."""
        if self.layer is None:
            return "last stream"
        return f"before layer {self.layer}" if self.where == "before" else f"between attention and MLP of {self.layer}"


@dataclass(frozen=True)
class LensRows:
    """Readings of some rows. Entropy and kl are in bits; logits are the model's, cap included."""

    points: Int[Tensor, " row"]
    positions: Int[Tensor, " row"]
    targets: Int[Tensor, " row"]
    top_ids: Int[Tensor, "row k"]
    top_probability: Float[Tensor, "row k"]
    top_logit: Float[Tensor, "row k"]
    entropy: Float[Tensor, " row"]
    target_probability: Float[Tensor, " row"]
    target_logit: Float[Tensor, " row"]
    target_rank: Int[Tensor, " row"]
    foil_logit: Float[Tensor, " row"]
    kl: Float[Tensor, " row"]


def points_of(anatomy: Anatomy, between: bool = True) -> tuple[Point, ...]:
    """Every point of a model, from the bottom up; those in between where they are wanted and exist."""
    found: list[Point] = []
    for layer in range(anatomy.n_layers):
        found.append(Point(2 * layer, layer, "before", layer))
        if between and not anatomy.parallel:
            found.append(Point(2 * layer + 1, layer, "between", layer))
    return (*found, Point(2 * anatomy.n_layers, anatomy.n_layers, "final", None))


def require_point(anatomy: Anatomy, point: int) -> None:
    """Does nothing for a point that the model has.

    Raises:
        OutOfRange: it has not; in parallel models odd points do not exist.
    """
    require_index("point", point, 2 * anatomy.n_layers + 1)
    if anatomy.parallel and point % 2:
        raise OutOfRange(
            f"There is no point {point}: this model adds attention and MLP at once, and nothing stands between them. "
            "Take an even point.",
            point=point,
        )


def streams_at(
    trace: Trace, points: Int[Tensor, " row"], positions: Int[Tensor, " row"]
) -> Float[Tensor, "row d_model"]:
    """The stream at each (point, position)."""
    layers = points // 2
    streams = trace.stream[layers, positions]
    between = (points % 2).bool()
    if not bool(between.any()):
        return streams
    added = streams[between] + trace.attn_write[layers[between], positions[between]]
    for row, layer in enumerate(layers[between].tolist()):
        norms = trace.anatomy.blocks[layer].sum_norms
        if norms is not None:
            added[row] = norms[0](added[row])
    streams[between] = added
    return streams


def lens_rows(
    trace: Trace, rows: Sequence[tuple[int, int]], k: int, target: int | None = None, foil: int | None = None
) -> LensRows:
    """The lens of some (point, position) rows, all at once; without a target each row's is the model's own top
    prediction at its position.

    Raises:
        OutOfRange: there is no such point or position. UnknownToken: the model predicts no such token.
    """
    for token_id in (target, foil):
        if token_id is not None:
            require_token(trace, token_id)
    for point in {point for point, _ in rows}:
        require_point(trace.anatomy, point)
    for position in {position for _, position in rows}:
        require_index("pos", position, trace.n_pos)
    device = trace.stream.device
    points = torch.tensor([point for point, _ in rows], device=device)
    positions = torch.tensor([position for _, position in rows], device=device)
    with torch.inference_mode():
        return _read(trace, points, positions, k, target, foil)


def _read(
    trace: Trace,
    points: Int[Tensor, " row"],
    positions: Int[Tensor, " row"],
    k: int,
    target: int | None,
    foil: int | None,
) -> LensRows:
    anatomy = trace.anatomy
    distinct, which = positions.unique(return_inverse=True)
    final = anatomy.logits(trace.stream[-1, distinct].to(trace.model_dtype)).float()
    own_top = final.argmax(-1)
    log_f = final.sub_(final.logsumexp(-1, keepdim=True))
    f = log_f.exp()
    negative_entropy = torch.einsum("pv,pv->p", f, log_f)
    logits = anatomy.logits(streams_at(trace, points, positions).to(trace.model_dtype)).float()
    targets = own_top[which] if target is None else torch.full_like(positions, target)
    log_total = logits.logsumexp(-1)
    top = logits.topk(min(k, logits.shape[-1]))
    target_logit = logits.gather(-1, targets[:, None])
    rank = (logits > target_logit).sum(-1)
    foil_logit = torch.full_like(log_total, torch.nan) if foil is None else logits[:, foil].clone()
    # From here on logits are log probabilities, whose sums lose less to rounding; in place, since they are large.
    log_p = logits.sub_(log_total[:, None])
    entropy = -torch.einsum("rv,rv->r", log_p.exp(), log_p)
    # Rounding can make a vanishing divergence slightly negative.
    kl = (negative_entropy[which] - _expected(f, log_p, which)).clamp_min(0)
    return LensRows(
        points, positions, targets, top.indices, (top.values - log_total[:, None]).exp(), top.values,
        entropy / math.log(2), (target_logit[:, 0] - log_total).exp(), target_logit[:, 0], rank, foil_logit,
        kl / math.log(2),
    )  # fmt: skip


def _expected(
    f: Float[Tensor, "distinct vocab"], log_p: Float[Tensor, "row vocab"], which: Int[Tensor, " row"]
) -> Float[Tensor, " row"]:
    """Σ_v f_v log p_v of every row, with the distribution of the row's own position."""
    out = torch.empty(log_p.shape[0], device=log_p.device)
    for index in range(f.shape[0]):
        rows = (which == index).nonzero()[:, 0]
        if rows.shape[0] == 1:
            out[rows] = log_p[int(rows)] @ f[index]
        else:
            out[rows] = log_p[rows] @ f[index]
    return out


def joined(parts: Sequence[LensRows]) -> LensRows:
    """Blocks of rows as one."""
    return LensRows(*(torch.cat([getattr(part, field.name) for part in parts]) for field in fields(LensRows)))


def blocks_of(rows: Sequence[tuple[int, int]], size: int = ROWS) -> Iterator[Sequence[tuple[int, int]]]:
    """Rows in blocks, in the order given."""
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def every_row(
    trace: Trace, between: bool, first_pos: int | None = None, first_point: int | None = None
) -> list[tuple[int, int]]:
    """Every (point, position): those of one position first, then those of one point, then position by position.

    Raises:
        OutOfRange: there is no such position or point.
    """
    if first_pos is not None:
        require_index("pos", first_pos, trace.n_pos)
    if first_point is not None:
        require_point(trace.anatomy, first_point)
    points = [point.point for point in points_of(trace.anatomy, between)]
    order = [(point, first_pos) for point in points] if first_pos is not None else []
    order += [(first_point, position) for position in range(trace.n_pos)] if first_point in points else []
    order += [(point, position) for position in range(trace.n_pos) for point in points]
    return list(dict.fromkeys(order))


def last_point_error(trace: Trace, rows: LensRows) -> tuple[float, float] | None:
    """How far the lens at the last point is from the model's own top prediction: the worst absolute and relative
    difference of its largest logit; None where no row stands there.
    """
    at_end = (rows.points == 2 * trace.anatomy.n_layers).nonzero()[:, 0].tolist()
    if not at_end:
        return None
    worst_abs = worst_rel = 0.0
    for row in at_end:
        position = int(rows.positions[row])
        largest = last_logits(trace, position, position + 1)[0].max()
        difference = float((rows.top_logit[row, 0] - largest).abs())
        worst_abs = max(worst_abs, difference)
        worst_rel = max(worst_rel, difference / max(float(largest.abs()), 1e-30))
    return worst_abs, worst_rel
