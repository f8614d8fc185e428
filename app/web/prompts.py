"""What may be run: the checks of a text or of token ids, and the tokens they come to. The text is never altered."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.tokens import Token
from app.errors import EmptyPrompt, InvalidInput, PromptTooLong, UnusableText
from app.lm.protocol import LoadedModel

_UNUSABLE = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True)
class Prompt:
    """A text as it was typed and its tokens as they will be run."""

    text: str
    tokens: tuple[Token, ...]

    @property
    def token_ids(self) -> tuple[int, ...]:
        """The ids of the tokens."""
        return tuple(token.id for token in self.tokens)


def read_prompt(loaded: LoadedModel, text: str | None, token_ids: Sequence[int] | None) -> Prompt:
    """The prompt of a request, which gives either a text or token ids.

    Raises:
        InvalidInput: neither or both are given. EmptyPrompt, UnusableText, PromptTooLong, UnknownToken.
    """
    if (text is None) == (token_ids is None):
        given = "both" if text is not None else "neither"
        raise InvalidInput(f"Give either text or token_ids; {given} came.", given=given)
    if text is not None:
        check_characters(text)
        if not text.strip():
            raise EmptyPrompt("The prompt is empty or only white space. Type something.", n_characters=len(text))
        tokens = loaded.encode(text)
    else:
        ids = tuple(token_ids or ())
        check_length(loaded, len(ids))
        tokens = loaded.tokens_of(ids) if ids else ()
        text = "".join(token.text for token in tokens)
    if not tokens:
        raise EmptyPrompt("The prompt comes to no token at all. Type something.")
    check_length(loaded, len(tokens))
    return Prompt(text, tokens)


def check_characters(text: str) -> None:
    """Does nothing for a text of usable characters.

    Raises:
        UnusableText: a NUL or a lone surrogate; the message says where.
    """
    unusable = _UNUSABLE.search(text)
    if unusable is not None:
        position, character = unusable.start(), unusable[0]
        what = "NUL" if character == "\0" else "half of a surrogate pair, which is no character"
        raise UnusableText(
            f"Character {position} is U+{ord(character):04X}, {what}. Remove it.",
            position=position,
            code_point=f"U+{ord(character):04X}",
        )


def check_length(loaded: LoadedModel, n_tokens: int) -> None:
    """Does nothing if so many tokens may be run.

    Raises:
        PromptTooLong: they may not; the message says by how many.
    """
    over = n_tokens - loaded.max_tokens
    if over > 0:
        raise PromptTooLong(
            f"The prompt has {n_tokens:,} tokens; {loaded.id} takes {loaded.max_tokens:,} here. "
            f"Shorten it by {over:,} token{'s' if over > 1 else ''}.",
            n_tokens=n_tokens,
            limit=loaded.max_tokens,
        )


def token_json(token: Token) -> dict[str, object]:
    """A token as plain data. `start` and `end` count Unicode characters, not UTF-16 units."""
    return {
        "index": token.index,
        "id": token.id,
        "text": token.text,
        "label": token.label,
        "bytes": token.bytes.hex(),
        "start": token.start,
        "end": token.end,
        "is_special": token.is_special,
        "continues": token.continues,
        "added": token.added,
    }
