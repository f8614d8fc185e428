"""Every error has one shape, whatever route it comes from."""

import re

import pytest
from fastapi.routing import APIRoute
from starlette.testclient import TestClient

import app.errors
from app.errors import AppError
from app.main import create_app
from app.settings import Settings
from app.web.problems import problem_of
from tests.web.conftest import settings, tiny_folder  # noqa: F401

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
WRONG_BODY = b'{"surprise": '


def kinds(root: type[AppError] = AppError) -> list[type[AppError]]:
    return [root, *(kind for child in root.__subclasses__() for kind in kinds(child))]


def assert_problem(answer: object) -> None:
    problem = answer.json()
    assert answer.headers["content-type"] == "application/problem+json"
    assert set(problem) <= {"type", "title", "status", "detail", "facts", "instance", "errors"}
    assert re.fullmatch(r"/problems/[a-z0-9-]+", problem["type"])
    assert problem["title"]
    assert problem["status"] == answer.status_code
    assert problem["detail"].endswith((".", ":", "help."))
    assert problem["instance"].startswith("/")
    assert "Traceback" not in answer.text


@pytest.fixture
def client(settings: Settings) -> TestClient:  # noqa: F811
    with TestClient(create_app(settings), raise_server_exceptions=False) as client:
        yield client


def test_every_route_answers_a_wrong_method_and_a_wrong_body_with_a_problem(client: TestClient) -> None:
    checked = 0
    addresses = {re.sub(r"{[^}]*}", "wrong", path) for path in client.get("/openapi.json").json()["paths"]}
    assert len(addresses) >= 9
    for address in sorted(addresses | {"/", "/docs", "/a/wrong", "/static/x/y", "/plotly/x", "/nothing"}):
        for method in METHODS:
            answer = client.request(method, address, content=WRONG_BODY, headers={"Content-Type": "application/json"})
            if answer.status_code >= 400:
                assert_problem(answer)
                checked += 1
    assert checked > 40


def test_kinds_are_unique_and_titles_differ() -> None:
    names = [kind.kind for kind in kinds()]
    assert len(names) == len(set(names))
    titles = [kind.title for kind in kinds()]
    assert len(titles) == len(set(titles))


def test_the_tree_in_the_docstring_is_the_tree_in_the_code() -> None:
    drawn = dict(re.findall(r"── (\w+)(?: +(\d+))?", app.errors.__doc__))
    assert set(drawn) == {kind.__name__ for kind in kinds()} - {"AppError"}
    for kind in kinds():
        if drawn.get(kind.__name__):
            assert kind.status == int(drawn[kind.__name__]), kind


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.kind)
def test_an_error_carries_its_message_and_its_numbers_into_the_problem(kind: type[AppError]) -> None:
    problem = problem_of(kind("Two of three. Try one.", n=2, limit=3), "/api/v1/x")
    assert problem == {
        "type": f"/problems/{kind.kind}",
        "title": kind.title,
        "status": kind.status,
        "detail": "Two of three. Try one.",
        "facts": {"n": 2, "limit": 3},
        "instance": "/api/v1/x",
    }


def test_an_unexpected_error_tells_nothing_of_itself(caplog: pytest.LogCaptureFixture) -> None:
    problem = problem_of(RuntimeError("secret in /home/somebody"), "/x")
    assert problem["status"] == 500
    assert "secret" not in str(problem)
    assert problem["facts"]["reference"] in caplog.text
    assert "secret in /home/somebody" in caplog.text


def test_an_unexpected_error_in_a_route_is_a_problem_with_the_usual_headers(client: TestClient) -> None:
    def broken() -> None:
        raise RuntimeError("secret")

    client.app.router.routes.insert(0, APIRoute("/api/v1/broken", broken))
    answer = client.get("/api/v1/broken")
    assert answer.status_code == 500
    assert_problem(answer)
    assert "secret" not in answer.text
    assert "content-security-policy" in answer.headers
