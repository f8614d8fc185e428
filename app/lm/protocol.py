"""What the runner asks of a loaded model and of a trace, whatever kind of network is behind them."""

from collections.abc import Callable, Mapping
from typing import Literal, Protocol, runtime_checkable

from app.domain.tokens import Token

ModelKind = Literal["transformer", "lstm"]

# Called with the stage and the share of it that is done. May raise: that is how work is cancelled and times out.
Progress = Callable[[str, float], None]


@runtime_checkable
class Trace(Protocol):
    """One recorded forward pass."""

    @property
    def size_bytes(self) -> int:
        """Memory that it holds."""


@runtime_checkable
class LoadedModel(Protocol):
    """A model in memory."""

    @property
    def id(self) -> str:
        """Its name in the catalogue."""

    @property
    def kind(self) -> ModelKind:
        """What it is."""

    @property
    def title(self) -> str:
        """Its name for people."""

    @property
    def fingerprint(self) -> str:
        """Hash of config, weights and tokenizer."""

    @property
    def size_bytes(self) -> int:
        """Memory of the weights."""

    @property
    def dtype(self) -> str:
        """Number type that it computes in."""

    @property
    def device(self) -> str:
        """Device that it runs on."""

    @property
    def max_tokens(self) -> int:
        """Longest prompt that it takes here."""

    def anatomy_json(self) -> Mapping[str, object]:
        """Its shape, as plain data."""

    def encode(self, text: str) -> tuple[Token, ...]:
        """The tokens of a text, as they would be run."""

    def tokens_of(self, token_ids: tuple[int, ...]) -> tuple[Token, ...]:
        """Tokens for ids that came without a text."""

    def record(self, token_ids: tuple[int, ...], progress: Progress) -> Trace:
        """One recorded forward pass."""
