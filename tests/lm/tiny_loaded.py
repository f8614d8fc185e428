"""Tiny models as the program loads them, and their traces, each made once."""

from functools import cache
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from app.lm.families import read_anatomy
from app.lm.loading import LoadedTransformer
from app.lm.tokenization import Vocabulary
from app.lm.trace import Trace
from tests.lm.reference_families import reference
from tests.lm.references import Decoder, Run, run
from tests.lm.tiny import BY_NAME, PROMPT, VOCAB, model_of


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    """Words w0 … w60, split at white space."""
    words = Tokenizer(models.WordLevel({f"w{i}": i for i in range(VOCAB)}, unk_token="w0"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=words)


def load(model: Any, name: str = "tiny") -> LoadedTransformer:
    """A model in memory as if it had been loaded from a folder."""
    vocabulary = Vocabulary(tiny_tokenizer())
    return LoadedTransformer(
        name, name, "0" * 64, model, read_anatomy(model), vocabulary, 64, "cpu", "float32", "float32"
    )  # fmt: skip


@cache
def loaded_of(name: str) -> LoadedTransformer:
    """The model of a case."""
    return load(model_of(name), name)


@cache
def trace_of(name: str) -> Trace:
    """The trace of `PROMPT` in the model of a case."""
    return loaded_of(name).record(PROMPT)


@cache
def decoder_of(name: str) -> Decoder:
    """The reference decoder of a case."""
    model = model_of(name)
    return reference(BY_NAME[name].model_type, model.config, model.state_dict())


@cache
def run_of(name: str) -> Run:
    """What the reference decoder computes on `PROMPT`."""
    return run(decoder_of(name), PROMPT)


def untouched_logits(model: Any, token_ids: tuple[int, ...] = PROMPT) -> torch.Tensor:
    """The library's own logits at every position."""
    with torch.inference_mode():
        return model(input_ids=torch.tensor([token_ids]), use_cache=False).logits[0]  # type: ignore[no-any-return]
