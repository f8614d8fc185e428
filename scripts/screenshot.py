"""Makes docs/screenshot.png from the program itself: a server on the data folder, the indirect-object prompt, one head.

    python scripts/screenshot.py [DATA_FOLDER]
"""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.browser.conftest import INDIRECT_OBJECT, drawn, find_chromium  # noqa: E402
from tests.browser.server import Server  # noqa: E402

WIDTH, HEIGHT = 1440, 1180


def main(data: Path) -> None:
    """Writes the picture."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        server = Server(Path(folder), (f"smollm2-135m=dir:{data.absolute() / 'models' / 'smollm2-135m'}",))
        server.start()
        try:
            page = playwright.chromium.launch(executable_path=find_chromium()).new_page(
                viewport={"width": WIDTH, "height": HEIGHT}, base_url=server.url
            )
            page.goto("/")
            page.get_by_label("Prompt", exact=True).fill(INDIRECT_OBJECT)
            page.get_by_role("button", name="Analyse").click()
            page.wait_for_url("**/a/**")
            drawn(page)
            page.mouse.move(0, 0)
            page.wait_for_timeout(1500)
            page.screenshot(path=ROOT / "docs" / "screenshot.png")
        finally:
            server.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "data"))
