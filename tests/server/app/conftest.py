"""Chromium, for the tests that see the App."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.server.app.standin import CHROMIUM


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium. Where it is missing, the tests are skipped."""
    if not CHROMIUM.exists():
        pytest.skip(f"there is no {CHROMIUM}; `apt install chromium`")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()
