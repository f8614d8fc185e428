"""Many at once: every post is accepted or told that the server is busy, and everything else stays responsive."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fastapi import FastAPI
from httpx2 import ASGITransport, AsyncClient, Response

from app.domain.snapshot import Snapshot
from app.lm.catalog import Catalogue
from app.lm.protocol import LoadedModel, Progress, Trace
from app.lm.runner import Runner
from app.main import create_app
from app.settings import Settings
from app.web.engine import Engine

API = "/api/v1"


class GatedEngine(Engine):
    """An engine whose runs wait at a gate; the self-check passes it."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, Catalogue.of(settings))
        self.gate = threading.Event()
        self.entered = threading.Event()
        self._checking = False

    def self_check(self, loaded: LoadedModel) -> Any:
        self._checking = True
        try:
            return super().self_check(loaded)
        finally:
            self._checking = False

    def summarize(self, loaded: LoadedModel, trace: Trace, progress: Progress) -> Snapshot:
        if not self._checking:
            self.entered.set()
            assert self.gate.wait(60)
            progress("gate", 0.0)
        return super().summarize(loaded, trace, progress)


@asynccontextmanager
async def running(app: FastAPI) -> AsyncIterator[AsyncClient]:
    async with app.router.lifespan_context(app):
        transport = ASGITransport(app=app, raise_app_exceptions=False)
        async with AsyncClient(transport=transport, base_url="http://test", timeout=60) as client:
            yield client


def with_server(
    settings: Settings, test: Callable[[AsyncClient, GatedEngine], Coroutine[Any, Any, None]], **changed: object
) -> None:
    """Runs a test against a server whose runs wait at a gate."""
    changed_settings = settings.model_copy(update=changed)
    engine = GatedEngine(changed_settings)

    async def run() -> None:
        async with running(create_app(changed_settings, engine)) as client:
            try:
                await test(client, engine)
            finally:
                engine.gate.set()

    asyncio.run(run())


def runner_of(client: AsyncClient) -> Runner:
    """The runner behind a client."""
    transport = client._transport
    assert isinstance(transport, ASGITransport)
    runner: Runner = transport.app.state.services.runner  # type: ignore[union-attr]
    return runner


async def post(client: AsyncClient, text: str) -> Response:
    return await client.post(f"{API}/analyses", json={"text": text})


async def followed(client: AsyncClient, analysis_id: str) -> dict[str, Any]:
    await client.get(f"{API}/analyses/{analysis_id}/events")
    answer = await client.get(f"{API}/analyses/{analysis_id}")
    body: dict[str, Any] = answer.json()
    return body


def test_two_hundred_posts_at_once_are_accepted_or_told_busy_and_the_accepted_ones_finish(settings: Settings) -> None:
    async def test(client: AsyncClient, engine: GatedEngine) -> None:
        answers = await asyncio.gather(*(post(client, f"prompt {n}") for n in range(200)))
        statuses = {answer.status_code for answer in answers}
        accepted = [answer.json()["id"] for answer in answers if answer.status_code == 201]
        refused = [answer for answer in answers if answer.status_code == 503]
        assert statuses == {201, 503}
        assert len(set(accepted)) == len(accepted)
        # One runs at most, and ten wait.
        assert 10 <= len(accepted) <= 11
        for answer in refused:
            problem = answer.json()
            assert problem["type"] == "/problems/busy"
            assert problem["facts"] == {"waiting": 10, "limit": 10}
            assert int(answer.headers["retry-after"]) > 0
        # Whoever was refused has left nothing behind.
        engine.gate.set()
        for analysis_id in accepted:
            assert (await followed(client, analysis_id))["state"] == "done"
        assert (await post(client, "after the crowd")).status_code == 201

    with_server(settings, test, queue_length=10)


def test_two_hundred_equal_posts_are_one_run_with_two_hundred_ids(settings: Settings) -> None:
    async def test(client: AsyncClient, engine: GatedEngine) -> None:
        answers = await asyncio.gather(*(post(client, "the same") for _ in range(200)))
        ids = {answer.json()["id"] for answer in answers}
        assert {answer.status_code for answer in answers} == {201}
        assert len(ids) == 200
        engine.gate.set()
        states = {(await followed(client, analysis_id))["state"] for analysis_id in ids}
        assert states == {"done"}

    with_server(settings, test, queue_length=1)


