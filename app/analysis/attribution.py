"""Direct logit attribution: which write put how much of a logit there.

With the final norm's scale frozen at the stream's own value s, the final norm is linear, and for a token y with the
column u = W_U[:, y]

    logit_y = scale · ( Σ_c s · (w_c · d) + bias · u ) + b_U[y],      d = dual(u): gain (and centring) moved onto u

over every write w_c to the stream: embeddings, heads, attention biases, MLPs. Rows that belong to no component, the
final norm's bias and the unembedding's, are rows of their own. Before any soft cap; the cap is a step after the sum.
Frozen scale only: each layer's own norm never enters here (that is the logit lens, and it does not sum).
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from app.errors import Unsupported
from app.lm.trace import Trace


@dataclass(frozen=True)
class Attribution:
    """Contributions to one logit, or to the difference of two, in logits before the soft cap."""

    embed: Float[Tensor, ""]
    pos_embed: Float[Tensor, ""] | None
    heads: Float[Tensor, "layer head"]
    attn_bias: Float[Tensor, " layer"]
    mlp: Float[Tensor, " layer"]
    final_norm_bias: Float[Tensor, ""]
    unembed_bias: Float[Tensor, ""]
    logit: Float[Tensor, ""]

    @property
    def total(self) -> Float[Tensor, ""]:
        """The sum of every row; it closes to `logit`. Heads that a layer does not have are NaN and not summed."""
        total = self.embed + self.heads.nansum() + self.attn_bias.sum() + self.mlp.sum()
        total = total + self.final_norm_bias + self.unembed_bias
        return total if self.pos_embed is None else total + self.pos_embed


@dataclass(frozen=True)
class Readout:
    """One logit, or a difference of two, as a linear function of the last stream at one position.

    logit = writes · direction + norm_bias + unembed_bias, for the writes at that position.
    """

    direction: Float[Tensor, " d_model"]
    norm_bias: Float[Tensor, ""]
    unembed_bias: Float[Tensor, ""]


def readout(trace: Trace, position: int, target: int, foil: int | None = None) -> Readout:
    """The frozen read-out of `target` (minus `foil`) at a position.

    Raises:
        Unsupported: the model normalises the stream itself, so that writes do not add up to the last stream.
    """
    anatomy = trace.anatomy
    if not anatomy.is_additive:
        raise Unsupported(
            "This model normalises the stream itself after every addition: writes do not add up to the last stream, "
            "and a logit cannot be split over them. Patterns, messages and the lens are available."
        )
    column, bias = _column(trace, target)
    if foil is not None:
        other, other_bias = _column(trace, foil)
        column, bias = column - other, bias - other_bias
    norm = anatomy.final_norm
    if norm is None:
        return Readout(column, torch.zeros((), device=column.device), bias)
    inverse_scale = norm.inverse_scale(trace.stream[-1, position])
    norm_bias = torch.zeros((), device=column.device) if norm.bias is None else norm.bias.float() @ column
    return Readout(norm.dual(column) * inverse_scale, norm_bias, bias)


def attribute(trace: Trace, position: int, target: int, foil: int | None = None) -> Attribution:
    """The contribution of every component at `position` to the logit of `target`, or to target − foil."""
    anatomy = trace.anatomy
    read = readout(trace, position, target, foil)
    direction = read.direction
    n_heads = max(block.n_heads for block in anatomy.blocks)
    heads = torch.full((anatomy.n_layers, n_heads), torch.nan, device=direction.device)
    bias = torch.zeros(anatomy.n_layers, device=direction.device)
    for block in anatomy.blocks:
        if block.attention is None:
            # What an unsupported layer wrote is known as a whole, and stands where its bias would.
            bias[block.index] = trace.attn_write[block.index, position] @ direction
            continue
        scale = trace.reader_scale(block.index)[position]
        z = trace.z(block.index)[position]
        heads[block.index, : block.n_heads] = torch.einsum("hd,hdm,m->h", z, block.W_O, direction) * scale
        if block.b_O is not None:
            bias[block.index] += block.b_O @ direction * scale
        if block.post_norm_bias is not None:
            bias[block.index] += block.post_norm_bias @ direction
    stream = trace.stream[-1, position]
    # Closing is tested against the model's own final norm and unembedding, not against the direction used above.
    logit = uncapped_logit(trace, stream, target)
    if foil is not None:
        logit = logit - uncapped_logit(trace, stream, foil)
    pos_embed = trace.pos_embed
    return Attribution(
        embed=trace.embed[position] @ direction,
        pos_embed=None if pos_embed is None else pos_embed[position] @ direction,
        heads=heads,
        attn_bias=bias,
        mlp=trace.mlp_write[:, position] @ direction,
        final_norm_bias=read.norm_bias,
        unembed_bias=read.unembed_bias,
        logit=logit,
    )


def _column(trace: Trace, token_id: int) -> tuple[Float[Tensor, " d_model"], Float[Tensor, ""]]:
    anatomy = trace.anatomy
    bias = getattr(anatomy.lm_head, "bias", None)
    own = (
        bias[token_id].float() * anatomy.logit_scale
        if isinstance(bias, Tensor)
        else torch.zeros((), device=trace.stream.device)
    )
    return anatomy.unembed_direction(token_id) * anatomy.logit_scale, own


def uncapped_logit(trace: Trace, stream: Float[Tensor, " d_model"], token_id: int) -> Float[Tensor, ""]:
    """The logit of one token as the model's own modules compute it from a last stream, before the soft cap."""
    anatomy = trace.anatomy
    hidden = stream[None].to(trace.model_dtype)
    hidden = hidden if anatomy.final_norm_module is None else anatomy.final_norm_module(hidden)
    hidden = hidden if anatomy.unembed_projection is None else anatomy.unembed_projection(hidden)
    column, bias = anatomy.lm_head.weight[token_id], getattr(anatomy.lm_head, "bias", None)  # type: ignore[index]
    logit = (hidden[0] @ column + (bias[token_id] if isinstance(bias, Tensor) else 0)) * anatomy.logit_scale
    return logit.float()
