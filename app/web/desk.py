"""The desk: where an analysis is asked for, followed, read and deleted. It joins the runner and the store."""

import asyncio
import logging
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from anyio import to_thread

from app import __version__
from app.domain.recipe import Recipe
from app.domain.snapshot import Snapshot
from app.errors import Busy, NotReady, Unsupported
from app.lm.protocol import LoadedModel, ModelKind, Trace
from app.lm.runner import Left, Party, Run, Runner, RunStatus
from app.storage.store import Store, StoredAnalysis
from app.web.analysis_json import analysis_json, envelope
from app.web.engine import Engine
from app.web.models import ModelList
from app.web.problems import problem_of
from app.web.prompts import Prompt, read_prompt, token_json

log = logging.getLogger("headwater.desk")

T = TypeVar("T")
# Snapshots that stay unpacked: a page asks for half a dozen tensors of the same one.
SNAPSHOTS_KEPT = 16
# A stage is followed in steps of a twentieth.
STEPS_SHOWN = 20
Event = tuple[str, Mapping[str, object]]
_NOT_OF_THIS_KIND: Mapping[ModelKind, str] = {
    "lstm": "This is an analysis of an LSTM, which has no attention heads; see its own page, /lstm.",
    "transformer": "This is an analysis of a transformer, which has no gates; see its own page.",
}


