"""One thread that works for one model, and the bounded queue in front of it.

Jobs of a lower rank go first: loading, then questions about traces, then runs. Within a rank the order is that of
arrival. A job is cancelled at once while it waits; once it runs, its next report of progress raises.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from enum import IntEnum
from typing import Any, Generic, TypeVar

from app.errors import Busy, TimedOut
from app.lm.protocol import Progress

log = logging.getLogger("headwater.worker")

T = TypeVar("T")


class Rank(IntEnum):
    """What goes first."""

    LOAD = 0
    QUESTION = 1
    RUN = 2


class Cancelled(Exception):
    """Raised inside a job, by its report of progress, when nobody waits for it any more."""


def _ignore() -> None:
    """The change listener of a job that has none."""


class Job(Generic[T]):
    """A function to be called in the worker's thread with a progress callback, and its future result."""

    def __init__(
        self,
        work: Callable[[Progress], T],
        rank: Rank,
        timeout_s: float,
        on_change: Callable[[], None] = _ignore,
    ) -> None:
        self.rank = rank
        self.timeout_s = timeout_s
        self.future: Future[T] = Future()
        self.stage, self.fraction = "", 0.0
        self._work = work
        self._on_change = on_change
        self._cancelled = threading.Event()
        self._deadline = float("inf")

    def run(self) -> None:
        """Does the work, unless it has been cancelled, and settles the future."""
        if not self.future.set_running_or_notify_cancel():
            return
        self._deadline = time.monotonic() + self.timeout_s
        try:
            result = self._work(self.report)
        except Exception as error:  # whatever a job raises belongs to those who wait for it
            self.future.set_exception(error)
        else:
            self.future.set_result(result)

    def report(self, stage: str, fraction: float) -> None:
        """Tells how far the work is; called by the work itself.

        Raises:
            Cancelled: nobody waits any more. TimedOut: the work has used up its time.
        """
        if self._cancelled.is_set():
            raise Cancelled
        if time.monotonic() > self._deadline:
            raise TimedOut(
                f"The computation passed the limit of {self.timeout_s:g} seconds while at: {stage}. "
                "Try a shorter prompt, or ask the operator to raise the limit.",
                timeout_s=self.timeout_s,
                stage=stage,
            )
        self.stage, self.fraction = stage, fraction
        self._on_change()

    def notify(self) -> None:
        """Tells the listener that something about this job, such as its place in the queue, is different now."""
        self._on_change()

    def request_cancel(self) -> None:
        """Cancels: at once if the job waits, at its next report if it runs."""
        self._cancelled.set()
        self.future.cancel()


class Worker:
    """The thread and the queue of one model."""

    def __init__(self, name: str, queue_length: int) -> None:
        self._name = name
        self._queue_length = queue_length
        self._queues: tuple[deque[Job[Any]], ...] = tuple(deque() for _ in Rank)
        self._change = threading.Condition()
        self._running: Job[Any] | None = None
        self._stopped = False
        self._thread: threading.Thread | None = None

    @property
    def waiting(self) -> int:
        """Jobs that wait."""
        with self._change:
            return sum(len(queue) for queue in self._queues)

    def submit(self, job: Job[Any]) -> None:
        """Puts a job into the queue.

        Raises:
            Busy: as many of its rank wait already as may wait.
        """
        with self._change:
            queue = self._queues[job.rank]
            if self._stopped:
                raise Busy("The server is stopping. Try again in a minute.")
            if len(queue) >= self._queue_length:
                what = "analyses" if job.rank is Rank.RUN else "questions"
                raise Busy(
                    f"{len(queue)} {what} wait for {self._name} already; no more than {self._queue_length} may wait. "
                    "Try again in a minute.",
                    waiting=len(queue),
                    limit=self._queue_length,
                )
            queue.append(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._loop, name=f"model-{self._name}", daemon=True)
                self._thread.start()
            self._change.notify()

    def cancel(self, job: Job[Any]) -> None:
        """Cancels a job; one that waits gives up its place."""
        job.request_cancel()
        with self._change:
            try:
                self._queues[job.rank].remove(job)
            except ValueError:
                return
        self._notify_waiting()

    def position(self, job: Job[Any]) -> int:
        """How many jobs will be done before this one; 0 for one that runs or is done."""
        with self._change:
            try:
                place = self._queues[job.rank].index(job)
            except ValueError:
                return 0
            earlier = sum(len(queue) for queue in self._queues[: job.rank])
            return place + earlier + (self._running is not None)

    def stop(self, timeout_s: float) -> bool:
        """Cancels everything and waits for the thread; whether it ended in time."""
        with self._change:
            self._stopped = True
            jobs = [job for queue in self._queues for job in queue]
            for queue in self._queues:
                queue.clear()
            if self._running is not None:
                jobs.append(self._running)
            self._change.notify_all()
        for job in jobs:
            job.request_cancel()
        if self._thread is None:
            return True
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _loop(self) -> None:
        while (job := self._next()) is not None:
            self._notify_waiting()
            job.run()
            with self._change:
                self._running = None
            # A local name would keep the last result, perhaps a large trace, until the next job arrives.
            del job

    def _next(self) -> Job[Any] | None:
        with self._change:
            while True:
                if self._stopped:
                    return None
                for queue in self._queues:
                    if queue:
                        self._running = queue.popleft()
                        return self._running
                self._change.wait()

    def _notify_waiting(self) -> None:
        with self._change:
            jobs = list(self._queues[Rank.RUN])
        for job in jobs:
            job.notify()
