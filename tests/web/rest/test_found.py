"""Search, past answers and what is known, over REST."""

import httpx2

from tests.web.rest.served import fresh, record, said


def test_a_search_explains_its_hits_and_goes_on_where_it_stopped(client: httpx2.Client) -> None:
    session, word = fresh("talk"), fresh("zanzibar")
    record(client, session, *(f"Trip {place} to {word} was good." for place in range(4)))
    asked = {"query": f"trip to {word}", "k": 3, "session_id": session, "explain": True, "since": "7d"}
    first = said(client.post("/api/search", json=asked))
    assert len(first["hits"]) == 3
    assert all(word in hit["text"] and hit["why"] and hit["parts"] for hit in first["hits"])
    second = said(client.post("/api/search", json={**asked, "cursor": first["next_cursor"]}))
    ids = [hit["record_id"] for hit in first["hits"] + second["hits"]]
    assert len(set(ids)) == len(ids) == 4
    larger = said(client.post("/api/search", json={**asked, "k": 7, "cursor": first["next_cursor"]}))
    assert larger["hits"] == second["hits"]
    refused = client.post("/api/search", json={**asked, "query": "something else", "cursor": first["next_cursor"]})
    assert refused.status_code == 422


def test_other_wordings_find_what_the_query_does_not(client: httpx2.Client) -> None:
    session, word = fresh("talk"), fresh("oslo")
    record(client, session, f"Fly to {word}.")
    asked = {"query": "zeppelin", "session_id": session}
    assert said(client.post("/api/search", json=asked))["hits"] == []
    assert len(said(client.post("/api/search", json={**asked, "also": ["", word]}))["hits"]) == 1
    built = said(client.post("/api/context", json={"query": "zeppelin", "also": [word]}))
    assert [hit["text"] for hit in built["relevantMessages"]] == [f"Fly to {word}."]


def test_filters_narrow_a_search(client: httpx2.Client) -> None:
    session, word = fresh("talk"), fresh("oslo")
    record(client, session, f"Fly to {word}.", f"Noted, {word}.")
    for given, expected in (
        ({"roles": ["user"]}, 1),
        ({"types": ["pin"]}, 0),
        ({"minImportance": "critical"}, 0),
        ({"until": "1999"}, 0),
        ({}, 2),
    ):
        found = said(client.post("/api/search", json={"query": word, "sessionId": session, **given}))
        assert len(found["hits"]) == expected, given
    for wrong in ({"k": 0}, {"k": 101}, {"query": " "}, {"tags": ["x"] * 21}, {"min_importance": "huge"}):
        refused = client.post("/api/search", json={"query": word, **wrong})
        assert refused.status_code == 422, wrong
        assert next(iter(wrong)) in refused.json()["error_description"]


def test_a_question_finds_its_answer_and_the_feedback_on_it(client: httpx2.Client) -> None:
    question = f"How do I renew the passport of {fresh('ann')}?"
    ids = record(client, fresh("talk"), question, "At the town hall.")
    kept = client.post("/api/feedback", json={"target_id": ids[1], "label": "up", "note": "Right."})
    assert (kept.status_code, kept.json()["target_id"]) == (201, ids[1])
    found = said(client.post("/api/past-answers", json={"query": question}))["past_answers"]
    assert (found[0]["question"], found[0]["up"]) == (question, 1)
    assert found[0]["answers"][0]["text"] == "At the town hall."
    assert client.post("/api/feedback", json={"target_id": "msg_999999", "label": "up"}).status_code == 404
    assert said(client.get("/api/graph"))["agent_id"] == "default"


def test_what_every_conversation_knows_is_the_profile(client: httpx2.Client) -> None:
    word = fresh("penicillin")
    pinned = {"session_id": fresh("talk"), "content": f"The user is allergic to {word}.", "scope": "person"}
    pin = said(client.post("/api/memory/pins", json=pinned))["id"]
    known = said(client.get("/api/profile"))["known"]
    [line] = [one for one in known if one["record_id"] == pin]
    assert (line["subject"], line["scope"], line.get("kind")) == ("facts", "person", None)
    rule = {**pinned, "content": f"Never prescribe {word}."}
    pin = said(client.post("/api/memory/pins", json=rule))["id"]
    known = said(client.get("/api/profile"))["known"]
    [line] = [one for one in known if one["record_id"] == pin]
    assert (line["subject"], line["kind"]) == ("rules", "rule")


def test_tasks_are_listed_by_their_due_date(client: httpx2.Client) -> None:
    agent = fresh("agent")
    for text, fields in (("Later.", {"due_date": "2031-01-01"}), ("Sooner.", {"due_date": "2030-01-01"})):
        body = {"type": "task", "text": text, "fields": fields, "agent_id": agent}
        said(client.post("/api/records", json=body))
    tasks = said(client.get("/api/tasks", params={"agent_id": agent, "is_done": "false"}))["tasks"]
    assert [one["text"] for one in tasks] == ["Sooner.", "Later."]
    assert said(client.get("/api/tasks", params={"agent_id": agent, "is_done": "true"})) == {"tasks": []}


def test_the_memory_is_counted(client: httpx2.Client) -> None:
    before = said(client.get("/api/stats"))
    record(client, fresh("talk"), "Tea, please.")
    after = said(client.get("/api/stats"))
    assert after["messages"] == before["messages"] + 1
    assert after["sessions"] == before["sessions"] + 1
    assert "default" in said(client.get("/api/agents"))["agents"]
