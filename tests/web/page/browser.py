"""Chromium of the system, driven by Playwright, with everything that it complains of.

Nothing is downloaded. Playwright keeps an event loop in its thread, so what needs another one runs in `aside`.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import pytest

from kalito_mcp.domain.access import Permission
from tests.server.wire import PATIENCE_S
from tests.sign_in.browser import CHROMIUM
from tests.web.page.visiting import signed_in
from tests.web.rest.served import Served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

_LACKING: Final = [
    *(["Chromium"] if CHROMIUM is None else []),
    *(name for name in ("playwright", "axe_playwright_python") if find_spec(name) is None),
]
needs_browser = pytest.mark.skipif(bool(_LACKING), reason=f"there is no {' and no '.join(_LACKING)}")
RULES: Final = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa")
_PATIENCE_MS: Final = PATIENCE_S * 1_000
_WATCH: Final = """
document.addEventListener("securitypolicyviolation", event =>
    console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
"""
_WIDEST: Final = """
[...document.querySelectorAll("body *")]
    .filter(one => one.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5)
    .map(one => one.outerHTML.slice(0, 80))
"""
Result = TypeVar("Result")


def aside(work: Callable[[], Result]) -> Result:
    """What this returns, in a thread without an event loop."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


@dataclass
class Tab:
    """One tab. `complaints` are violations of the policy, messages of the console and errors of scripts, so far."""

    page: "Page"
    origin: str
    complaints: list[str] = field(default_factory=list)

    def open(self, path: str) -> None:
        """Load a view to its end, scripts included."""
        self.page.goto(self.origin + path, wait_until="load")

    def one(self, selector: str) -> "Locator":
        """The first element that fits."""
        return self.page.locator(selector).first

    def says(self, expression: str) -> Any:
        """The value of an expression in the page."""
        return self.page.evaluate(expression)

    def clicks(self, selector: str) -> None:
        """Click on the first element that fits, and that is seen."""
        self.page.locator(f"{selector} >> visible=true").first.click()

    def comes_to_say(self, selector: str, text: str) -> None:
        """Wait until the first element that fits has this text in it."""
        self.page.locator(selector, has_text=text).first.wait_for()

    def lost_rules(self) -> list[str]:
        """What axe finds wrong, with where."""
        if not self.says("'axe' in window"):
            self.page.evaluate(_axe())
        found = self.page.evaluate(
            "rules => axe.run(document, {runOnly: {type: 'tag', values: rules}, resultTypes: ['violations']})", [*RULES]
        )
        return [
            f"{one['id']}: {one['help']}: {node['html'][:200]}" for one in found["violations"] for node in one["nodes"]
        ]

    def is_wider(self) -> bool:
        """Whether it has to be scrolled sideways."""
        return bool(self.says("document.documentElement.scrollWidth > document.documentElement.clientWidth"))

    def widest(self) -> list[str]:
        """The elements that reach beyond the right edge, outermost first."""
        return [str(one) for one in self.says(_WIDEST)]

    def photograph(self, name: str) -> None:
        """Keep what is seen, where KALITO_PHOTOGRAPHS names a folder."""
        if folder := os.environ.get("KALITO_PHOTOGRAPHS"):
            self.page.screenshot(path=Path(folder) / f"{name}.png")


def _failure(url: str, why: str | None) -> list[str]:
    """What to complain of. A request that was cut off because the page was left is none."""
    return [] if why == "net::ERR_ABORTED" else [f"failed: {url} {why}"]


def _axe() -> str:
    found = find_spec("axe_playwright_python")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).with_name("axe.min.js").read_text(encoding="utf-8")


@contextmanager
def browsing() -> "Iterator[Browser]":
    """A browser without a window, until the block ends."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - it may be missing

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()


@contextmanager
def tab_of(
    browser: "Browser",
    server: Served,
    token: str | Permission | None = Permission.ADMIN,
    *,
    scheme: Literal["light", "dark"] = "light",
    width: int = 1_200,
    zone: str = "UTC",
    has_scripts: bool = True,
) -> Iterator[Tab]:
    """A tab of a browser of its own, signed in with a token if there is one. Nothing may have complained at its end."""
    context = browser.new_context(
        color_scheme=scheme,
        viewport={"width": width, "height": 900},
        timezone_id=zone,
        locale="en-GB",
        java_script_enabled=has_scripts,
        reduced_motion="reduce",
    )
    context.set_default_timeout(_PATIENCE_MS)
    if token is not None:
        with signed_in(server, token) as person:
            kept = {"name": "kalito-page", "value": person.http.cookies["kalito-page"], "url": server.origin}
        context.add_cookies([{**kept, "sameSite": "Strict", "httpOnly": True}])  # type: ignore[list-item]
    context.add_init_script(_WATCH)
    tab = Tab(context.new_page(), server.origin)
    # Chromium also notes that it left the focus where a person had put it.
    tab.page.on("console", lambda one: tab.complaints.extend([] if one.type == "info" else [f"{one.type}: {one.text}"]))
    tab.page.on("pageerror", lambda one: tab.complaints.append(f"error: {one}"))
    tab.page.on("requestfailed", lambda one: tab.complaints.extend(_failure(one.url, one.failure)))
    tab.page.on("dialog", lambda one: (tab.complaints.append(f"dialog: {one.message}"), one.dismiss()))
    yield tab
    context.close()
    assert tab.complaints == []
