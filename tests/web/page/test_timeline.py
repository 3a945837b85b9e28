"""Timeline: days with their conversations, what is open, and the way to a day, a host, and earlier ones."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2

from tests.web.page.visiting import Person
from tests.web.rest.served import fresh, said

AGAIN = "Point 0 of the fence."
TODAY = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)


def talk(client: httpx2.Client, session: str, *texts: str, days_ago: float = 1, project: str | None = None) -> None:
    """Record a conversation, a minute between two messages."""
    at = TODAY - timedelta(days=days_ago)
    messages = [
        {
            "role": ("user", "assistant")[place % 2],
            "text": text,
            "created_at": (at + timedelta(minutes=place)).isoformat(),
        }
        for place, text in enumerate(texts)
    ]
    params = {"project": project} if project else {}
    said(client.post(f"/api/sessions/{session}/messages", json={"messages": messages}, params=params))


def left_open(client: httpx2.Client, session: str, text: str) -> str:
    """An open point of a conversation; its id."""
    pin = {"session_id": session, "content": text, "scope": "session"}
    point: str = said(client.post("/api/memory/pins", json=pin))["id"]
    said(client.patch(f"/api/records/{point}", json={"kind": "open"}, headers={"if-match": '"1"'}))
    return point


def day(days_ago: float) -> str:
    return (TODAY - timedelta(days=days_ago)).date().isoformat()


def sessions(person: Person) -> list[str]:
    """The conversations in the list, from the top."""
    headings = [one for one in person.html.elements if one.tag == "a" and "h3" in one.inside]
    return [one.get("href").removeprefix("/s/") for one in headings]


def test_a_day_has_its_conversations_with_what_came_of_them(client: httpx2.Client, person: Person) -> None:
    project = fresh("garden")
    early, late = fresh("early"), fresh("late")
    talk(client, early, "Plant the beans.", "They are planted.", days_ago=2, project=project)
    talk(client, late, "Water the beans.", days_ago=1, project=project)
    point = left_open(client, late, "Buy a longer hose.")
    html = person.open("/timeline", project=project)
    assert sessions(person) == [late, early]
    headings = [one.text.strip() for one in html.all("h2") if "main" in one.inside]
    named = [f"{at:%A} {at.day} {at:%B %Y}" for at in (TODAY - timedelta(days=1), TODAY - timedelta(days=2))]
    assert headings == ["What is open", *named]
    assert "2 messages" in html.words
    assert f"/r/{point}" in html.links()
    assert f"/timeline?project={project}&day={day(2)}" in html.links()


def test_a_day_shows_what_had_begun_by_then(client: httpx2.Client, person: Person) -> None:
    project = fresh("boats")
    before, long, after = fresh("before"), fresh("long"), fresh("after")
    talk(client, before, "Paint the hull.", days_ago=9, project=project)
    talk(client, long, "Order sails.", days_ago=6, project=project)
    talk(client, long, "They came.", days_ago=2, project=project)
    talk(client, after, "Set the mast.", days_ago=3, project=project)
    person.open("/timeline", project=project, day=day(5))
    assert sessions(person) == [long, before]
    assert [one.get("id") for one in person.html.all("h2") if "main" in one.inside] == [
        f"day-{day(5)}",
        f"day-{day(9)}",
    ]
    person.open("/timeline", project=project, day=day(30))
    assert sessions(person) == []
    assert "Nothing was recorded until" in person.html.words


def test_a_day_that_cannot_be_one_is_refused_in_words(person: Person) -> None:
    for query in ("day=yesterday", "day=2026-02-30", "after=lost", f"after={9**30}.x"):
        assert person.get(f"/timeline?{query}").status_code == 422


def test_the_chart_leads_to_each_day_on_which_something_was_said(client: httpx2.Client, person: Person) -> None:
    project = fresh("chart")
    talk(client, fresh("one"), "First.", "Second.", "Third.", days_ago=4, project=project)
    talk(client, fresh("two"), "Long ago.", days_ago=95, project=project)
    html = person.open("/timeline", project=project)
    bars = [one for one in html.all("a") if "svg" in one.inside]
    assert [one.get("href") for one in bars] == [f"/timeline?project={project}&day={day(4)}"]
    assert ": 3 messages" in bars[0].text
    assert "3 messages in 90 days" in html.words


def test_earlier_conversations_follow_page_by_page_without_a_gap(client: httpx2.Client, person: Person) -> None:
    project = fresh("pages")
    made = [fresh(f"talk{number}") for number in range(30)]
    for number, session in enumerate(made):
        talk(client, session, "Hello there.", days_ago=number, project=project)
    person.open("/timeline", project=project)
    seen = sessions(person)
    [more] = [one.get("href") for one in person.html.all("a", class_="more")]
    person.open(more)
    assert [*seen, *sessions(person)] == made
    assert person.html.all("a", class_="more") == []


def test_hosts_narrow_the_list(client: httpx2.Client, person: Person) -> None:
    session = fresh("hosted")
    talk(client, session, "Through the API.", project=fresh("hosting"))
    html = person.open("/timeline")
    hosts = [one.text for one in html.all("option") if "select" in one.inside and one.text == "rest"]
    assert hosts == ["rest"]
    person.open("/timeline", host="rest")
    assert session in sessions(person)
    person.open("/timeline", host="codex")
    assert sessions(person) == []
    assert "Nothing was recorded through codex" in person.html.words


def test_an_open_point_that_is_done_goes_and_comes_back(client: httpx2.Client, person: Person) -> None:
    project, session = fresh("points"), fresh("talk")
    talk(client, session, "Repair the fence.", project=project)
    points = [left_open(client, session, f"Point {number} of the fence.") for number in range(5)]
    html = person.open("/timeline", project=project)
    assert "2 more open points" in html.words
    html = person.open("/timeline", project=project, open="1")
    assert shown_points(person) == points[::-1]
    person.press("/act/close", "Done", point_ids=points[0])
    assert person.said == "1 point done"
    assert shown_points(person) == points[:0:-1]
    # The same words may come again: it is done, not forgotten.
    said(client.post(f"/api/sessions/{session}/messages", json={"messages": [{"role": "assistant", "text": AGAIN}]}))
    assert AGAIN in person.open(f"/s/{session}").words
    person.undo()
    assert points[0] in shown_points(person)


def shown_points(person: Person) -> list[str]:
    buttons: list[Any] = person.html.all("button", name="point_ids")
    return [one.get("value") for one in buttons]


def test_only_an_open_point_can_be_done(client: httpx2.Client, person: Person) -> None:
    session = fresh("other")
    talk(client, session, "A message.", project=fresh("other"))
    pin = {"session_id": session, "content": "A decision.", "scope": "session"}
    other = said(client.post("/api/memory/pins", json=pin))["id"]
    person.open("/timeline")
    for named, status in ((other, 422), ("pin_nobody", 404)):
        answer = person.send(person.form("close"), point_ids=named)
        assert answer.status_code == status
    assert not said(client.get(f"/api/records/{other}"))["is_deleted"]


def test_an_empty_memory_says_what_to_do_first(person: Person) -> None:
    html = person.open("/timeline", project=fresh("nothing"))
    assert "kalito-mcp install" in html.words
    assert "Nothing is open" in person.open("/timeline", project=fresh("nothing"), open="1").words


def test_a_conversation_of_which_all_is_forgotten_is_in_a_list_of_its_own(
    client: httpx2.Client, person: Person
) -> None:
    project, kept, gone = fresh("gone"), fresh("kept"), fresh("gone")
    talk(client, kept, "Water the beans.", project=project)
    talk(client, gone, "The code is umbra.", "Noted umbra.", project=project)
    person.open("/timeline", project=project)
    assert sessions(person) == [gone, kept]
    for message in said(client.get(f"/api/sessions/{gone}/messages"))["messages"]:
        said(client.delete(f"/api/records/{message['id']}", headers={"if-match": '"1"'}))
    html = person.open("/timeline", project=project)
    assert sessions(person) == [kept]
    assert f"/timeline?project={project}&forgotten=1" in html.links()
    person.open("/timeline", project=project, forgotten=1)
    assert sessions(person) == [gone]
    person.open(f"/s/{gone}")
    person.press("/act/restore", "Bring back what was said")
    assert person.said == "2 records brought back"
    assert "The code is umbra." in person.html.words
    assert "Bring back what was said" not in person.html.words
    person.open("/timeline", project=project)
    assert sessions(person) == [gone, kept]
    person.open("/timeline", project=project, forgotten=1)
    assert sessions(person) == []
    assert "No conversation is forgotten" in person.html.words
