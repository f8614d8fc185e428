"""Chromium on a running server with the default model. A page with an error in it fails its test."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.server import Server

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# A shared machine may be slow; nothing here measures time.
WAIT_MS = 30_000
INDIRECT_OBJECT = "When Mary and John went to the store, John gave a drink to"

expect.set_options(timeout=WAIT_MS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)
    # Playwright keeps an event loop and a greenlet in the main thread until the session ends, and no test after it
    # may call asyncio.run: the tests of the browser come last.
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)


def find_chromium() -> str | None:
    """The path of an installed Chromium, under any of its names."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    path = find_chromium()
    if path is None:
        pytest.fail("There is no Chromium here. `make test` installs it where it may; else: sudo apt install chromium")
    return {**browser_type_launch_args, "executable_path": path}


@pytest.fixture(scope="session")
def server(smollm2_folder: Path, textgenrnn_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests, with both default models."""
    models = (f"smollm2-135m=dir:{smollm2_folder}", f"textgenrnn=dir:{textgenrnn_folder}")
    running = Server(tmp_path_factory.mktemp("browser-data"), models)
    running.start()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def base_url(server: Server) -> str:
    return server.url


class Watch:
    """Everything on a page that should not be there."""

    def __init__(self, context: BrowserContext, server: Server) -> None:
        self.found: list[str] = []
        # What a test provokes on purpose.
        self.expected: tuple[str, ...] = ()
        context.on("console", lambda message: self._add(message.type == "error", f"console: {message.text}"))
        context.on("weberror", lambda error: self._add(True, f"uncaught: {error.error}"))
        context.on("request", lambda request: self._add(_is_foreign(request.url, server), f"elsewhere: {request.url}"))

    def _add(self, wrong: bool, text: str) -> None:
        if wrong:
            self.found.append(text)

    def check(self) -> None:
        unexpected = [text for text in self.found if not any(part in text for part in self.expected)]
        assert unexpected == []


def _is_foreign(url: str, server: Server) -> bool:
    return not url.startswith((server.url, "data:", "blob:"))


@pytest.fixture
def watch(context: BrowserContext, server: Server) -> Iterator[Watch]:
    watching = Watch(context, server)
    yield watching
    watching.check()


@pytest.fixture
def page(context: BrowserContext, watch: Watch) -> Page:
    opened = context.new_page()
    opened.set_default_timeout(WAIT_MS)
    opened.set_viewport_size({"width": 1440, "height": 900})
    return opened


Analyse = Callable[[Page, str], str]


@pytest.fixture(scope="session")
def analyse() -> Analyse:
    """Types a prompt, submits it, and waits for the workbench; returns its address."""

    def analyse(page: Page, text: str) -> str:
        page.goto("/")
        page.get_by_label("Prompt", exact=True).fill(text)
        page.get_by_role("button", name="Analyse").click()
        page.wait_for_url("**/a/**")
        drawn(page)
        return page.url

    return analyse


def drawn(page: Page) -> None:
    """Waits until every panel of the workbench shows its numbers."""
    expect(page.get_by_role("region", name="Ledger").get_by_role("table")).to_be_visible()
    for name in ("The chosen head", "Residual stream"):
        expect(
            page.get_by_role("region", name=name).locator(".js-plotly-plot .heatmaplayer image").first
        ).to_be_attached()


@pytest.fixture(scope="session")
def shared(browser: Browser, server: Server, analyse: Analyse) -> str:
    """The address of one analysis of the indirect-object prompt, for tests that only look."""
    context = browser.new_context(base_url=server.url)
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    address = analyse(page, INDIRECT_OBJECT)
    context.close()
    return address
