"""Tokens as they were run, and how to show one without hiding anything."""

import re
import unicodedata
from dataclasses import dataclass

_LOOSE_BYTES = re.compile("([\udc80-\udcff]+)")
VISIBLE = {" ": "·", "\n": "↵", "\r": "␍", "\t": "⇥", "\u00a0": "⍽", "\u200b": "⟨ZWSP⟩", "\ufeff": "⟨BOM⟩"}


@dataclass(frozen=True)
class Token:
    """One token of a prompt.

    `text` is the part of the prompt that the token's bytes complete: where a character is split over several tokens,
    the first one carries the character and the others, with `continues` set, carry the empty string, so that the
    texts joined give the prompt exactly. `start` and `end` are character positions in the prompt; tokens of one split
    character share them. `added` is true where the tokenizer, not the user, put the token there.
    """

    index: int
    id: int
    text: str
    bytes: bytes
    start: int
    end: int
    is_special: bool = False
    continues: bool = False
    added: bool = False
    piece: str = ""

    @property
    def label(self) -> str:
        """The token for a strip, an axis or a table: white space visible, loose bytes in hexadecimal, never markup."""
        if self.is_special:
            return self.piece or self.text
        if not self.bytes:
            return self.piece or "⟨empty⟩"
        # Bytes that are no UTF-8 become lone surrogates U+DC80..U+DCFF here, and are shown in hexadecimal.
        parts = _LOOSE_BYTES.split(self.bytes.decode(errors="surrogateescape"))
        return "".join(_hexadecimal(part) if _LOOSE_BYTES.fullmatch(part) else visible(part) for part in parts if part)


def visible(text: str) -> str:
    """The text with white space and unprintable characters replaced by marks that can be seen."""
    if not text:
        return "⟨empty⟩"
    alone = "◌" if unicodedata.combining(text[0]) else ""
    return alone + "".join(_visible_character(character) for character in text)


def _hexadecimal(escaped: str) -> str:
    return "⟨" + escaped.encode(errors="surrogateescape").hex(" ").upper() + "⟩"


def _visible_character(character: str) -> str:
    if character in VISIBLE:
        return VISIBLE[character]
    category = unicodedata.category(character)
    if category in ("Cc", "Cf", "Zl", "Zp", "Cs", "Co", "Cn", "Zs"):
        return f"⟨U+{ord(character):04X}⟩"
    return character
