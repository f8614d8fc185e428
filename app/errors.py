"""Every error that a user can meet, as one tree.

    AppError
    ├── InvalidInput          422  what was sent cannot be used as it is
    │   ├── EmptyPrompt
    │   ├── UnusableText
    │   ├── PromptTooLong
    │   ├── UnknownToken
    │   └── OutOfRange
    ├── NotFound              404
    │   ├── UnknownModel
    │   └── UnknownAnalysis
    ├── NotAllowed            403
    ├── BodyTooLarge          413
    ├── Unsupported           409  the model has no such thing; says which layer and why
    ├── NotReady              409  the analysis is still being computed
    ├── TooManyRequests       429
    ├── Busy                  503  the queue is full
    ├── ModelUnavailable      503  missing, failed its self-check, or could not be loaded
    ├── TooCostly             422  does not fit the configured memory or size budget
    ├── TimedOut              504
    └── BrokenInvariant       500  a check of the program against itself failed

A message states the fact, the numbers and the next step, in this order. `facts` carries the numbers as data.
"""

from typing import ClassVar


class AppError(Exception):
    """An error with a kind (the last part of its problem type), an HTTP status, a message and its numbers."""

    kind: ClassVar[str] = "error"
    title: ClassVar[str] = "Something went wrong"
    status: ClassVar[int] = 500

    def __init__(self, message: str, **facts: object) -> None:
        super().__init__(message)
        self.message = message
        self.facts = facts


class InvalidInput(AppError):
    """What was sent cannot be used as it is."""

    kind = "invalid-input"
    title = "The input cannot be used"
    status = 422


class EmptyPrompt(InvalidInput):
    """The text is empty or only white space."""

    kind = "empty-prompt"
    title = "The prompt is empty"


class UnusableText(InvalidInput):
    """The text holds something that is not text: a lone surrogate or NUL."""

    kind = "unusable-text"
    title = "The text holds a character that cannot be used"


class PromptTooLong(InvalidInput):
    """The prompt has more tokens than the model or the server takes."""

    kind = "prompt-too-long"
    title = "The prompt is too long"


class UnknownToken(InvalidInput):
    """A token id outside the vocabulary, or a target that is not a token."""

    kind = "unknown-token"
    title = "There is no such token"


class OutOfRange(InvalidInput):
    """An index outside its axis."""

    kind = "out-of-range"
    title = "The index is out of range"


class NotFound(AppError):
    """The address names nothing."""

    kind = "not-found"
    title = "There is nothing at this address"
    status = 404


class UnknownModel(NotFound):
    """The name is not in the catalogue."""

    kind = "unknown-model"
    title = "There is no such model"


class UnknownAnalysis(NotFound):
    """The id is malformed, was never given out, or its analysis was deleted."""

    kind = "unknown-analysis"
    title = "There is no such analysis"


class NotAllowed(AppError):
    """The caller may not do this."""

    kind = "not-allowed"
    title = "This is not allowed"
    status = 403


class BodyTooLarge(AppError):
    """The request body is over the limit."""

    kind = "body-too-large"
    title = "The request is too large"
    status = 413


class Unsupported(AppError):
    """The model, or one of its layers, has no such quantity."""

    kind = "unsupported"
    title = "This model has no such quantity"
    status = 409


class NotReady(AppError):
    """The analysis has not finished."""

    kind = "not-ready"
    title = "The analysis is not finished"
    status = 409


class TooManyRequests(AppError):
    """One client sent more than its share."""

    kind = "too-many-requests"
    title = "Too many requests"
    status = 429


class Busy(AppError):
    """The queue in front of a model is full."""

    kind = "busy"
    title = "The server is busy"
    status = 503


class ModelUnavailable(AppError):
    """The model is not on this machine, could not be loaded, or failed its self-check."""

    kind = "model-unavailable"
    title = "The model is not available"
    status = 503


class TooCostly(InvalidInput):
    """The request would need more memory or time than the operator allows."""

    kind = "too-costly"
    title = "This would cost more than the server allows"


class TimedOut(AppError):
    """The work took longer than the limit."""

    kind = "timed-out"
    title = "This took too long"
    status = 504


class BrokenInvariant(AppError):
    """The program's own numbers disagree; nothing is shown rather than something wrong."""

    kind = "broken-invariant"
    title = "The numbers do not add up"
