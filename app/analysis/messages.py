"""What a head sends: one message per source position.

    m_j = v_j W_O            (value bias included; output bias never: it belongs to no head)

Norms come from the Gram matrix, |m_j|² = v_j (W_O W_Oᵀ) v_jᵀ, so that nothing of [head, pos, d_model] is built. In
models with a norm after attention, W_O carries that norm's gain; its scale depends on the reader and multiplies what is
delivered (`Trace.reader_scale`), not the message.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from app.lm.trace import Trace


def values_per_head(trace: Trace, layer: int) -> Float[Tensor, "head key_pos d_head"]:
    """The values that each query head reads: kv head h // group_size, repeated (a copy of group_size × v)."""
    return trace.v(layer).float().repeat_interleave(trace.block(layer).group_size, dim=0)


def message_norms(trace: Trace, layer: int) -> Float[Tensor, "head key_pos"]:
    """|m_j| of every head and source of a layer; in the stream's unit."""
    return _gram_norms(values_per_head(trace, layer), trace.block(layer).gram)


def head_write_norms(trace: Trace, layer: int) -> Float[Tensor, "head pos"]:
    """|o_i|, the norm of what each head adds to the stream at each reader, post-norm scale included."""
    norms = _gram_norms(trace.z(layer).transpose(0, 1), trace.block(layer).gram)
    return norms * trace.reader_scale(layer)


def delivered_norms(trace: Trace, layer: int, head: int) -> Float[Tensor, "query_pos key_pos"]:
    """|A_ij m_j| of one head, times the reader's scale where a norm follows attention."""
    pattern = trace.pattern(layer)[head]
    return pattern * message_norms(trace, layer)[head] * trace.reader_scale(layer)[:, None]


def messages(trace: Trace, layer: int, head: int) -> Float[Tensor, "key_pos d_model"]:
    """The messages of one head, as vectors in the stream's space."""
    block = trace.block(layer)
    return trace.v(layer)[head // block.group_size].float() @ block.W_O[head]


def _gram_norms(
    x: Float[Tensor, "head pos d_head"], gram: Float[Tensor, "head d_head d_head"]
) -> Float[Tensor, "head pos"]:
    # Rounding can make the square of a vanishing norm slightly negative.
    return (torch.bmm(x, gram) * x).sum(-1).clamp_min(0).sqrt()
