"""Pages in a real browser: headless Chromium, with axe-core for faults that keep people out."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str:
    """The browser; without one tests fail, they are not skipped."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    assert found, "no Chromium is installed: apt-get install chromium"
    return found


@contextmanager
def opened(
    path: Path, *, width: int = 1200, scheme: str = "light"
) -> Iterator[tuple[Page, list[str]]]:
    """A page, and what its console says and its scripts fail at, and what it asks the network."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: said.append(request.url))
        page.goto(path.as_uri())
        said.remove(path.as_uri())
        try:
            yield page, said
        finally:
            browser.close()


def overflow(page: Page) -> int:
    """By how many pixels a page is wider than its window."""
    return int(page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))


def faults(page: Page) -> list[str]:
    """What axe-core finds that is serious or worse."""
    found = Axe().run(page).response["violations"]
    return [
        f"{one['id']}: {node['html']}"
        for one in found
        if one["impact"] in {"serious", "critical"}
        for node in one["nodes"]
    ]
