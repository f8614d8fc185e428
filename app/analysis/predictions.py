"""What the model predicts after every token, from the last stream, in blocks of rows.

    logits_i = unembed(final_norm(stream_i)),   surprisal_i+1 = −log2 softmax(logits_i)[token_i+1]

Logits of [pos, vocab] are never held at once.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from app.lm.recorder import Progress
from app.lm.trace import Trace

ROWS = 64
TOP = 10


@dataclass(frozen=True)
class Predictions:
    """Per position: the best next tokens with probability and logit, and how surprising the actual next token was."""

    top_ids: Int[Tensor, "pos k"]
    top_probabilities: Float[Tensor, "pos k"]
    top_logits: Float[Tensor, "pos k"]
    surprisal: Float[Tensor, " pos"]
    entropy: Float[Tensor, " pos"]


def predict(trace: Trace, progress: Progress | None = None) -> Predictions:
    """Predictions at every position of a transformer's trace; see `predictions_of`."""
    return predictions_of(
        trace.token_ids, trace.anatomy.vocab_size, lambda start, end: last_logits(trace, start, end), progress
    )


def predictions_of(
    token_ids: tuple[int, ...],
    vocab_size: int,
    logits_of: Callable[[int, int], Float[Tensor, "pos vocab"]],
    progress: Progress | None = None,
) -> Predictions:
    """Predictions at every position, from a function that gives the logits of positions start..end−1.

    `surprisal[i]` is in bits and belongs to token i, given what precedes it; NaN for the first token. `entropy[i]` is
    that of the distribution after token i, in bits.
    """
    k, n_pos = min(TOP, vocab_size), len(token_ids)
    parts: list[tuple[Tensor, ...]] = []
    with torch.inference_mode():
        for start in range(0, n_pos, ROWS):
            logits = logits_of(start, min(start + ROWS, n_pos))
            following = torch.tensor([*token_ids[1:], 0], device=logits.device)
            log_total = logits.logsumexp(-1, keepdim=True)
            top_logits, top_ids = logits.topk(k)
            chosen = logits.gather(-1, following[start : start + ROWS, None])
            bits = (log_total - chosen)[:, 0] / math.log(2)
            log_p = logits.sub_(log_total)
            entropy = -(log_p.exp() * log_p).sum(-1) / math.log(2)
            parts.append((top_ids, (top_logits - log_total).exp(), top_logits, bits, entropy))
            if progress is not None:
                progress("predictions", min(1.0, (start + ROWS) / n_pos))
    top_ids, probabilities, top_logits, bits, entropy = (torch.cat(column) for column in zip(*parts, strict=True))
    surprisal = torch.cat([torch.full((1,), torch.nan, device=bits.device), bits[:-1]])
    return Predictions(top_ids, probabilities, top_logits, surprisal, entropy)


def last_logits(trace: Trace, start: int, end: int) -> Float[Tensor, "pos vocab"]:
    """The model's logits at positions start..end−1, from the last stream."""
    stream = trace.stream[-1, start:end].to(trace.model_dtype)
    return trace.anatomy.logits(stream).float()
