"""The App's page in a host that plays a part: what it shows, and what it sends."""

from typing import Any, Final

import pytest
from playwright.sync_api import FrameLocator, expect

from kalito_mcp.server.app.offering import PAGE
from tests.server.app.standin import INITIALIZED, Host, Scheme, Screen, host

LYON: Final[dict[str, Any]] = {
    "record_id": "msg_1",
    "type": "message",
    "role": "user",
    "text": "I live in Lyon.",
    "created_at": "2026-03-02T10:00:00Z",
    "why": 'says "live" (+0.38)',
}
NANTES: Final[dict[str, Any]] = LYON | {"record_id": "msg_9", "text": "I live in Nantes.", "created_at": "2026-05-01"}
TEA: Final[dict[str, Any]] = {"record_id": "pin_2", "type": "pin", "text": "Tea at five.", "created_at": "2026-03-03"}
HOSTILE: Final = (
    "<img src=x onerror=alert(1)><script>parent.postMessage('out','*')</script>",
    "<a href='javascript:alert(1)'>javascript:alert(1)</a>",
    "\x1b[31mred\x1b[0m\x07",
    "\u202egnp.exe\u2066hidden\u2069\u200b",
    "</ul></main><style>*{display:none}</style>{{7*7}}${7*7}",
    "x" * 524_288,
)


def result(*records: dict[str, Any]) -> dict[str, Any]:
    """A result with these records for the App."""
    return {"content": [{"type": "text", "text": "Found."}], "_meta": {"kalito/records": list(records)}}


def rows(opened: Host) -> Any:
    return opened.app.locator("li")


def buttons(app: FrameLocator) -> list[str]:
    return app.locator("button").all_inner_texts()


def test_the_page_is_small_and_loads_nothing() -> None:
    assert len(PAGE.encode()) <= 20_480
    assert all(word not in PAGE for word in ("innerHTML", "http://", "https://", "src=", "url(", "eval(", "import("))


def test_the_records_of_a_result_are_shown_with_why(screen: Screen) -> None:
    with host(screen) as opened:
        opened.notify("tool-input-partial", {"arguments": {"query": "whe"}})
        opened.notify("tool-input", {"arguments": {"query": "where do I live"}})
        opened.notify("tool-result", result(LYON, TEA))
        expect(opened.app.locator("h1")).to_have_text("What I used for “where do I live”")
        expect(rows(opened)).to_have_count(2)
        expect(rows(opened).first).to_contain_text("you said it, 2 Mar 2026")
        expect(rows(opened).first).to_contain_text('says "live" (+0.38)')
        assert buttons(opened.app) == ["Wrong", "Forget", "Pin", "Wrong", "Forget", "Forget everything about…"]


def test_a_refused_handshake_is_shown_and_ends_the_page(screen: Screen) -> None:
    with host(screen, code=-32603, message="no apps today") as opened:
        expect(opened.app.locator("#body")).to_contain_text("The host did not start this page: no apps today")
        assert buttons(opened.app) == []
        assert [one.get("method") for one in opened.messages] == ["ui/initialize"]


def test_without_a_result_the_page_waits(screen: Screen) -> None:
    with host(screen) as opened:
        opened.notify("tool-input", {})
        expect(opened.app.locator("#body")).to_have_text("Waiting for the answer…")
        expect(opened.app.locator("h1")).to_have_text("What I used")


def test_nothing_found_is_said(screen: Screen) -> None:
    with host(screen) as opened:
        opened.notify("tool-input", {"arguments": {}})
        opened.notify("tool-result", result())
        expect(opened.app.locator("#body")).to_contain_text("Nothing that is remembered was used.")


def test_the_hits_of_a_host_that_drops_meta_are_shown_without_why(screen: Screen) -> None:
    with host(screen) as opened:
        hit = {name: value for name, value in LYON.items() if name != "why"}
        opened.notify("tool-result", {"content": [], "structuredContent": {"hits": [hit], "past_answers": []}})
        expect(rows(opened)).to_have_count(1)
        expect(rows(opened)).to_contain_text("I live in Lyon.")


@pytest.mark.parametrize("is_error", [False, True])
def test_a_result_of_text_alone_is_shown_as_it_is(screen: Screen, *, is_error: bool) -> None:
    with host(screen) as opened:
        opened.notify(
            "tool-result", {"content": [{"type": "text", "text": "<b>home_away</b>: later"}], "isError": is_error}
        )
        expect(opened.app.locator("#body")).to_contain_text("<b>home_away</b>: later")


def test_a_cancelled_call_is_said(screen: Screen) -> None:
    with host(screen) as opened:
        opened.notify("tool-cancelled", {"reason": "user action"})
        expect(opened.app.locator("#body")).to_contain_text("The call was cancelled.")


def test_a_host_that_passes_no_calls_on_is_offered_no_button(screen: Screen) -> None:
    with host(screen, hostCapabilities={}) as opened:
        opened.notify("tool-result", result(LYON, NANTES | {"superseded_by": "msg_1"}))
        expect(rows(opened)).to_have_count(1)
        assert buttons(opened.app) == []


