"""A transformer loaded from a folder, with its anatomy, its vocabulary and its fingerprint."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging as transformers_logging

from app.domain.tokens import Token
from app.errors import AppError, ModelUnavailable, UnknownToken
from app.lm.anatomy import Anatomy
from app.lm.devices import place
from app.lm.families import describe, read_anatomy, require_family
from app.lm.fingerprints import hash_files
from app.lm.recorder import Progress, run_recorded
from app.lm.tokenization import Vocabulary
from app.lm.trace import Trace
from app.settings import Settings

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
# Whatever decides about the numbers or the tokens: shards and their index, vocabularies of every kind, added tokens,
# and the settings that say whether a token is put in front of every prompt.
_FINGERPRINTED = (
    "config.json", "*.safetensors", "*.safetensors.index.json", "tokenizer.json", "tokenizer_config.json",
    "special_tokens_map.json", "added_tokens.json", "*.model", "vocab.*", "merges.txt", "*.tiktoken",
)  # fmt: skip
_STORED_NAMES = {"F32": "float32", "BF16": "bfloat16", "F16": "float16", "F64": "float64"}


# What a configuration may ask for besides logits. Some of it makes the library take another path with other numbers.
PLAIN_RUN = {"output_attentions": False, "output_hidden_states": False, "return_dict": True, "use_cache": False}


@dataclass(eq=False)
class LoadedTransformer:
    """A causal language model that can be asked for tokens, a trace, and plain logits."""

    id: str
    title: str
    fingerprint: str
    model: nn.Module
    anatomy: Anatomy
    vocabulary: Vocabulary
    max_tokens: int
    device: str
    dtype: str
    stored_dtype: str
    kind: Literal["transformer"] = "transformer"

    @property
    def size_bytes(self) -> int:
        """Memory of the weights; tied ones count once."""
        unique = {p.data_ptr(): p.numel() * p.element_size() for p in self.model.parameters()}
        return sum(unique.values())

    def anatomy_json(self) -> Mapping[str, object]:
        """The model's shape for the page."""
        return self.anatomy.to_json()

    def encode(self, text: str) -> tuple[Token, ...]:
        """The tokens of a text, as they would be run.

        Raises:
            UnknownToken: the tokenizer knows a token for which the model has no embedding.
        """
        tokens = self.vocabulary.encode(text)
        beyond = [token for token in tokens if token.id >= self.n_embeddings]
        if beyond:
            raise UnknownToken(
                f"The tokenizer turns {beyond[0].label!r} into token {beyond[0].id}, but {self.id} has embeddings for "
                f"ids 0 to {self.n_embeddings - 1} only. Leave it out.",
                token_id=beyond[0].id,
                size=self.n_embeddings,
            )
        return tokens

    @property
    def n_embeddings(self) -> int:
        """Rows of the embedding table: ids that can be run. The tokenizer may know fewer or more."""
        return int(self.model.get_input_embeddings().weight.shape[0])  # type: ignore[operator]

    def tokens_of(self, token_ids: tuple[int, ...]) -> tuple[Token, ...]:
        """Tokens for ids.

        Raises:
            UnknownToken: an id is outside the embedding.
        """
        size = self.n_embeddings
        wrong = [token_id for token_id in token_ids if not 0 <= token_id < size]
        if wrong:
            raise UnknownToken(
                f"Token id {wrong[0]} does not exist; {self.id} has ids 0 to {size - 1}.", token_id=wrong[0], size=size
            )
        return self.vocabulary.tokens_of(token_ids)

    def record(self, token_ids: tuple[int, ...], progress: Progress | None = None) -> Trace:
        """One recorded forward pass."""
        return Trace.of(self.anatomy, token_ids, run_recorded(self.model, self.anatomy, self._ids(token_ids), progress))

    def plain_logits(self, token_ids: tuple[int, ...], positions: list[int]) -> Float[Tensor, "pos vocab"]:
        """Logits of the model as the library runs it, unrecorded, at the given positions."""
        keep = torch.tensor(positions, device=self.device)
        with torch.inference_mode():
            logits: Tensor = self.model(
                input_ids=self._ids(token_ids)[None], use_cache=False, logits_to_keep=keep
            ).logits[0]
        # A model without logits_to_keep returns every position.
        return logits if logits.shape[0] == len(positions) else logits[keep]

    def _ids(self, token_ids: tuple[int, ...]) -> Tensor:
        return torch.tensor(token_ids, dtype=torch.long, device=self.device)


