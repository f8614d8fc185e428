"""Tokens: nothing hidden, nothing lost, whatever the tokenizer does to spaces, bytes and beginnings.

The tokenizers are built here, one for each way in which published ones treat a text.
"""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from app.domain.tokens import Token
from app.errors import ModelUnavailable, UnknownToken
from app.lm.tokenization import Vocabulary, byte_alphabet

HARD = (
    "Hi 👍🏽!", "😀😀", "東京メトロ", "e\u0301te\u0301", "שלום", "a\tb\nc\r\nd",
    "  two  spaces ", " ", "x\u00a0y", "🏳️\u200d🌈 flag", "\u200bzero\ufeff", "…—“”", "İstanbul ŞİŞ", "Ġ Ċ ▁ Ã",
    "a<b<c", "</script><script>alert(1)</script>", 'x" onmouseover="alert(1)', "<b>bold</b>", "<br>",
)  # fmt: skip


def _byte_level(bos: bool = False, prefix_space: bool = False) -> PreTrainedTokenizerFast:
    """GPT-2's kind: every byte is a token of a printable alphabet, a few pairs are merged."""
    alphabet = sorted(byte_alphabet())
    merges = [("h", "e"), ("Ġ", "t"), ("Ġt", "he"), ("l", "l"), ("ð", "Ł"), ("æ", "Ŀ")]
    entries = [*alphabet, *("".join(pair) for pair in merges), "<|end|>"]
    built = Tokenizer(models.BPE({entry: i for i, entry in enumerate(entries)}, merges))
    built.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix_space)
    built.decoder = decoders.ByteLevel()
    if bos:
        built.post_processor = processors.TemplateProcessing(
            single="<|end|> $A", special_tokens=[("<|end|>", len(entries) - 1)]
        )
    return PreTrainedTokenizerFast(tokenizer_object=built, bos_token="<|end|>", eos_token="<|end|>")


def _metaspace(scheme: str, bos: bool = True) -> PreTrainedTokenizerFast:
    """The sentencepiece kind: ▁ for spaces, bytes as <0xNN> where nothing else fits, usually a token in front."""
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", *"abcdefghijklmnopqrstuvwxyz"]
    merges = [("t", "h"), ("th", "e"), ("▁", "the"), ("▁", "▁")]
    pieces += ["".join(pair) for pair in merges]
    built = Tokenizer(
        models.BPE(
            {piece: i for i, piece in enumerate(pieces)}, merges, byte_fallback=True, unk_token="<unk>", fuse_unk=True
        )
    )
    built.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=False)
    built.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    if bos:
        built.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return PreTrainedTokenizerFast(tokenizer_object=built, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


def _normalized() -> PreTrainedTokenizerFast:
    """Lower case and NFC before splitting: what is looked up is not what was typed."""
    tokenizer = _byte_level()
    tokenizer.backend_tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    return tokenizer


KINDS: dict[str, Callable[[], PreTrainedTokenizerFast]] = {
    "byte-level": _byte_level,
    "byte-level with BOS": lambda: _byte_level(bos=True),
    "byte-level with a space in front": lambda: _byte_level(prefix_space=True),
    "metaspace always": lambda: _metaspace("always"),
    "metaspace first": lambda: _metaspace("first"),
    "metaspace never": lambda: _metaspace("never", bos=False),
    "normalised": _normalized,
}
every_kind = pytest.mark.parametrize("kind", KINDS)


@cache
def vocabulary(kind: str) -> Vocabulary:
    return Vocabulary(KINDS[kind]())


def assert_sound(tokens: tuple[Token, ...], text: str) -> None:
    """What holds for every tokenizer and every text."""
    assert [token.index for token in tokens] == list(range(len(tokens)))
    assert "".join(token.text for token in tokens) == text
    done = 0
    for token in tokens:
        assert text[token.start : token.end] == token.text or token.continues
        assert done <= token.end <= len(text)
        done = token.end
        if token.continues:
            assert token.text == ""
            assert token.start == tokens[token.index - 1].start
        if token.added:
            assert token.text == ""
        assert token.label
        # Loose bytes are shown as ⟨F0 9F⟩; any other space is invisible and must not be there.
        shown = re.sub(r"⟨[0-9A-F ]+⟩", "", token.label)
        assert not set(shown) & set(" \t\n\r\u00a0\u200b\ufeff") or token.is_special


@every_kind
@pytest.mark.parametrize("text", HARD)
def test_the_texts_joined_are_the_prompt(kind: str, text: str) -> None:
    assert_sound(vocabulary(kind).encode(text), text)


@every_kind
@settings(max_examples=60, deadline=None, derandomize=True)
@given(text=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30))
def test_the_texts_joined_are_any_prompt(kind: str, text: str) -> None:
    assert_sound(vocabulary(kind).encode(text), text)


