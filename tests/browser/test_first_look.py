"""From the prompt box to a link that shows the same view elsewhere, as a person does it."""

import re
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import INDIRECT_OBJECT, WAIT_MS, Analyse, Watch, drawn
from tests.browser.server import Server


def _view(page: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlparse(page.url).query).items()}


def _wait_for(page: Page, **fields: object) -> None:
    """Waits until the address holds these fields of the view."""
    for name, value in fields.items():
        expect(page).to_have_url(re.compile(rf"[?&]{name}={value}(&|$)"))


def test_tokens_are_counted_while_the_prompt_is_typed(page: Page) -> None:
    page.goto("/")
    page.get_by_label("Prompt", exact=True).press_sequentially("The cat sat")
    expect(page.get_by_text("3 of 2,048 tokens")).to_be_visible()
    expect(page.get_by_role("group", name="The prompt as tokens")).to_contain_text("·cat")


def test_there_are_five_examples_and_one_click_takes_one(page: Page) -> None:
    page.goto("/")
    examples = page.get_by_role("region", name="Worth a look").get_by_role("button")
    expect(examples).to_have_count(5)
    examples.nth(1).click()
    expect(page.get_by_label("Prompt", exact=True)).to_have_value(INDIRECT_OBJECT)


def test_a_prompt_leads_to_every_panel(page: Page, analyse: Analyse) -> None:
    analyse(page, INDIRECT_OBJECT)
    expect(page.get_by_role("group", name="Tokens", exact=True).get_by_role("button")).to_have_count(14)
    prediction = page.get_by_role("region", name="Next token")
    expect(prediction.get_by_role("row").nth(1)).to_contain_text("·Mary")
    expect(prediction.get_by_role("row").nth(1)).to_contain_text("92.3")
    expect(prediction.get_by_role("row")).to_have_count(6)
    ledger = page.get_by_role("region", name="Ledger")
    expect(ledger.get_by_text("✓ holds")).to_have_count(7)
    expect(page.get_by_role("application", name=re.compile("Every head, 30 layers of 9"))).to_be_visible()


def test_the_heads_are_really_drawn(page: Page, shared: str) -> None:
    page.goto(shared)
    drawn(page)
    colours = page.evaluate(
        """() => {
          const canvas = document.querySelector("canvas.heads-canvas");
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          const seen = new Set();
          for (let i = 0; i < data.length; i += 4) seen.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
          return seen.size;
        }"""
    )
    assert colours > 50


def test_choosing_a_token_moves_every_view(page: Page, shared: str) -> None:
    page.goto(shared)
    drawn(page)
    page.get_by_role("button", name=re.compile(r"^Token 5 ")).click()
    _wait_for(page, query=5)
    expect(page.get_by_role("region", name="Next token")).to_contain_text("5")
    expect(page.get_by_role("region", name="Residual stream")).to_contain_text("token 5")
    page.get_by_role("button", name=re.compile(r"^Token 1 ")).click(modifiers=["Shift"])
    _wait_for(page, query=5, key=1)


def test_choosing_a_head_on_the_canvas_moves_every_view(page: Page, shared: str) -> None:
    page.goto(shared)
    drawn(page)
    heads = page.get_by_role("application", name=re.compile("Every head"))
    heads.focus()
    before = _view(page)
    heads.press("ArrowDown")
    layer = int(before["layer"]) - 1
    _wait_for(page, layer=layer, head=before["head"])
    for name in ("Every head", "The chosen head"):
        expect(page.get_by_role("region", name=name)).to_contain_text(f"layer {layer} head {before['head']}")


def test_a_click_into_the_map_chooses_reader_and_source(page: Page, shared: str) -> None:
    page.goto(shared)
    drawn(page)
    plot = page.get_by_role("region", name="The chosen head").locator(".nsewdrag").first
    box = plot.bounding_box()
    assert box is not None
    # 14 rows and columns: the centre of row 9, column 3.
    page.mouse.click(box["x"] + box["width"] * 3.5 / 14, box["y"] + box["height"] * 9.5 / 14)
    _wait_for(page, query=9, key=3)


def test_the_layer_can_be_chosen_in_the_stream(page: Page, shared: str) -> None:
    page.goto(shared)
    drawn(page)
    plot = page.get_by_role("region", name="Residual stream").locator(".nsewdrag").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    # 31 rows from the embedding at the bottom; the row of layer 4 is the sixth.
    page.mouse.click(box["x"] + box["width"] * 2.5 / 14, box["y"] + box["height"] * (1 - 5.5 / 31))
    _wait_for(page, layer=4, query=2)


def test_back_returns_to_the_view_before(page: Page, shared: str) -> None:
    page.goto(shared)
    drawn(page)
    page.get_by_role("button", name=re.compile(r"^Token 5 ")).click()
    _wait_for(page, query=5)
    page.go_back()
    _wait_for(page, query=13)


def test_the_link_shows_the_same_view_in_another_browser_profile(page: Page, shared: str, browser: Browser) -> None:
    page.goto(shared)
    drawn(page)
    page.get_by_role("button", name=re.compile(r"^Token 7 ")).click()
    page.get_by_role("region", name="The chosen head").get_by_role("button", name=re.compile("Delivered")).click()
    _wait_for(page, query=7, map="delivered")
    other = browser.new_context()
    second = other.new_page()
    second.set_default_timeout(WAIT_MS)
    second.goto(page.url)
    drawn(second)
    assert _view(second) == _view(page)
    expect(second.get_by_role("button", name=re.compile(r"^Token 7 .*query"))).to_be_visible()
    other.close()


def test_the_link_shows_the_same_analysis_after_a_restart(
    smollm2_folder: Path, tmp_path: Path, browser: Browser, analyse: Analyse
) -> None:
    server = Server(tmp_path, (f"smollm2-135m=dir:{smollm2_folder}",))
    server.start()
    context = browser.new_context(base_url=server.url)
    try:
        page = context.new_page()
        page.set_default_timeout(WAIT_MS)
        analyse(page, INDIRECT_OBJECT)
        page.get_by_role("button", name=re.compile(r"^Token 9 ")).click()
        _wait_for(page, query=9)
        address = page.url
        server.stop()
        server.start()
        page.goto("about:blank")
        page.goto(address)
        drawn(page)
        assert page.url == address
        expect(page.get_by_role("region", name="Next token").get_by_role("row")).to_have_count(6)
    finally:
        context.close()
        server.stop()


def test_it_is_listed_among_the_recent_ones(page: Page, analyse: Analyse) -> None:
    analyse(page, "A sentence to find again")
    page.goto("/")
    expect(
        page.get_by_role("complementary").get_by_role("link", name=re.compile("A sentence to find again"))
    ).to_be_visible()


@pytest.mark.parametrize("path", ["/glossary", "/status", "/docs"])
def test_the_other_pages_open(page: Page, path: str) -> None:
    answer = page.goto(path)
    assert answer is not None
    assert answer.status == 200
    expect(page.get_by_role("heading", level=1)).to_be_visible()


def test_the_status_page_shows_the_self_check_of_the_default_model(page: Page, shared: str) -> None:
    page.goto("/status")
    expect(page.get_by_role("region", name="Self-check of smollm2-135m").get_by_text("✓ holds")).to_have_count(7)


def test_an_address_that_names_nothing_says_so(page: Page, watch: Watch) -> None:
    watch.expected = ("404",)
    answer = page.goto("/a/AAAAAAAAAAAAAAAAAAAAAA")
    assert answer is not None
    assert answer.status == 404
    expect(page.get_by_role("main")).to_contain_text("no such analysis")
