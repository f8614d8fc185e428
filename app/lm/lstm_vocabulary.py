"""Characters or words to ids and back, for an LSTM folder.

Character unit: every character of the prompt is one token. Word unit: every run of letters and digits and every other
visible character is one; white space belongs to the token after it and is not looked up. What the vocabulary does not
hold becomes `unknown_id`, and keeps its own text and bytes, so that nothing of the prompt is lost from view.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from app.domain.tokens import Token, visible

_WORD = re.compile(r"\w+|[^\w\s]")

Unit = Literal["character", "word"]


@dataclass(frozen=True)
class LstmVocabulary:
    """The vocabulary of an LSTM: ids by text, and the id that stands for everything else."""

    unit: Unit
    ids: Mapping[str, int]
    unknown_id: int
    padding_id: int | None
    lowercase: bool = False

    def encode(self, text: str) -> tuple[Token, ...]:
        """The tokens of a text; their texts joined are the text."""
        ends = [match.end() for match in _WORD.finditer(text)] if self.unit == "word" else range(1, len(text) + 1)
        starts = [0, *ends[:-1]]
        tokens = []
        for index, (start, end) in enumerate(zip(starts, ends, strict=False)):
            # White space at the very end has no token after it and belongs to the last one.
            stop = len(text) if index == len(ends) - 1 else end
            own = text[start:stop]
            tokens.append(Token(index, self._id(own), own, own.encode(errors="surrogateescape"), start, stop))
        return tuple(tokens)

    def tokens_of(self, token_ids: tuple[int, ...]) -> tuple[Token, ...]:
        """Tokens for ids that came without a text; words are joined by spaces."""
        tokens: list[Token] = []
        done = 0
        for index, token_id in enumerate(token_ids):
            own = self._texts.get(token_id, "")
            if self.unit == "word" and index and own:
                own = f" {own}"
            tokens.append(
                Token(index, token_id, own, own.encode(), done, done + len(own), piece=self.label(token_id))
            )  # fmt: skip
            done += len(own)
        return tuple(tokens)

    def label(self, token_id: int) -> str:
        """How to show one vocabulary entry on its own."""
        if token_id in self._texts:
            return visible(self._texts[token_id])
        if token_id == self.padding_id:
            return "⟨padding⟩"
        return "⟨unknown⟩" if token_id == self.unknown_id else f"⟨id {token_id}⟩"

    def _id(self, text: str) -> int:
        key = text.strip() if self.unit == "word" else text
        return self.ids.get(key.lower() if self.lowercase else key, self.unknown_id)

    @cached_property
    def _texts(self) -> dict[int, str]:
        return {token_id: text for text, token_id in self.ids.items()}
