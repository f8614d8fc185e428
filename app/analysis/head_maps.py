"""Maps of one head, [query, key], beside its pattern and what it delivers.

    score                   s_ij before the softmax
    pattern without first   A_ij / Σ_{j ≥ 1} A_ij, the first source left out: not the model's own numbers
    attribution             what A_ij m_j adds directly to the reader's logit, the final norm's scale frozen

Cells that a reader cannot see are given by a mask, and are not the same as zero.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from app.analysis.scores import all_scores
from app.analysis.waterfall import attribution_map
from app.lm.trace import Trace

Map = tuple[Float[Tensor, "query_pos key_pos"], Bool[Tensor, "query_pos key_pos"]]


def score_map(trace: Trace, layer: int, head: int) -> Map:
    """Scores before the softmax, and which cells can be seen; those that cannot have no score, NaN."""
    seen = trace.seen(layer)
    return all_scores(trace, layer, head).masked_fill(~seen, torch.nan), seen


def pattern_without_first(trace: Trace, layer: int, head: int) -> Map:
    """The pattern with the first source left out and every row scaled to add up to 1.

    NaN where a reader gives everything to the first source, to the last bit, so that nothing is left to scale.
    """
    rest = trace.pattern(layer)[head].clone()
    rest[:, 0] = 0
    seen = trace.seen(layer).clone()
    seen[:, 0] = False
    total = rest.sum(-1, keepdim=True)
    return torch.where(total > 0, rest / total, torch.where(seen, torch.nan, 0.0)), seen


def effect_map(
    trace: Trace, layer: int, head: int, target: int | None = None, foil: int | None = None
) -> Map:  # fmt: skip
    """The attribution map of `app.analysis.waterfall`, and which cells can be seen. Raises as it does."""
    return attribution_map(trace, layer, head, target, foil), trace.seen(layer)
