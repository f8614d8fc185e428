"""The lenses over the API: answers that agree with the tensors, and clear problems."""

import json
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from tests.web.conftest import N_HEADS, N_LAYERS, finished
from tests.web.test_analyses import API, decode

TEXT = "abcabcab"
N = len(TEXT)


@pytest.fixture
def url(client: TestClient) -> str:
    """The address of a finished analysis."""
    return f"{API}/analyses/{finished(client, text=TEXT)['id']}"


def get(client: TestClient, url: str, **parameters: object) -> Any:
    answer = client.get(url, params={name: str(value) for name, value in parameters.items() if value is not None})
    assert answer.status_code == 200, answer.text
    return answer.json()


def tensor(client: TestClient, url: str, name: str, **fixed: object) -> np.ndarray:
    return decode(get(client, f"{url}/tensors/{name}", **fixed)["data"])


def problem(client: TestClient, url: str, **parameters: object) -> tuple[int, dict[str, Any]]:
    answer = client.get(url, params={name: str(value) for name, value in parameters.items()})
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.status_code, answer.json()


def holds(answer: dict[str, Any]) -> bool:
    return bool(answer["closes"]) and all(row["holds"] for row in answer["closes"])


def test_an_edge_has_the_numbers_of_the_tensors(client: TestClient, url: str) -> None:
    edge = get(client, f"{url}/edge", layer=1, head=3, query=6, key=2)
    pattern = tensor(client, url, "pattern", layer=1, head=3)
    assert edge["softmax"]["pattern"] == pytest.approx(pattern[6, 2], rel=1e-5)
    assert edge["softmax"]["n_seen"] == 7
    assert edge["message"]["norm"] == pytest.approx(tensor(client, url, "message_norm", layer=1, head=3)[2], rel=1e-5)
    assert edge["message"]["delivered_norm"] == pytest.approx(
        tensor(client, url, "delivered_norm", layer=1, head=3)[6, 2], rel=1e-4
    )
    assert edge["score"]["score"] == pytest.approx(tensor(client, url, "score", layer=1, head=3)[6, 2], rel=1e-4)
    assert edge["stream"]["before_norm"] == pytest.approx(tensor(client, url, "stream_norm")[1, 6], rel=1e-5)
    assert edge["kv_head"] == 1
    assert [step["step"] for step in edge["equation"]] == [
        "score", "pattern", "message", "delivered", "output", "stream", "logit",
    ]  # fmt: skip
    assert len(edge["promotes"]) == len(edge["suppresses"]) == 10
    assert holds(edge)


def test_a_source_that_cannot_be_seen_has_no_score_and_delivers_nothing(client: TestClient, url: str) -> None:
    edge = get(client, f"{url}/edge", layer=0, head=0, query=2, key=5)
    assert edge["seen"] is False
    assert edge["score"]["score"] is None
    assert edge["softmax"]["pattern"] == edge["message"]["delivered_norm"] == 0
    assert edge["message"]["norm"] > 0


def test_an_attribution_adds_up_and_is_drilled_down_to_sources(client: TestClient, url: str) -> None:
    found = get(client, f"{url}/attribution", pos=N - 1, target=97, foil=98)
    total = sum(row["value"] for row in found["rows"])
    assert total == pytest.approx(found["sum"], abs=1e-6)
    assert found["sum"] == pytest.approx(found["logit"], abs=1e-5)
    for group in ("by_layer", "by_kind"):
        assert sum(row["value"] for row in found[group]) == pytest.approx(total, abs=1e-6)
    head = next(row for row in found["rows"] if row["name"] == "head 1.2")
    sources = get(client, f"{url}/attribution/sources", pos=N - 1, layer=1, head=2, target=97, foil=98)
    assert decode(sources["values"]).sum() == pytest.approx(head["value"], abs=1e-6)
    map_ = tensor(client, url, "attribution_map", layer=1, head=2, target=97, foil=98)
    assert map_[N - 1] == pytest.approx(decode(sources["values"]), abs=1e-6)
    heads = get(client, f"{url}/heads", pos=N - 1, target=97, foil=98)
    effects = next(one for one in heads["summaries"] if one["name"] == "attribution")
    assert decode(effects["values"])[1, 2] == pytest.approx(head["value"], abs=1e-6)
    assert holds(found)
    assert holds(sources)


