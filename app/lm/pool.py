"""Which models and traces are in memory, each within a budget, the least recently used leaving first."""

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from app.errors import AppError, ModelUnavailable
from app.lm.protocol import LoadedModel, Trace

MIB = 2**20
# How long a failure to load is remembered; the operator may have put the files right by then.
RETRY_LOADING_AFTER_S = 10.0

LoadState = Literal["ready", "not_loaded", "loading", "failed"]


@dataclass(frozen=True)
class CheckedModel:
    """A loaded model and the rows of its self-check, as plain data."""

    model: LoadedModel
    self_check: Sequence[Mapping[str, object]]


@dataclass(frozen=True)
class ModelFacts:
    """What a model is, without the model: stays known after it has left memory."""

    title: str
    dtype: str
    device: str
    fingerprint: str
    max_tokens: int
    size_bytes: int
    anatomy: Mapping[str, object]
    self_check: Sequence[Mapping[str, object]]

    @staticmethod
    def of(checked: CheckedModel) -> "ModelFacts":
        """The facts of a loaded model."""
        model = checked.model
        return ModelFacts(
            model.title,
            model.dtype,
            model.device,
            model.fingerprint,
            model.max_tokens,
            model.size_bytes,
            model.anatomy_json(),
            checked.self_check,
        )


@dataclass(frozen=True)
class ModelStatus:
    """Whether a model is in memory, why it could not be loaded, and what is known of it."""

    state: LoadState
    message: str = ""
    facts: ModelFacts | None = None


class TraceCache:
    """Traces by (fingerprint, token ids). The newest one stays even where it alone is over the budget."""

    def __init__(self, budget_bytes: int) -> None:
        self._budget_bytes = budget_bytes
        self._traces: OrderedDict[tuple[str, tuple[int, ...]], Trace] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def size_bytes(self) -> int:
        """Memory of all traces."""
        with self._lock:
            return sum(trace.size_bytes for trace in self._traces.values())

    def get(self, fingerprint: str, token_ids: tuple[int, ...]) -> Trace | None:
        """The trace, which becomes the most recently used; None if it is not here."""
        with self._lock:
            trace = self._traces.get((fingerprint, token_ids))
            if trace is not None:
                self._traces.move_to_end((fingerprint, token_ids))
            return trace

    def put(self, fingerprint: str, token_ids: tuple[int, ...], trace: Trace) -> None:
        """Keeps a trace and lets go of the least recently used ones over the budget."""
        with self._lock:
            self._traces[fingerprint, token_ids] = trace
            self._traces.move_to_end((fingerprint, token_ids))
            size = sum(kept.size_bytes for kept in self._traces.values())
            while size > self._budget_bytes and len(self._traces) > 1:
                _, gone = self._traces.popitem(last=False)
                size -= gone.size_bytes

    def drop_model(self, fingerprint: str) -> None:
        """Lets go of every trace of a model: they hold on to its weights."""
        with self._lock:
            for key in [key for key in self._traces if key[0] == fingerprint]:
                del self._traces[key]


class ModelPool:
    """Models in memory. `load` is called in the thread of whoever asks first; others wait for it."""

    def __init__(self, load: Callable[[str], CheckedModel], budget_bytes: int, traces: TraceCache) -> None:
        self._load = load
        self._budget_bytes = budget_bytes
        self._traces = traces
        self._lock = threading.RLock()
        self._loaded: OrderedDict[str, CheckedModel] = OrderedDict()
        self._in_use: Counter[str] = Counter()
        self._status: dict[str, ModelStatus] = {}
        self._loading: dict[str, threading.Lock] = {}
        self._failures: dict[str, tuple[float, AppError]] = {}

    def get(self, name: str) -> LoadedModel | None:
        """The model, if it is in memory."""
        with self._lock:
            checked = self._loaded.get(name)
            if checked is None:
                return None
            self._loaded.move_to_end(name)
            return checked.model

    def status(self, name: str) -> ModelStatus:
        """Whether the model is in memory, and what is known of it."""
        with self._lock:
            return self._status.get(name, ModelStatus("not_loaded"))

    @contextmanager
    def using(self, name: str) -> Iterator[LoadedModel]:
        """The model, loaded if need be; it is not evicted inside the block.

        Raises:
            ModelUnavailable: it cannot be loaded, or it fails its self-check, or it is larger than the budget.
            Unsupported: its family cannot be taken apart.
        """
        with self._lock:
            self._in_use[name] += 1
        try:
            yield self._ensure(name)
        finally:
            with self._lock:
                self._in_use[name] -= 1
                self._evict()

    def _ensure(self, name: str) -> LoadedModel:
        with self._lock:
            one_at_a_time = self._loading.setdefault(name, threading.Lock())
        with one_at_a_time:
            model = self.get(name)
            if model is not None:
                return model
            self._raise_recent_failure(name)
            self._set_status(name, "loading")
            try:
                checked = self._load(name)
                self._require_room(name, checked.model)
            except AppError as error:
                self._set_status(name, "failed", error.message)
                self._failures[name] = (time.monotonic(), error)
                raise
            except Exception as error:
                self._set_status(
                    name,
                    "failed",
                    f"{type(error).__name__} while the model was loaded.",
                )
                raise
            with self._lock:
                self._loaded[name] = checked
                self._status[name] = ModelStatus("ready", "", ModelFacts.of(checked))
                self._evict()
            return checked.model

    def _raise_recent_failure(self, name: str) -> None:
        """Raises again what loading raised a moment ago, so that a broken model costs no more than one attempt."""
        failure = self._failures.get(name)
        if failure is not None and time.monotonic() - failure[0] < RETRY_LOADING_AFTER_S:
            raise type(failure[1])(failure[1].message, **failure[1].facts)

    def _require_room(self, name: str, model: LoadedModel) -> None:
        if model.size_bytes > self._budget_bytes:
            raise ModelUnavailable(
                f"{name} takes {model.size_bytes // MIB:,} MiB; "
                f"models may take {self._budget_bytes // MIB:,} MiB here. "
                "Raise HEADWATER_MODEL_BUDGET_MB or choose a smaller model.",
                size_mb=model.size_bytes // MIB,
                budget_mb=self._budget_bytes // MIB,
            )

    def _set_status(self, name: str, state: LoadState, message: str = "") -> None:
        with self._lock:
            self._status[name] = ModelStatus(state, message, self.status(name).facts)

    def _evict(self) -> None:
        """Unloads idle models, the least recently used first, until the rest fits. The newest one stays."""
        size = sum(checked.model.size_bytes for checked in self._loaded.values())
        for name in list(self._loaded)[:-1]:
            if size <= self._budget_bytes:
                return
            if self._in_use[name] > 0:
                continue
            gone = self._loaded.pop(name)
            size -= gone.model.size_bytes
            self._traces.drop_model(gone.model.fingerprint)
            self._set_status(name, "not_loaded")