def test_a_crowd_that_arrives_while_the_model_is_loaded_takes_one_place(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    loading, go_on = threading.Event(), threading.Event()
    real = Engine.load

    def slow(engine: Engine, name: str) -> Any:
        loading.set()
        assert go_on.wait(60)
        return real(engine, name)

    monkeypatch.setattr(Engine, "load", slow)

    async def test(client: AsyncClient, engine: GatedEngine) -> None:
        posts = [asyncio.ensure_future(post(client, "the same")) for _ in range(20)]
        await asyncio.to_thread(loading.wait, 60)
        await asyncio.sleep(0.2)
        posts[0].cancel()
        go_on.set()
        answers = await asyncio.gather(*posts[1:])
        assert {answer.status_code for answer in answers} == {201}

    with_server(settings, test, queue_length=1)


def test_while_a_run_is_under_way_everything_else_answers(settings: Settings) -> None:
    async def test(client: AsyncClient, engine: GatedEngine) -> None:
        first = (await post(client, "first")).json()["id"]
        second = (await post(client, "second")).json()["id"]
        assert await asyncio.to_thread(engine.entered.wait, 60)
        async with asyncio.timeout(30):
            assert (await client.get("/healthz")).status_code == 200
            assert (await client.get("/readyz")).status_code == 200
            assert (await client.get("/")).status_code == 200
            tokens = await client.post(f"{API}/tokenizations", json={"text": "abc"})
            assert tokens.json()["n_tokens"] == 3
            assert (await client.get(f"{API}/analyses/{first}")).json()["state"] == "running"
            waiting = (await client.get(f"{API}/analyses/{second}")).json()
            assert (waiting["state"], waiting["queue_position"]) == ("queued", 1)
            not_ready = await client.get(f"{API}/analyses/{second}/tensors/pattern?layer=0&head=0")
            assert (not_ready.status_code, not_ready.json()["type"]) == (409, "/problems/not-ready")
            metrics = (await client.get("/metrics")).text
            assert 'headwater_queue_length{model="tiny"} 1.0' in metrics

    with_server(settings, test)


def test_a_deleted_analysis_leaves_the_queue(settings: Settings) -> None:
    async def test(client: AsyncClient, engine: GatedEngine) -> None:
        await post(client, "first")
        assert await asyncio.to_thread(engine.entered.wait, 60)
        second = (await post(client, "second")).json()
        assert (await post(client, "third")).status_code == 503
        owner = {"X-Owner-Token": second["owner_token"]}
        assert (await client.delete(f"{API}/analyses/{second['id']}", headers=owner)).status_code == 204
        assert (await post(client, "third")).status_code == 201

    with_server(settings, test, queue_length=1)


def test_a_run_over_its_time_fails_with_a_problem_and_the_next_one_runs(settings: Settings) -> None:
    async def test(client: AsyncClient, engine: GatedEngine) -> None:
        engine.gate.set()
        await client.post(f"{API}/tokenizations", json={"text": "load the model"})
        runner = runner_of(client)
        runner._settings = settings.model_copy(update={"run_timeout_s": 1e-6})
        created = (await post(client, "slow")).json()
        analysis = await followed(client, created["id"])
        assert analysis["state"] == "failed"
        assert analysis["problem"]["type"] == "/problems/timed-out"
        assert analysis["tensors"] == []
        page = await client.get(f"/a/{created['id']}", headers={"Accept": "text/html"})
        assert page.status_code == 200
        runner._settings = settings
        assert (await followed(client, (await post(client, "slow")).json()["id"]))["state"] == "done"

    with_server(settings, test)


@pytest.mark.parametrize("error", [RuntimeError("secret /root/path"), MemoryError()])
def test_an_unexpected_error_in_a_run_is_kept_as_a_problem_without_its_words(
    settings: Settings, error: Exception
) -> None:
    async def test(client: AsyncClient, engine: GatedEngine) -> None:
        engine.gate.set()

        def broken(loaded: LoadedModel, trace: Trace, progress: Progress) -> Snapshot:
            raise error

        await client.post(f"{API}/tokenizations", json={"text": "load the model"})
        runner_of(client)._summarize = broken
        analysis = await followed(client, (await post(client, "x")).json()["id"])
        assert analysis["state"] == "failed"
        assert analysis["problem"]["type"] == "/problems/internal"
        assert "secret" not in str(analysis)
        assert (await client.get("/healthz")).status_code == 200

    with_server(settings, test)
