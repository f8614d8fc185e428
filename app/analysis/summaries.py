"""One number for each head, on one prompt: what they are called, and those that need more than the patterns.

    write_norm    |o_i| averaged over readers
    attribution   what the head adds directly to one logit at one position, see `app.analysis.attribution`

The others come from the walk over all patterns, see `app.analysis.heads`, and are kept with the snapshot.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Summary:
    """What one number for each head means."""

    name: str
    unit: str
    about: str


PROMPT_SUMMARIES = (
    Summary("entropy", "bits", "How spread the head's attention is, averaged over readers."),
    Summary("distance", "tokens", "How far back the head looks, averaged over readers."),
    Summary("previous_token", "share", "On the token just before the reader, averaged over readers."),
    Summary("first_token", "share", "On the first token, averaged over all readers but the first."),
    Summary("self", "share", "On the reader itself, averaged over readers."),
    Summary(
        "duplicate_token", "share of attention",
        "On earlier copies of the reader's token, averaged over readers that have one; NaN where nothing repeats.",
    ),
    Summary(
        "induction", "share of attention",
        "On what followed earlier copies of the reader's token, averaged over readers that have one; NaN where nothing "
        "repeats.",
    ),
    Summary("write_norm", "norm", "Norm of what the head adds to the stream, averaged over readers."),
)  # fmt: skip
ATTRIBUTION = Summary("attribution", "logits", "What the head adds directly to the logit at the chosen position.")


def tensor_name(summary: str) -> str:
    """The name of a summary's tensor; that of the write norm says that it is a mean, for `head_write_norm` is not."""
    return "head_mean_write_norm" if summary == "write_norm" else f"head_{summary}"
