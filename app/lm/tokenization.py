"""Text to tokens and back, for the tokenizers of the transformers library, with nothing hidden.

The library's character offsets say which part of the prompt a token came from. Spans are made gapless here (white
space that a tokenizer trims belongs to the token after it), so that the tokens' texts joined are the prompt. The bytes
come from the vocabulary entry itself: byte-level alphabets and byte-fallback entries are decoded, so a piece of a
split character has its own bytes.
"""

import re
from functools import lru_cache
from typing import Any

from app.domain.tokens import Token
from app.errors import ModelUnavailable, UnknownToken

_BYTE_FALLBACK = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_METASPACE = "▁"

Tokenizer = Any


@lru_cache(maxsize=1)
def byte_alphabet() -> dict[str, int]:
    """The byte-level alphabet of GPT-2: printable Latin-1 stands for itself, the other bytes for U+0100 onwards."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + n): byte for n, byte in enumerate(others)}


class Vocabulary:
    """A tokenizer with what this program needs from it: tokens of a text, tokens of ids, bytes of an id.

    Raises:
        ModelUnavailable: the tokenizer cannot say where in a text its tokens stand.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        if not getattr(tokenizer, "is_fast", False):
            raise ModelUnavailable(
                f"{type(tokenizer).__name__} does not say which part of a text a token stands for. Put a "
                "tokenizer.json into the model's folder."
            )
        self._tokenizer = tokenizer
        self._byte_level = _is_byte_level(tokenizer)
        self._special = _special_ids(tokenizer)

    def encode(self, text: str) -> tuple[Token, ...]:
        """The tokens of a text as the model will be given them, those that the tokenizer adds included."""
        encoded = self._tokenizer(text, return_offsets_mapping=True, return_special_tokens_mask=True)
        ids, offsets, added = encoded["input_ids"], encoded["offset_mapping"], encoded["special_tokens_mask"]
        return self._tokens(text, ids, list(offsets), [bool(flag) for flag in added])

    def tokens_of(self, token_ids: tuple[int, ...]) -> tuple[Token, ...]:
        """Tokens for ids that came without a text; their spans lie in the decoded text.

        Raises:
            UnknownToken: an id is negative.
        """
        if any(token_id < 0 for token_id in token_ids):
            raise UnknownToken(f"Token ids are not negative; {min(token_ids)} is.")
        pieces = [self.piece_bytes(token_id) for token_id in token_ids]
        shown = list(pieces)
        # The space that such a tokenizer puts in front of a text is a byte of the first token and no part of the text.
        if not self._byte_level and shown and not self.is_special(token_ids[0]) and shown[0].startswith(b" "):
            shown[0] = shown[0][1:]
        ends = _character_ends(shown)
        text = b"".join(shown).decode(errors="replace")
        spans = list(zip([0, *ends], ends, strict=False))
        return self._tokens(text, list(token_ids), spans, [False] * len(token_ids), pieces)

    def piece_bytes(self, token_id: int) -> bytes:
        """The bytes that one vocabulary entry stands for; empty for an id that the tokenizer does not know."""
        piece = self._tokenizer.convert_ids_to_tokens(token_id)
        if piece is None:
            return b""
        if self.is_special(token_id):
            return str(piece).encode()
        if self._byte_level:
            alphabet = byte_alphabet()
            if all(character in alphabet for character in piece):
                return bytes(alphabet[character] for character in piece)
            return str(piece).encode()
        fallback = _BYTE_FALLBACK.fullmatch(piece)
        return bytes([int(fallback[1], 16)]) if fallback else str(piece).replace(_METASPACE, " ").encode()

    def label(self, token_id: int) -> str:
        """How to show one vocabulary entry on its own."""
        piece = self._tokenizer.convert_ids_to_tokens(token_id)
        if piece is None:
            return f"⟨id {token_id}⟩"
        return Token(0, token_id, "", self.piece_bytes(token_id), 0, 0, self.is_special(token_id), piece=piece).label

    def is_special(self, token_id: int) -> bool:
        """Whether an id is a mark, such as the beginning of a text, and stands for no text."""
        return token_id in self._special

    def _tokens(
        self,
        text: str,
        ids: list[int],
        offsets: list[tuple[int, int]],
        added: list[bool],
        pieces: list[bytes] | None = None,
    ) -> tuple[Token, ...]:
        last = max((i for i, flag in enumerate(added) if not flag), default=-1)
        tokens: list[Token] = []
        done = 0
        for index, (token_id, (_, end), is_added) in enumerate(zip(ids, offsets, added, strict=True)):
            raw = pieces[index] if pieces is not None else self.piece_bytes(token_id)
            stop = len(text) if index == last else done if is_added else max(end, done)
            # Pieces of one character share its span. So do a space that the tokenizer put in front of a word and the
            # word's first piece, but to them the character belongs.
            is_space = bool(raw) and not raw.strip(b" ")
            if is_space and index != last and text[done:stop].strip():
                stop = done
            own = text[done:stop]
            continues = own == "" and bool(raw) and bool(tokens) and not is_added and not is_space
            piece = self._tokenizer.convert_ids_to_tokens(token_id)
            tokens.append(
                Token(
                    index, token_id, own, raw,
                    start=tokens[-1].start if continues else done,
                    end=stop,
                    is_special=self.is_special(token_id),
                    continues=continues,
                    added=is_added,
                    piece=f"⟨id {token_id}⟩" if piece is None else str(piece),
                )
            )  # fmt: skip
            done = stop
        return tuple(tokens)


def _character_ends(pieces: list[bytes]) -> list[int]:
    """For each piece, the number of characters of the joined text that have begun by its end."""
    whole = b"".join(pieces)
    ends, done = [], 0
    for piece in pieces:
        done += len(piece)
        boundary = done
        while boundary < len(whole) and whole[boundary] & 0xC0 == 0x80:
            boundary += 1
        ends.append(len(whole[:boundary].decode(errors="replace")))
    return ends


def _is_byte_level(tokenizer: Tokenizer) -> bool:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    return backend is not None and "ByteLevel" in repr(backend.pre_tokenizer) + repr(backend.decoder)


def _special_ids(tokenizer: Tokenizer) -> frozenset[int]:
    added = {i for i, token in tokenizer.added_tokens_decoder.items() if token.special}
    return frozenset(added) | frozenset(tokenizer.all_special_ids)
