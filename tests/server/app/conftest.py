"""Chromium, for the tests that see the App."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.server.app.standin import CHROMIUM
from tests.server.wire import PATIENCE_S


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium. Where it is missing, the tests are skipped."""
    if not CHROMIUM.exists():
        pytest.skip(f"there is no {CHROMIUM}; `apt install chromium`")
    with sync_playwright() as playwright:
        expect.set_options(timeout=PATIENCE_S * 1_000)
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()
