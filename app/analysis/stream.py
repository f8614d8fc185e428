"""The residual stream as a memory that is only added to: norms of what it holds and of what is written.

Norms are Euclidean over d_model, in the stream's own unit. They do not add up; writes do.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from app.analysis.messages import head_write_norms, message_norms
from app.lm.trace import Trace


def stream_norms(trace: Trace) -> Float[Tensor, "stream pos"]:
    """|x| of the stream entering each layer, and of the last one."""
    return _norms(trace.stream)


def attn_write_norms(trace: Trace) -> Float[Tensor, "layer pos"]:
    """Norm of what attention added in each layer: all heads and the output bias."""
    return _norms(trace.attn_write)


def mlp_write_norms(trace: Trace) -> Float[Tensor, "layer pos"]:
    """Norm of what the MLP added in each layer."""
    return _norms(trace.mlp_write)


def all_message_norms(trace: Trace) -> Float[Tensor, "layer head key_pos"]:
    """|m_j| of every head; NaN for heads that a layer does not have."""
    return _per_head(trace, message_norms)


def all_head_write_norms(trace: Trace) -> Float[Tensor, "layer head pos"]:
    """|o_i| of every head; NaN for heads that a layer does not have."""
    return _per_head(trace, head_write_norms)


def _norms(vectors: Float[Tensor, "*axes d_model"]) -> Float[Tensor, "*axes"]:
    norms: Tensor = torch.linalg.vector_norm(vectors, dim=-1)
    return norms


def _per_head(
    trace: Trace, norms: Callable[[Trace, int], Float[Tensor, "head pos"]]
) -> Float[Tensor, "layer head pos"]:
    n_heads = max(block.n_heads for block in trace.anatomy.blocks)
    out = torch.full((trace.anatomy.n_layers, n_heads, trace.n_pos), torch.nan, device=trace.stream.device)
    for layer in trace.attention_layers:
        own = norms(trace, layer)
        out[layer, : own.shape[0]] = own
    return out
