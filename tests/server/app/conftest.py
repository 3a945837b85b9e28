"""Chromium, for the tests that see the App."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.server.app.standin import CHROMIUM, Screen
from tests.server.wire import PATIENCE_S

_ARGUMENTS = ["--no-sandbox", "--in-process-gpu", "--disable-features=IsolateSandboxedIframes"]
"""Without them, each App has a process of its own, which costs more than the test."""


@pytest.fixture(scope="module")
def screen() -> Iterator[Screen]:
    """A page of Debian's Chromium. Where that is missing, the tests are skipped."""
    if not CHROMIUM.exists():
        pytest.skip(f"there is no {CHROMIUM}; `apt install chromium`")
    with sync_playwright() as playwright:
        expect.set_options(timeout=PATIENCE_S * 1_000)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=_ARGUMENTS)
        yield Screen(browser.new_page())
        browser.close()
