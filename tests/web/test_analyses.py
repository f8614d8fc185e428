"""An analysis over the API: made, followed, read, sliced, deleted."""

import base64
import json

import brotli
import numpy as np
import pytest
import zstandard
from starlette.testclient import TestClient

from app.domain.snapshot import Snapshot
from tests.web.conftest import N_HEADS, N_LAYERS, finished

API = "/api/v1"


def events_of(client: TestClient, analysis_id: str) -> list[tuple[str, dict[str, object]]]:
    """Names and data of the server-sent events."""
    text = client.get(f"{API}/analyses/{analysis_id}/events").text
    blocks = [block.splitlines() for block in text.replace("\r\n", "\n").split("\n\n") if block.startswith("event:")]
    return [(lines[0].removeprefix("event: "), json.loads(lines[1].removeprefix("data: "))) for lines in blocks]


def decode(array: dict[str, str]) -> np.ndarray:
    """The numbers of a typed array."""
    shape = [int(size) for size in array["shape"].split(",")] if array["shape"] else []
    return np.frombuffer(base64.b64decode(array["bdata"]), dtype=f"<{array['dtype']}").reshape(shape)


def test_a_post_answers_201_with_a_relative_location_and_an_owner_token(client: TestClient) -> None:
    answer = client.post(f"{API}/analyses", json={"text": "abcabc"}, headers={"Host": "evil.example"})
    body = answer.json()
    assert answer.status_code == 201
    assert answer.headers["location"] == f"{API}/analyses/{body['id']}"
    assert len(body["id"]) == 22
    assert len(body["owner_token"]) == 22
    assert "owner_token" not in client.get(answer.headers["location"]).json()


def test_events_are_progress_in_order_and_then_done(client: TestClient) -> None:
    analysis_id = client.post(f"{API}/analyses", json={"text": "abcabc"}).json()["id"]
    events = events_of(client, analysis_id)
    names = [name for name, _ in events]
    assert names[-1] == "done"
    assert set(names[:-1]) <= {"progress"}
    assert events[-1][1] == {}
    for _, data in events[:-1]:
        assert set(data) == {"stage", "fraction", "queue_position"}


def test_events_of_a_finished_analysis_are_done_alone(client: TestClient) -> None:
    analysis = finished(client)
    assert events_of(client, str(analysis["id"])) == [("done", {})]


def test_a_finished_analysis_has_tokens_predictions_ledger_and_tensors(client: TestClient) -> None:
    analysis = finished(client, text="abcabc")
    assert analysis["state"] == "done"
    assert [token["text"] for token in analysis["tokens"]] == list("abcabc")
    assert len(analysis["next"]) == 5
    assert len(analysis["surprisal"]) == 6
    assert analysis["surprisal"][0] is None
    assert analysis["ledger"]["holds"] is True
    assert analysis["model"]["anatomy"]["n_layers"] == N_LAYERS
    infos = {info["name"]: info for info in analysis["tensors"]}
    assert infos["stream_norm"]["shape"] == [N_LAYERS + 1, 6]
    assert infos["pattern"]["shape"] == [N_LAYERS, N_HEADS, 6, 6]
    assert infos["pattern"]["needs"] == ["layer", "head"]
    assert infos["pattern"]["stored"] is False
    assert infos["thumbnails"]["stored"] is True


def test_a_pattern_is_causal_sums_to_one_and_has_its_mask(client: TestClient) -> None:
    analysis = finished(client, text="abcabc")
    body = client.get(f"{API}/analyses/{analysis['id']}/tensors/pattern?layer=1&head=2").json()
    pattern, mask = decode(body["data"]), decode(body["mask"])
    assert body["axes"] == ["query_pos", "key_pos"]
    assert body["fixed"] == {"layer": 1, "head": 2}
    assert body["data"]["dtype"] == "f4"
    np.testing.assert_allclose(pattern.sum(-1), 1, atol=1e-6)
    assert (pattern[np.triu_indices(6, 1)] == 0).all()
    np.testing.assert_array_equal(mask, np.tri(6, dtype=np.uint8))


def test_fixing_an_axis_of_a_stored_tensor_gives_that_row(client: TestClient) -> None:
    analysis = finished(client, text="abcabc")
    url = f"{API}/analyses/{analysis['id']}/tensors/stream_norm"
    whole, row = decode(client.get(url).json()["data"]), decode(client.get(f"{url}?stream=1").json()["data"])
    np.testing.assert_array_equal(whole[1], row)