@pytest.mark.parametrize("kind", ["byte-level", "byte-level with BOS"])
@pytest.mark.parametrize("text", HARD)
def test_the_bytes_joined_are_the_prompt_where_every_byte_is_a_token(kind: str, text: str) -> None:
    tokens = vocabulary(kind).encode(text)
    assert b"".join(token.bytes for token in tokens if not token.added) == text.encode()


@pytest.mark.parametrize("text", ["Hi 👍🏽!", "東京メトロ", "😀😀", "the cat", "ß"])
def test_the_bytes_joined_are_the_prompt_with_byte_fallback(text: str) -> None:
    tokens = vocabulary("metaspace never").encode(text)
    assert b"".join(token.bytes for token in tokens) == text.encode()


# Split characters


def test_pieces_of_one_character_are_grouped_and_each_keeps_its_bytes() -> None:
    tokens = vocabulary("byte-level").encode("😀!")
    assert [token.continues for token in tokens] == [False, True, True, False]
    assert [token.bytes.hex() for token in tokens] == ["f09f", "98", "80", "21"]
    assert [token.text for token in tokens] == ["😀", "", "", "!"]
    assert [(token.start, token.end) for token in tokens] == [(0, 1), (0, 1), (0, 1), (1, 2)]
    assert [token.label for token in tokens] == ["⟨F0 9F⟩", "⟨98⟩", "⟨80⟩", "!"]


def test_byte_fallback_pieces_are_grouped_too() -> None:
    tokens = [token for token in vocabulary("metaspace never").encode("a京b") if not token.added]
    assert [token.continues for token in tokens] == [False, False, True, True, False]
    assert [token.bytes.hex() for token in tokens] == ["61", "e4", "ba", "ac", "62"]
    assert [token.label for token in tokens] == ["a", "⟨E4⟩", "⟨BA⟩", "⟨AC⟩", "b"]


def test_two_equal_emoji_are_two_groups() -> None:
    tokens = vocabulary("byte-level").encode("😀😀")
    assert [token.text for token in tokens] == ["😀", "", "", "😀", "", ""]
    assert [token.start for token in tokens] == [0, 0, 0, 1, 1, 1]


# The alphabets of tokenizers never reach the page


@every_kind
def test_no_letter_of_a_tokenizers_own_alphabet_is_shown(kind: str) -> None:
    for token in vocabulary(kind).encode(" the\tcat\nsat 👍"):
        assert not set(token.label) & set("ĠĊĉÃðŁ▁"), token


def test_letters_that_look_like_a_tokenizers_alphabet_are_shown_where_they_were_typed() -> None:
    tokens = vocabulary("byte-level").encode("▁")
    assert b"".join(token.bytes for token in tokens) == "▁".encode()
    assert [token.label for token in vocabulary("byte-level").encode("Ã")] == ["⟨C3⟩", "⟨83⟩"]


def test_white_space_is_visible() -> None:
    labels = [token.label for token in vocabulary("byte-level").encode(" \t\n\r")]
    assert "".join(labels) == "·⇥↵␍"


@pytest.mark.parametrize("kind", ["metaspace always", "metaspace first"])
def test_a_space_that_the_tokenizer_puts_in_front_is_shown_and_is_not_in_the_text(kind: str) -> None:
    added, word = vocabulary(kind).encode("the")
    assert added.added
    assert (word.label, word.bytes, word.text) == ("·the", b" the", "the")


# Beginnings: who put a token there


def test_a_token_in_front_is_marked_as_added_by_the_tokenizer() -> None:
    first, *others = vocabulary("byte-level with BOS").encode("hello")
    assert (first.is_special, first.added, first.text, first.label) == (True, True, "", "<|end|>")
    assert not any(token.added for token in others)


