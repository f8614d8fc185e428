"""What cannot be run, and what looks like markup: said in words, nothing lost, nothing executed."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Analyse, Watch, drawn

MARKUP = [
    "a<b<c",
    "</script><script>alert(1)</script>",
    'x" onmouseover="alert(1)',
    "<b>bold</b> and <br>",
    "<img src=x onerror=alert(1)>",
]


def test_an_empty_prompt_is_said_and_nothing_is_sent(page: Page) -> None:
    page.goto("/")
    page.get_by_role("button", name="Analyse").click()
    expect(page.get_by_role("alert")).to_contain_text("The prompt is empty")
    expect(page).to_have_url(re.compile(r"/$"))


def test_a_prompt_over_the_limit_is_said_with_the_numbers_and_kept(page: Page) -> None:
    page.goto("/")
    text = "water " * 2100
    page.get_by_label("Prompt", exact=True).fill(text)
    expect(page.get_by_role("alert")).to_contain_text(
        re.compile(r"The prompt has 2,1\d\d tokens; this model takes 2,048")
    )
    page.get_by_role("button", name="Analyse").click()
    expect(page).to_have_url(re.compile(r"/$"))
    expect(page.get_by_label("Prompt", exact=True)).to_have_value(text)


def test_a_server_that_is_gone_is_said_and_the_text_is_kept(page: Page, watch: Watch) -> None:
    watch.expected = ("Failed to load resource", "net::ERR")
    page.goto("/")
    page.route("**/api/**", lambda route: route.abort())
    page.get_by_label("Prompt", exact=True).fill("Something that took long to write")
    page.get_by_role("button", name="Analyse").click()
    expect(page.get_by_role("alert")).not_to_be_empty()
    expect(page.get_by_label("Prompt", exact=True)).to_have_value("Something that took long to write")
    expect(page.get_by_role("button", name="Analyse")).to_be_enabled()


def test_a_busy_server_is_said_and_the_text_is_kept(page: Page, watch: Watch) -> None:
    watch.expected = ("503",)
    page.goto("/")
    problem = (
        '{"type":"/problems/busy","title":"The server is busy","status":503,'
        '"detail":"256 analyses wait already. Try again in a minute.","facts":{},"instance":"/api/v1/analyses"}'
    )
    page.route(
        "**/api/v1/analyses",
        lambda route: route.fulfill(status=503, content_type="application/problem+json", body=problem),
    )
    page.get_by_label("Prompt", exact=True).fill("Kept")
    page.get_by_role("button", name="Analyse").click()
    expect(page.get_by_role("alert")).to_contain_text("256 analyses wait already")
    expect(page.get_by_label("Prompt", exact=True)).to_have_value("Kept")


@pytest.mark.parametrize("text", MARKUP)
def test_markup_in_a_prompt_is_shown_as_typed_everywhere(page: Page, analyse: Analyse, text: str) -> None:
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    analyse(page, text)
    strip = page.evaluate(
        """() => [...document.querySelectorAll(".strip .chip")]
            .map((chip) => chip.querySelector(":scope > :first-child").textContent).join("")"""
    )
    assert strip.replace("·", " ") == text
    expect(page.get_by_role("banner")).to_contain_text(text[:20])
    # The axes of both plots: no element comes from a label, and the signs are there.
    labels = page.evaluate(
        """() => [...document.querySelectorAll(".js-plotly-plot text")].map((t) => t.textContent).join(" ")"""
    )
    for sign in "<>":
        if sign in text:
            assert sign in labels
    assert page.locator(".js-plotly-plot svg b, .js-plotly-plot svg img, #main img").count() == 0
    assert dialogs == []
    page.goto("/")
    expect(page.get_by_role("complementary").get_by_role("link").first).to_contain_text(text)
    assert dialogs == []


@pytest.mark.parametrize(
    ("text", "pieces"),
    [("Hi 👍🏽!", ["Hi"]), ("😀😀", []), ("東京メトロ", []), ("שלום עולם", []), ("e\u0301 tab\tnew\nline", ["⇥", "↵"])],
)
def test_other_scripts_and_split_characters_are_shown_without_debris(
    page: Page, analyse: Analyse, text: str, pieces: list[str]
) -> None:
    analyse(page, text)
    strip = page.get_by_role("group", name="Tokens", exact=True).inner_text()
    assert not set(strip) & set("ĠĊÃ▁\ufffd")
    for piece in pieces:
        assert piece in strip


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("layer=99", "There is no layer 99 here"),
        ("head=-1", "There is no head -1 here"),
        ("query=abc", "is no number"),
        ("map=nonsense", "is no map"),
    ],
)
def test_a_link_that_does_not_fit_shows_the_nearest_view_and_says_so(
    page: Page, shared: str, query: str, says: str
) -> None:
    page.goto(f"{shared.split('?')[0]}?{query}")
    drawn(page)
    expect(page.get_by_text(says)).to_be_visible()
