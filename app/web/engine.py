"""What the web asks of torch, in one place, so that nothing else here knows which kind of network answers.

torch and transformers take seconds to import. The imports therefore stand inside the functions, which are called in
worker threads: the first page is served while they load. Two threads that import transformers at once can each see it
half made, so the first of them does it alone.
"""

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from app.domain.snapshot import Snapshot
from app.errors import ModelUnavailable
from app.lm.catalog import Catalogue, CatalogueEntry
from app.lm.pool import CheckedModel
from app.lm.protocol import LoadedModel, ModelKind, Progress, Trace
from app.settings import Settings

if TYPE_CHECKING:
    from app.analysis.tensors import Answer, Entry

# Names, a repetition and a comma: enough for every layer to do something.
PROBE = "When Mary and John went to the store, John gave a drink to"


class Engine:
    """Loading, summarising and slicing, for each kind of model."""

    def __init__(self, settings: Settings, catalogue: Catalogue) -> None:
        self._settings = settings
        self._catalogue = catalogue
        self._importing = threading.Lock()

    def _import_libraries(self) -> None:
        with self._importing:
            import app.analysis.snapshot
            import app.lm.loading  # noqa: F401

    def load(self, name: str) -> CheckedModel:
        """The model of a catalogue entry, with its self-check.

        Raises:
            ModelUnavailable: it is missing, cannot be loaded, or a row of its self-check does not hold.
            Unsupported: its family cannot be taken apart.
        """
        loaded = self.open(self._catalogue.get(name))
        rows = self.self_check(loaded)
        require_held(name, rows)
        return CheckedModel(loaded, rows)

    def open(self, entry: CatalogueEntry) -> LoadedModel:
        """The model of an entry, in the catalogue or not, before its self-check.

        Raises:
            ModelUnavailable: it is missing or cannot be loaded.
            Unsupported: its family cannot be taken apart.
        """
        folder = entry.require_folder(self._settings)
        self._import_libraries()
        loaded: LoadedModel
        if entry.kind(self._settings) == "lstm":
            from app.lm.lstm import load_lstm

            loaded = load_lstm(entry.name, folder, self._settings, entry.title)
        else:
            from app.lm.loading import load_transformer

            loaded = load_transformer(entry.name, folder, self._settings, entry.title)
        return loaded

    def self_check(self, loaded: LoadedModel) -> Sequence[Mapping[str, object]]:
        """The ledger of a fixed prompt."""
        token_ids = tuple(token.id for token in loaded.encode(PROBE))
        snapshot = self.summarize(loaded, loaded.record(token_ids, _silent), _silent)
        rows: Any = snapshot.meta["ledger"]
        return tuple(rows)

    def summarize(self, loaded: LoadedModel, trace: Trace, progress: Progress) -> Snapshot:
        """The snapshot of a trace."""
        self._import_libraries()
        if loaded.kind == "lstm":
            from app.analysis.lstm.snapshot import summarize as summarize_lstm

            return summarize_lstm(loaded, trace, progress)  # type: ignore[arg-type]
        from app.analysis.snapshot import summarize

        return summarize(loaded, trace, progress)  # type: ignore[arg-type]

    def stored(self, kind: ModelKind, snapshot: Snapshot, name: str, fixed: Mapping[str, int]) -> "Answer | None":
        """A tensor from what is stored; None where it needs the trace.

        Raises:
            NotFound: there is no such tensor. OutOfRange: an index outside its axis, or too many axes left.
        """
        self._import_libraries()
        if kind == "lstm":
            from app.analysis.lstm.tensors import from_snapshot as from_lstm_snapshot

            return from_lstm_snapshot(snapshot, name, fixed)
        from app.analysis.tensors import from_snapshot

        return from_snapshot(snapshot, name, fixed)

    def require_aimable(self, kind: ModelKind, name: str) -> None:
        """Does nothing for a tensor that takes a target.

        Raises:
            NotFound: there is no such tensor. InvalidInput: it takes none.
        """
        table = self.table(kind)
        from app.analysis.tensors import entry_of, require_aimable

        require_aimable(entry_of(name, table))

    def computed(
        self, trace: Trace, name: str, fixed: Mapping[str, int], aim: Mapping[str, int] | None = None
    ) -> "Answer":  # fmt: skip
        """A tensor from a trace. Raises as `stored`, and Unsupported where the layer has no such quantity."""
        self._import_libraries()
        from app.lm.lstm_trace import LstmTrace

        if isinstance(trace, LstmTrace):
            from app.analysis.lstm.tensors import from_trace as from_lstm_trace

            return from_lstm_trace(trace, name, fixed)
        from app.analysis.tensors import from_trace

        return from_trace(trace, name, fixed, aim)  # type: ignore[arg-type]

    def table(self, kind: ModelKind) -> "Mapping[str, Entry]":
        """Every tensor that can be asked for by name."""
        self._import_libraries()
        if kind == "lstm":
            from app.analysis.lstm.tensors import LSTM_TABLE

            return LSTM_TABLE
        from app.analysis.tensors import TABLE

        return TABLE


def require_held(name: str, rows: Sequence[Mapping[str, object]]) -> None:
    """Does nothing if every row of a self-check holds.

    Raises:
        ModelUnavailable: one does not; the message says which, where and by how much.
    """
    for row in rows:
        if not row["holds"]:
            where = f" at {row['where']}" if row["where"] else ""
            raise ModelUnavailable(
                f"{name} fails its self-check and is not offered. {row['claim']} The worst relative error is "
                f"{row['worst_rel']}{where}; {row['tolerance']} is allowed. Run: headwater check {name}",
                row=row["name"],
            )


def _silent(stage: str, fraction: float) -> None:
    """The progress of a self-check, which nobody watches."""
