"""What is known, over HTTP: statements, what was found, what disagrees; each act, and what takes it back."""

import time
from typing import Any

import httpx2
import pytest

from tests.server.wire import PATIENCE_S
from tests.web.page.visiting import Html, Person
from tests.web.rest.served import fresh, said


def pinned(client: httpx2.Client, text: str, project: str, **sent: Any) -> str:
    """A pin that the project knows; its id."""
    session = fresh("talk")
    turn = {"messages": [{"role": "user", "text": "Good morning."}]}
    said(client.post(f"/api/sessions/{session}/messages", json=turn, params={"project": project}))
    pin = {"session_id": session, "content": text, "scope": "project", **sent}
    return str(said(client.post("/api/memory/pins", json=pin))["id"])


def found(client: httpx2.Client, person: Person, project: str, *texts: str) -> Html:
    """The inbox of a project, once what these messages say was found."""
    session = fresh("talk")
    turns = {"messages": [{"role": "user", "text": text} for text in texts]}
    said(client.post(f"/api/sessions/{session}/messages", json=turns, params={"project": project}))
    last = time.monotonic() + PATIENCE_S
    while time.monotonic() < last:
        html = person.open("/known", show="found", project=project)
        if len(boxes(html)) == len(texts):
            return html
    raise AssertionError(html.words)


def boxes(html: Html) -> list[str]:
    """The ids of what can be ticked."""
    return [one.get("value") for one in html.all("input", type="checkbox", name="record_ids")]


def listed(html: Html) -> list[tuple[str, bool]]:
    """The statements, and whether each is struck through, from the top."""
    return [
        (one.text.strip(), "old" in one.get("class").split())
        for one in html.all("p")
        if "text" in one.get("class").split()
    ]


def record(client: httpx2.Client, record_id: str) -> dict[str, Any]:
    """What of a record an act changes."""
    left_out = ("revision", "deleted_at", "usage_count", "last_used")
    whole = said(client.get(f"/api/records/{record_id}"))
    return {name: value for name, value in whole.items() if name not in left_out}


@pytest.fixture
def project() -> str:
    return fresh("boat")


def test_an_older_statement_is_struck_through_behind_the_newer_one(
    client: httpx2.Client, person: Person, project: str
) -> None:
    old = pinned(client, "The mast of the boat is red.", project)
    new = pinned(client, "The mast of the boat is green.", project, replaces=[old])
    html = person.open("/known", project=project)
    assert listed(html) == [("The mast of the boat is green.", False), ("The mast of the boat is red.", True)]
    assert {f"/r/{old}", f"/r/{new}"} <= set(html.links())
    assert html.all("time")
    headings = [one.text.strip() for one in html.all("h2") + html.all("h3") if "main" in one.inside]
    assert headings == [project, "facts"]


def test_statements_are_chosen_by_subject_by_words_and_by_whether_they_hold(
    client: httpx2.Client, person: Person, project: str
) -> None:
    rule = pinned(client, "Always moor at noon.", project)
    said(client.patch(f"/api/records/{rule}", json={"kind": "rule"}, headers={"if-match": '"1"'}))
    pinned(client, "The mast is red.", project)
    gone = pinned(client, "The sail is torn.", project)
    person.open("/known", project=project)
    person.act("forget", record_ids=[gone])

    def texts(**query: Any) -> list[str]:
        return [text for text, _ in listed(person.open("/known", project=project, **query))]

    assert texts() == ["Always moor at noon.", "The mast is red."]
    assert texts(subject="rules") == ["Always moor at noon."]
    assert texts(words="MAST red") == ["The mast is red."]
    assert texts(words="anchor") == []
    assert "Nothing that holds is about this" in person.html.words
    assert texts(gone=1) == ["The sail is torn."]
    person.press("/act/restore")
    assert texts() == ["Always moor at noon.", "The sail is torn.", "The mast is red."]


def test_an_empty_view_says_what_to_do_first(person: Person, project: str) -> None:
    assert "Nothing is known yet" in person.open("/known", project=project).words
    assert "Nothing waits for you" in person.open("/known", project=project, show="found").words
    assert "No two statements seem to disagree" in person.open("/known", project=project, show="disagree").words


def test_a_statement_is_corrected_and_forgotten_and_that_is_taken_back(
    client: httpx2.Client, person: Person, project: str
) -> None:
    pin = pinned(client, "The mast is red.", project)
    before = record(client, pin)
    person.open("/known", project=project)
    for action, changed in (("/act/correct", {"text": "The mast is green."}), ("/act/forget", {})):
        html = person.press(action, **changed)
        assert ("The mast is red.", False) not in listed(html)
        assert ("The mast is red.", False) in listed(person.undo())
        assert record(client, pin) == before


def test_what_was_found_is_kept_together_and_that_is_taken_back(
    client: httpx2.Client, person: Person, project: str
) -> None:
    html = found(client, person, project, "We never paint the mast.", "We always moor at noon.", "We never sail.")
    first, second, third = boxes(html)
    before = [record(client, one) for one in (first, second)]
    html = person.press("/act/keep", record_ids=[first, second], reach="person")
    assert (person.said, boxes(html)) == ("2 pins kept", [third])
    assert [record(client, one)["scope"] for one in (first, second)] == ["person", "person"]
    assert set(boxes(person.undo())) == {first, second, third}
    assert [record(client, one) for one in (first, second)] == before
    assert boxes(person.undo()) == [third]
    assert len(boxes(person.undo())) == 3


