"""One cell of one head, the whole equation: from a source to a reader, and on to a logit.

For reader i and source j of head h, with r_i the scale of a norm after attention (1 where there is none):

    s_ij → A_ij                  the score and the softmax, see `scores`
    m_j = v_j W_O                the message
    r_i A_ij m_j                 what is delivered
    o_i = r_i Σ_j A_ij m_j       the head's output, its write
    share_j = (r_i A_ij m_j) · o_i / (o_i · o_i)              norms do not add up, projections do: Σ_j share_j = 1
    effect_j = r_i A_ij m_j · direction                       on the aim's logit, final scale frozen; Σ_j = the head's
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from app.analysis.aim import Aim, aim_at
from app.analysis.attribution import readout, uncapped_logit
from app.analysis.indices import require_head, require_index
from app.analysis.ledger import tolerance_of
from app.analysis.residue import Worst, closing_sum
from app.analysis.scores import ScoreRow, score_row
from app.analysis.vocabulary import Best, best_of, direct_effects
from app.domain.ledger import LedgerRow
from app.lm.trace import Trace

LISTED = 10
# Competitors shown on each side of the chosen source.
NEIGHBOURS = 3


@dataclass(frozen=True)
class Effects:
    """What this source, and the head with all its sources, add to the aim's logit; the logit itself, before any cap."""

    source: float
    head: float
    logit: float


@dataclass(frozen=True)
class Edge:
    """Every number of one cell. Norms are in the stream's unit; `promoted` and `effects` are in logits, and None where
    the model normalises the stream itself, so that no write has an effect of its own.
    """

    layer: int
    head: int
    kv_head: int
    query: int
    key: int
    aim: Aim
    row: ScoreRow
    competitors: tuple[int, ...]
    rank: int
    x_hat_query_norm: float
    x_hat_key_norm: float
    value_norm: float
    message_norm: float
    reader_scale: float
    delivered_norm: float
    output_norm: float
    projection: float
    share: float
    cosine: float
    stream_norm: float
    write_norm: float
    along: float
    promoted: Best | None
    effects: Effects | None
    closes: tuple[LedgerRow, ...]

    @property
    def is_seen(self) -> bool:
        """Whether the reader can see the source."""
        return bool(self.row.seen[self.key])

    @property
    def pattern(self) -> float:
        """A_ij, as the model computes it."""
        return float(self.row.pattern[self.key])


def edge(
    trace: Trace, layer: int, head: int, query: int, key: int, target: int | None = None, foil: int | None = None
) -> Edge:
    """The equation of one cell.

    Raises:
        OutOfRange: there is no such layer, head or position. UnknownToken: the model predicts no such token.
        Unsupported: the layer has no softmax attention.
    """
    block = require_head(trace, layer, head)
    require_index("key", key, trace.n_pos)
    with torch.inference_mode():
        row = score_row(trace, layer, head, query)
        aim = aim_at(trace, query, target, foil)
        kv_head = head // block.group_size
        values = trace.v(layer)[kv_head].float()
        W_O, scale = block.W_O[head], float(trace.reader_scale(layer)[query])
        sent = values @ W_O
        message = sent[key]
        delivered = message * (float(row.pattern[key]) * scale)
        output = (trace.z(layer)[query, head] @ W_O) * scale
        entering = trace.stream[layer]
        size = float(output.norm())
        projection = float(delivered @ output) / max(size, 1e-30)
        x_hat = _read(trace, layer, torch.tensor([query, key], device=entering.device))
        closes = [_closing_pattern(trace, row), _closing_output(trace, row, sent * scale, output)]
        promoted, effects = None, None
        if trace.anatomy.is_additive:
            promoted = best_of(direct_effects(trace, delivered[None], query)[0], LISTED)
            effects, closing = _effects(trace, aim, query, key, row, sent * scale, output)
            closes.append(closing)
    return Edge(
        layer, head, kv_head, query, key, aim, row, *_competitors(row, key),
        x_hat_query_norm=float(x_hat[0].norm()),
        x_hat_key_norm=float(x_hat[1].norm()),
        value_norm=float(values[key].norm()),
        message_norm=float(message.norm()),
        reader_scale=scale,
        delivered_norm=float(delivered.norm()),
        output_norm=size,
        projection=projection,
        share=projection / max(size, 1e-30),
        cosine=float(torch.cosine_similarity(message, output, dim=0)),
        stream_norm=float(entering[query].norm()),
        write_norm=float(trace.attn_write[layer, query].norm()),
        along=float(output @ entering[query] / entering[query].norm().clamp_min(1e-30)),
        promoted=promoted,
        effects=effects,
        closes=tuple(closes),
    )  # fmt: skip


def _read(trace: Trace, layer: int, positions: Tensor) -> Float[Tensor, "row d_model"]:
    """What the layer's attention reads from the stream at some positions."""
    norm = trace.block(layer).attention_norm
    stream = trace.stream[layer, positions]
    return stream if norm is None else norm(stream)


def _competitors(row: ScoreRow, key: int) -> tuple[tuple[int, ...], int]:
    """The sources whose scores lie nearest to this one's, best first, this one included; and its rank, 0 the best."""
    visible = row.score.masked_fill(~row.seen, -torch.inf)
    n_seen = int(row.seen.sum())
    order = visible.argsort(descending=True, stable=True)[:n_seen].tolist()
    if key not in order:
        return tuple(order[: 2 * NEIGHBOURS + 1]), n_seen
    rank = order.index(key)
    start = max(0, min(rank - NEIGHBOURS, n_seen - 2 * NEIGHBOURS - 1))
    return tuple(order[start : start + 2 * NEIGHBOURS + 1]), rank


def _closing_pattern(trace: Trace, row: ScoreRow) -> LedgerRow:
    worst = Worst()
    worst.compare(row.softmax[None], row.pattern[None], lambda _: "")
    return worst.row(
        "pattern", "The softmax of these scores is the model's pattern at this reader.", tolerance_of(trace)
    )


def _closing_output(
    trace: Trace, row: ScoreRow, messages: Float[Tensor, "key_pos d_model"], output: Float[Tensor, " d_model"]
) -> LedgerRow:
    worst = Worst()
    worst.compare((row.pattern @ messages)[None], output[None], lambda _: "")
    return worst.row(
        "output", "The delivered messages of all sources add up to the head's output.", tolerance_of(trace)
    )


def _effects(
    trace: Trace,
    aim: Aim,
    query: int,
    key: int,
    row: ScoreRow,
    messages: Float[Tensor, "key_pos d_model"],
    output: Float[Tensor, " d_model"],
) -> tuple[Effects, LedgerRow]:
    direction = readout(trace, query, aim.target, aim.foil).direction
    by_source = row.pattern * (messages @ direction)
    head = output @ direction
    closing = closing_sum(
        "effect", "The effects of all sources add up to the head's effect.", by_source, head, tolerance_of(trace)
    )
    return Effects(float(by_source[key]), float(head), float(aim_logit(trace, query, aim))), closing


def aim_logit(trace: Trace, position: int, aim: Aim) -> Float[Tensor, ""]:
    """The logit, or the difference of two, that an aim stands for; before the soft cap."""
    stream = trace.stream[-1, position]
    logit = uncapped_logit(trace, stream, aim.target)
    return logit if aim.foil is None else logit - uncapped_logit(trace, stream, aim.foil)
