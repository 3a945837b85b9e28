"""The sign-in page in a real browser: it works without a script, and the policy lets the answer through."""

import json
import os
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import anyio.to_thread
import pytest

from tests.server.wire import PATIENCE_S
from tests.sign_in.browser import CHROMIUM, Chromium, chromium
from tests.sign_in.harness import PASSPHRASE, Hand, home, registered
from tests.sign_in.published import publishing

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")]


def signs_in(hand: Hand, folder: Path) -> None:
    """A person opens the link, mistypes, sees it, types it right, and is sent back."""
    with chromium(folder) as tab:
        tab.open(hand.link(scope="read write admin"))
        assert tab.says("document.querySelector('h1').textContent") == "Let Kite use your memory?"
        assert tab.comes_to_say("document.activeElement.id", "passphrase"), "one can begin to type"
        assert tab.says("document.querySelector('input[name=permission]:checked').value") == "write"
        photograph(tab, "page")
        tab.reload()
        assert tab.comes_to_say("document.activeElement.id", "passphrase"), "loading it again changes nothing"
        tab.do("Runtime.evaluate", expression="document.querySelector('input[value=read]').click()")
        tab.type("not the right one")
        tab.press_enter()
        assert tab.says("document.querySelector('[role=alert]').textContent") == (
            "The name or the passphrase is not right."
        )
        assert tab.says("document.querySelector('input[name=permission]:checked').value") == "read", "as chosen"
        assert tab.says("document.querySelectorAll('script').length") == 0
        photograph(tab, "wrong")
        # The page answers 403, which browsers report; nothing else is wrong with it.
        assert [one for one in tab.complaints() if "403" not in one] == []
        tab.type(PASSPHRASE)
        tab.press_enter()
        assert tab.says("location.pathname") == "/done"
        assert [one for one in tab.complaints() if "403" not in one] == []


def photograph(tab: Chromium, name: str) -> None:
    """Keep what is seen, where KALITO_PHOTOGRAPHS names a folder."""
    if folder := os.environ.get("KALITO_PHOTOGRAPHS"):
        for scheme, width in (("light", 800), ("dark", 800), ("light", 390)):
            tab.photograph(Path(folder) / f"{name}-{scheme}-{width}.png", scheme=scheme, width=width)


async def test_a_person_signs_in_with_a_browser_and_the_host_sends_it_on(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        with publishing() as published, publishing() as elsewhere:
            elsewhere.documents |= {"/done": (200, {"content-type": "text/html"}, b"back"), "/favicon.ico": b""}
            # As claude.ai does, which sends the browser on to its program.
            published.documents["/callback"] = (302, {"location": f"{elsewhere.base}/done"}, b"")
            hand = await registered(at, f"{published.base}/callback")
            await anyio.to_thread.run_sync(signs_in, hand, tmp_path)
            [asked] = [one for one in published.asked if one.startswith("/callback")]
            back = {name: value[0] for name, value in parse_qs(urlsplit(asked).query).items()}
            assert (back["state"], back["iss"]) == ("the state & more", at.base)
            assert (await hand.exchange(back["code"])).json()["scope"] == "read"


def clicks_twice(link: str, folder: Path) -> None:
    """A person types the passphrase and double-clicks Allow."""
    with chromium(folder) as tab:
        tab.open(link)
        assert tab.comes_to_say("document.activeElement.id", "passphrase")
        tab.type(PASSPHRASE)
        tab.click_twice("button[value=allow]")
        assert tab.says("location.pathname") == "/callback"


async def test_a_person_who_clicks_twice_is_let_in(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        with publishing() as published:
            published.documents |= {"/callback": (200, {"content-type": "text/html"}, b"back"), "/favicon.ico": b""}
            hand = await registered(at, f"{published.base}/callback")
            await anyio.to_thread.run_sync(clicks_twice, hand.link(), tmp_path)
            asked = [one for one in published.asked if one.startswith("/callback")]
            [code] = {parse_qs(urlsplit(one).query)["code"][0] for one in asked}
            assert (await hand.exchange(code)).status_code == 200


def opens_a_window(host: str, link: str, folder: Path) -> None:
    """A page of a host opens the sign-in in a window of its own, whose end it waits for."""
    with chromium(folder) as tab:
        tab.open(host)
        tab.do("Runtime.evaluate", expression=f"opened = window.open({json.dumps(link)})", userGesture=True)
        deadline = time.monotonic() + PATIENCE_S
        while not (found := [one for one in tab.do("Target.getTargets")["targetInfos"] if "/sign-in" in one["url"]]):
            assert time.monotonic() < deadline
        with tab.other(found[0]["targetId"]):
            assert tab.comes_to_say("document.activeElement.id", "passphrase")
            assert tab.says("window.opener !== null"), "where the program's own page comes next, it can tell the host"
        assert tab.says("opened.closed") is False


async def test_a_host_sees_that_the_window_that_it_opened_is_open(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        with publishing() as published:
            published.documents["/"] = (200, {"content-type": "text/html"}, b"a host")
            hand = await registered(at)
            await anyio.to_thread.run_sync(opens_a_window, f"{published.base}/", hand.link(), tmp_path)


def is_framed(evil: str, folder: Path) -> list[str]:
    """What a browser says to a page that frames ours."""
    with chromium(folder) as tab:
        tab.open(evil)
        return tab.complaints()


async def test_clickjacking_a_browser_does_not_show_the_page_in_a_frame(tmp_path: Path) -> None:
    async with home(tmp_path) as at:
        with publishing() as evil:
            hand = await registered(at)
            html = f'<iframe src="{hand.link().replace("&", "&amp;")}"></iframe>'.encode()
            evil.documents["/"] = (200, {"content-type": "text/html"}, html)
            said = await anyio.to_thread.run_sync(is_framed, f"{evil.base}/", tmp_path)
            assert any("frame-ancestors" in one or "X-Frame-Options" in one for one in said), said
