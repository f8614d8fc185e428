"""A logit as a waterfall: bias rows, then every component in its order, to the sum; then scale and cap as steps.

The rows are those of `attribution`, without the model's logit scale, which is a step of its own here:

    Σ rows = sum,      sum × scale = uncapped,      cap · tanh(uncapped / cap) = logit

Drilled down: a head's row is the sum over its sources of r_i A_ij v_j · (W_O direction).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from app.analysis.aim import Aim, aim_at
from app.analysis.attribution import attribute, readout
from app.analysis.indices import require_head
from app.analysis.ledger import tolerance_of
from app.analysis.predictions import last_logits
from app.analysis.residue import closing_sum
from app.domain.ledger import LedgerRow
from app.lm.trace import Trace


@dataclass(frozen=True)
class Row:
    """One row: what wrote it, where it stands, and its contribution in logits, before scale and cap."""

    name: str
    kind: str
    layer: int | None
    head: int | None
    value: float


@dataclass(frozen=True)
class Step:
    """What follows the sum: "sum", "scale" or "cap", the factor or the cap, and the value after it."""

    name: str
    factor: float
    value: float
    about: str


@dataclass(frozen=True)
class Waterfall:
    """All rows and steps of one logit, or of the difference of two. `probability` is the target's."""

    position: int
    aim: Aim
    rows: tuple[Row, ...]
    steps: tuple[Step, ...]
    total: float
    logit: float
    probability: float
    closes: tuple[LedgerRow, ...]


@dataclass(frozen=True)
class Sources:
    """One head's row split over its sources; values in logits with the scale, before the cap."""

    aim: Aim
    values: Float[Tensor, " key_pos"]
    seen: Bool[Tensor, " key_pos"]
    value: float
    closes: tuple[LedgerRow, ...]


def waterfall(trace: Trace, position: int, target: int | None = None, foil: int | None = None) -> Waterfall:
    """The waterfall of one logit at a position.

    Raises:
        OutOfRange, UnknownToken: as `aim_at`. Unsupported: the model normalises the stream itself.
    """
    with torch.inference_mode():
        aim = aim_at(trace, position, target, foil)
        found = attribute(trace, position, aim.target, aim.foil)
        scale, cap = trace.anatomy.logit_scale, trace.anatomy.logit_cap
        rows = [
            Row("bias of the final norm", "final_norm_bias", None, None, float(found.final_norm_bias) / scale),
            Row("bias of the unembedding", "unembed_bias", None, None, float(found.unembed_bias) / scale),
            Row("embedding", "embed", None, None, float(found.embed) / scale),
        ]
        if found.pos_embed is not None:
            rows.append(Row("position embedding", "pos_embed", None, None, float(found.pos_embed) / scale))
        heads, attn_bias, mlp = found.heads.tolist(), found.attn_bias.tolist(), found.mlp.tolist()
        for block in trace.anatomy.blocks:
            layer = block.index
            if block.attention is None:
                rows.append(Row(f"attention {layer}", "attn", layer, None, attn_bias[layer] / scale))
            else:
                rows += [
                    Row(f"head {layer}.{head}", "head", layer, head, heads[layer][head] / scale)
                    for head in range(block.n_heads)
                ]
                if block.b_O is not None or block.post_norm_bias is not None:
                    rows.append(Row(f"attention bias {layer}", "attn_bias", layer, None, attn_bias[layer] / scale))
            rows.append(Row(f"MLP {layer}", "mlp", layer, None, mlp[layer] / scale))
        logits = last_logits(trace, position, position + 1)[0]
        logit = logits[aim.target] if aim.foil is None else logits[aim.target] - logits[aim.foil]
        probability = float((logits[aim.target] - logits.logsumexp(0)).exp())
        values = torch.tensor([row.value for row in rows], dtype=torch.float64)
        total = float(values.sum())
        closing = closing_sum(
            "sum",
            "All rows add up to the logit that the model's own modules give, before scale and cap.",
            values,
            found.logit.cpu().double() / scale,
            tolerance_of(trace),
        )
    return Waterfall(
        position, aim, tuple(rows), _steps(total, scale, cap, aim, float(logit)), total, float(logit), probability,
        (closing,),
    )  # fmt: skip