@pytest.mark.parametrize(
    ("path", "status", "kind"),
    [
        ("pattern", 422, "out-of-range"),
        ("pattern?layer=0", 422, "out-of-range"),
        ("pattern?layer=2&head=0", 422, "out-of-range"),
        ("pattern?layer=-1&head=0", 422, "out-of-range"),
        ("pattern?layer=0&head=4", 422, "out-of-range"),
        ("pattern?layer=0&head=0&query_pos=6", 422, "out-of-range"),
        ("stream_norm?head=1", 422, "out-of-range"),
        ("stream_norm?pos=99999999999999999999", 422, "out-of-range"),
        ("stream_norm?pos=one", 422, "validation"),
        ("stream_norm?depth=1", 422, "validation"),
        ("nothing", 404, "not-found"),
    ],
)
def test_a_wrong_slice_is_a_problem_of_its_kind(client: TestClient, path: str, status: int, kind: str) -> None:
    analysis = finished(client, text="abcabc")
    answer = client.get(f"{API}/analyses/{analysis['id']}/tensors/{path}")
    assert answer.status_code == status
    assert answer.json()["type"] == f"/problems/{kind}"


def test_not_a_number_and_infinity_survive_in_a_tensor_bit_for_bit(client: TestClient) -> None:
    analysis = finished(client, text="abcabc")
    odd = np.array([[np.nan, np.inf, -np.inf, -0.0, 1e-45, 2.5]], dtype=np.float32)
    services = client.app.state.services
    stored = services.store.get(analysis["id"])
    services.desk._snapshots[analysis["id"]] = Snapshot({"ledger": [], "cost_s": {}}, {"stream_norm": odd})
    body = client.get(f"{API}/analyses/{stored.id}/tensors/stream_norm").json()
    assert base64.b64decode(body["data"]["bdata"]) == odd.tobytes()


def test_equal_prompts_share_a_snapshot_and_never_an_id(client: TestClient) -> None:
    first = finished(client, text="abcabc")
    second = client.post(f"{API}/analyses", json={"text": "abcabc"}).json()
    assert second["id"] != first["id"]
    assert second["owner_token"] != first["owner_token"]
    assert second["state"] == "done"
    assert second["next"] == first["next"]


def test_token_ids_and_the_text_that_they_spell_give_the_same_numbers(client: TestClient) -> None:
    from_text = finished(client, text="abcabc")
    ids = [token["id"] for token in from_text["tokens"]]
    from_ids = finished(client, token_ids=ids)
    assert from_ids["text"] == "abcabc"
    assert from_ids["next"] == from_text["next"]


@pytest.mark.parametrize(
    "text", ["  e\u0301\t", "A\u030a \u212b", "שלום عرب", "\u202eabc", "👍🏽!", "a<b<c&amp;", "x\r\ny"]
)
def test_the_text_is_run_and_kept_exactly_as_it_came(client: TestClient, text: str) -> None:
    analysis = client.post(f"{API}/analyses", json={"text": text}).json()
    assert analysis["text"] == text
    assert "".join(token["text"] for token in analysis["tokens"]) == text
    assert "".join(token["bytes"] for token in analysis["tokens"]) == text.encode().hex()


def test_only_the_owner_deletes(client: TestClient) -> None:
    analysis = finished(client)
    url = f"{API}/analyses/{analysis['id']}"
    assert client.delete(url).status_code == 403
    assert client.delete(url, headers={"X-Owner-Token": "another"}).status_code == 403
    assert client.delete(url, headers={"X-Owner-Token": str(analysis["owner_token"])}).status_code == 204
    assert client.get(url).status_code == 404
    assert client.get(f"{url}/tensors/stream_norm").status_code == 404
    assert client.get(f"{url}/events").status_code == 404


def test_a_long_answer_is_compressed(client: TestClient) -> None:
    analysis = finished(client)
    plain = client.get(f"{API}/analyses/{analysis['id']}", headers={"Accept-Encoding": "identity"}).content
    unpack = {
        "zstd": lambda body: zstandard.ZstdDecompressor().decompressobj().decompress(body),
        "br": brotli.decompress,
    }
    for encoding, unpacked in unpack.items():
        with client.stream("GET", f"{API}/analyses/{analysis['id']}", headers={"Accept-Encoding": encoding}) as answer:
            assert answer.headers["content-encoding"] == encoding
            body = b"".join(answer.iter_raw())
        assert len(body) < len(plain)
        assert unpacked(body) == plain
