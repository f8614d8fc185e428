"""The ledger: every claim of equality that the pictures rest on, checked on the trace at hand.

Tolerances are relative to the largest entry of the vector compared. float32 carries 1.2e-7; a sum over a few thousand
products in another order moves the last two digits, and cancellation between terms ten times larger than their sum
costs one more. 1e-4 is over that and far under anything visible. A model in half precision is compared at its own
precision.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from app.analysis.attribution import attribute
from app.analysis.messages import messages
from app.analysis.predictions import last_logits
from app.analysis.residue import Worst
from app.domain.ledger import Ledger, LedgerRow
from app.lm.loading import LoadedTransformer
from app.lm.trace import Trace

TOLERANCE = 1e-4
COMPARED_POSITIONS = 128
CONCATENATED_ROWS = 4


def tolerance_of(trace: Trace) -> float:
    """1e-4 for float32; sixteen roundings for a coarser number type."""
    return max(TOLERANCE, 16 * torch.finfo(trace.model_dtype).eps) if trace.model_dtype != torch.float32 else TOLERANCE


def spread(n: int, most: int) -> list[int]:
    """At most `most` positions of n, evenly spread, the last one among them."""
    count = min(n, most)
    return sorted({n - 1 - round(i * (n - 1) / max(1, count - 1)) for i in range(count)})


@dataclass(frozen=True)
class SecondForward:
    """What the untouched model gives on the same tokens: its logits at some positions."""

    positions: list[int]
    logits: Float[Tensor, "compared vocab"]


def second_forward(loaded: LoadedTransformer, trace: Trace) -> SecondForward:
    """Runs the model again, unrecorded: the most expensive part of the ledger, so that it can be timed by itself."""
    positions = spread(trace.n_pos, COMPARED_POSITIONS)
    return SecondForward(positions, loaded.plain_logits(trace.token_ids, positions))


def check_ledger(
    loaded: LoadedTransformer, trace: Trace, replay: Worst, unrecorded: SecondForward | None = None
) -> Ledger:
    """All rows. `replay` is the comparison of A v with z that the walk over the patterns has made.

    `unrecorded` is the second forward pass where the caller has already made it.
    """
    tolerance = tolerance_of(trace)
    with torch.inference_mode():
        rows = (
            _logits(trace, unrecorded or second_forward(loaded, trace), tolerance),
            _embedding(trace, tolerance),
            _stream(trace, tolerance),
            _heads(trace, tolerance),
            replay.row(
                "replay",
                "Pattern × values, replayed head by head, is the z that the model fed to W_O.",
                tolerance,
                f"{replay.n_vectors} rows of all heads",
            ),
            _concatenated(trace, tolerance),
            _attribution(trace, tolerance),
        )
    return Ledger(tuple(row for row in rows if row is not None))


def _logits(trace: Trace, unrecorded: SecondForward, tolerance: float) -> LedgerRow:
    positions = unrecorded.positions
    worst = Worst()
    for row, position in enumerate(positions):
        plain = unrecorded.logits[row : row + 1].float()
        worst.compare(last_logits(trace, position, position + 1), plain, _at(position))
    return worst.row(
        "logits",
        "Logits of the recorded run are those of the model run again, unrecorded.",
        tolerance,
        f"{len(positions)} of {trace.n_pos} positions",
    )


def _embedding(trace: Trace, tolerance: float) -> LedgerRow:
    worst = Worst()
    total = trace.embed if trace.pos_embed is None else trace.embed + trace.pos_embed
    worst.compare(total, trace.stream[0], lambda i: f"token {i}")
    return worst.row("embedding", "The embeddings add up to the stream that enters layer 0.", tolerance)


def _stream(trace: Trace, tolerance: float) -> LedgerRow:
    worst = Worst()
    claim = "Stream + attention write + MLP write is the next layer's stream."
    for block in trace.anatomy.blocks:
        layer = block.index
        total = trace.stream[layer] + trace.attn_write[layer]
        if block.sum_norms is None:
            total = total + trace.mlp_write[layer]
        else:
            claim = (
                "This model normalises the stream itself: norm(norm(stream + attention write) + MLP write), "
                "not the plain sum, is the next layer's stream."
            )
            after_attention, after_mlp = block.sum_norms
            total = after_mlp(after_attention(total) + trace.mlp_write[layer])
        worst.compare(total, trace.stream[layer + 1], _in_layer(layer))
    return worst.row("stream", claim, tolerance)


def _heads(trace: Trace, tolerance: float) -> LedgerRow:
    worst = Worst()
    for layer in trace.attention_layers:
        block = trace.block(layer)
        z = trace.z(layer)
        total = torch.zeros_like(trace.attn_write[layer])
        for head in range(block.n_heads):
            total.addmm_(z[:, head], block.W_O[head])
        if block.b_O is not None:
            total += block.b_O
        total *= trace.reader_scale(layer)[:, None]
        if block.post_norm_bias is not None:
            total += block.post_norm_bias
        worst.compare(total, trace.attn_write[layer], _in_layer(layer))
    return worst.row("heads", "The heads' outputs and the output bias add up to the attention write.", tolerance)


def _concatenated(trace: Trace, tolerance: float) -> LedgerRow:
    worst = Worst()
    positions = spread(trace.n_pos, CONCATENATED_ROWS)
    for layer in trace.attention_layers:
        block = trace.block(layer)
        per_head = torch.zeros(len(positions), trace.anatomy.d_model, device=trace.stream.device)
        joined = torch.empty(len(positions), block.n_heads, block.d_head, device=trace.stream.device)
        patterns = torch.zeros(block.n_heads, len(positions), trace.n_pos, device=trace.stream.device)
        for row, position in enumerate(positions):
            at = trace.pattern_rows(layer, position, position + 1)
            patterns[:, row, : at.end] = at.pattern[:, 0].float()
            joined[row] = at.z[0].float()
        for head in range(block.n_heads):
            per_head += patterns[head] @ messages(trace, layer, head)
        concatenated = joined.flatten(1) @ block.W_O.flatten(0, 1)
        worst.compare(per_head, concatenated, _in_layer(layer, positions))
    return worst.row(
        "concatenated",
        "Heads joined and projected once, ((QKᵀ)V)O, equal Σ over heads of pattern × message, (QKᵀ)(VO).",
        tolerance,
        f"{len(positions)} of {trace.n_pos} positions in every layer",
    )


def _attribution(trace: Trace, tolerance: float) -> LedgerRow | None:
    if not trace.anatomy.is_additive:
        return None
    position = trace.n_pos - 1
    target = int(last_logits(trace, position, position + 1)[0].argmax())
    attribution = attribute(trace, position, target)
    worst = Worst()
    worst.compare(attribution.total.reshape(1, 1), attribution.logit.reshape(1, 1), lambda _: f"token {position}")
    return worst.row(
        "attribution",
        "Every component's contribution and the bias rows add up to the logit of the top prediction.",
        tolerance,
        "before the soft cap" if trace.anatomy.logit_cap is not None else "",
    )


def _in_layer(layer: int, positions: Sequence[int] | None = None) -> Callable[[int], str]:
    return lambda i: f"layer {layer}, token {i if positions is None else positions[i]}"


def _at(position: int) -> Callable[[int], str]:
    return lambda _: f"token {position}"
