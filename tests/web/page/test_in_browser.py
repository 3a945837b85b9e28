"""The page in a real browser: each view, each act and its undo, by mouse, by keys and without scripts."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from kalito_mcp.web.page.table import PAGE
from kalito_mcp.web.page.view import Act
from tests.web.page import example
from tests.web.page.browser import Tab, aside, browsing, needs_browser, tab_of
from tests.web.page.clicks import CLICKS, Click, without_moved
from tests.web.page.visiting import made_link
from tests.web.rest.served import Served, record, said

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = needs_browser
LONG = "Llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogoch" * 8
BUILD = (f"The build failed with {LONG} and \u202eevil\u202c <b>signs</b>.", "I will look at the build.")


@pytest.fixture(scope="module")
def seeded(server: Served) -> Mapping[str, str]:
    """What the memory has, by the names of parameters and fields."""
    found = example.fill(server.database)
    with server.client() as client:
        record(client, "build", *BUILD)
    return found


@pytest.fixture(scope="module")
def chromium(seeded: Mapping[str, str]) -> "Iterator[Browser]":
    with browsing() as browser:
        yield browser


MORE = {
    "/ask": ("?q=launch", "?q=launch&q2=biscuit&also=website", "?q=zzzz", f"?q={LONG}", "?q=launch&session=launch"),
    "/about": ("?about=launch", "?identifier=zzzz"),
    "/r/{record_id}": ("?version=1", "?edit=1", "?old=1&new=2#history", "?as_of=2001-01-01"),
    "/known": ("?show=found", "?show=disagree", "?gone=1"),
    "/timeline": ("?open=1", "?host=codex", "?day=2001-01-01"),
    "/s/{session_id}": ("?at=2",),
}
"""Other addresses of a view, each with something else to see."""


def addresses(seeded: Mapping[str, str]) -> Iterator[str]:
    """The address of each view, and what else there is to see in it."""
    for line in PAGE:
        if not isinstance(line, Act) and line.path != "/house/export":
            for more in ("", *MORE.get(line.path, ())):
                yield line.path.format(**seeded) + more
    yield f"/r/{seeded['forgotten']}"
    yield f"/r/{seeded['message']}"
    yield f"/r/{seeded['copy']}"
    yield "/s/build"


LOOKS = [
    ("light", 1_200),
    pytest.param("dark", 360, marks=pytest.mark.campaign),
    pytest.param("dark", 1_200, marks=pytest.mark.campaign),
    pytest.param("light", 360, marks=pytest.mark.campaign),
]


@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_each_view_is_readable(
    chromium: "Browser", server: Served, seeded: Mapping[str, str], scheme: Any, width: int
) -> None:
    with tab_of(chromium, server, scheme=scheme, width=width) as tab:
        for number, address in enumerate(addresses(seeded)):
            tab.open(address)
            assert not tab.is_wider(), (address, tab.widest())
            tab.photograph(f"{number:02}-{scheme}-{width}")
            tab.says("document.querySelectorAll('details').forEach(one => { one.open = true; })")
            assert not tab.is_wider(), (address, tab.widest())
            assert tab.lost_rules() == [], address
        tab.page.keyboard.press("?")
        assert tab.says("document.querySelector('dialog').open")
        assert tab.lost_rules() == [], "the dialog"
        assert tab.complaints == []


@pytest.mark.parametrize(("scheme", "width"), LOOKS[:2])
def test_the_entrance_is_readable_and_leads_in(chromium: "Browser", server: Served, scheme: Any, width: int) -> None:
    with tab_of(chromium, server, None, scheme=scheme, width=width) as tab:
        tab.open("/about?about=tea")
        assert tab.page.url == f"{server.origin}/enter?back=%2Fabout%3Fabout%3Dtea"
        assert not tab.is_wider()
        assert tab.lost_rules() == []
        tab.photograph(f"enter-{scheme}-{width}")
        tab.one("input[name=token]").fill(next(iter(server.tokens.values())))
        tab.page.keyboard.press("Enter")
        tab.page.wait_for_url(f"{server.origin}/about?about=tea")
        tab.one("footer form[action='/leave'] button").click()
        tab.page.wait_for_url(f"{server.origin}/enter")
        link = aside(lambda: made_link(server.database))
        tab.open(link)
        tab.page.wait_for_url(f"{server.origin}/ask")
        assert tab.complaints == []


def test_each_act_and_its_undo_by_clicking(chromium: "Browser", server: Served, seeded: Mapping[str, str]) -> None:
    with tab_of(chromium, server) as tab:
        for act, click in CLICKS.items():
            tab.open(click.address.format(**seeded))
            tab.says("window.same = true")
            before = shown(tab)
            press(tab, act, click)
            assert tab.page.locator("[role=status] > .undo").count() == 1, act
            assert tab.one(".undo form").get_attribute("action") == f"/act/{click.undo}", act
            assert (shown(tab) != before) is click.is_seen, act
            assert tab.says("document.activeElement !== document.body"), f"{act}: the focus is lost"
            tab.photograph(f"act-{act}")
            done = tab.one(".undo > span").inner_text()
            tab.clicks(".undo button:has-text('Undo')")
            tab.page.locator(".undo > span", has_not_text=done).first.wait_for()
            assert shown(tab) == before, act
            assert tab.says("document.activeElement !== document.body"), f"undo of {act}: the focus is lost"
            assert tab.says("window.same"), f"{act}: the view was loaded as a whole"
            tab.clicks(".undo button:has-text('Close')")
            tab.one(".undo").wait_for(state="detached")
        assert tab.complaints == []


def shown(tab: Tab) -> str:
    """What the view shows, without what every change moves on."""
    return without_moved(str(tab.says("document.getElementById('main').textContent")))


def press(tab: Tab, act: str, click: Click) -> None:
    """Fill in the first form of an act, send it, and wait for what the bar says."""
    form = tab.page.locator(f"form[action='/act/{act}'], form:has(button[hx-post='/act/{act}'])").first
    form.evaluate(
        "one => { for (let at = one; at; at = at.parentElement) if (at.tagName === 'DETAILS') at.open = true; }"
    )
    for name, text in click.typed.items():
        control = form.locator(f"[name={name}]").first
        if control.evaluate("one => one.tagName") == "SELECT":
            control.select_option(text)
        else:
            control.fill(text)
    if click.ticks:
        form.locator("input[name=record_ids]").first.check()
    form.locator(click.button).first.click()
    tab.one(".undo").wait_for()


def test_the_whole_of_it_by_keys_alone(chromium: "Browser", server: Served, client: httpx2.Client) -> None:
    record(client, "kayaks", "The kayak is green.", "Green, noted.", "The kayak lies at the pier.")
    with tab_of(chromium, server) as tab:
        keys = tab.page.keyboard
        tab.open("/about")
        keys.press("Escape")
        keys.press("/")
        keys.press("Escape")
        tab.open("/ask")
        keys.press("Tab")  # out of the field that has the focus at first
        keys.press("/")
        keys.type("kayak")
        keys.press("Enter")
        tab.page.wait_for_url(f"{server.origin}/ask?q=kayak*")
        tab.comes_to_say("article", "The kayak is green.")
        keys.press("Escape")
        keys.press("j")
        assert "kayak" in _focused(tab)
        first = _focused(tab)
        keys.press("j")
        assert _focused(tab) != first
        keys.press("k")
        assert _focused(tab) == first
        keys.press("e")
        assert tab.says("document.activeElement.tagName") == "TEXTAREA"
        keys.press("Control+a")
        keys.type("The kayak is bright red / fast? j")
        keys.press("Tab")
        keys.press("Enter")
        tab.comes_to_say(".undo", "Corrected")
        tab.comes_to_say("article", "The kayak is bright red / fast? j")
        keys.press("u")
        tab.comes_to_say(".undo", "Back to version 1")
        tab.page.locator("article", has_text="bright red").first.wait_for(state="detached")
        keys.press("j")
        keys.press("f")
        tab.comes_to_say(".undo", "1 record forgotten")
        keys.press("u")
        tab.comes_to_say(".undo", "1 record brought back")
        keys.press("j")
        keys.press("Enter")
        tab.page.wait_for_url(f"{server.origin}/r/*")
        tab.open("/about?about=kayak")
        box = tab.one("input[type=checkbox]")
        keys.press("Escape")
        keys.press("j")
        keys.press("x")
        assert not box.is_checked()
        keys.press("x")
        assert box.is_checked()
        keys.press("?")
        assert tab.says("document.querySelector('dialog').open")
        keys.press("Escape")
        assert not tab.says("document.querySelector('dialog').open")
        assert tab.complaints == []


def _focused(tab: Tab) -> str:
    """The text of the passage that has the focus."""
    return str(tab.says("document.activeElement.closest('[data-item]')?.querySelector('.text').textContent"))


def test_it_can_be_read_and_changed_without_scripts(
    chromium: "Browser", server: Served, client: httpx2.Client, seeded: Mapping[str, str]
) -> None:
    [first] = record(client, "canoes", "The canoe is blue.")
    with tab_of(chromium, server, has_scripts=False, width=360) as tab:
        for line in PAGE:
            if isinstance(line, Act) or line.path == "/house/export":
                continue
            tab.open(address := line.path.format(**seeded))
            assert tab.page.locator("main").inner_text().strip(), address
        tab.open("/ask")
        tab.one("input[name=q]").fill("canoe")
        tab.one("form[role=search] button[type=submit]").click()
        assert tab.page.url.startswith(f"{server.origin}/ask?q=canoe")
        tab.page.get_by_role("button", name=f"Forget: {first}").click()
        assert tab.one(".undo > span").inner_text() == "1 record forgotten."
        tab.clicks(".undo button:has-text('Undo')")
        assert tab.one(".undo > span").inner_text() == "1 record brought back."
        tab.one("summary:has-text('Wrong')").click()
        tab.one("textarea[name=text] >> visible=true").fill("The canoe is black.")
        tab.clicks("button:has-text('Correct it')")
        assert tab.one("article .text").inner_text() == "The canoe is black."
        tab.clicks(".undo button:has-text('Undo')")
        assert tab.one("article .text").inner_text() == "The canoe is blue."
        tab.clicks(".undo button:has-text('Close')")
        assert tab.page.locator(".undo").count() == 0
        tab.one("select[name=project]").select_option("personal")
        tab.clicks("button:has-text('Show')")
        assert "project=personal" in tab.page.url


def test_moments_are_in_the_zone_of_the_reader(chromium: "Browser", server: Served, client: httpx2.Client) -> None:
    said_at = "2026-03-01T23:30:00Z"
    turn = {"messages": [{"role": "user", "text": "The ferry leaves late.", "created_at": said_at}]}
    said(client.post("/api/sessions/ferries/messages", json=turn))
    for zone, shown in (("Pacific/Auckland", "2 Mar 2026, 12:30"), ("America/New_York", "1 Mar 2026, 18:30")):
        with tab_of(chromium, server, zone=zone) as tab:
            tab.open("/ask?q=ferry")
            moment = tab.one("article time")
            assert moment.inner_text() == shown
            assert (moment.get_attribute("datetime") or "").startswith("2026-03-01T23:30:00")
            press(tab, "correct", Click("", "go_back", typed={"text": f"The ferry leaves late, as in {zone}."}))
            tab.comes_to_say("article", zone)
            assert tab.one("article time").inner_text() == shown, "after a change, too"
    with tab_of(chromium, server, has_scripts=False) as tab:
        tab.open("/ask?q=ferry")
        assert tab.one("article time").inner_text() == "2026-03-01 23:30 UTC"


def test_two_browsers_see_one_memory_and_each_its_own_undo(
    chromium: "Browser", server: Served, client: httpx2.Client
) -> None:
    record(client, "sledges", "The sledge is new.")
    address = "/ask?q=sledge"
    with tab_of(chromium, server) as one, tab_of(chromium, server) as other:
        for tab in (one, other):
            tab.open(address)
        press(one, "correct", Click(address, "go_back", typed={"text": "The sledge is old."}))
        one.comes_to_say("article", "The sledge is old.")
        # The other browser still shows what was there.
        form = other.page.locator("form[action='/act/correct']").first
        form.evaluate("one => { one.closest('details').open = true; }")
        form.locator("textarea").fill("The sledge is lost.")
        form.locator("button").click()
        other.comes_to_say("[role=alert]", "it was changed since you opened it")
        assert [name for name in other.complaints if "409" not in name] == []
        other.complaints.clear()
        other.open(address)
        assert other.one("article .text").inner_text() == "The sledge is old."
        assert other.page.locator(".undo").count() == 0
        one.clicks("footer form[action='/leave'] button")
        one.page.wait_for_url(f"{server.origin}/enter")
        other.open(address)
        assert other.one("article .text").inner_text() == "The sledge is old."


def test_a_page_elsewhere_can_link_here_but_neither_frame_it_nor_act(
    chromium: "Browser", server: Served, seeded: Mapping[str, str]
) -> None:
    link = f"{server.origin}/r/{seeded['message']}"
    evil = f"""<a href="{link}">a link</a><iframe src="{link}"></iframe>
        <form method="post" action="{server.origin}/act/forget"><input name="record_ids" value="{seeded["message"]}">
        <button>Win</button></form>"""
    with tab_of(chromium, server) as tab:
        tab.page.route("http://elsewhere.test/**", lambda route: route.fulfill(body=evil, content_type="text/html"))
        tab.page.goto("http://elsewhere.test/", wait_until="load")
        assert any(f"failed: {link}" in one or "frame-ancestors" in one for one in tab.complaints), tab.complaints
        tab.one("button").click()
        tab.page.wait_for_url(f"{server.origin}/act/forget")
        tab.complaints.clear()
        tab.page.goto("http://elsewhere.test/", wait_until="load")
        tab.one("a").click()
        tab.page.wait_for_url(link)
        tab.comes_to_say("main", "Biscuit is my dog")
        assert tab.page.locator(".old").count() == 0
        tab.complaints.clear()
