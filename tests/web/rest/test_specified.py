"""The three endpoints of the specification, with its names of fields."""

import httpx2

from tests.web.rest.served import fresh, record, said


def test_a_summary_of_a_range_has_the_specified_fields(client: httpx2.Client) -> None:
    session = fresh("talk")
    ids = record(client, session, "We fly to Oslo in May.", "Noted.", "And back in June.")
    asked = {"session_id": session, "start_message_id": ids[0], "end_message_id": ids[2], "message_count": 3}
    answer = client.post("/api/memory/summaries", json=asked)
    assert answer.status_code == 201
    made = answer.json()
    specified = {
        "session_id": session,
        "message_count": 3,
        "start_message_id": ids[0],
        "end_message_id": ids[2],
        "importance_score": 0.7,
    }
    assert specified.items() <= made.items()
    assert "Oslo" in made["summary"]
    assert said(client.get(answer.headers["location"]))["text"] == made["summary"]


def test_a_callers_own_summary_is_stored_as_it_is(client: httpx2.Client) -> None:
    session = fresh("talk")
    ids = record(client, session, "We fly to Oslo in May.", "Noted.")
    asked = {"sessionId": session, "startMessageId": int(ids[0][4:]), "endMessageId": ids[1], "summary": "Oslo, May."}
    made = said(client.post("/api/memory/summaries", json=asked))
    assert (made["summary"], made["method"], made["message_count"]) == ("Oslo, May.", "caller", 2)
    again = client.post("/api/memory/summaries", json=asked)
    assert (again.status_code, again.json()["error"]) == (409, "summary_range_conflict")


def test_the_lists_of_a_summary_are_part_of_it_and_are_pinned(client: httpx2.Client) -> None:
    session = fresh("talk")
    first, second, third = record(client, session, "We fly to Oslo in May.", "Noted.", "And back in June.")
    asked = {"session_id": session, "start_message_id": first, "end_message_id": second}
    lists = {"decided": ["We fly to Oslo on 3 May."], "open": ["The hotel in Oslo is not booked."]}
    made = said(client.post("/api/memory/summaries", json={**asked, "summary": "Oslo.", **lists}))
    assert made["summary"] == f"Oslo.\nDecided:\n{lists['decided'][0]}\nOpen:\n{lists['open'][0]}"
    assert _pins(client, session) == {*lists["decided"], *lists["open"]}
    last = {"session_id": session, "start_message_id": third, "end_message_id": third}
    refused = client.post("/api/memory/summaries", json={**last, "open": ["x" * 401]})
    assert (refused.status_code, refused.json()["error"]) == (422, "invalid_input")
    said(client.post("/api/memory/summaries", json={**last, "open": []}))
    assert _pins(client, session) == set(lists["decided"])


def test_a_pin_has_the_specified_fields_and_defaults(client: httpx2.Client) -> None:
    session = fresh("talk")
    [message] = record(client, session, "I am allergic to penicillin.")
    asked = {"session_id": session, "content": "Allergic to penicillin", "source_message_id": message}
    answer = client.post("/api/memory/pins", json=asked)
    assert answer.status_code == 201
    assert {**asked, "importance_score": 0.8, "pin_type": "manual"}.items() <= answer.json().items()
    assert {"id", "created_at"} <= answer.json().keys()
    assert said(client.get(answer.headers["location"]))["type"] == "pin"


def test_a_pin_accepts_camel_case_a_zero_and_another_type(client: httpx2.Client) -> None:
    asked = {"sessionId": fresh("talk"), "content": "x = 1", "importanceScore": 0, "pinType": "code"}
    made = said(client.post("/api/memory/pins", json=asked))
    assert (made["importance_score"], made["pin_type"]) == (0.0, "code")


def test_messages_are_scored_again(client: httpx2.Client) -> None:
    session = fresh("talk")
    [message] = record(client, session, "Why does this error occur?")
    edited = client.patch(f"/api/records/{message}", json={"importance_score": 0.1}, headers={"if-match": '"1"'})
    assert said(edited)["importance_score"] == 0.1
    first = said(client.post(f"/api/memory/{session}/score-messages"))
    assert first == {"session_id": session, "total_messages": 1, "changed": 1}
    assert said(client.post(f"/api/memory/{session}/score-messages", json={}))["changed"] == 0
    assert said(client.get(f"/api/records/{message}"))["importance_score"] > 0.5
    assert client.post("/api/memory/no-such-session/score-messages").status_code == 404


def test_a_fact_of_the_person_is_pinned_once_without_a_session(client: httpx2.Client) -> None:
    asked = {"content": f"Allergic to {fresh('pollen')}"}
    first, again = (said(client.post("/api/memory/pins", json=asked)) for _ in range(2))
    assert (first["scope"], "session_id" in first, "known_already" in first) == ("person", False, False)
    assert (again["id"], again["known_already"]) == (first["id"], True)
    refused = client.post("/api/memory/pins", json={"content": "The bell rings at six.", "scope": "session"})
    assert (refused.status_code, "session_id is missing" in refused.text) == (422, True)


def test_a_note_is_kept_once(client: httpx2.Client) -> None:
    asked = {"type": "note", "text": f"The {fresh('kettle')} is blue."}
    first, again = (said(client.post("/api/records", json=asked)) for _ in range(2))
    assert (again["id"], again["known_already"]) == (first["id"], True)


def _pins(client: httpx2.Client, session: str) -> set[str]:
    return {one["text"] for one in said(client.get("/api/pins", params={"session_id": session}))["records"]}


def test_pins_without_a_conversation_are_listed_among_the_pins(client: httpx2.Client) -> None:
    project = fresh("kite")
    for number in range(3):
        where = f"?project={project}"
        said(client.post(f"/api/memory/pins{where}", json={"content": f"Bell {number}.", "scope": "project"}))
        said(client.post(f"/api/records{where}", json={"type": "note", "text": f"A bell rang at {number}."}))
    found: list[str] = []
    cursor = ""
    while len(found) < 3:
        page = said(client.get(f"/api/pins?project={project}&limit=1&cursor={cursor}"))
        found += [one["text"] for one in page["records"]]
        cursor = page["next_cursor"] if len(found) < 3 else ""
    assert found[:3] == ["Bell 2.", "Bell 1.", "Bell 0."]