def _steps(total: float, scale: float, cap: float | None, aim: Aim, logit: float) -> tuple[Step, ...]:
    steps = [Step("sum", 1.0, total, "All rows together.")]
    if scale != 1.0:
        steps.append(Step("scale", scale, total * scale, "The model multiplies its logits by this number."))
    if cap is not None:
        about = "The model caps each logit: cap × tanh(logit / cap)."
        if aim.foil is not None:
            about += " Both logits are capped before the difference, so the step is not a function of the sum alone."
        steps.append(Step("cap", cap, logit, about))
    return tuple(steps)


def grouped(rows: Sequence[Row], by: str) -> list[Row]:
    """Rows added up by "layer" (rows of no layer stay as they are) or by "kind", in the order of first appearance."""
    sums: dict[tuple[str, int | None], list[float]] = {}
    for row in rows:
        key = (f"layer {row.layer}", row.layer) if by == "layer" and row.layer is not None else (row.kind, None)
        sums.setdefault(key, []).append(row.value)
    return [
        Row(name, "layer" if layer is not None else name, layer, None, sum(values))
        for (name, layer), values in sums.items()
    ]


def head_sources(
    trace: Trace, position: int, layer: int, head: int, target: int | None = None, foil: int | None = None
) -> Sources:
    """One head's contribution split over its sources.

    Raises:
        OutOfRange, UnknownToken, Unsupported: as `waterfall` and for a layer without heads.
    """
    block = require_head(trace, layer, head)
    with torch.inference_mode():
        aim = aim_at(trace, position, target, foil)
        direction = readout(trace, position, aim.target, aim.foil).direction
        scale = trace.reader_scale(layer)[position]
        per_value = (block.W_O[head] @ direction) * scale
        pattern = torch.zeros(trace.n_pos, device=direction.device)
        pattern[: position + 1] = trace.pattern_rows(layer, position, position + 1).pattern[head, 0].float()
        values = pattern * (trace.v(layer)[head // block.group_size].float() @ per_value)
        value = trace.z(layer)[position, head] @ per_value
        seen = trace.seen(layer)[position]
        closing = closing_sum(
            "sources", "The effects of all sources add up to the head's effect.", values, value, tolerance_of(trace)
        )
    return Sources(aim, values, seen, float(value), (closing,))


def attribution_map(
    trace: Trace, layer: int, head: int, target: int | None = None, foil: int | None = None
) -> Float[Tensor, "query_pos key_pos"]:
    """What every delivered message of a head adds to a logit at its reader, in logits before the cap.

        map_ij = r_i A_ij (v_j · W_O d_i),      d_i the frozen read-out at reader i

    Without a target each reader's own next token is explained, and the model's top prediction at the last reader.

    Raises:
        OutOfRange, UnknownToken, Unsupported: as `head_sources`.
    """
    block = require_head(trace, layer, head)
    last = aim_at(trace, trace.n_pos - 1, target, foil)
    directions = []
    for position in range(trace.n_pos):
        own = trace.token_ids[position + 1] if position + 1 < trace.n_pos else last.target
        # A token that can be read but not predicted has no logit; the last one's aim stands in its place.
        aimed = last.target if target is not None or own >= trace.anatomy.vocab_size else own
        directions.append(readout(trace, position, aimed, foil).direction @ block.W_O[head].T)
    per_value = torch.stack(directions) * trace.reader_scale(layer)[:, None]
    values = trace.v(layer)[head // block.group_size].float()
    return trace.pattern(layer)[head] * (per_value @ values.T)
