"""Each act of the App through a real server, in both protocol eras: what it changes, and that it can be undone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import expect

from tests.campaign import first_of
from tests.flows.harness import ERAS
from tests.server.app.served import Served, served
from tests.server.app.standin import Host, Screen, host

LYON: Final = "I live in Lyon, in the rue Mercière."
NANTES: Final = "I no longer live in Lyon, in the rue Mercière: I moved to Nantes."
CAT: Final = "The vet says that a cat called Minou is fine."
QUERY: Final = {"query": "where do I live in Lyon"}


@pytest.fixture(params=first_of(reversed(ERAS)))
def memory(request: pytest.FixtureRequest, database: Path) -> Iterator[Served]:
    """A memory of two conversations, with a client of each era."""
    with served(database, request.param) as opened:
        opened.facts("record_messages", session_id="first", messages=[said("user", LYON), said("assistant", CAT)])
        opened.facts("record_messages", session_id="second", messages=[said("user", NANTES)])
        opened.facts("create_pin", content="The user is allergic to nuts.", scope="person")
        yield opened


def said(role: str, text: str) -> dict[str, str]:
    return {"role": role, "text": text}


def show(opened: Host, memory: Served, tool: str, arguments: dict[str, Any]) -> None:
    """Show the answer of a tool in the App."""
    memory.facts("list_tasks")  # the owed work is done by then
    opened.notify("tool-input", {"arguments": arguments})
    opened.notify("tool-result", memory.call(tool, arguments))
    expect(opened.app.locator("li").first).to_be_visible()


def press(opened: Host, name: str, *, beside: str | None = None) -> None:
    """Press a button; `beside` is in the text of its row."""
    rows = opened.app.locator("li").filter(has_text=beside) if beside else opened.app
    rows.get_by_role("button", name=name, exact=True).first.click()


def undo(opened: Host) -> None:
    """Undo the last act, by the key that presses what is focused: that is the button."""
    expect(opened.app.get_by_role("button", name="Undo")).to_be_focused()
    opened.page.keyboard.press("Enter")


def status(opened: Host, words: str) -> None:
    expect(opened.app.get_by_role("status")).to_have_text(words)


def test_a_record_is_forgotten_and_brought_back(screen: Screen, memory: Served) -> None:
    with host(screen, memory.call) as opened:
        show(opened, memory, "search_memory", {"query": "the vet and the cat Minou"})
        press(opened, "Forget", beside="Minou")
        status(opened, "1 record forgotten.")
        expect(opened.app.locator("li").filter(has_text="Minou")).to_have_count(0)
        assert CAT not in memory.found("cat Minou")
        undo(opened)
        expect(opened.app.locator("li").filter(has_text="Minou")).to_have_count(1)
        status(opened, "")
        assert CAT in memory.found("cat Minou")


def test_a_wrong_record_is_corrected_and_set_back(screen: Screen, memory: Served) -> None:
    right = "The vet says that the cat called Mitzi is fine."
    with host(screen, memory.call) as opened:
        show(opened, memory, "search_memory", {"query": "the vet and the cat Minou"})
        press(opened, "Wrong", beside="Minou")
        field = opened.app.get_by_role("textbox")
        expect(field).to_be_focused()
        expect(field).to_have_value(CAT)
        field.fill(right)
        press(opened, "Correct it")
        status(opened, "Corrected.")
        expect(opened.app.locator("li").filter(has_text="Mitzi")).to_have_count(1)
        assert memory.text_of("msg_2") == right
        undo(opened)
        expect(opened.app.locator("li").filter(has_text="Minou")).to_have_count(1)
        assert memory.text_of("msg_2") == CAT


def test_what_somebody_else_has_edited_is_not_overwritten(screen: Screen, memory: Served) -> None:
    with host(screen, memory.call) as opened:
        show(opened, memory, "search_memory", {"query": "the vet and the cat Minou"})
        press(opened, "Wrong", beside="Minou")
        opened.app.get_by_role("textbox").fill("mine")
        memory.facts("update_memory", record_id="msg_2", changes={"text": "theirs"}, expected_revision=1)
        press(opened, "Correct it")
        expect(opened.app.get_by_role("status")).to_contain_text("Not done: ")
        expect(opened.app.get_by_role("textbox")).to_have_value("mine")
        assert memory.text_of("msg_2") == "theirs"


def test_a_record_is_pinned_and_unpinned(screen: Screen, memory: Served) -> None:
    with host(screen, memory.call) as opened:
        show(opened, memory, "search_memory", {"query": "the vet and the cat Minou"})
        press(opened, "Pin", beside="Minou")
        opened.app.get_by_role("textbox").fill("Minou is a healthy cat.")
        press(opened, "Pin it")
        status(opened, "Pinned.")
        assert "Minou is a healthy cat." in memory.found("Minou healthy")
        undo(opened)
        status(opened, "")
        assert "Minou is a healthy cat." not in memory.found("Minou healthy")


def test_one_of_two_that_disagree_is_kept(screen: Screen, memory: Served) -> None:
    with host(screen, memory.call) as opened:
        show(opened, memory, "search_memory", QUERY)
        pair = opened.app.locator("li").filter(has_text="These do not agree")
        assert pair.locator(".words").all_inner_texts() == [LYON, NANTES]
        pair.get_by_role("button", name="Keep only this").last.click()
        status(opened, "1 record forgotten.")
        expect(pair).to_have_count(0)
        assert memory.found("Lyon Mercière") == {NANTES}
        undo(opened)
        expect(pair).to_have_count(1)
        assert memory.found("Lyon Mercière") >= {LYON, NANTES}


def test_what_a_subject_would_take_with_it_is_ticked_first(screen: Screen, memory: Served) -> None:
    with host(screen, memory.call) as opened:
        show(opened, memory, "search_memory", QUERY)
        press(opened, "Forget everything about…")
        opened.app.get_by_role("textbox").fill("Lyon")
        opened.page.keyboard.press("Enter")
        boxes = opened.app.get_by_role("checkbox")
        expect(boxes.first).to_be_checked()
        found = boxes.count()
        assert memory.found("Lyon Mercière") >= {LYON, NANTES}  # nothing is forgotten yet
        for row in opened.app.locator("li").filter(has_text="Nantes").get_by_role("checkbox").all():
            row.uncheck()
        left = boxes.and_(opened.app.locator(":checked")).count()
        assert 0 < left < found
        press(opened, f"Forget {left} of {found}")
        expect(opened.app.get_by_role("status")).to_contain_text(f"{left} record")
        assert memory.found("Lyon Mercière") == {NANTES}
        undo(opened)
        status(opened, "")
        assert memory.found("Lyon Mercière") >= {LYON, NANTES}


def test_a_subject_that_nothing_is_about_is_said(screen: Screen, memory: Served) -> None:
    with host(screen, memory.call) as opened:
        show(opened, memory, "search_memory", QUERY)
        press(opened, "Forget everything about…")
        opened.app.get_by_role("textbox").fill("Zanzibar")
        press(opened, "Show what would go")
        status(opened, "Not done: nothing is remembered about “Zanzibar”")


def test_a_context_shows_what_is_known_and_what_matched(screen: Screen, memory: Served) -> None:
    with host(screen, memory.call) as opened:
        show(opened, memory, "build_context", {"query": "the vet and the cat Minou"})
        rows = opened.app.locator("li")
        expect(rows.filter(has_text="allergic")).to_contain_text("note, ")
        expect(rows.filter(has_text="allergic")).to_contain_text("known in every conversation")
        assert rows.filter(has_text="allergic").locator("button").all_inner_texts() == ["Wrong", "Forget"]
        expect(rows.filter(has_text="Minou")).to_contain_text("matches what was asked")


def test_acts_are_undone_one_after_the_other_and_the_model_hears_of_them(screen: Screen, memory: Served) -> None:
    with host(screen, memory.call) as opened:
        show(opened, memory, "search_memory", {"query": "the vet and the cat Minou"})
        press(opened, "Wrong", beside="Minou")
        opened.app.get_by_role("textbox").fill("The vet says that Mitzi is fine.")
        press(opened, "Correct it")
        status(opened, "Corrected.")
        press(opened, "Forget", beside="Mitzi")
        status(opened, "1 record forgotten.")
        undo(opened)
        status(opened, "Corrected.")
        undo(opened)
        status(opened, "")
        assert memory.text_of("msg_2") == CAT
        told = [params["content"] for params in opened.sent("ui/update-model-context")]
        assert [len(content) for content in told] == [1, 1, 1, 0]
        assert told[1][0]["text"].endswith("msg_2 corrected: The vet says that Mitzi is fine.\nmsg_2 forgotten.")


def test_all_is_done_by_keyboard_alone(screen: Screen, memory: Served) -> None:
    with host(screen, memory.call) as opened:
        show(opened, memory, "search_memory", {"query": "the vet and the cat Minou"})
        opened.app.get_by_role("button", name="Wrong").first.focus()
        opened.page.keyboard.press("Tab")
        opened.page.keyboard.press("Enter")
        expect(opened.app.get_by_role("status")).to_contain_text("forgotten.")
        undo(opened)
        status(opened, "")


def test_a_host_that_passes_on_text_alone_can_do_the_same(screen: Screen, memory: Served) -> None:
    def bare(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        answer = memory.call(name, arguments)
        return {name: value for name, value in answer.items() if name in ("content", "isError")}

    with host(screen, bare) as opened:
        show(opened, memory, "search_memory", {"query": "the vet and the cat Minou"})
        press(opened, "Pin", beside="Minou")
        press(opened, "Pin it")
        status(opened, "Pinned.")
        press(opened, "Pin", beside="Minou")
        press(opened, "Pin it")
        status(opened, "Not done: it is known already")
        press(opened, "Cancel")
        undo_button = opened.app.get_by_role("button", name="Undo")
        undo_button.click()
        status(opened, "")
        press(opened, "Forget everything about…")
        opened.app.get_by_role("textbox").fill("Lyon")
        press(opened, "Show what would go")
        expect(opened.app.get_by_role("checkbox").first).to_be_checked()
        expect(opened.app.locator("li").first).to_contain_text("I live in Lyon")
        opened.app.locator("#body").get_by_role("button").first.click()
        expect(opened.app.get_by_role("status")).to_contain_text("forgotten.")
        assert memory.found("Lyon Mercière") & {LYON, NANTES} == set()
        undo(opened)
        status(opened, "")
        assert memory.found("Lyon Mercière") >= {LYON, NANTES}