def test_a_tokenizer_that_adds_nothing_adds_nothing() -> None:
    assert not any(token.added or token.is_special for token in vocabulary("byte-level").encode("hello"))


@pytest.mark.parametrize("kind", ["byte-level", "byte-level with BOS"])
def test_a_special_token_that_the_user_typed_is_special_and_not_added(kind: str) -> None:
    tokens = vocabulary(kind).encode("<|end|>hello<|end|>")
    typed = [token for token in tokens if token.is_special and not token.added]
    assert [token.text for token in typed] == ["<|end|>", "<|end|>"]
    assert sum(token.added for token in tokens) == (kind == "byte-level with BOS")
    assert_sound(tokens, "<|end|>hello<|end|>")


def test_a_special_token_typed_after_the_added_one_shows_both() -> None:
    first, second, *_ = vocabulary("metaspace first").encode("<s>the")
    assert (first.added, second.added) == (True, False)
    assert first.id == second.id == 1
    assert second.text == "<s>"


def test_a_token_at_the_end_is_marked_as_added_too() -> None:
    tokenizer = _byte_level()
    end = tokenizer.convert_tokens_to_ids("<|end|>")
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="$A <|end|>", special_tokens=[("<|end|>", end)]
    )
    tokens = Vocabulary(tokenizer).encode("ab")
    assert [token.added for token in tokens] == [False, False, True]
    assert_sound(tokens, "ab")


def test_an_added_word_is_shown_as_it_is_written() -> None:
    tokenizer = _byte_level()
    tokenizer.add_tokens([AddedToken("<image>"), AddedToken(" spaced word"), AddedToken("中")])
    tokens = Vocabulary(tokenizer).encode("a<image> spaced word中")
    assert [(token.text, token.bytes) for token in tokens] == [
        ("a", b"a"), ("<image>", b"<image>"), (" spaced word", b" spaced word"), ("中", "中".encode())
    ]  # fmt: skip
    assert [token.is_special for token in tokens] == [False] * 4


# Ids without a text


@every_kind
@pytest.mark.parametrize("text", ["the cat", "Hi 👍🏽!", "東京", "a\nb"])
def test_tokens_of_ids_have_the_labels_and_bytes_of_the_tokens_of_the_text(kind: str, text: str) -> None:
    encoded = vocabulary(kind).encode(text)
    from_ids = vocabulary(kind).tokens_of(tuple(token.id for token in encoded))
    assert [token.id for token in from_ids] == [token.id for token in encoded]
    assert [token.label for token in from_ids] == [token.label for token in encoded]
    assert [token.bytes for token in from_ids] == [token.bytes for token in encoded]
    assert [token.continues for token in from_ids] == [token.continues for token in encoded]


def test_ids_that_are_a_piece_of_a_character_are_shown_as_bytes() -> None:
    (token,) = vocabulary("byte-level").tokens_of((vocabulary("byte-level").encode("😀")[1].id,))
    assert token.label == "⟨98⟩"


def test_an_id_that_the_tokenizer_does_not_know_is_shown_by_its_number() -> None:
    (token,) = vocabulary("byte-level").tokens_of((9999,))
    assert token.label == "⟨id 9999⟩"
    assert vocabulary("byte-level").label(9999) == "⟨id 9999⟩"
    assert vocabulary("byte-level").piece_bytes(9999) == b""


def test_a_negative_id_is_refused() -> None:
    with pytest.raises(UnknownToken, match="-3"):
        vocabulary("byte-level").tokens_of((1, -3))


def test_no_ids_are_no_tokens() -> None:
    assert vocabulary("byte-level").tokens_of(()) == ()


def test_a_tokenizer_that_gives_no_positions_is_refused() -> None:
    class Slow:
        is_fast = False

    with pytest.raises(ModelUnavailable, match="Slow does not say which part of a text a token stands for"):
        Vocabulary(Slow())


@pytest.mark.real_model
@pytest.mark.parametrize("text", HARD)
def test_the_default_models_tokenizer_loses_nothing(smollm2_folder: Path, text: str) -> None:
    tokens = Vocabulary(AutoTokenizer.from_pretrained(smollm2_folder)).encode(text)
    assert_sound(tokens, text)
    assert b"".join(token.bytes for token in tokens) == text.encode()