def load_transformer(model_id: str, folder: Path, settings: Settings, title: str = "") -> LoadedTransformer:
    """The model in a folder, on the configured device, ready to be recorded.

    Raises:
        ModelUnavailable: the folder holds no model that can be loaded: no config, pickled weights, damaged files.
        Unsupported: the model's family, or a part of it, cannot be taken apart exactly.
    """
    _require_known_type(model_id, folder)
    if not any(folder.glob("*.safetensors")):
        raise ModelUnavailable(
            f"{folder} holds no .safetensors file. Pickled weights (.bin, .pt) can run code and are not loaded; "
            "convert them to safetensors first."
        )
    transformers_logging.disable_progress_bar()
    if settings.threads:
        torch.set_num_threads(settings.threads)
    model = _from_folder(folder, settings)
    stored, dtype = stored_dtype(folder), str(next(model.parameters()).dtype).removeprefix("torch.")
    placement = place(model, settings.device)
    anatomy = read_anatomy(model)
    notes = (_dtype_note(stored, dtype), placement.note)
    anatomy = replace(anatomy, notes=(*anatomy.notes, *(note for note in notes if note)))
    tokenizer = _guarded(folder, lambda: AutoTokenizer.from_pretrained(folder, local_files_only=True))
    return LoadedTransformer(
        id=model_id,
        title=title or model_id,
        fingerprint=fingerprint(folder),
        model=model,
        anatomy=anatomy,
        vocabulary=Vocabulary(tokenizer),
        max_tokens=min(settings.max_tokens, anatomy.max_positions),
        device=placement.device,
        dtype=dtype,
        stored_dtype=stored,
    )


def _from_folder(folder: Path, settings: Settings) -> nn.Module:
    config = _guarded(
        folder, lambda: AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    )
    describe(config)
    for name, value in PLAIN_RUN.items():
        setattr(config, name, value)
    dtype = _DTYPES.get(settings.dtype, "auto")
    model, info = _guarded(
        folder,
        lambda: AutoModelForCausalLM.from_pretrained(
            folder, config=config, dtype=dtype, use_safetensors=True, local_files_only=True, trust_remote_code=False,
            output_loading_info=True,
        ),
    )  # fmt: skip
    missing = sorted(info["missing_keys"])
    if missing:
        # The library would fill them with random numbers and go on.
        raise ModelUnavailable(
            f"The files in {folder} lack {len(missing)} of the model's weights, {missing[0]} among them. "
            "Fetch the model again, or check that config.json belongs to these weights.",
            missing=missing[:20],
        )
    whole: nn.Module = model
    return whole.eval().requires_grad_(False)


def _require_known_type(model_id: str, folder: Path) -> None:
    """Refuses a folder whose config.json says nothing readable, or a type that no family describes, before anything is
    loaded: the library's own answer to an unknown type is a page long.
    """
    try:
        model_type = json.loads((folder / "config.json").read_text())["model_type"]
    except FileNotFoundError as error:
        raise ModelUnavailable(
            f"There is no config.json in {folder}; put a model there or run: headwater fetch {model_id}"
        ) from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelUnavailable(
            f"config.json in {folder} names no model_type that can be read ({type(error).__name__})."
        ) from error
    require_family(str(model_type))


def stored_dtype(folder: Path) -> str:
    """The number type of most of the weights in the files, from their headers."""
    sizes: Counter[str] = Counter()
    for path in folder.glob("*.safetensors"):
        for entry in _safetensors_header(path).values():
            if "dtype" in entry:
                sizes[entry["dtype"]] += entry["data_offsets"][1] - entry["data_offsets"][0]
    kind = sizes.most_common(1)[0][0] if sizes else "F32"
    return _STORED_NAMES.get(kind, kind)


def _safetensors_header(path: Path) -> dict[str, Any]:
    """The header of a safetensors file: its length as 8 bytes, little-endian, then JSON."""

    def read() -> dict[str, Any]:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header: dict[str, Any] = json.loads(file.read(length))
            return header

    header: dict[str, Any] = _guarded(path.parent, read)
    return header


def _dtype_note(stored: str, dtype: str) -> str:
    return "" if stored == dtype else f"The weights are stored in {stored} and computed in {dtype}."


def _guarded(folder: Path, load: Callable[[], Any]) -> Any:
    """Runs a library call whose failures are of many classes, and says them as one of ours."""
    try:
        return load()
    except AppError:
        raise
    except Exception as error:
        reason = str(error).strip().split("\n")[0][:300]
        raise ModelUnavailable(
            f"The model in {folder} could not be loaded: {type(error).__name__}: {reason}"
        ) from error


def fingerprint(folder: Path) -> str:
    """The hash of a model: config, weights and tokenizer, by file name and content.

    Returns:
        64 hexadecimal digits (SHA-256).
    """
    return hash_files(folder, _FINGERPRINTED)