def test_the_lens_of_one_position_ends_with_the_model_itself(client: TestClient, url: str) -> None:
    lens = get(client, f"{url}/lens", pos=4)
    top = client.get(url).json()["predictions"][4][0]
    assert [row["point"] for row in lens["rows"]] == list(range(2 * N_LAYERS + 1))
    assert int(decode(lens["top_ids"])[-1, 0]) == top["id"]
    assert decode(lens["top_probability"])[-1, 0] == pytest.approx(top["probability"], rel=1e-5)
    # Two sums of 256 terms in float32.
    assert decode(lens["kl"])[-1] == pytest.approx(0, abs=1e-5)
    assert decode(lens["target_rank"])[-1] == 0
    assert holds(lens)


def test_the_whole_lens_comes_in_blocks_with_the_wanted_rows_first(client: TestClient, url: str) -> None:
    text = client.get(f"{url}/lens/events", params={"points": "all", "first_pos": "5"}).text
    blocks = [block.splitlines() for block in text.replace("\r\n", "\n").split("\n\n") if block.startswith("event:")]
    events = [(lines[0].removeprefix("event: "), json.loads(lines[1].removeprefix("data: "))) for lines in blocks]
    rows = [(row["point"], row["pos"]) for name, data in events if name == "rows" for row in data["rows"]]
    assert rows[: 2 * N_LAYERS + 1] == [(point, 5) for point in range(2 * N_LAYERS + 1)]
    assert sorted(rows) == [(point, pos) for point in range(2 * N_LAYERS + 1) for pos in range(N)]
    assert events[-1] == ("done", {"n_rows": len(rows)})
    assert events[-2][1]["fraction"] == 1.0


def test_heads_are_summed_up_on_the_prompt_and_on_the_probe(client: TestClient, url: str) -> None:
    heads = get(client, f"{url}/heads")
    names = [one["name"] for one in heads["summaries"]]
    assert names == [
        "entropy", "distance", "previous_token", "first_token", "self", "duplicate_token", "induction", "write_norm",
        "attribution",
    ]  # fmt: skip
    values = {one["name"]: decode(one["values"]) for one in heads["summaries"]}
    assert all(array.shape == (N_LAYERS, N_HEADS) for array in values.values())
    pattern = tensor(client, url, "pattern", layer=1, head=2)
    previous = np.mean([pattern[i, i - 1] for i in range(1, N)])
    assert values["previous_token"][1, 2] == pytest.approx(previous, rel=1e-5)
    induction = np.mean([sum(pattern[i, j] for j in range(i - 2, 0, -3)) for i in range(3, N)])
    assert values["induction"][1, 2] == pytest.approx(induction, rel=1e-5)
    norms = tensor(client, url, "head_write_norm", layer=1)
    assert values["write_norm"][1] == pytest.approx(norms.mean(-1), rel=1e-5)
    assert heads["pos"] == N - 1
    probe = heads["probe"]
    # 32 tokens at most: ten of them, three times.
    assert (probe["n_tokens"], probe["period"]) == (30, 10)
    assert [one["name"] for one in probe["summaries"]] == names[:7]


@pytest.mark.parametrize(
    ("path", "parameters"),
    [
        ("edge", {"layer": N_LAYERS, "head": 0, "query": 0, "key": 0}),
        ("edge", {"layer": 0, "head": N_HEADS, "query": 0, "key": 0}),
        ("edge", {"layer": 0, "head": 0, "query": N, "key": 0}),
        ("edge", {"layer": 0, "head": 0, "query": 0, "key": -1}),
        ("attribution", {"pos": N}),
        ("attribution/sources", {"pos": 0, "layer": 0, "head": -1}),
        ("lens", {"pos": N}),
        ("lens", {"point": 2 * N_LAYERS + 1}),
        ("heads", {"pos": N}),
        ("tensors/pattern", {"layer": 0, "head": 0, "target": 5}),
        ("tensors/attribution_map", {"layer": 0, "head": 0, "target": 256}),
        ("attribution", {"pos": 0, "target": 256}),
        ("heads", {"foil": -1}),
        ("lens", {}),
        ("lens", {"pos": 0, "point": 0}),
    ],
)
def test_what_does_not_exist_is_a_problem_that_says_so(
    client: TestClient, url: str, path: str, parameters: dict[str, object]
) -> None:
    status, body = problem(client, f"{url}/{path}", **parameters)
    assert status == 422
    assert body["type"].startswith("/problems/")
    assert body["detail"]


def test_a_question_about_an_analysis_that_is_not_there_is_404(client: TestClient) -> None:
    status, body = problem(client, f"{API}/analyses/{'x' * 22}/heads")
    assert (status, body["type"]) == (404, "/problems/unknown-analysis")