def test_what_was_found_is_dropped_and_that_is_taken_back(client: httpx2.Client, person: Person, project: str) -> None:
    html = found(client, person, project, "We never paint the mast.", "We always moor at noon.")
    both = boxes(html)
    assert [one.get("formaction") for one in html.all("button") if one.text == "Drop"] == ["/act/forget"]
    html = person.act("forget", record_ids=both)
    assert boxes(html) == []
    assert boxes(person.undo()) == both


def test_whose_it_is_is_said_while_keeping_it(client: httpx2.Client, person: Person, project: str) -> None:
    [pin] = boxes(found(client, person, project, "We never paint the mast."))
    before = record(client, pin)
    for reach, scope in (("session", None), ("project", "project"), ("person", "person"), ("", before["scope"])):
        person.open("/known", show="found", project=project)
        person.press("/act/keep", record_ids=[pin], reach=reach)
        assert record(client, pin).get("scope") == scope
        person.undo()
        assert record(client, pin) == before


def test_what_cannot_be_kept_is_said(client: httpx2.Client, person: Person, project: str) -> None:
    pin = pinned(client, "The mast is red.", project)
    task = said(client.post("/api/records", json={"type": "task", "text": "Paint it."}, params={"project": project}))[
        "id"
    ]
    person.open("/known", show="found", project=project)
    sent = person.send(person.form("keep"), record_ids=[task])
    assert sent.status_code == 422
    assert "only pins and short notes are kept" in Html(sent.text).words
    person.act("keep", record_ids=[pin, task])
    assert person.said == "1 pin kept; 1 pin could not be"
    assert person.send(person.form("keep")).status_code == 422
    assert person.send(person.form("go_back"), record_ids=[pin], versions=["1", "2"]).status_code == 422


@pytest.mark.parametrize("kept", [0, 1])
def test_of_two_that_disagree_either_is_said_to_hold(
    client: httpx2.Client, person: Person, project: str, kept: int
) -> None:
    ids = [pinned(client, f"The boat lies in {place}.", project) for place in ("Oslo", "Bergen")]
    html = person.open("/known", show="disagree", project=project)
    assert {text for text, _ in listed(html)} == {"The boat lies in Oslo.", "The boat lies in Bergen."}
    assert [one.text.strip() for one in html.all("b")] == ["Bergen", "Oslo"]
    html = person.press("/act/replace", f"This holds: {ids[kept]}")
    assert listed(html) == []
    assert record(client, ids[kept])["supersedes"] == [ids[1 - kept]]
    assert len(listed(person.undo())) == 2
    assert "supersedes" not in record(client, ids[kept])


def test_both_hold_and_neither_is_asked_about_again(client: httpx2.Client, person: Person, project: str) -> None:
    for place in ("Oslo", "Bergen"):
        pinned(client, f"The boat was built in {place}.", project)
    person.open("/known", show="disagree", project=project)
    assert listed(person.press("/act/keep_both")) == []
    assert len(listed(person.undo())) == 2
    html = person.press("/act/forget")
    assert listed(html) == []
    assert len(listed(person.undo())) == 2


def test_what_was_found_comes_in_pages(client: httpx2.Client, person: Person, project: str) -> None:
    texts = [f"We never paint the mast number {place}." for place in range(60)]
    for place in range(0, 60, 20):
        session = fresh("talk")
        turns = {"messages": [{"role": "user", "text": text} for text in texts[place : place + 20]]}
        said(client.post(f"/api/sessions/{session}/messages", json=turns, params={"project": project}))
    last = time.monotonic() + PATIENCE_S
    while not [one for one in person.html.all("a") if one.text == "Next"]:
        assert time.monotonic() < last
        html = person.open("/known", show="found", project=project)
    first = boxes(html)
    [more] = [one for one in html.all("a") if one.text == "Next"]
    rest = boxes(person.open(more.get("href")))
    assert len(first) == 50
    assert rest
    assert not set(first) & set(rest)
    ids = [one.get("id") for one in html.all("li") if one.has("data-item")]
    assert ids == [f"found-{one}" for one in first], "a tick stays with its record when the list gets shorter"
    person.open("/known", show="found", project=project)
    person.press("/act/keep", record_ids=first)
    assert person.can_undo, "the undo of a whole page fits into its cookie"
    assert set(boxes(person.undo())) == set(first)


def test_what_is_of_another_project_is_not_shown(client: httpx2.Client, person: Person, project: str) -> None:
    pinned(client, "The mast is red.", project)
    assert listed(person.open("/known", project=fresh("elsewhere"))) == []


def test_markup_in_a_statement_is_text_in_each_part(client: httpx2.Client, person: Person, project: str) -> None:
    mark = "><img src=x onerror=alert(1)> <b>"
    found(client, person, project, f"We never paint {mark} the mast.")
    for place in ("Oslo", "Bergen"):
        pinned(client, f"The boat {mark} lies in {place}.", project)
    for show in ("stated", "found", "disagree"):
        html = person.open("/known", show=show, project=project)
        assert mark in html.words, show
        assert "<img src=x" not in html.source, show
