"""What the API and the pages tell about each model of the catalogue."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.lm.catalog import Catalogue, CatalogueEntry
from app.lm.runner import Runner
from app.settings import Settings


class ModelList:
    """The catalogue, together with what is in memory."""

    def __init__(self, settings: Settings, catalogue: Catalogue, runner: Runner) -> None:
        self._settings = settings
        self._catalogue = catalogue
        self._runner = runner

    @property
    def default(self) -> str:
        """The model that is used where none is named."""
        return self._catalogue.default.name

    def all(self) -> list[dict[str, Any]]:
        """Every model."""
        return [self._describe(entry) for entry in self._catalogue.entries]

    def one(self, name: str) -> dict[str, Any]:
        """One model.

        Raises:
            UnknownModel: it is not in the catalogue.
        """
        return self._describe(self._catalogue.get(name))

    def checked(self, name: str) -> dict[str, Any]:
        """One model with the rows of its self-check; none until it has been loaded."""
        facts = self._runner.status(name).facts
        return {
            **self.one(name),
            "self_check": [] if facts is None else list(facts.self_check),
        }

    def as_of_now(self, stored: Mapping[str, Any]) -> dict[str, Any]:
        """A stored model with what is true of it today: whether it can be asked, and why not."""
        names = {model["id"]: model for model in self.all()}
        now = names.get(stored["id"])
        if now is None:
            state, message = (
                "missing",
                f"{stored['id']} is no longer in the catalogue; what is stored can still be seen.",
            )
        elif now["fingerprint"] not in (None, stored["fingerprint"]):
            state = "missing"
            message = f"The files of {stored['id']} have changed since this analysis; what is stored can still be seen."
        else:
            state, message = now["state"], now["message"]
        return {**stored, "state": state, "message": message}

    def _describe(self, entry: CatalogueEntry) -> dict[str, Any]:
        status = self._runner.status(entry.name)
        facts = status.facts
        state, message = status.state, status.message
        if state in ("not_loaded", "failed") and not entry.is_fetched(self._settings):
            state_shown, message = "missing", message or _missing(entry)
        else:
            state_shown = state
        limit = self._settings.max_tokens if facts is None else facts.max_tokens
        return {
            "id": entry.name,
            "kind": entry.kind(self._settings),
            "title": entry.title if facts is None else facts.title,
            "source": _public_source(entry),
            "state": state_shown,
            "message": message,
            "dtype": None if facts is None else facts.dtype,
            "device": None if facts is None else facts.device,
            "fingerprint": None if facts is None else facts.fingerprint,
            "anatomy": None if facts is None else dict(facts.anatomy),
            "limits": {
                "max_tokens": limit,
                "max_body_bytes": self._settings.max_body_bytes,
            },
        }


def _missing(entry: CatalogueEntry) -> str:
    if entry.scheme == "dir":
        return f"The folder of {entry.name} is not there. The operator can check its path with: headwater models"
    return f"{entry.name} has not been fetched. The operator can fetch it with: headwater fetch {entry.name}"


def _public_source(entry: CatalogueEntry) -> str:
    """The source without the folders of this machine, which are nobody else's business."""
    return f"{entry.scheme}:{Path(entry.location).name}" if entry.scheme in ("dir", "gguf") else entry.source
