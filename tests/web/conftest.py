"""A tiny random Llama with a byte tokenizer in a folder, and servers on it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import torch
from starlette.testclient import TestClient
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from app.main import create_app
from app.settings import Settings
from app.web.engine import Engine

N_LAYERS, N_HEADS, MAX_TOKENS = 2, 4, 32


def save_tiny_model(folder: Path, seed: int = 0) -> None:
    """A Llama of two layers, four heads over two key/value heads, and one token for each byte."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=256,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=N_LAYERS,
        num_attention_heads=N_HEADS,
        num_key_value_heads=2,
        max_position_embeddings=64,
        bos_token_id=None,
        eos_token_id=None,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    alphabet = sorted(ByteLevel.alphabet())
    tokenizer = Tokenizer(BPE(vocab={piece: index for index, piece in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    tokenizer.decoder = ByteLevelDecoder()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tiny model."""
    folder = tmp_path_factory.mktemp("models") / "tiny"
    save_tiny_model(folder)
    return folder


@pytest.fixture
def settings(tiny_folder: Path, tmp_path: Path) -> Settings:
    """Settings of a server with the tiny model and a folder of its own."""
    return Settings(
        data_dir=tmp_path / "data",
        models=(f"tiny=dir:{tiny_folder}",),
        max_tokens=MAX_TOKENS,
        max_body_bytes=20_000,
        rate_limit="",
    )


Serve = Callable[..., TestClient]


@pytest.fixture
def serve(settings: Settings) -> Iterator[Serve]:
    """Starts servers; `serve()` has the fixture's settings, keywords change some of them."""
    with ExitStack() as stack:

        def start(engine: Engine | None = None, **changed: object) -> TestClient:
            app = create_app(settings.model_copy(update=changed), engine)
            return stack.enter_context(TestClient(app, raise_server_exceptions=False))

        yield start


@pytest.fixture
def client(serve: Serve) -> TestClient:
    """A server with the tiny model."""
    return serve()


def finished(client: TestClient, **body: object) -> dict[str, object]:
    """A new analysis that has been followed to its end."""
    answer = client.post("/api/v1/analyses", json=body or {"text": "abcabc"})
    assert answer.status_code == 201, answer.text
    for _ in client.get(f"/api/v1/analyses/{answer.json()['id']}/events").iter_lines():
        pass
    return {**client.get(f"/api/v1/analyses/{answer.json()['id']}").json(), "owner_token": answer.json()["owner_token"]}