def test_what_others_shared_is_not_offered_to_be_changed_by_who_may_not(screen: Screen) -> None:
    shared = {"space": "backend", "fixed": True}
    with host(screen) as opened:
        ended = LYON | shared | {"superseded_by": "msg_9", "valid_until": "2026-05-01"}
        opened.notify("tool-result", result(TEA | shared, LYON | shared | {"record_id": "msg_3"}, ended, NANTES))
        expect(rows(opened)).to_have_count(3)
        expect(rows(opened).first).to_contain_text("pin, 3 Mar 2026, shared in “backend”")
        assert rows(opened).first.locator("button").count() == 0
        assert rows(opened).nth(1).locator("button").all_inner_texts() == ["Pin"]
        assert rows(opened).nth(2).locator("button").all_inner_texts() == ["Keep only this"]
        opened.app.get_by_role("button", name="Keep only this").focus()


def test_the_theme_of_the_host_is_taken_and_changes(screen: Screen) -> None:
    colours = {"--color-text-primary": "rgb(1, 2, 3)", "--font-sans": "serif", "bad name": "x"}
    context = INITIALIZED["hostContext"] | {"styles": {"variables": colours}}  # type: ignore[operator]
    with host(screen, hostContext=context) as opened:
        opened.notify("tool-result", result(LYON))
        expect(rows(opened)).to_have_count(1)
        page = opened.app.locator("html")
        expect(page).to_have_css("color-scheme", "light")
        expect(page).to_have_css("color", "rgb(1, 2, 3)")
        expect(page).to_have_css("background-color", "rgba(0, 0, 0, 0)")
        expect(page).to_have_css("font-family", "serif")
        opened.notify("host-context-changed", {"theme": "dark"})
        expect(page).to_have_css("color-scheme", "dark")
        expect(page).to_have_css("color", "rgb(1, 2, 3)")


def test_a_teardown_is_answered_and_ends_the_page(screen: Screen) -> None:
    with host(screen) as opened:
        opened.notify("tool-result", result(LYON))
        expect(rows(opened)).to_have_count(1)
        assert opened.ask("ui/resource-teardown", {"reason": "closed"})["result"] == {}
        expect(opened.app.get_by_role("button", name="Forget", exact=True)).to_be_disabled()
        sent = len(opened.messages)
        opened.notify("tool-result", result(LYON, TEA))
        expect(rows(opened)).to_have_count(1)
        assert len(opened.messages) == sent


def test_a_ping_is_answered_and_an_unknown_request_refused(screen: Screen) -> None:
    with host(screen) as opened:
        opened.notify("tool-result", result(LYON))
        expect(rows(opened)).to_have_count(1)
        assert opened.ask("ping")["result"] == {}
    with host(screen) as opened:
        opened.notify("tool-result", result(LYON))
        expect(rows(opened)).to_have_count(1)
        assert opened.ask("sampling/createMessage")["error"]["code"] == -32601


def test_only_the_host_is_heard(screen: Screen) -> None:
    with host(screen) as opened:
        opened.notify("tool-result", result(LYON))
        expect(rows(opened)).to_have_count(1)
        forged = {"jsonrpc": "2.0", "method": "ui/notifications/tool-result", "params": result(TEA)}
        opened.frame.evaluate("message => postMessage(message, '*')", forged)
        opened.notify("tool-input", {"arguments": {"query": "later"}})
        expect(opened.app.locator("h1")).to_contain_text("later")
        expect(rows(opened)).to_contain_text("Lyon")


@pytest.mark.parametrize("text", HOSTILE, ids=["markup", "link", "ansi", "right-to-left", "closing", "500 KiB"])
def test_a_hostile_text_stays_text(screen: Screen, text: str) -> None:
    with host(screen) as opened:
        opened.notify("tool-input", {"arguments": {"query": text}})
        hostile = {"text": text, "why": text, "session_title": text, "role": text, "type": text, "created_at": text}
        opened.notify("tool-result", result(LYON | hostile | {"record_id": text[:90]}, TEA))
        expect(rows(opened).first).to_be_visible()
        shown = opened.app.locator("li .words").first.inner_text()
        assert len(shown) <= 2_000
        assert not set(shown) & set("\x1b\x07\u202e\u2066\u2069\u200b")
        assert opened.app.locator("img, a, main style, main script, iframe").count() == 0
        assert opened.hidden_height() <= 0
        assert opened.height() <= 500


def test_two_values_that_disagree_stand_side_by_side(screen: Screen) -> None:
    with host(screen) as opened:
        ended = LYON | {"superseded_by": "msg_9", "valid_until": "2026-05-01"}
        opened.notify("tool-result", result(ended, TEA, NANTES))
        expect(rows(opened)).to_have_count(2)
        pair = rows(opened).filter(has_text="These do not agree")
        assert pair.locator(".words").all_inner_texts() == ["I live in Lyon.", "I live in Nantes."]
        expect(pair).to_contain_text("true until 1 May 2026")
        assert pair.locator("button").all_inner_texts() == ["Keep only this"] * 2


