"""A link opens after a restart, with or without its model."""

import shutil
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from app.main import create_app
from app.settings import Settings
from app.storage.database import open_database
from app.storage.store import Store
from tests.web.conftest import finished, save_tiny_model

API = "/api/v1"


def test_an_analysis_is_the_same_after_a_restart(settings: Settings) -> None:
    with TestClient(create_app(settings)) as client:
        before = finished(client, text="abcabc")
        pattern = client.get(f"{API}/analyses/{before['id']}/tensors/pattern?layer=1&head=1").content
    with TestClient(create_app(settings)) as client:
        client.post(f"{API}/tokenizations", json={"text": "wait for the model"})
        after = client.get(f"{API}/analyses/{before['id']}").json()
        assert after == {name: value for name, value in before.items() if name != "owner_token"}
        assert client.get(f"{API}/analyses/{before['id']}/tensors/pattern?layer=1&head=1").content == pattern
        owner = {"X-Owner-Token": str(before["owner_token"])}
        assert client.delete(f"{API}/analyses/{before['id']}", headers=owner).status_code == 204


@pytest.mark.parametrize("route", ["", "/events"])
def test_an_analysis_that_a_restart_interrupted_runs_when_it_is_opened(settings: Settings, route: str) -> None:
    with TestClient(create_app(settings)) as client:
        created = finished(client, text="abcabc")
    engine = open_database(settings.effective_database_url)
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE analyses SET state = 'queued', snapshot_key = NULL")
        connection.exec_driver_sql("DELETE FROM snapshots")
    engine.dispose()
    with TestClient(create_app(settings)) as client:
        assert client.get(f"{API}/analyses/{created['id']}{route}").status_code == 200
        client.get(f"{API}/analyses/{created['id']}/events")
        after = client.get(f"{API}/analyses/{created['id']}").json()
        assert after["state"] == "done"
        assert after["next"] == created["next"]


def test_a_link_opens_from_its_snapshot_when_the_model_is_gone(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    save_tiny_model(folder)
    settings = Settings(data_dir=tmp_path / "data", models=(f"tiny=dir:{folder}",))
    with TestClient(create_app(settings)) as client:
        before = finished(client, text="abcabc")
    shutil.rmtree(folder)
    with TestClient(create_app(settings)) as client:
        url = f"{API}/analyses/{before['id']}"
        after = client.get(url).json()
        assert after["state"] == "done"
        assert after["ledger"] == before["ledger"]
        assert after["model"]["state"] == "missing"
        assert client.get(f"{url}/tensors/thumbnails").status_code == 200
        answer = client.get(f"{url}/tensors/pattern?layer=0&head=0")
        assert (answer.status_code, answer.json()["type"]) == (503, "/problems/model-unavailable")
        ready = client.get("/readyz")
        assert (ready.status_code, ready.json()["type"]) == (503, "/problems/model-unavailable")
        assert client.get("/healthz").status_code == 200
        post = client.post(f"{API}/analyses", json={"text": "a"})
        assert (post.status_code, post.json()["type"]) == (503, "/problems/model-unavailable")
        assert client.get(f"{API}/models").json()["models"][0]["state"] == "missing"


def test_a_changed_model_never_answers_for_an_earlier_analysis(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    save_tiny_model(folder, seed=0)
    settings = Settings(data_dir=tmp_path / "data", models=(f"tiny=dir:{folder}",))
    with TestClient(create_app(settings)) as client:
        before = finished(client, text="abcabc")
    save_tiny_model(folder, seed=1)
    with TestClient(create_app(settings)) as client:
        client.post(f"{API}/tokenizations", json={"text": "wait for the model"})
        url = f"{API}/analyses/{before['id']}"
        answer = client.get(f"{url}/tensors/pattern?layer=0&head=0")
        assert answer.status_code == 503
        assert "have changed since this analysis" in answer.json()["detail"]
        assert client.get(url).json()["next"] == before["next"]
        assert client.get(url).json()["model"]["state"] == "missing"
        again = finished(client, text="abcabc")
        assert again["next"] != before["next"]


def test_a_model_that_fails_its_self_check_is_not_offered(serve: object, settings: Settings) -> None:
    from app.lm.catalog import Catalogue
    from app.web.engine import Engine

    class OffEngine(Engine):
        def self_check(self, loaded: object) -> list[dict[str, object]]:
            row = {"name": "stream", "claim": "It adds up.", "worst_rel": 0.5, "tolerance": 1e-4, "where": "layer 1"}
            return [{**row, "holds": False}]

    client = serve(OffEngine(settings, Catalogue.of(settings)))  # type: ignore[operator]
    answer = client.post(f"{API}/analyses", json={"text": "a"})
    assert answer.status_code == 503
    assert "fails its self-check" in answer.json()["detail"]
    assert "0.5 at layer 1" in answer.json()["detail"]
    assert client.get(f"{API}/models/tiny").json()["state"] == "failed"


def test_the_store_of_a_server_is_closed_with_it(settings: Settings) -> None:
    with TestClient(create_app(settings)) as client:
        finished(client)
    # Nothing holds the file any more: it can be opened for itself alone.
    engine = open_database(settings.effective_database_url)
    with engine.connect() as connection:
        connection.exec_driver_sql("BEGIN EXCLUSIVE")
    Store(engine).close()
