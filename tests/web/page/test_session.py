"""The page of a conversation: its parts, its hidden turns, its digest, and its move to another project."""

import httpx2

from kalito_mcp.domain.access import Permission
from tests.web.page.test_timeline import left_open, talk
from tests.web.page.visiting import Person, signed_in
from tests.web.rest.served import Served, fresh, record, said


def turns(person: Person) -> list[str]:
    return [one.get("id") for one in person.html.all("li") if one.get("id").startswith("turn-")]


def test_a_conversation_is_shown_in_parts_of_fifty_turns(client: httpx2.Client, person: Person) -> None:
    session = fresh("long")
    talk(client, session, *(f"Turn {number}." for number in range(1, 121)))
    person.open(f"/s/{session}")
    assert turns(person) == [f"turn-{number}" for number in range(1, 51)]
    assert f"/s/{session}?page=2" in person.html.links()
    assert person.html.all("li", aria_current="true") == []
    person.open(f"/s/{session}", page=2)
    assert turns(person) == [f"turn-{number}" for number in range(51, 101)]
    assert {f"/s/{session}", f"/s/{session}?page=1", f"/s/{session}?page=3"} <= set(person.html.links())
    person.open(f"/s/{session}", at=70)
    assert turns(person) == [f"turn-{number}" for number in range(51, 101)]
    [marked] = person.html.all("li", aria_current="true")
    assert marked.get("id") == "turn-70"
    assert "Turn 70." in marked.text
    person.open(f"/s/{session}", at=9_999)
    assert turns(person) == [f"turn-{number}" for number in range(101, 121)]


def test_each_page_of_a_forgotten_conversation_can_be_brought_back(client: httpx2.Client, person: Person) -> None:
    session, back = fresh("gone"), "Bring back this page"
    for message in record(client, session, *(f"Turn {number}." for number in range(1, 53))):
        said(client.delete(f"/api/records/{message}", headers={"if-match": '"1"'}))
    for page, words in ((1, "Turn 50."), (2, "Turn 52.")):
        person.open(f"/s/{session}", page=page)
        person.press("/act/restore", back)
        assert words in person.html.words
        assert back not in person.html.words


def test_what_came_of_it_stands_beside_what_was_said(client: httpx2.Client, person: Person) -> None:
    session = fresh("digest")
    [first, last] = record(client, session, "We sail on Monday.", "On Monday, then.")
    ends = {"start_message_id": first, "end_message_id": last}
    said(client.post("/api/memory/summaries", json={"session_id": session, "summary": "They sail on Monday.", **ends}))
    point = left_open(client, session, "Pack the tent.")
    html = person.open(f"/s/{session}")
    assert [one.text for one in html.all("h3")] == ["Open", "Summary"]
    assert "They sail on Monday." in html.words
    assert {f"/r/{point}", f"/r/{first}", f"/ask?session={session}", f"/r/{first}?edit=1"} <= set(html.links())
    person.press("/act/close", "Done", point_ids=point)
    assert "Pack the tent." not in person.html.words
    person.undo()
    assert "Pack the tent." in person.html.words


def test_a_forgotten_turn_is_marked_without_its_words(client: httpx2.Client, person: Person) -> None:
    session = fresh("hidden")
    [first, second] = record(client, session, "The code is umbra.", "Noted umbra.")
    person.open(f"/s/{session}")
    person.press("/act/forget", f"Forget: {first}")
    assert person.said == "1 record forgotten"
    [turn] = person.html.all("li", id="turn-1")
    assert turn.text.split() == [first, "Forgotten"]
    assert "The code" not in person.html.words
    person.undo()
    assert "The code is umbra." in person.html.words
    said(client.post("/api/purge", json={"record_ids": [second]}))
    html = person.open(f"/s/{session}")
    [turn] = html.all("li", id="turn-2")
    assert "Erased for good" in turn.text


def test_an_erased_conversation_answers_as_a_missing_one(client: httpx2.Client, person: Person) -> None:
    session, missing = fresh("erased"), fresh("missing")
    ids = record(client, session, "Nobody shall read this.")
    said(client.post("/api/purge", json={"record_ids": ids}))
    answers = [person.get(f"/s/{one}") for one in (session, missing)]
    assert [one.status_code for one in answers] == [404, 404]
    assert answers[0].text.replace(session, missing) == answers[1].text
    assert session not in person.open("/timeline").source


def test_a_conversation_moves_to_another_project_and_back(client: httpx2.Client, person: Person) -> None:
    session, here, there = fresh("moving"), fresh("shed"), fresh("attic")
    talk(client, session, "Where is the ladder?", project=here)
    talk(client, fresh("beside"), "In the attic.", project=there)

    def project() -> str | None:
        found: str | None = said(client.get(f"/api/sessions/{session}")).get("project")
        return found

    person.open(f"/s/{session}")
    person.press("/act/move_session", to=there)
    assert (person.said, project()) == ("Moved", there)
    person.undo()
    assert project() == here
    person.press("/act/move_session", to="personal")
    assert (person.said, project()) == ("It is personal now", None)
    person.undo()
    assert project() == here
    person.press("/act/move_session", to=here)
    assert not person.can_undo


def test_a_reader_sees_a_conversation_without_acts(server: Served, client: httpx2.Client) -> None:
    session = fresh("reading")
    talk(client, session, "Just read.")
    left_open(client, session, "Read on.")
    with signed_in(server, Permission.READ) as reader:
        html = reader.open(f"/s/{session}")
        assert [one.action for one in html.forms if one.method == "post"] == ["/leave"]
        assert "Read on." in html.words


def test_a_record_is_shown_as_it_was_and_two_versions_are_compared(client: httpx2.Client, person: Person) -> None:
    note = {"type": "note", "text": "The key is under the mat."}
    record_id = said(client.post("/api/records", json=note))["id"]
    for revision, text in enumerate(("The key is in the shed.", "The key is with Ada."), 1):
        said(client.patch(f"/api/records/{record_id}", json={"text": text}, headers={"if-match": f'"{revision}"'}))
    html = person.open(f"/r/{record_id}", as_of="2001-01-01")
    assert "On 2001-01-01 it was not recorded yet" in html.words
    assert "it was as it is now" in person.open(f"/r/{record_id}", as_of="2999-01-01").words
    html = person.open(f"/r/{record_id}", old=1, new=3)
    changed = html.all("pre")[0].text
    assert "-The key is under the mat." in changed
    assert "+The key is with Ada." in changed
    assert "the shed" not in changed
    assert "are the same" in person.open(f"/r/{record_id}", old=2, new=2).words
    assert person.get(f"/r/{record_id}?old=1&new=9").status_code == 422
