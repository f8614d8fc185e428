"""The recipe: what makes an analysis repeatable."""

import hashlib
import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Recipe:
    """Everything that the numbers of an analysis follow from.

    `fingerprint` is the hash of the model's config, weights and tokenizer; `text` is what the user typed, or "" when
    token ids were given.
    """

    model: str
    fingerprint: str
    token_ids: tuple[int, ...]
    text: str
    version: str

    @property
    def key(self) -> str:
        """Equal for runs that give equal numbers: the same weights and the same token ids."""
        body = json.dumps([self.fingerprint, self.token_ids])
        return hashlib.sha256(body.encode()).hexdigest()

    def to_json(self) -> dict[str, object]:
        """The recipe as plain data."""
        return {**asdict(self), "token_ids": list(self.token_ids)}

    @staticmethod
    def from_json(data: dict[str, object]) -> "Recipe":
        """The inverse of `to_json`."""
        fields = {name: data[name] for name in ("model", "fingerprint", "text", "version")}
        return Recipe(token_ids=tuple(data["token_ids"]), **fields)  # type: ignore[arg-type]
