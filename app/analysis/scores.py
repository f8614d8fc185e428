"""One reader's scores, step by step as the model computes them, and the softmax over them.

    dot_j     = q_i · k_j
    scaled_j  = dot_j · scaling
    capped_j  = cap · tanh(scaled_j / cap)          where the model caps its scores
    score_j   = capped_j + position bias_j          ALiBi and its kind
    A_ij      = exp(score_j) / (Σ_seen exp(score_j) + exp(sink))

What each model does is read from the arguments that it gave to its own attention function.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from app.analysis.indices import require_head, require_index
from app.lm.trace import Trace


@dataclass(frozen=True)
class ScoreRow:
    """The scores of one reader, and its row of the pattern as the model computes it (`pattern`).

    `softmax` is computed here from the scores; equal to `pattern` where nothing was overlooked.
    """

    q: Float[Tensor, " d_head"]
    k: Float[Tensor, "key_pos d_head"]
    dot: Float[Tensor, " key_pos"]
    scaling: float
    cap: float | None
    capped: Float[Tensor, " key_pos"]
    position_bias: Float[Tensor, " key_pos"]
    score: Float[Tensor, " key_pos"]
    seen: Bool[Tensor, " key_pos"]
    sink: float | None
    log_total: float
    softmax: Float[Tensor, " key_pos"]
    pattern: Float[Tensor, " key_pos"]

    @property
    def scaled(self) -> Float[Tensor, " key_pos"]:
        """q · k · scaling, before any cap."""
        return self.dot * self.scaling


def scaling_of(trace: Trace, layer: int) -> float:
    """The factor on q · k in one layer."""
    given = trace.recording.replay[layer].arguments.get("scaling")
    return trace.block(layer).d_head ** -0.5 if given is None else float(given)


def cap_of(trace: Trace, layer: int) -> float | None:
    """The soft cap on scores of one layer; None where there is none."""
    cap = trace.recording.replay[layer].arguments.get("softcap")
    return None if cap is None else float(cap)


def position_bias_of(trace: Trace, layer: int, head: int) -> Float[Tensor, " key_pos"]:
    """What is added to the score of every source because of where it stands; zeros where the model adds nothing."""
    bias = trace.recording.replay[layer].arguments.get("key_bias")
    if bias is None:
        return torch.zeros(trace.n_pos, device=trace.stream.device)
    return bias[head, 0, : trace.n_pos].float()  # type: ignore[no-any-return]


def score_row(trace: Trace, layer: int, head: int, query: int) -> ScoreRow:
    """The scores of reader `query` for every source of the prompt, those that it cannot see included.

    Raises:
        OutOfRange: there is no such layer, head or position. Unsupported: the layer has no softmax attention.
    """
    block = require_head(trace, layer, head)
    require_index("query", query, trace.n_pos)
    q = trace.q(layer)[head, query].float()
    k = trace.k(layer)[head // block.group_size].float()
    scaling, cap = scaling_of(trace, layer), cap_of(trace, layer)
    dot = k @ q
    capped = dot * scaling if cap is None else torch.tanh(dot * scaling / cap) * cap
    bias = position_bias_of(trace, layer, head)
    score = capped + bias
    seen = trace.recording.replay[layer].mask.rows(query, query + 1, q.device)[0]
    seen = torch.nn.functional.pad(seen, (0, trace.n_pos - seen.shape[0]))
    sink = None if block.sinks is None else float(block.sinks[head])
    visible = score.masked_fill(~seen, -torch.inf)
    together = visible if sink is None else torch.cat([visible, visible.new_tensor([sink])])
    log_total = together.logsumexp(0)
    rows = trace.pattern_rows(layer, query, query + 1)
    pattern = torch.zeros(trace.n_pos, device=q.device)
    pattern[: query + 1] = rows.pattern[head, 0].float()
    return ScoreRow(
        q, k, dot, scaling, cap, capped, bias, score, seen, sink, float(log_total), (visible - log_total).exp(), pattern
    )


def all_scores(trace: Trace, layer: int, head: int) -> Float[Tensor, "query_pos key_pos"]:
    """The scores of one head before its softmax, cap and position bias included; cells that cannot be seen too."""
    block = require_head(trace, layer, head)
    q, k = trace.q(layer)[head].float(), trace.k(layer)[head // block.group_size].float()
    score = q @ k.T * scaling_of(trace, layer)
    cap = cap_of(trace, layer)
    score = score if cap is None else torch.tanh(score / cap) * cap
    return score + position_bias_of(trace, layer, head)


def weight_of(score: float, log_total: float) -> float:
    """The share of attention that a score gets beside others with this log Σ exp."""
    return math.exp(score - log_total)
