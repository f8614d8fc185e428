"""Vectors of the stream read against the vocabulary.

What a write w adds to every logit directly, with the final norm's scale s frozen at the reader's last stream:

    effects = scale · projection( linear_norm(w, s) ) W_U            one number for each token, before the soft cap

Biases are left out: they belong to no write. Adding the same number to every logit changes no probability, so the mean
over the vocabulary is given beside the lists.

The other way round, a token as a source: its embedding as it enters the stream, token by token or in blocks.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from app.lm.anatomy import Anatomy, linear_parts
from app.lm.loading import LoadedTransformer
from app.lm.trace import Trace

# Rows of embeddings at a time: 4,096 × d_model floats stay in a few MB.
BLOCK = 4096


@dataclass(frozen=True)
class Best:
    """The largest and the smallest of many numbers, with the ids they belong to, best first; and mean and deviation."""

    high_ids: Int[Tensor, " k"]
    high: Float[Tensor, " k"]
    low_ids: Int[Tensor, " k"]
    low: Float[Tensor, " k"]
    mean: float
    std: float


def best_of(values: Float[Tensor, " vocab"], k: int) -> Best:
    """The k largest and the k smallest; fewer where there are not as many. `std` is over the whole vocabulary."""
    k = min(k, values.shape[0])
    high, low = values.topk(k), values.topk(k, largest=False)
    return Best(
        high.indices, high.values, low.indices, low.values, float(values.mean()), float(values.std(correction=0))
    )


def unembedding_input(anatomy: Anatomy, rows: Float[Tensor, "row d_model"]) -> Float[Tensor, "row d_unembed"]:
    """Normed vectors as the unembedding's weights take them: through the projection, without its bias."""
    if anatomy.unembed_projection is None:
        return rows
    weight, _ = linear_parts(anatomy.unembed_projection)
    return rows @ weight.float()


def direct_effects(trace: Trace, writes: Float[Tensor, "row d_model"], position: int) -> Float[Tensor, "row vocab"]:
    """What each write at `position` adds to every logit directly; in logits before the soft cap."""
    anatomy = trace.anatomy
    norm = anatomy.final_norm
    rows = writes if norm is None else norm.linear(writes, norm.inverse_scale(trace.stream[-1, position]))
    weight = anatomy.lm_head.weight
    assert isinstance(weight, Tensor)
    effects = unembedding_input(anatomy, rows.float()) @ weight.float().T
    return effects if anatomy.logit_scale == 1.0 else effects * anatomy.logit_scale


def embeddings(loaded: LoadedTransformer, token_ids: Int[Tensor, " row"]) -> Float[Tensor, "row d_model"]:
    """Tokens as they enter the stream, scale, norm or projection after the table included, positions not."""
    anatomy = loaded.anatomy
    table = loaded.model.get_input_embeddings()  # type: ignore[operator]
    rows: Tensor = table(token_ids)
    # Where the anatomy's embedding is a module after the table, it acts on the table's rows.
    if anatomy.embed is not table:
        rows = anatomy.embed(rows)
    return rows.float() * anatomy.embed_scale


def embedding_blocks(loaded: LoadedTransformer) -> Iterator[tuple[int, Float[Tensor, "row d_model"]]]:
    """All tokens of the vocabulary as they enter the stream, in blocks, each with its first id."""
    n_tokens = min(loaded.n_embeddings, loaded.anatomy.vocab_size)
    device = loaded.anatomy.lm_head.weight.device
    for start in range(0, n_tokens, BLOCK):
        ids = torch.arange(start, min(start + BLOCK, n_tokens), device=device)  # type: ignore[arg-type]
        yield start, embeddings(loaded, ids)
