"""The page on wide and narrow screens, in both themes, with short and long prompts, and for who cannot see it."""

import re
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import WAIT_MS, Analyse, drawn
from tests.browser.server import Server

Theme = Literal["light", "dark"]
THEMES: tuple[Theme, ...] = ("light", "dark")
PATHS = ("/", "/glossary", "/status", "/docs")


def _serious(page: Page) -> list[str]:
    found = Axe().run(page)
    return [
        f"{one['id']}: {one['help']}: {one['nodes'][0]['html'][:160]}"
        for one in found.response["violations"]
        if one["impact"] in ("serious", "critical")
    ]


def _sideways(page: Page) -> int:
    """Pixels that the page can be scrolled sideways."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


@pytest.mark.parametrize("theme", THEMES)
def test_the_workbench_is_accessible(page: Page, shared: str, theme: Theme) -> None:
    page.emulate_media(color_scheme=theme)
    page.goto(shared)
    drawn(page)
    assert _serious(page) == []


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("path", PATHS)
def test_the_other_pages_are_accessible(page: Page, path: str, theme: Theme) -> None:
    page.emulate_media(color_scheme=theme)
    page.goto(path)
    assert _serious(page) == []


def test_the_two_themes_differ_and_the_choice_is_kept(page: Page) -> None:
    page.emulate_media(color_scheme="light")
    page.goto("/")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.get_by_role("button", name=re.compile("theme")).click()
    dark = page.evaluate(background)
    assert dark != light
    page.reload()
    assert page.evaluate(background) == dark


@pytest.mark.parametrize("width", [1440, 900, 390])
def test_nothing_sticks_out_sideways(page: Page, shared: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    for address in (shared, *PATHS):
        page.goto(address)
        if address == shared:
            drawn(page)
        assert _sideways(page) == 0, address


def test_panels_stand_in_reading_order_on_a_narrow_screen(page: Page, shared: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(shared)
    drawn(page)
    names = [
        "Tokens as run",
        "Next token",
        "Every head",
        "The chosen head",
        "The chosen cell",
        "Residual stream",
        "Ledger",
    ]
    tops = []
    for name in names:
        box = page.get_by_role("region", name=name).bounding_box()
        assert box is not None
        assert box["width"] > 350
        tops.append(box["y"])
    assert tops == sorted(tops)


def test_panels_never_overlap_on_a_wide_screen(page: Page, shared: str) -> None:
    page.goto(shared)
    drawn(page)
    boxes = [region.bounding_box() for region in page.locator("#bench > section").all()]
    for i, a in enumerate(boxes):
        for b in boxes[i + 1 :]:
            assert a is not None
            assert b is not None
            apart = (
                a["x"] + a["width"] <= b["x"] + 1
                or b["x"] + b["width"] <= a["x"] + 1
                or a["y"] + a["height"] <= b["y"] + 1
                or b["y"] + b["height"] <= a["y"] + 1
            )
            assert apart


def test_the_scale_of_the_stream_says_that_it_is_logarithmic(page: Page, shared: str) -> None:
    page.goto(shared)
    drawn(page)
    expect(page.get_by_role("region", name="Residual stream")).to_contain_text("logarithmic scale")


def test_a_prompt_of_the_longest_length_can_be_looked_at(page: Page, analyse: Analyse) -> None:
    page.goto("/")
    words = " ".join(["river", "stone", "light", "seven"][i % 4] for i in range(1990))
    page.set_default_timeout(120_000)
    page.get_by_label("Prompt", exact=True).fill(words)
    page.get_by_role("button", name="Analyse").click()
    page.wait_for_url("**/a/**")
    expect(page.get_by_role("region", name="Ledger").get_by_role("table")).to_be_visible(timeout=180_000)
    drawn(page)
    expect(page.get_by_role("region", name="Tokens as run")).to_contain_text("1,990 tokens")
    page.get_by_role("button", name=re.compile(r"^Token 100 ")).click()
    expect(page).to_have_url(re.compile("query=100(&|$)"))


def test_the_embedded_head_shows_one_map_and_a_way_back(page: Page, shared: str) -> None:
    address = shared.replace("?", "/embed?")
    page.goto(address)
    expect(page.locator(".js-plotly-plot .heatmaplayer image").first).to_be_attached()
    assert _sideways(page) == 0


def test_without_motion_and_with_the_keyboard_alone(browser: Browser, server: Server, shared: str) -> None:
    context = browser.new_context(reduced_motion="reduce", base_url=server.url)
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    page.goto(shared)
    drawn(page)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.get_by_role("button", name=re.compile(r"^Token 13 ")).focus()
    page.keyboard.press("ArrowLeft")
    expect(page).to_have_url(re.compile("query=12(&|$)"))
    context.close()
