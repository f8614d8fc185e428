"""The runner: shared work, budgets, cancelling, time limits. Models and traces here are fakes that wait at gates."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import pytest

from app.domain.recipe import Recipe
from app.domain.snapshot import Snapshot
from app.domain.tokens import Token
from app.errors import BrokenInvariant, Busy, ModelUnavailable, TimedOut
from app.lm.pool import MIB, CheckedModel
from app.lm.protocol import LoadedModel, ModelKind, Progress, Trace
from app.lm.runner import Party, Runner
from app.lm.worker import Cancelled
from app.settings import Settings

WAIT_S = 20


@dataclass(frozen=True)
class FakeTrace:
    token_ids: tuple[int, ...]
    size_bytes: int = MIB


@dataclass
class FakeModel:
    id: str
    fingerprint: str
    size_bytes: int = MIB
    kind: ModelKind = "transformer"
    title: str = "A fake"
    dtype: str = "float32"
    device: str = "cpu"
    max_tokens: int = 8
    recorded: list[tuple[int, ...]] = field(default_factory=list)

    def anatomy_json(self) -> Mapping[str, object]:
        return {"n_layers": 1}

    def encode(self, text: str) -> tuple[Token, ...]:
        return ()

    def tokens_of(self, token_ids: tuple[int, ...]) -> tuple[Token, ...]:
        return ()

    def record(self, token_ids: tuple[int, ...], progress: Progress) -> Trace:
        progress("recording", 0.0)
        self.recorded.append(token_ids)
        return FakeTrace(token_ids)


class World:
    """A runner over fake models, with a gate in front of every summary."""

    def __init__(self, **settings: object) -> None:
        self.models: dict[str, FakeModel] = {}
        self.loads: list[str] = []
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()
        self.summaries = 0
        self.meta: dict[str, object] = {"ledger": []}
        self.load_error: Exception | None = None
        # pydantic's own name for a value that skips the environment.
        self.runner = Runner(Settings(**settings), self._load, self._summarize)  # type: ignore[arg-type]

    def _load(self, name: str) -> CheckedModel:
        self.loads.append(name)
        if self.load_error is not None:
            raise self.load_error
        model = self.models.setdefault(name, FakeModel(name, f"print-of-{name}"))
        return CheckedModel(model, ())

    def _summarize(self, loaded: LoadedModel, trace: Trace, progress: Progress) -> Snapshot:
        self.summaries += 1
        self.entered.set()
        assert self.gate.wait(WAIT_S)
        progress("summary", 0.5)
        return Snapshot(self.meta)

    def recipe(self, *token_ids: int, model: str = "a", fingerprint: str | None = None) -> Recipe:
        return Recipe(model, fingerprint or f"print-of-{model}", token_ids, "", "1")


@dataclass
class Outcome:
    """What one party was told."""

    id: str
    told: threading.Event = field(default_factory=threading.Event)
    body: bytes | None = None
    error: Exception | None = None

    def party(self) -> Party:
        def done(body: bytes) -> None:
            self.body = body
            self.told.set()

        def failed(error: Exception) -> None:
            self.error = error
            self.told.set()

        return Party(self.id, done, failed)

    def wait(self) -> "Outcome":
        assert self.told.wait(WAIT_S)
        return self


Make = Callable[..., World]


@pytest.fixture
def make() -> Iterator[Make]:
    worlds: list[World] = []

    def build(**settings: object) -> World:
        worlds.append(World(**settings))
        return worlds[-1]

    yield build
    for world in worlds:
        world.gate.set()
        world.runner.close(WAIT_S)


def start(world: World, name: str, *token_ids: int, model: str = "a") -> Outcome:
    outcome = Outcome(name)
    world.runner.start(world.recipe(*token_ids, model=model), outcome.party())
    return outcome


def test_equal_runs_that_overlap_are_one_run_and_everybody_is_told(make: Make) -> None:
    world = make()
    world.gate.clear()
    outcomes = [start(world, str(n), 1, 2) for n in range(5)]
    world.gate.set()
    bodies = {outcome.wait().body for outcome in outcomes}
    assert len(bodies) == 1
    assert world.summaries == 1


def test_a_party_that_joins_twice_is_told_once(make: Make) -> None:
    world = make()
    world.gate.clear()
    told: list[bytes] = []
    for _ in range(2):
        world.runner.start(world.recipe(1), Party("same", told.append, lambda error: None))
    last = start(world, "other", 1)
    world.gate.set()
    last.wait()
    assert len(told) == 1


def test_a_full_queue_says_how_many_wait_and_takes_more_once_there_is_room(make: Make) -> None:
    world = make(queue_length=2)
    world.gate.clear()
    first = start(world, "first", 0)
    assert world.entered.wait(WAIT_S)
    waiting = [start(world, str(n), n) for n in (1, 2)]
    with pytest.raises(Busy) as busy:
        start(world, "late", 3)
    assert busy.value.facts == {"waiting": 2, "limit": 2}
    world.gate.set()
    for outcome in (first, *waiting):
        outcome.wait()
    assert start(world, "late", 3).wait().error is None


def test_places_in_the_queue_count_down(make: Make) -> None:
    world = make()
    world.gate.clear()
    start(world, "first", 0)
    assert world.entered.wait(WAIT_S)
    runs = [world.runner.start(world.recipe(n), Outcome(str(n)).party()) for n in (1, 2, 3)]
    assert [world.runner.run_status(run).queue_position for run in runs] == [1, 2, 3]
    world.runner.leave(world.recipe(2), "2")
    assert world.runner.run_status(runs[2]).queue_position == 2
    first = world.runner.run_of(world.recipe(0))
    assert first is not None
    assert world.runner.run_status(first).state == "running"
    assert world.runner.run_status(first).stage == "recording"


def test_a_run_that_everybody_has_left_is_cancelled_and_the_next_one_goes_on(make: Make) -> None:
    world = make()
    world.gate.clear()
    left = start(world, "left", 0)
    assert world.entered.wait(WAIT_S)
    following = start(world, "next", 1)
    world.runner.leave(world.recipe(0), "left")
    world.gate.set()
    assert following.wait().error is None
    assert not left.told.is_set()


def test_a_run_that_one_of_two_has_left_goes_on_for_the_other(make: Make) -> None:
    world = make()
    world.gate.clear()
    left, stays = start(world, "left", 0), start(world, "stays", 0)
    world.runner.leave(world.recipe(0), "left")
    world.gate.set()
    assert stays.wait().body is not None
    assert not left.told.is_set()


def test_a_run_over_its_time_fails_and_says_where_it_was(make: Make) -> None:
    world = make(run_timeout_s=1e-9)
    error = start(world, "slow", 0).wait().error
    assert isinstance(error, TimedOut)
    assert error.facts["stage"] == "recording"


def test_an_error_reaches_every_party_and_the_thread_goes_on(make: Make) -> None:
    world = make()
    world.load_error = RuntimeError("broken")
    assert isinstance(start(world, "one", 0).wait().error, RuntimeError)
    world.load_error = None
    assert start(world, "two", 0).wait().error is None


def test_a_party_that_cannot_keep_its_result_does_not_take_it_from_the_others(make: Make) -> None:
    world = make()
    world.gate.clear()

    def full_disk(body: bytes) -> None:
        raise OSError("no space left")

    world.runner.start(world.recipe(0), Party("full", full_disk, lambda error: None))
    other = start(world, "other", 0)
    world.gate.set()
    assert other.wait().body is not None


def test_a_summary_with_a_number_that_is_not_finite_is_refused(make: Make) -> None:
    world = make()
    world.meta = {"surprisal": [float("nan")]}
    assert isinstance(start(world, "nan", 0).wait().error, BrokenInvariant)


def test_a_question_uses_the_trace_that_is_held(make: Make) -> None:
    world = make()
    start(world, "run", 1, 2).wait()
    answer = asyncio.run(world.runner.ask(world.recipe(1, 2), lambda loaded, trace: trace.token_ids))  # type: ignore[attr-defined]
    assert answer == (1, 2)
    assert world.models["a"].recorded == [(1, 2)]


def test_a_question_about_a_trace_that_is_gone_runs_the_recipe_again(make: Make) -> None:
    world = make(trace_budget_mb=1)
    start(world, "one", 1).wait()
    start(world, "two", 2).wait()
    assert asyncio.run(world.runner.ask(world.recipe(1), lambda loaded, trace: trace.token_ids)) == (1,)  # type: ignore[attr-defined]
    assert world.models["a"].recorded == [(1,), (2,), (1,)]


def test_a_question_about_a_model_that_has_changed_is_refused(make: Make) -> None:
    world = make()
    with pytest.raises(ModelUnavailable, match="have changed since this analysis"):
        asyncio.run(world.runner.ask(world.recipe(1, fingerprint="an earlier one"), lambda loaded, trace: 0))
    assert world.models["a"].recorded == []


def test_a_question_goes_before_the_runs_that_wait(make: Make) -> None:
    world = make()
    start(world, "held", 9).wait()
    world.entered.clear()
    world.gate.clear()
    start(world, "running", 0)
    assert world.entered.wait(WAIT_S)
    waiting = start(world, "waiting", 1)
    order: list[str] = []

    async def ask() -> None:
        asked = asyncio.ensure_future(
            world.runner.ask(world.recipe(9), lambda loaded, trace: order.append(str(waiting.told.is_set())))
        )
        while world.runner.waiting()["a"] < 2:
            await asyncio.sleep(0)
        world.gate.set()
        await asked

    asyncio.run(ask())
    waiting.wait()
    assert order == ["False"]


def test_a_question_whose_asker_has_left_is_cancelled_while_it_waits(make: Make) -> None:
    world = make()
    world.gate.clear()
    running = start(world, "running", 0)
    assert world.entered.wait(WAIT_S)
    asked: list[int] = []

    async def leave_at_once() -> None:
        return

    async def ask() -> None:
        await world.runner.ask(world.recipe(5), lambda loaded, trace: asked.append(1), leave_at_once)

    with pytest.raises(Cancelled):
        asyncio.run(ask())
    assert world.runner.waiting()["a"] == 0
    world.gate.set()
    running.wait()
    assert asked == []


def test_a_question_over_its_time_is_given_up(make: Make) -> None:
    world = make(query_timeout_s=1e-6, run_timeout_s=WAIT_S)
    start(world, "held", 1).wait()
    world.entered.clear()
    world.gate.clear()
    start(world, "running", 2)
    assert world.entered.wait(WAIT_S)
    with pytest.raises(TimedOut):
        asyncio.run(world.runner.ask(world.recipe(1), lambda loaded, trace: 0))
    assert world.runner.waiting()["a"] == 0


def test_the_least_recently_used_model_leaves_when_another_needs_room(make: Make) -> None:
    world = make(model_budget_mb=2)

    async def use(*names: str) -> None:
        for name in names:
            await world.runner.model(name)

    asyncio.run(use("a", "b", "a", "c"))
    assert world.runner.status("b").state == "not_loaded"
    assert (world.runner.status("a").state, world.runner.status("c").state) == ("ready", "ready")
    # What the model is stays known.
    facts = world.runner.status("b").facts
    assert facts is not None
    assert facts.fingerprint == "print-of-b"
    asyncio.run(use("b"))
    assert world.loads == ["a", "b", "c", "b"]


def test_a_model_that_runs_is_never_evicted(make: Make) -> None:
    world = make(model_budget_mb=1)
    world.gate.clear()
    running = start(world, "running", 0, model="a")
    assert world.entered.wait(WAIT_S)
    asyncio.run(world.runner.model("b"))
    assert world.runner.status("a").state == "ready"
    world.gate.set()
    running.wait()
    assert running.error is None
    asyncio.run(world.runner.model("c"))
    assert world.runner.status("a").state == "not_loaded"


def test_the_traces_of_an_evicted_model_leave_with_it(make: Make) -> None:
    world = make(model_budget_mb=1)
    start(world, "run", 1, model="a").wait()
    assert world.runner.traces.size_bytes == MIB
    asyncio.run(world.runner.model("b"))
    assert world.runner.traces.size_bytes == 0


def test_a_model_larger_than_the_budget_is_refused_with_the_numbers(make: Make) -> None:
    world = make(model_budget_mb=3)
    world.models["a"] = FakeModel("a", "print", size_bytes=5 * MIB)
    with pytest.raises(ModelUnavailable, match="takes 5 MiB") as refused:
        asyncio.run(world.runner.model("a"))
    assert refused.value.facts == {"size_mb": 5, "budget_mb": 3}
    assert world.runner.status("a").state == "failed"


def test_a_broken_model_is_not_loaded_anew_for_every_request(make: Make) -> None:
    world = make()
    world.load_error = ModelUnavailable("It is damaged.", model="a")
    for _ in range(3):
        with pytest.raises(ModelUnavailable, match="damaged"):
            asyncio.run(world.runner.model("a"))
    assert world.loads == ["a"]


def test_models_work_side_by_side(make: Make) -> None:
    world = make()
    world.gate.clear()
    first, second = start(world, "a", 0, model="a"), start(world, "b", 0, model="b")
    while world.summaries < 2:
        assert world.entered.wait(WAIT_S)
    world.gate.set()
    assert first.wait().error is None
    assert second.wait().error is None


def test_closing_cancels_what_waits_and_tells_nobody_that_it_failed(make: Make) -> None:
    world = make()
    world.gate.clear()
    running, waiting = start(world, "running", 0), start(world, "waiting", 1)
    assert world.entered.wait(WAIT_S)
    closing = threading.Thread(target=world.runner.close, args=(WAIT_S,))
    closing.start()
    world.gate.set()
    closing.join(WAIT_S)
    assert not closing.is_alive()
    assert not waiting.told.is_set()
    assert running.error is None
    with pytest.raises(Busy):
        start(world, "late", 2)