def test_what_a_record_beyond_the_list_ended_is_marked(screen: Screen) -> None:
    with host(screen) as opened:
        opened.notify("tool-result", result(LYON | {"superseded_by": "msg_77", "valid_until": "2026-05-01"}))
        expect(rows(opened)).to_contain_text("no longer true since 1 May 2026")
        assert buttons(opened.app)[:2] == ["Wrong", "Forget"]


def test_records_that_end_each_other_are_all_shown(screen: Screen) -> None:
    with host(screen) as opened:
        one, other = LYON | {"superseded_by": "msg_9"}, NANTES | {"superseded_by": "msg_1"}
        opened.notify("tool-result", result(one, other, TEA | {"superseded_by": "pin_2"}))
        expect(rows(opened).last).to_contain_text("Tea at five.")
        words = " ".join(opened.app.locator(".words").all_inner_texts())
        assert "Lyon" in words
        assert "Nantes" in words


@pytest.mark.parametrize(
    ("width", "highest"), [(640, 500), pytest.param(360, 500, marks=pytest.mark.campaign), (320, 260)]
)
def test_a_long_list_is_turned_page_by_page_and_never_scrolls(screen: Screen, width: int, highest: int) -> None:
    context = {"containerDimensions": {"width": width, "maxHeight": highest}, "timeZone": "UTC", "locale": "en"}
    records = [
        LYON | {"record_id": f"msg_{n}", "text": f"Fact {n}. " + "Words and more words. " * n} for n in range(12)
    ]
    seen: list[str] = []
    with host(screen, width=width, hostContext=context) as opened:
        opened.notify("tool-result", result(*records))
        while True:
            expect(rows(opened).first).to_contain_text(f"Fact {len(seen)}.")
            opened.page.wait_for_function(
                "height => document.querySelector('iframe').offsetHeight >= height",
                arg=opened.frame.evaluate("document.body.offsetHeight"),
            )
            assert opened.height() <= highest
            assert opened.hidden_height() <= 0
            seen += opened.app.locator("li .words").all_inner_texts()
            more = opened.app.get_by_role("button", name=f"{12 - len(seen)} more", exact=True)
            if len(seen) == 12:
                break
            more.click()
        opened.app.get_by_role("button", name="From the first").click()
        expect(rows(opened).first).to_contain_text("Fact 0.")


def test_every_button_is_large_enough_for_a_finger(screen: Screen) -> None:
    with host(screen, width=360) as opened:
        opened.notify("tool-result", result(LYON, TEA))
        expect(rows(opened)).to_have_count(2)
        boxes = [one.bounding_box() for one in opened.app.locator("button").all()]
        assert len(boxes) == 6
        assert all(box is not None and box["width"] >= 44 and box["height"] >= 44 for box in boxes)


def test_a_call_that_fails_is_said_and_changes_nothing(screen: Screen) -> None:
    def refuse(_name: str, _arguments: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": "forbidden: <b>read only</b>"}], "isError": True}

    def lose(_name: str, _arguments: dict[str, Any]) -> dict[str, Any]:
        raise ConnectionError("the server is gone")

    for call, words in ((refuse, "Not done: forbidden: <b>read only</b>"), (lose, "Not done: the server is gone")):
        with host(screen, call) as opened:
            opened.notify("tool-result", result(LYON))
            opened.app.get_by_role("button", name="Forget", exact=True).click()
            expect(opened.app.get_by_role("status")).to_have_text(words)
            expect(rows(opened)).to_have_count(1)
            assert "Undo" not in buttons(opened.app)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [640, pytest.param(360, marks=pytest.mark.campaign)])
def test_axe_finds_nothing_wrong(screen: Screen, scheme: Scheme, width: int) -> None:
    def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if name == "memory_history":
            return {"content": [], "structuredContent": {"record": {"text": "I live in Lyon.", "revision": 1}}}
        if "about" in arguments:
            return {**result(LYON, TEA), "structuredContent": {"count": 2, "token": "t"}}
        return {"content": [], "structuredContent": {}}

    context = {"theme": scheme, "containerDimensions": {"width": width, "maxHeight": 500}}
    with host(screen, call, scheme=scheme, width=width, hostContext=context) as opened:
        ended = LYON | {"record_id": "msg_3", "superseded_by": "msg_9", "valid_until": "2026-05-01"}
        opened.notify("tool-result", result(LYON, ended, NANTES, TEA))
        expect(rows(opened).first).to_be_visible()
        assert opened.violations() == []
        opened.app.get_by_role("button", name="Wrong").first.click()
        expect(opened.app.get_by_role("textbox")).to_be_focused()
        assert opened.violations() == []
        opened.page.keyboard.press("Escape")
        opened.app.get_by_role("button", name="Forget everything about…").click()
        opened.app.get_by_role("textbox", name="About").fill("Lyon")
        assert opened.violations() == []
        opened.page.keyboard.press("Enter")
        expect(opened.app.get_by_role("checkbox")).to_have_count(2)
        assert opened.violations() == []
        opened.app.get_by_role("button", name="Forget 2 of 2").click()
        expect(opened.app.get_by_role("status")).to_have_text("2 records forgotten.")
        assert opened.violations() == []
