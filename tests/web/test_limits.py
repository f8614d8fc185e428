"""Bodies, rates, headers."""

import asyncio
import json

import pytest
from starlette.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send

from app.web.middleware import BodyLimit
from tests.web.conftest import Serve

API = "/api/v1"


class Upload:
    """An upload of many chunks to an application with a body limit, and how many of them were taken."""

    def __init__(self, client: TestClient, headers: list[tuple[bytes, bytes]]) -> None:
        self.chunks_read = 0
        self.sent: list[Message] = []
        scope = {
            "type": "http",
            "method": "POST",
            "path": f"{API}/analyses",
            "headers": headers,
            "app": client.app,
            "query_string": b"",
        }
        asyncio.run(BodyLimit(self._never, 20_000)(scope, self._receive, self._send))

    async def _receive(self) -> Message:
        self.chunks_read += 1
        return {"type": "http.request", "body": b"a" * 1_000, "more_body": self.chunks_read < 500}

    async def _send(self, message: Message) -> None:
        self.sent.append(message)

    async def _never(self, scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError("the application was called")


def test_a_large_body_is_refused_by_its_announced_length_before_any_of_it_is_read(client: TestClient) -> None:
    upload = Upload(client, [(b"content-length", b"500000")])
    assert upload.chunks_read == 0
    assert upload.sent[0]["status"] == 413


@pytest.mark.parametrize("headers", [[], [(b"content-length", b"10")], [(b"content-length", b"x")]])
def test_a_large_body_in_chunks_is_refused_as_soon_as_it_is_over_the_limit(
    client: TestClient, headers: list[tuple[bytes, bytes]]
) -> None:
    upload = Upload(client, headers)
    assert upload.chunks_read == 21
    assert upload.sent[0]["status"] == 413
    assert json.loads(upload.sent[1]["body"])["facts"] == {"size_bytes": 21_000, "limit": 20_000}


def test_a_large_body_is_a_problem_for_the_client(client: TestClient) -> None:
    answer = client.post(f"{API}/analyses", content=b"a" * 10_000_000)
    assert answer.status_code == 413
    assert answer.json()["type"] == "/problems/body-too-large"
    assert answer.json()["facts"]["limit"] == 20_000


def test_too_many_requests_are_told_to_wait_and_reading_goes_on(serve: Serve) -> None:
    client = serve(rate_limit="3/minute")
    answers = [client.post(f"{API}/tokenizations", json={"text": "a"}) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert answers[-1].json()["type"] == "/problems/too-many-requests"
    assert int(answers[-1].headers["retry-after"]) > 0
    assert client.get(f"{API}/models").status_code == 200


def test_a_forwarded_address_counts_only_behind_a_trusted_proxy(serve: Serve) -> None:
    def statuses(client: TestClient) -> list[int]:
        headers = [{"X-Forwarded-For": f"9.9.9.9, 10.0.0.{n}"} for n in range(2)]
        return [client.post(f"{API}/tokenizations", json={"text": "a"}, headers=h).status_code for h in headers]

    assert statuses(serve(rate_limit="1/minute")) == [200, 429]
    assert statuses(serve(rate_limit="1/minute", trust_proxy=True)) == [200, 200]


def test_a_made_up_first_entry_of_a_forwarded_address_does_not_escape_the_limit(serve: Serve) -> None:
    client = serve(rate_limit="1/minute", trust_proxy=True)
    headers = [{"X-Forwarded-For": f"1.1.1.{n}, 10.0.0.1"} for n in range(2)]
    statuses = [client.post(f"{API}/tokenizations", json={"text": "a"}, headers=h).status_code for h in headers]
    assert statuses == [200, 429]


@pytest.mark.parametrize("path", ["/", "/healthz", "/nothing", f"{API}/models", f"{API}/analyses/x", "/a/x"])
def test_every_answer_allows_this_server_alone(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'self'" in policy
    assert "script-src" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "SAMEORIGIN"
    assert "access-control-allow-origin" not in headers


def test_only_the_embeddable_page_may_be_framed_elsewhere(client: TestClient) -> None:
    headers = client.get("/a/x/embed").headers
    assert "frame-ancestors *" in headers["content-security-policy"]
    assert "x-frame-options" not in headers


def test_no_answer_repeats_a_made_up_host(client: TestClient) -> None:
    for path in ("/", "/docs", "/openapi.json", f"{API}/analyses/", "/a/x/", "/static"):
        answer = client.get(path, headers={"Host": "evil.example", "Accept": "text/html"}, follow_redirects=False)
        assert "evil.example" not in answer.text + str(answer.headers)
