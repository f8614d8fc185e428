"""What the stream keeps: attention has no forget gate, but later writes can reinforce or erase what is there.

    along      w · x / |x|      a write projected on the stream x that it enters; above 0 reinforces, below 0 erases
    retention  x · w / w · w    how much of a write w the stream x holds: 1 all of it, 0 none, below 0 its opposite
    cosine     x · y / |x| |y|  how far the direction of the stream has turned between two layers

A projection also counts what others wrote in the same direction: the stream may hold more of a write than was written.
Shares and cosines of vectors that are zero are undefined, NaN.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from app.analysis.indices import require_index
from app.errors import Unsupported
from app.lm.trace import Trace


def between(trace: Trace) -> Float[Tensor, "layer pos d_model"]:
    """The stream between attention and MLP.

    Raises:
        Unsupported: both read the same stream and write to it together, so that there is nothing between them; or the
            model normalises the sum itself.
    """
    if trace.anatomy.parallel:
        raise Unsupported("Attention and MLP of this model read the same stream: there is no point between them.")
    if not trace.anatomy.is_additive:
        raise Unsupported("This model normalises the stream itself between attention and MLP.")
    return trace.stream[:-1] + trace.attn_write


def between_norms(trace: Trace) -> Float[Tensor, "layer pos"]:
    """Norm of the stream between attention and MLP. Raises as `between`."""
    norms: Tensor = torch.linalg.vector_norm(between(trace), dim=-1)
    return norms


def attn_along(trace: Trace) -> Float[Tensor, "layer pos"]:
    """What attention wrote, projected on the stream that it entered; signed, in the stream's unit."""
    return _along(trace.attn_write, trace.stream[:-1])


def mlp_along(trace: Trace) -> Float[Tensor, "layer pos"]:
    """What the MLP wrote, projected on the stream that it entered: the one between, where there is one."""
    entered = trace.stream[:-1]
    if not trace.anatomy.parallel:
        entered = entered + trace.attn_write
    return _along(trace.mlp_write, entered)


def head_along(trace: Trace, layer: int) -> Float[Tensor, "head pos"]:
    """What each head of a layer wrote, projected on the stream that it entered."""
    entered = trace.stream[layer]
    return _quotient(_head_dots(trace, layer, entered), torch.linalg.vector_norm(entered, dim=-1))


def embed_retention(trace: Trace) -> Float[Tensor, "stream pos"]:
    """How much of each token's own embedding the stream holds at every layer."""
    return _share(trace.stream, trace.embed)


def attn_retention(trace: Trace) -> Float[Tensor, "layer pos"]:
    """How much of each attention write the last stream holds."""
    return _share(trace.stream[-1], trace.attn_write)


def mlp_retention(trace: Trace) -> Float[Tensor, "layer pos"]:
    """How much of each MLP write the last stream holds."""
    return _share(trace.stream[-1], trace.mlp_write)


def head_retention(trace: Trace, layer: int) -> Float[Tensor, "head pos"]:
    """How much of each head's write the last stream holds."""
    block = trace.block(layer)
    z = trace.z(layer).transpose(0, 1)
    squares = (torch.bmm(z, block.gram) * z).sum(-1) * trace.reader_scale(layer) ** 2
    return _quotient(_head_dots(trace, layer, trace.stream[-1]), squares.clamp_min(0))


def attn_held(trace: Trace, layer: int) -> Float[Tensor, "stream pos"]:
    """How much of one layer's attention write every stream holds, those before it was written included."""
    require_index("layer", layer, trace.anatomy.n_layers)
    return _share(trace.stream, trace.attn_write[layer])


def mlp_held(trace: Trace, layer: int) -> Float[Tensor, "stream pos"]:
    """How much of one layer's MLP write every stream holds."""
    require_index("layer", layer, trace.anatomy.n_layers)
    return _share(trace.stream, trace.mlp_write[layer])


def stream_cosine(trace: Trace, pos: int) -> Float[Tensor, "stream other_stream"]:
    """Cosines between the streams of all layers at one position."""
    require_index("pos", pos, trace.n_pos)
    x = trace.stream[:, pos]
    norms = torch.linalg.vector_norm(x, dim=-1)
    return _quotient(x @ x.T, norms[:, None] * norms)


def step_cosine(trace: Trace) -> Float[Tensor, "layer pos"]:
    """Cosine between the stream that enters a layer and the one that leaves it."""
    norms = torch.linalg.vector_norm(trace.stream, dim=-1)
    return _quotient(_dots(trace.stream[:-1], trace.stream[1:]), norms[:-1] * norms[1:])


def _head_dots(
    trace: Trace, layer: int, vectors: Float[Tensor, "pos d_model"]
) -> Float[Tensor, "head pos"]:  # fmt: skip
    """Every head's output dotted with one vector per position, through W_O, so that no output is built."""
    pulled = torch.einsum("pm,hdm->hpd", vectors, trace.block(layer).W_O)
    dots: Tensor = (pulled * trace.z(layer).transpose(0, 1)).sum(-1)
    return dots * trace.reader_scale(layer)


def _along(
    writes: Float[Tensor, "layer pos d_model"], entered: Float[Tensor, "layer pos d_model"]
) -> Float[Tensor, "layer pos"]:  # fmt: skip
    return _quotient(_dots(writes, entered), torch.linalg.vector_norm(entered, dim=-1))


def _share(
    stream: Float[Tensor, "*streams pos d_model"], writes: Float[Tensor, "*layers pos d_model"]
) -> Float[Tensor, "*points pos"]:  # fmt: skip
    return _quotient(_dots(stream, writes), _dots(writes, writes))


def _dots(a: Float[Tensor, "*a d"], b: Float[Tensor, "*b d"]) -> Float[Tensor, "*c"]:
    dots: Tensor = torch.linalg.vecdot(a, b, dim=-1)
    return dots


def _quotient(above: Float[Tensor, "*a"], below: Float[Tensor, "*b"]) -> Float[Tensor, "*c"]:
    return torch.where(below > 0, above / below, torch.nan)
