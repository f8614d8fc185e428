"""The probe: every head on the same repeated random tokens, and the badges that follow from it.

What a head does on one prompt may be that prompt's doing. Random tokens, repeated, leave nothing to go by but position
and repetition: a head that then attends to the token after the earlier copy does induction, and one that attends to the
copy itself looks for duplicates (Olsson et al. 2022, "In-context Learning and Induction Heads").

A badge is given to a head whose score on the probe is at least `LEAST_SCORE` and higher than that of nine tenths of the
model's heads. `chance` is what a head would score that spreads its attention evenly over all that it can see.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from app.analysis.heads import matches, scan_heads
from app.errors import Unsupported
from app.lm.loading import LoadedTransformer
from app.lm.recorder import Progress

log = logging.getLogger("headwater.probe")

SEED = 0
PERIOD = 32
REPEATS = 3
LEAST_SCORE = 0.4
LEAST_PERCENTILE = 90.0
# Badge: the summary it rests on, and what the head attends to in words.
BADGES: Mapping[str, tuple[str, str]] = {
    "induction": ("induction", "the token after an earlier copy of the reader's own"),
    "previous token": ("previous_token", "the token just before the reader"),
    "duplicate token": ("duplicate_token", "earlier copies of the reader's own token"),
    "first token": ("first_token", "the first token"),
    "self": ("self", "the reader itself"),
}


@dataclass(frozen=True)
class Badge:
    """One head that stands out on the probe. `percentile` is the share of the model's heads below it, in percent."""

    layer: int
    head: int
    badge: str
    summary: str
    score: float
    percentile: float
    evidence: str


@dataclass(frozen=True)
class Probe:
    """What the heads of one model do on the probe; summaries [layer, head]."""

    n_tokens: int
    period: int
    seed: int
    about: str
    summaries: Mapping[str, np.ndarray]
    chance: Mapping[str, float]
    badges: tuple[Badge, ...]


# One for each model that has been probed, by fingerprint and device: the numbers do not change.
_kept: dict[tuple[str, str], Probe] = {}


def probe_of(loaded: LoadedTransformer, progress: Progress | None = None) -> Probe:
    """The probe of a model, computed at the first call.

    Raises:
        Unsupported: the model reads too few tokens, or has too few, for a repetition.
    """
    key = (loaded.fingerprint, loaded.device)
    if key not in _kept:
        _kept[key] = run_probe(loaded, progress)
        log.info("Probed %s with %d tokens", loaded.id, _kept[key].n_tokens)
    return _kept[key]


def probe_tokens(loaded: LoadedTransformer) -> tuple[tuple[int, ...], int]:
    """The token ids of the probe, those that the tokenizer puts in front of every prompt included, and the period.

    Raises:
        Unsupported: there is no room for a repetition.
    """
    first = [token.id for token in loaded.encode("a") if token.added and token.index == 0]
    usable = [
        token_id
        for token_id in range(min(loaded.n_embeddings, loaded.anatomy.vocab_size))
        if not loaded.vocabulary.is_special(token_id)
    ]
    period = min(PERIOD, (loaded.max_tokens - len(first)) // REPEATS, len(usable))
    if period < 2:
        raise Unsupported(f"{loaded.id} reads at most {loaded.max_tokens} tokens, too few for a repetition.")
    order = torch.randperm(len(usable), generator=torch.Generator().manual_seed(SEED))[:period].tolist()
    return tuple(first + [usable[index] for index in order] * REPEATS), period


def run_probe(loaded: LoadedTransformer, progress: Progress | None = None) -> Probe:
    """One recorded pass over the probe. Raises as `probe_tokens`."""
    token_ids, period = probe_tokens(loaded)
    trace = loaded.record(token_ids, progress)
    summaries = scan_heads(trace, progress).summaries
    chance = chance_levels(token_ids)
    about = (
        f"{len(token_ids)} tokens: {period} random ones, {REPEATS} times over. A badge needs a score of at least "
        f"{LEAST_SCORE:g}, higher than that of {LEAST_PERCENTILE:g} % of this model's heads."
    )
    return Probe(len(token_ids), period, SEED, about, summaries, chance, badges_of(summaries, chance, len(token_ids)))


def badges_of(
    summaries: Mapping[str, np.ndarray], chance: Mapping[str, float], n_tokens: int
) -> tuple[Badge, ...]:  # fmt: skip
    """The badges, highest score first."""
    found: list[Badge] = []
    for badge, (summary, what) in BADGES.items():
        scores = summaries[summary]
        known = scores[~np.isnan(scores)]
        for layer, head in np.argwhere(scores >= LEAST_SCORE).tolist():
            score = float(scores[layer, head])
            percentile = 100 * float((known < score).sum()) / known.size
            if percentile >= LEAST_PERCENTILE:
                evidence = (
                    f"On {n_tokens} repeated random tokens it gives {score:.2f} of its attention to {what}; even "
                    f"attention would give {chance[summary]:.2f}."
                )
                found.append(Badge(layer, head, badge, summary, score, percentile, evidence))
    return tuple(sorted(found, key=lambda one: -one.score))


def chance_levels(token_ids: tuple[int, ...]) -> dict[str, float]:
    """What the scores of an even head would be on these tokens: every token it can see gets the same share."""
    repeated = matches(token_ids, torch.device("cpu"))
    seen = torch.arange(1, len(token_ids) + 1, dtype=torch.float64)
    shares = {"previous_token": (1 / seen)[1:], "first_token": (1 / seen)[1:], "self": 1 / seen}
    for name, mask in (("duplicate_token", repeated.duplicate), ("induction", repeated.induction)):
        has_one = mask.any(-1)
        shares[name] = (mask.sum(-1) / seen)[has_one]
    return {name: float(values.mean()) for name, values in shares.items()}
