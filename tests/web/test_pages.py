"""The pages: what they hold, what they load, and how they say that something is wrong."""

import re

import pytest
from starlette.testclient import TestClient

from tests.web.conftest import finished

HTML = {"Accept": "text/html,application/xhtml+xml"}
NASTY = "</script><script>alert(1)</script>\"'<b>&amp;"


def test_the_first_page_offers_the_default_model(client: TestClient) -> None:
    page = client.get("/").text
    assert re.search(r'value="tiny"[^>]* selected', page)


@pytest.mark.parametrize("path", ["/", "/glossary", "/status", "/docs", "/a/x", "/nothing"])
def test_a_page_refers_to_no_other_host_and_has_no_script_inside(client: TestClient, path: str) -> None:
    page = client.get(path, headers=HTML).text
    addresses = re.findall(r'(?:src|href|action)="([^"]*)"', page)
    assert addresses
    assert [address for address in addresses if not re.match(r"[/#](?!/)", address)] == []
    scripts = re.findall(r"<script([^>]*)>", page)
    assert all("src=" in attributes or "application/json" in attributes for attributes in scripts)


@pytest.mark.parametrize("path", ["/", "/glossary", "/status", "/docs"])
def test_every_file_that_a_page_names_is_there(client: TestClient, path: str) -> None:
    for address in re.findall(r'(?:src|href)="(/(?:static|plotly)/[^"]*)"', client.get(path).text):
        answer = client.get(address)
        assert answer.status_code == 200, address
        assert "immutable" in answer.headers["cache-control"]


def test_a_page_of_an_analysis_is_there_while_it_waits_and_when_it_is_done(client: TestClient) -> None:
    created = client.post("/api/v1/analyses", json={"text": "abcabc"}).json()
    assert client.get(f"/a/{created['id']}", headers=HTML).status_code == 200
    done = finished(client, text="xyxy")
    page = client.get(f"/a/{done['id']}", headers=HTML)
    assert page.status_code == 200
    assert str(done["id"]) in page.text
    assert client.get(f"/a/{done['id']}/embed").status_code == 200
    assert client.head(f"/a/{done['id']}").status_code == 200


def test_a_prompt_with_markup_never_becomes_markup(client: TestClient) -> None:
    analysis = client.post("/api/v1/analyses", json={"text": NASTY[:30]}).json()
    page = client.get(f"/a/{analysis['id']}", headers=HTML).text
    assert "<script>alert" not in page
    assert "</script><script>" not in page


def test_an_unknown_analysis_is_a_page_in_words_for_a_browser_and_a_problem_for_a_program(client: TestClient) -> None:
    page = client.get("/a/" + "A" * 22, headers=HTML)
    assert page.status_code == 404
    assert page.headers["content-type"].startswith("text/html")
    assert "There is no such analysis" in page.text
    answer = client.get("/a/" + "A" * 22)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


def test_the_api_answers_a_browser_with_a_problem_too(client: TestClient) -> None:
    answer = client.get("/api/v1/analyses/x", headers=HTML)
    assert answer.headers["content-type"] == "application/problem+json"


def test_the_status_page_shows_the_self_check_of_a_loaded_model(client: TestClient) -> None:
    client.post("/api/v1/tokenizations", json={"text": "a"})
    page = client.get("/status").text
    assert "tiny" in page
    assert "✓ holds" in page


def test_the_glossary_page_has_every_term_with_an_anchor(client: TestClient) -> None:
    page = client.get("/glossary").text
    for anchor in ("pattern", "message", "delivered-message", "residual-stream", "logit-lens", "induction-score"):
        assert f'id="{anchor}"' in page


def test_plotly_comes_from_the_installed_package_compressed_and_for_a_year(client: TestClient) -> None:
    analysis = finished(client)
    page = client.get(f"/a/{analysis['id']}", headers=HTML).text
    address = re.search(r'"(/plotly/[^"]+)"', page)[1]
    for encoding in ("br", "gzip"):
        answer = client.get(address, headers={"Accept-Encoding": encoding})
        assert answer.status_code == 200
        assert answer.headers["content-encoding"] == encoding
        assert "immutable" in answer.headers["cache-control"]
        assert "plotly.js" in answer.text[:200]
    assert client.get(address, headers={"If-None-Match": answer.headers["etag"]}).status_code == 304
    assert client.get("/plotly/0/plotly.min.js").status_code == 404


@pytest.mark.parametrize(
    "path", ["../app/main.py", "%2e%2e/app/main.py", "..%2f..%2fapp/main.py", "/etc/passwd", "css", "css/%00", ""]
)
def test_static_addresses_stay_inside_their_folder(client: TestClient, path: str) -> None:
    assert client.get(f"/static/0/{path}").status_code == 404


def test_a_file_asked_for_under_an_old_version_is_not_kept(client: TestClient) -> None:
    answer = client.get("/static/0123/css/base.css")
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["content-type"] == "text/css; charset=utf-8"
    again = client.get("/static/0123/css/base.css", headers={"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304
