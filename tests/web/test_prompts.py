"""What cannot be run is refused with its kind, its numbers and a next step, and the server goes on."""

import pytest
from starlette.testclient import TestClient

from tests.web.conftest import MAX_TOKENS

API = "/api/v1"


@pytest.mark.parametrize(
    ("body", "status", "kind", "words"),
    [
        ({"text": ""}, 422, "empty-prompt", "Type something"),
        ({"text": " \t\n\u3000"}, 422, "empty-prompt", "only white space"),
        ({"text": "a\0b"}, 422, "unusable-text", "Character 1 is U+0000"),
        ({"token_ids": []}, 422, "empty-prompt", "no token"),
        ({"token_ids": [256]}, 422, "unknown-token", "0 to 255"),
        ({"token_ids": [-1]}, 422, "unknown-token", "-1"),
        ({"token_ids": [True]}, 422, "validation", "errors"),
        ({"token_ids": [1.5]}, 422, "validation", "errors"),
        ({"token_ids": [10**30]}, 422, "validation", "errors"),
        ({}, 422, "invalid-input", "neither"),
        ({"text": "a", "token_ids": [1]}, 422, "invalid-input", "both"),
        ({"text": "a", "model": "no"}, 404, "unknown-model", "there are: tiny"),
        ({"text": "a", "model": "../tiny"}, 404, "unknown-model", "there are: tiny"),
        ({"text": "a", "modle": "tiny"}, 422, "validation", "errors"),
        ({"text": 5}, 422, "validation", "errors"),
        (["a"], 422, "validation", "errors"),
        (None, 422, "validation", "errors"),
    ],
)
def test_a_prompt_that_cannot_be_run_is_a_problem_of_its_kind(
    client: TestClient, body: object, status: int, kind: str, words: str
) -> None:
    answer = client.post(f"{API}/analyses", json=body)
    problem = answer.json()
    assert answer.status_code == problem["status"] == status
    assert problem["type"] == f"/problems/{kind}"
    assert words in problem["detail"]
    assert client.post(f"{API}/analyses", json={"text": "ab"}).status_code == 201


@pytest.mark.parametrize("path", ["analyses", "tokenizations"])
def test_a_lone_surrogate_is_refused_and_its_place_is_told(client: TestClient, path: str) -> None:
    answer = client.post(
        f"{API}/{path}", content=b'{"text": "ab\\ud800"}', headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 422
    assert answer.json()["type"] == "/problems/unusable-text"
    assert answer.json()["facts"] == {"position": 2, "code_point": "U+D800"}


def test_a_surrogate_pair_is_one_character(client: TestClient) -> None:
    answer = client.post(
        f"{API}/analyses", content=b'{"text": "\\ud83d\\ude00"}', headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 201
    assert answer.json()["text"] == "😀"


def test_one_token_over_the_limit_is_refused_with_both_numbers_and_the_limit_itself_is_not(client: TestClient) -> None:
    assert client.post(f"{API}/analyses", json={"text": "a" * MAX_TOKENS}).status_code == 201
    answer = client.post(f"{API}/analyses", json={"text": "a" * (MAX_TOKENS + 1)})
    assert answer.status_code == 422
    problem = answer.json()
    assert problem["type"] == "/problems/prompt-too-long"
    assert problem["facts"] == {"n_tokens": MAX_TOKENS + 1, "limit": MAX_TOKENS}
    assert "Shorten it by 1 token." in problem["detail"]
    ids = client.post(f"{API}/analyses", json={"token_ids": [5] * (MAX_TOKENS + 1)})
    assert ids.json()["type"] == "/problems/prompt-too-long"


def test_a_tokenization_counts_past_the_limit_and_lists_up_to_it(client: TestClient) -> None:
    body = client.post(f"{API}/tokenizations", json={"text": "a" * (MAX_TOKENS + 8)}).json()
    assert body["n_tokens"] == MAX_TOKENS + 8
    assert body["limit"] == MAX_TOKENS
    assert body["over_limit"] is True
    assert len(body["tokens"]) == MAX_TOKENS


def test_a_tokenization_shows_white_space_and_the_bytes_of_a_split_character(client: TestClient) -> None:
    tokens = client.post(f"{API}/tokenizations", json={"text": " é"}).json()["tokens"]
    assert [token["label"] for token in tokens] == ["·", "⟨C3⟩", "⟨A9⟩"]
    assert [token["text"] for token in tokens] == [" ", "é", ""]
    assert [token["continues"] for token in tokens] == [False, False, True]


@pytest.mark.parametrize(
    ("content", "status", "kind"),
    [
        (b"{", 422, "invalid-json"),
        (b"\xff\xfe\xff", 400, "unreadable-body"),
        (b"1" * 5000, 400, "unreadable-body"),
        (b"[" * 9000, 400, "unreadable-body"),
        (b'{"text": NaN}', 422, "validation"),
    ],
)
def test_a_body_that_is_not_json_is_a_problem(client: TestClient, content: bytes, status: int, kind: str) -> None:
    answer = client.post(f"{API}/analyses", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == status
    assert answer.json()["type"] == f"/problems/{kind}"


def test_a_validation_error_points_into_the_body(client: TestClient) -> None:
    answer = client.post(f"{API}/analyses", json={"token_ids": [1, "x"]})
    assert answer.json()["errors"][0]["pointer"] == "#/token_ids/1"


@pytest.mark.parametrize("analysis_id", ["x", "A" * 22, "A" * 23, "é" * 22, "..%2f..", "A" * 500])
def test_an_id_that_names_nothing_is_a_404(client: TestClient, analysis_id: str) -> None:
    answer = client.get(f"{API}/analyses/{analysis_id}")
    assert answer.status_code == 404
    assert answer.json()["type"] in ("/problems/unknown-analysis", "/problems/not-found")