class Desk:
    """Everything that can be done with analyses."""

    def __init__(self, models: ModelList, engine: Engine, runner: Runner, store: Store) -> None:
        self._models = models
        self._engine = engine
        self._runner = runner
        self._store = store
        self._snapshots: OrderedDict[str, Snapshot] = OrderedDict()
        self._lock = threading.Lock()

    async def prompt(self, model: str | None, text: str | None, token_ids: Sequence[int] | None) -> Prompt:
        """The checked prompt of a request. Raises as `read_prompt`, and what loading the model raises."""
        loaded = await self.model(model)
        return await to_thread.run_sync(read_prompt, loaded, text, token_ids)

    async def model(self, name: str | None) -> LoadedModel:
        """A model of the catalogue in memory; the default one where none is named."""
        known = self._models.one(self._models.default if name is None else name)
        return await self._runner.model(known["id"])

    async def create(self, model: str | None, text: str | None, token_ids: Sequence[int] | None) -> dict[str, Any]:
        """A new analysis, stored and in the queue, as the API tells it, with its owner's token.

        Raises:
            InvalidInput and its kinds: the prompt cannot be run. Busy: the queue is full. ModelUnavailable.
        """
        loaded = await self.model(model)
        prompt = await to_thread.run_sync(read_prompt, loaded, text, token_ids)
        recipe = Recipe(loaded.id, loaded.fingerprint, prompt.token_ids, prompt.text, __version__)
        tokens = [token_json(token) for token in prompt.tokens]
        stored, owner_token = await to_thread.run_sync(self._store.create, recipe, tokens, self._models.one(loaded.id))
        if stored.state == "queued":
            try:
                self._runner.start(recipe, self._party(stored))
            except Busy:
                await to_thread.run_sync(self._store.delete, stored.id)
                raise
        return {**await self._told(stored), "owner_token": owner_token}

    async def stored(self, analysis_id: str) -> StoredAnalysis:
        """What is stored of an analysis.

        Raises:
            UnknownAnalysis: there is none with this id.
        """
        return await to_thread.run_sync(self._store.get, analysis_id)

    async def read(self, analysis_id: str) -> dict[str, Any]:
        """An analysis as the API tells it. One that a restart has interrupted is put into the queue again."""
        stored = await self.stored(analysis_id)
        if stored.state == "queued":
            with suppress(Busy):
                await self._resume(stored)
            stored = await self.stored(analysis_id)
        return await self._told(stored)

    async def snapshot(self, analysis_id: str) -> Snapshot:
        """What a finished analysis has stored.

        Raises:
            UnknownAnalysis, NotReady.
        """
        return await self._snapshot(await self.stored(analysis_id))

    async def tensor(
        self,
        analysis_id: str,
        name: str,
        fixed: Mapping[str, int],
        aim: Mapping[str, int],
        left: Left,
    ) -> dict[str, Any]:
        """The envelope of a tensor, from the snapshot or from the trace. `left()` ends when the client is gone.

        `aim` holds a target and a foil where the tensor takes them and they were given.

        Raises:
            UnknownAnalysis, NotReady, NotFound, OutOfRange, UnknownToken, InvalidInput, Unsupported, ModelUnavailable,
            Busy, TimedOut.
        """
        stored = await self.stored(analysis_id)
        snapshot = await self._snapshot(stored)
        if aim:
            await to_thread.run_sync(self._engine.require_aimable, stored.kind, name)
        answer = await to_thread.run_sync(self._engine.stored, stored.kind, snapshot, name, fixed)
        if answer is not None:
            return await to_thread.run_sync(envelope, answer)

        def question(loaded: LoadedModel, trace: Trace) -> dict[str, Any]:
            return envelope(self._engine.computed(trace, name, fixed, aim))

        return await self._runner.ask(stored.recipe, question, left)

    async def ask(
        self,
        analysis_id: str,
        question: Callable[[LoadedModel, Trace], T],
        left: Left | None = None,
        kind: ModelKind = "transformer",
    ) -> T:
        """The answer to a question about the trace of a finished analysis, computed in the model's own thread.

        Raises:
            UnknownAnalysis, NotReady, ModelUnavailable, Busy, TimedOut; Unsupported for an analysis of another kind of
            model; and whatever the question raises.
        """
        stored = await self.stored(analysis_id)
        if stored.state != "done":
            raise NotReady(_why_not_ready(stored), state=stored.state)
        if stored.kind != kind:
            raise Unsupported(_NOT_OF_THIS_KIND[stored.kind])
        return await self._runner.ask(stored.recipe, question, left)

    async def delete(self, analysis_id: str, owner_token: str) -> None:
        """Deletes an analysis.

        Raises:
            UnknownAnalysis: there is none. NotAllowed: the token is not its owner's.
        """
        stored = await to_thread.run_sync(self._store.check_owner, analysis_id, owner_token)
        await to_thread.run_sync(self._store.delete, analysis_id)
        self._runner.leave(stored.recipe, analysis_id)
        with self._lock:
            self._snapshots.pop(analysis_id, None)

    async def follow(self, analysis_id: str) -> AsyncIterator[Event]:
        """The events of an analysis until it is done or has failed.

        Raises, before the first event:
            UnknownAnalysis: there is none. Busy: it has to be run again and the queue is full.
        """
        stored = await self.stored(analysis_id)
        run = await self._resume(stored) if stored.state == "queued" else None
        return self._events(analysis_id, run)

    async def _events(self, analysis_id: str, run: Run | None) -> AsyncIterator[Event]:
        if run is not None:
            async for status in self._progress(run):
                yield (
                    "progress",
                    {
                        "stage": status.stage,
                        "fraction": status.fraction,
                        "queue_position": status.queue_position,
                    },
                )
        try:
            stored = await self.stored(analysis_id)
        except Exception as error:  # the answer has begun; what goes wrong now is an event
            yield "failed", problem_of(error)
            return
        if stored.state == "done":
            yield "done", {}
        elif stored.problem is not None:
            yield "failed", stored.problem
        else:
            yield (
                "failed",
                problem_of(Busy("The server is stopping; the analysis is run again when it is opened.")),
            )

    async def _progress(self, run: Run) -> AsyncIterator[RunStatus]:
        loop = asyncio.get_running_loop()
        changed = asyncio.Event()

        def listener() -> None:
            # The loop may be closed by the time a run ends.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(changed.set)

        run.listeners.add(listener)
        try:
            last = None
            while (status := self._runner.run_status(run)).state in (
                "queued",
                "running",
            ):
                shown = (status.state, status.stage, round(status.fraction * STEPS_SHOWN), status.queue_position)
                if shown != last:
                    last = shown
                    yield status
                await changed.wait()
                changed.clear()
        finally:
            run.listeners.discard(listener)

    async def _resume(self, stored: StoredAnalysis) -> Run | None:
        """The run of an analysis that is not finished, queued if it is not there; None if it has finished."""
        run = self._runner.run_of(stored.recipe)
        if run is None and (await self.stored(stored.id)).state != "queued":
            return None
        return self._runner.start(stored.recipe, self._party(stored))

    def _party(self, stored: StoredAnalysis) -> Party:
        def keep(body: bytes) -> None:
            self._store.finish(stored.id, stored.recipe, body)

        def fail(error: Exception) -> None:
            self._store.fail(stored.id, problem_of(error, f"/api/v1/analyses/{stored.id}"))

        return Party(stored.id, keep, fail)

    async def _told(self, stored: StoredAnalysis) -> dict[str, Any]:
        snapshot = await self._snapshot(stored) if stored.state == "done" else None
        run = self._runner.run_of(stored.recipe) if stored.state == "queued" else None
        status = None if run is None else self._runner.run_status(run)
        table = await to_thread.run_sync(self._engine.table, stored.kind) if snapshot is not None else {}
        model = self._models.as_of_now(stored.model)
        return await to_thread.run_sync(analysis_json, stored, model, status, snapshot, table)

    async def _snapshot(self, stored: StoredAnalysis) -> Snapshot:
        if stored.state != "done":
            raise NotReady(_why_not_ready(stored), state=stored.state)
        return await to_thread.run_sync(self._unpack, stored.id)

    def _unpack(self, analysis_id: str) -> Snapshot:
        with self._lock:
            snapshot = self._snapshots.get(analysis_id)
            if snapshot is not None:
                self._snapshots.move_to_end(analysis_id)
                return snapshot
        body = self._store.snapshot(analysis_id)
        if body is None:
            raise NotReady("The results of this analysis are not here; run the prompt again.")
        snapshot = Snapshot.from_bytes(body)
        with self._lock:
            self._snapshots[analysis_id] = snapshot
            while len(self._snapshots) > SNAPSHOTS_KEPT:
                self._snapshots.popitem(last=False)
        return snapshot


def _why_not_ready(stored: StoredAnalysis) -> str:
    if stored.state == "failed":
        return "This analysis has failed and has no results; see its problem, and run the prompt again."
    return "This analysis is still being computed; follow its events, or ask again in a moment."
