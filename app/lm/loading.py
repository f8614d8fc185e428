"""A transformer loaded from a folder, with its anatomy, its vocabulary and its fingerprint."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
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
from app.lm.families import read_anatomy
from app.lm.recorder import Progress, run_recorded
from app.lm.tokenization import Vocabulary
from app.lm.trace import Trace
from app.settings import Settings

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
_FINGERPRINTED = ("config.json", "*.safetensors", "tokenizer.json", "tokenizer.model", "vocab.json", "merges.txt")


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
        """The tokens of a text, as they would be run."""
        return self.vocabulary.encode(text)

    def tokens_of(self, token_ids: tuple[int, ...]) -> tuple[Token, ...]:
        """Tokens for ids.

        Raises:
            UnknownToken: an id is outside the embedding.
        """
        size = self.anatomy.vocab_size
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
            logits = self.model(input_ids=self._ids(token_ids)[None], use_cache=False, logits_to_keep=keep).logits[0]
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
    if not (folder / "config.json").is_file():
        raise ModelUnavailable(
            f"There is no config.json in {folder}; put a model there or run: headwater fetch {model_id}"
        )
    if not any(folder.glob("*.safetensors")):
        raise ModelUnavailable(
            f"{folder} holds no .safetensors file. Pickled weights (.bin, .pt) can run code and are not loaded; "
            "convert them to safetensors first."
        )
    transformers_logging.disable_progress_bar()
    if settings.threads:
        torch.set_num_threads(settings.threads)
    device = settings.device if settings.device != "auto" else best_device()
    model, stored = _from_folder(folder, settings)
    model = model.to(device)
    anatomy = read_anatomy(model)
    tokenizer = _guarded(folder, lambda: AutoTokenizer.from_pretrained(folder, local_files_only=True))
    return LoadedTransformer(
        id=model_id,
        title=title or model_id,
        fingerprint=fingerprint(folder),
        model=model,
        anatomy=anatomy,
        vocabulary=Vocabulary(tokenizer),
        max_tokens=min(settings.max_tokens, anatomy.max_positions),
        device=device,
        dtype=str(next(model.parameters()).dtype).removeprefix("torch."),
        stored_dtype=stored,
    )


def _from_folder(folder: Path, settings: Settings) -> tuple[nn.Module, str]:
    config = _guarded(
        folder, lambda: AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    )
    stored = str(getattr(config, "dtype", None) or "float32").removeprefix("torch.")
    dtype = _DTYPES.get(settings.dtype, "auto")
    model: nn.Module = _guarded(
        folder,
        lambda: AutoModelForCausalLM.from_pretrained(
            folder, config=config, dtype=dtype, use_safetensors=True, local_files_only=True, trust_remote_code=False
        ),
    )
    return model.eval().requires_grad_(False), stored


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


def best_device() -> str:
    """The fastest device that torch can use here."""
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def fingerprint(folder: Path) -> str:
    """The hash of a model: config, weights and tokenizer, by file name and content.

    Returns:
        64 hexadecimal digits (SHA-256).
    """
    digest = hashlib.sha256()
    for path in sorted({path for pattern in _FINGERPRINTED for path in folder.glob(pattern)}):
        digest.update(path.name.encode() + b"\0")
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
