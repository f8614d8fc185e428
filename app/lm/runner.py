"""The runner: recorded runs and questions about their traces, one thread for each model, nothing on the event loop.

    start(recipe)          a run: record, summarise, hand the snapshot to everybody who asked for these numbers
    ask(recipe, question)  a question about a trace; where the trace is gone, the recipe is run again first
    model(name)            the model itself, loaded if need be, for tokens

Equal runs (the same fingerprint and token ids) that overlap are one run.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from app.domain.recipe import Recipe
from app.domain.snapshot import Snapshot
from app.errors import BrokenInvariant, ModelUnavailable, TimedOut
from app.lm.pool import MIB, CheckedModel, ModelPool, ModelStatus, TraceCache
from app.lm.protocol import LoadedModel, Progress, Trace
from app.lm.worker import Cancelled, Job, Rank, Worker
from app.settings import Settings

log = logging.getLogger("headwater.runner")

T = TypeVar("T")
Summarize = Callable[[LoadedModel, Trace, Progress], Snapshot]
# Waits until whoever asked has gone.
Left = Callable[[], Coroutine[Any, Any, object]]
RunState = Literal["queued", "running", "done", "failed"]


@dataclass(frozen=True)
class RunStatus:
    """How far a run is."""

    state: RunState
    stage: str
    fraction: float
    queue_position: int


@dataclass(eq=False)
class Party:
    """One analysis that waits for a run.

    One of its functions is called, in the worker's thread: with the snapshot's bytes, or with what went wrong. Neither
    is called where the run is cancelled.
    """

    id: str
    on_done: Callable[[bytes], None]
    on_failed: Callable[[Exception], None]


@dataclass(eq=False)
class Run:
    """One computation that any number of analyses wait for."""

    recipe: Recipe
    parties: list[Party] = field(default_factory=list)
    listeners: set[Callable[[], None]] = field(default_factory=set)
    job: Job[None] | None = None
    outcome: Literal["done", "failed"] | None = None

    def notify(self) -> None:
        """Tells every listener that something has changed."""
        for listener in tuple(self.listeners):
            listener()


class Runner:
    """Everything that computes with models, for one server."""

    def __init__(
        self,
        settings: Settings,
        load: Callable[[str], CheckedModel],
        summarize: Summarize,
    ) -> None:
        self._settings = settings
        self._summarize = summarize
        self.traces = TraceCache(settings.trace_budget_mb * MIB)
        self._pool = ModelPool(load, settings.model_budget_mb * MIB, self.traces)
        self._lock = threading.Lock()
        self._workers: dict[str, Worker] = {}
        self._runs: dict[str, Run] = {}
        self._loads: dict[str, Job[LoadedModel]] = {}

    # Models

    async def model(self, name: str) -> LoadedModel:
        """The model, from memory or loaded now.

        Raises:
            ModelUnavailable, Unsupported: it cannot be used; Busy: too many wait for it to be loaded.
        """
        loaded = self._pool.get(name)
        if loaded is not None:
            return loaded
        # Shielded: whoever stops waiting must not end the loading for the others.
        return await asyncio.shield(asyncio.wrap_future(self._loading(name).future))

    def preload(self, name: str) -> None:
        """Begins to load a model, without waiting for it."""
        self._loading(name)

    def status(self, name: str) -> ModelStatus:
        """Whether a model is in memory, and what is known of it."""
        return self._pool.status(name)

    def waiting(self) -> Mapping[str, int]:
        """Jobs that wait, by model."""
        with self._lock:
            workers = dict(self._workers)
        return {name: worker.waiting for name, worker in workers.items()}

    def _loading(self, name: str) -> Job[LoadedModel]:
        """The job that loads a model: one for everybody who waits for it, so that a crowd takes one place."""

        def load(progress: Progress) -> LoadedModel:
            with self._pool.using(name) as loaded:
                return loaded

        with self._lock:
            job = self._loads.get(name)
            if job is None or job.future.done():
                job = Job(load, Rank.LOAD, self._settings.run_timeout_s)
                # Before it can be done: a callback of a finished future runs at once, here, where the lock is held.
                job.future.add_done_callback(lambda done: self._loaded(name, done))
                self._worker_unlocked(name).submit(job)
                self._loads[name] = job
        return job

    def _loaded(self, name: str, done: Future[LoadedModel]) -> None:
        # A finished job would keep an evicted model in memory.
        with self._lock:
            job = self._loads.get(name)
            if job is not None and job.future is done:
                del self._loads[name]

    # Runs

    def start(self, recipe: Recipe, party: Party) -> Run:
        """The run of a recipe, now in the queue or joined where it is under way.

        Raises:
            Busy: the queue is full.
        """
        with self._lock:
            run = self._runs.get(recipe.key)
            if run is None:
                run = Run(recipe)
                run.job = Job(
                    self._work_of(run),
                    Rank.RUN,
                    self._settings.run_timeout_s,
                    run.notify,
                )
                self._worker_unlocked(recipe.model).submit(run.job)
                self._runs[recipe.key] = run
            if all(other.id != party.id for other in run.parties):
                run.parties.append(party)
            return run

    def run_of(self, recipe: Recipe) -> Run | None:
        """The run of these numbers that waits or runs now."""
        with self._lock:
            return self._runs.get(recipe.key)

    def run_status(self, run: Run) -> RunStatus:
        """How far a run is."""
        job = run.job
        assert job is not None
        if run.outcome is not None:
            return RunStatus(
                run.outcome,
                job.stage,
                1.0 if run.outcome == "done" else job.fraction,
                0,
            )
        position = self._worker(run.recipe.model).position(job)
        state: RunState = "running" if job.future.running() else "queued"
        return RunStatus(state, job.stage, job.fraction, position)

    def leave(self, recipe: Recipe, party_id: str) -> None:
        """Takes one analysis out of its run; a run that nobody waits for is cancelled."""
        with self._lock:
            run = self._runs.get(recipe.key)
            if run is None:
                return
            run.parties = [party for party in run.parties if party.id != party_id]
            if run.parties:
                return
            del self._runs[recipe.key]
            worker = self._worker_unlocked(recipe.model)
        assert run.job is not None
        worker.cancel(run.job)
        run.outcome = "failed"
        run.notify()

    def _work_of(self, run: Run) -> Callable[[Progress], None]:
        recipe = run.recipe

        def compute(progress: Progress) -> bytes:
            with self._pool.using(recipe.model) as loaded:
                snapshot = self._summarize(loaded, self._trace(loaded, recipe, progress), progress)
            try:
                return snapshot.to_bytes()
            except ValueError as error:
                raise BrokenInvariant(
                    f"The results of this prompt hold a number that is not finite, where there must be none: {error}."
                ) from error

        def work(progress: Progress) -> None:
            try:
                body = compute(progress)
            except Cancelled:
                # Either nobody waits any more, or the server stops and the analysis is run again when asked for.
                self._finish(run, "failed", lambda party: None)
            except Exception as error:  # told to the parties, and logged by them where unexpected
                failure = error
                self._finish(run, "failed", lambda party: party.on_failed(failure))
            else:
                self._finish(run, "done", lambda party: party.on_done(body))

        return work

    def _finish(
        self,
        run: Run,
        outcome: Literal["done", "failed"],
        tell: Callable[[Party], None],
    ) -> None:
        told = 0
        while True:
            # The run stays in the table until the last party has been told: whoever finds no run finds the result.
            with self._lock:
                parties = run.parties[told:]
                if not parties:
                    if self._runs.get(run.recipe.key) is run:
                        del self._runs[run.recipe.key]
                    break
            for party in parties:
                try:
                    tell(party)
                except Exception:  # one party's failure, such as a full disk, must not reach the others
                    log.exception("The result of analysis %s could not be kept", party.id)
                    outcome = "failed"
            told += len(parties)
        run.outcome = outcome
        run.notify()

    # Questions

    async def ask(
        self,
        recipe: Recipe,
        question: Callable[[LoadedModel, Trace], T],
        left: Left | None = None,
    ) -> T:
        """The answer to a question about the trace of a recipe.

        `left()` ends when the asker is gone: the question is then cancelled.

        Raises:
            ModelUnavailable: the model is missing or not the one of the recipe. Busy: too many questions wait.
            TimedOut: the answer took longer than the limit.
        """
        held = self.traces.get(recipe.fingerprint, recipe.token_ids) is not None
        limit_s = self._settings.query_timeout_s + (0.0 if held else self._settings.run_timeout_s)

        def work(progress: Progress) -> T:
            with self._pool.using(recipe.model) as loaded:
                trace = self._trace(loaded, recipe, progress)
                progress("question", 0.0)
                return question(loaded, trace)

        return await self._wait(recipe.model, Job(work, Rank.QUESTION, limit_s), left)

    def _trace(self, loaded: LoadedModel, recipe: Recipe, progress: Progress) -> Trace:
        if loaded.fingerprint != recipe.fingerprint:
            raise ModelUnavailable(
                f"The files of {recipe.model} have changed since this analysis: its fingerprint was "
                f"{recipe.fingerprint[:12]} and is {loaded.fingerprint[:12]}. What was stored can still be "
                "seen; for the rest, run the prompt again.",
                model=recipe.model,
                was=recipe.fingerprint,
                now=loaded.fingerprint,
            )
        trace = self.traces.get(recipe.fingerprint, recipe.token_ids)
        if trace is None:
            trace = loaded.record(recipe.token_ids, progress)
            self.traces.put(recipe.fingerprint, recipe.token_ids, trace)
        return trace

    async def _wait(self, name: str, job: Job[T], left: Left | None = None) -> T:
        worker = self._worker(name)
        worker.submit(job)
        answer = asyncio.wrap_future(job.future)
        waited: list[asyncio.Future[Any]] = [answer]
        leaving = None if left is None else asyncio.ensure_future(left())
        if leaving is not None:
            waited.append(leaving)
        try:
            await asyncio.wait(waited, timeout=job.timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if answer.done():
                return answer.result()
            if leaving is not None and leaving.done():
                raise Cancelled
            raise TimedOut(
                f"No answer came within {job.timeout_s:g} seconds. Try again in a minute, or with a shorter prompt.",
                timeout_s=job.timeout_s,
            )
        finally:
            if not answer.done():
                worker.cancel(job)
                answer.cancel()
            if leaving is not None:
                leaving.cancel()
                with suppress(asyncio.CancelledError):
                    await leaving

    # Threads

    def close(self, timeout_s: float = 10.0) -> None:
        """Cancels what waits, asks what runs to stop, and waits for the threads."""
        with self._lock:
            workers: Iterable[Worker] = list(self._workers.values())
        for worker in workers:
            if not worker.stop(timeout_s):
                log.warning("A computation did not stop within %g seconds", timeout_s)

    def _worker(self, name: str) -> Worker:
        with self._lock:
            return self._worker_unlocked(name)

    def _worker_unlocked(self, name: str) -> Worker:
        if name not in self._workers:
            self._workers[name] = Worker(name, self._settings.queue_length)
        return self._workers[name]
