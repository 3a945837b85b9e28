"""Conversations over REST."""

import httpx2

from tests.web.rest.served import Served, fresh, record, said

ODD = "a/b=&:%.. ?#\né"
"""A name with everything that a URL could stumble over."""


def quoted(name: str) -> str:
    return "".join(f"%{byte:02X}" for byte in name.encode())


def test_a_conversation_is_recorded_listed_and_counted(client: httpx2.Client) -> None:
    session = fresh("talk")
    sent = [{"role": "user", "text": "Tea, please.", "createdAt": "2026-03-01T10:00:00Z", "details": {"tags": ["x"]}}]
    made = client.post(f"/api/sessions/{session}/messages", json={"messages": sent})
    assert made.status_code == 201
    found = said(client.get(f"/api/sessions/{session}"))
    assert (found["session_id"], found["messages"], found["state"]) == (session, 1, "OPEN")
    [message] = said(client.get(f"/api/sessions/{session}/messages"))["messages"]
    assert message["record_id"] == made.json()["message_ids"][0] == f"msg_{message['id']}"
    assert (message["seq"], message["text"], message["hidden"]) == (1, "Tea, please.", False)
    assert message["created_at"] == "2026-03-01T10:00:00.000Z"
    stats = said(client.get(f"/api/sessions/{session}/stats"))
    specified = {"totalMessages": 1, "totalSummaries": 0, "oldestMessage": "2026-03-01T10:00:00.000Z"}
    assert specified.items() <= stats.items()
    assert {"totalPins", "newestMessage", "averageImportanceScore"} <= stats.keys()


def test_messages_come_page_by_page_from_either_end(client: httpx2.Client) -> None:
    session = fresh("talk")
    record(client, session, *(f"Turn {place}." for place in range(7)))
    for order, expected in (("oldest", list(range(7))), ("newest", list(range(6, -1, -1)))):
        texts: list[str] = []
        asked = {"order": order, "limit": 3}
        while True:
            page = said(client.get(f"/api/sessions/{session}/messages", params=asked))
            texts += [one["text"] for one in page["messages"]]
            if "next_cursor" not in page:
                break
            asked["cursor"] = page["next_cursor"]
        assert texts == [f"Turn {place}." for place in expected]


def test_a_forgotten_message_keeps_its_place_without_its_words(client: httpx2.Client) -> None:
    session = fresh("talk")
    ids = record(client, session, "Tea, please.", "Here you are.")
    said(client.delete(f"/api/records/{ids[0]}", headers={"if-match": '"1"'}))
    first, second = said(client.get(f"/api/sessions/{session}/messages"))["messages"]
    assert (first["hidden"], first["text"], second["hidden"]) == (True, "", False)


def test_sessions_come_page_by_page_those_with_the_newest_message_first(client: httpx2.Client) -> None:
    prefix = fresh("list")
    names = [f"{prefix}-{place}" for place in range(5)]
    for day, name in sorted(enumerate(names, 1), reverse=True):  # the oldest is written last, as by an import
        sent = [{"role": "user", "text": "Hello.", "createdAt": f"2026-03-0{day}T10:00:00Z"}]
        said(client.post(f"/api/sessions/{name}/messages", json={"messages": sent}))
    found: list[str] = []
    asked = {"prefix": prefix, "limit": "2"}
    while True:
        page = said(client.get("/api/sessions", params=asked))
        found += [one["session_id"] for one in page["sessions"]]
        assert all((one["title"], one["newest_message"][:7]) == ("Hello.", "2026-03") for one in page["sessions"])
        if "next_cursor" not in page:
            break
        asked["cursor"] = page["next_cursor"]
    assert found == names[::-1]


def test_an_id_may_have_anything_in_it_that_a_name_may(client: httpx2.Client) -> None:
    name = f"{fresh('x')}/b=&:%.. ?#é"
    said(client.post(f"/api/sessions/{quoted(name)}/messages", json={"messages": [{"role": "user", "text": "Tea."}]}))
    assert said(client.get(f"/api/sessions/{quoted(name)}"))["session_id"] == name
    assert client.get(f"/api/sessions/{quoted(ODD)}").status_code == 404
    assert client.get("/api/sessions/%FF").json()["error"] == "invalid_input"


def test_a_context_has_the_specified_parts_and_a_preview_counts_nothing(client: httpx2.Client) -> None:
    session = fresh("talk")
    record(client, session, "We fly to Oslo in May.", "Noted.")
    pin = said(
        client.post("/api/memory/pins", json={"session_id": session, "content": "Oslo in May", "scope": "session"})
    )
    asked = {"session_id": session, "max_tokens": 1_000}
    found = said(client.post("/api/context", json={**asked, "preview": True}))
    assert [one["text"] for one in found["recentMessages"]] == ["We fly to Oslo in May.", "Noted."]
    assert [one["content"] for one in found["semanticPins"]] == ["Oslo in May"]
    assert found["summaries"] == []
    assert 0 < found["totalTokens"] <= 1_000
    assert "We fly to Oslo in May." in found["text"]
    small = client.post("/api/context", json={"session_id": session, "max_tokens": 1})
    assert (small.status_code, small.json()["error"]) == (422, "budget_too_small")
    assert said(client.get(f"/api/records/{pin['id']}"))["usage_count"] == 0


def test_a_context_without_a_project_has_what_its_query_finds_in_all_of_them_and_else_what_is_personal(
    client: httpx2.Client,
) -> None:
    shop, said_there = fresh("shop"), f"The {fresh('kettle')} is blue."
    body = {"messages": [{"role": "user", "text": said_there}]}
    said(client.post(f"/api/sessions/{fresh('talk')}/messages", json=body, params={"project": shop}))
    for place in ({}, {"session_id": fresh("new")}):
        asked = {"query": said_there, "preview": True, **place}
        texts = [
            said(client.post("/api/context", json=asked, params={"project": project} if project else {}))["text"]
            for project in (None, "personal", shop, "*")
        ]
        assert [said_there in text for text in texts] == [True, False, True, True]
    pin = {"session_id": fresh("talk"), "content": said_there, "scope": "project"}
    said(client.post("/api/memory/pins", json=pin, params={"project": shop}))
    assert said_there in said(client.post("/api/context", json={}, params={"project": shop}))["text"]
    assert said_there not in said(client.post("/api/context", json={}))["text"]


def test_closing_a_conversation_twice_changes_nothing_more(client: httpx2.Client) -> None:
    session = fresh("talk")
    record(client, session, "How do I renew a passport?", "At the town hall.")
    would = said(client.post(f"/api/sessions/{session}/finalize", json={"dryRun": True}))
    assert (would["dry_run"], would["session"]["state"]) == (True, "OPEN")
    done = said(client.post(f"/api/sessions/{session}/finalize"))
    assert (done["session"]["state"], done["summaries_made"]) == ("FINALIZED", 1)
    assert said(client.post(f"/api/sessions/{session}/finalize"))["summaries_made"] == 0
    refused = client.post(f"/api/sessions/{session}/messages", json={"messages": [{"role": "user", "text": "More."}]})
    assert (refused.status_code, refused.json()["error"]) == (409, "session_finalized")
    [snapshot, *_] = said(client.get("/api/snapshots"))["snapshots"]
    content = client.get(f"/api/snapshots/{snapshot['name']}")
    assert len(content.content) == snapshot["bytes"]
    assert "How do I renew a passport?" in [node.get("text") for node in content.json()["graph"]["nodes"]]
    for name, status in (("nope", 404), ("..%2F..%2Fmemory", 422)):
        assert client.get(f"/api/snapshots/{name}").status_code == status
    assert said(client.get(f"/api/sessions/{session}/graph"))["session_id"] == session


def test_a_project_narrows_what_is_read_and_takes_what_is_written(client: httpx2.Client) -> None:
    ours, theirs, word = fresh("shop"), fresh("blog"), fresh("tea")
    for project in (ours, theirs):
        body = {"messages": [{"role": "user", "text": f"The {word} is in {project}."}]}
        made = client.post(f"/api/sessions/talk-{project}/messages", json=body, params={"project": project})
        assert said(made)["project"] == project
    for asked, expected in (({}, 2), ({"project": "*"}, 2), ({"project": ours}, 1), ({"project": "personal"}, 0)):
        hits = said(client.post("/api/search", json={"query": word}, params=asked))["hits"]
        assert sum(word in hit["text"] for hit in hits) == expected, asked
    assert ours in [one["project"] for one in said(client.get("/api/projects"))["projects"]]


def test_a_conversation_that_is_begun_within_limits_is_answered_under_its_own_id(
    server: Served, client: httpx2.Client
) -> None:
    session, shop = fresh("talk"), fresh("shop")
    body = {"messages": [{"role": "user", "text": "Tea, please."}]}
    said(client.post(f"/api/sessions/{session}/messages", json=body, params={"project": fresh("blog")}))
    made = said(client.post("/api/tokens", json={"permission": "write", "project": shop}))
    with server.client(made["text"]) as limited:
        recorded = said(limited.post(f"/api/sessions/{session}/messages", json=body))
        scored = said(limited.post(f"/api/memory/{session}/score-messages"))
        own = recorded["session_id"]
        assert (own == session, own, recorded["project"]) == (False, scored["session_id"], shop)
        listed = said(limited.get("/api/sessions", params={"prefix": session}))["sessions"]
        assert [one["session_id"] for one in listed] == [own]


def test_a_token_of_one_project_reads_its_conversations_and_the_personal_ones(
    server: Served, client: httpx2.Client
) -> None:
    shop, sessions = fresh("shop"), {None: fresh("home"), "other": fresh("blog")}
    sessions[shop] = fresh("talk")
    for project, session in sessions.items():
        asked = {} if project is None else {"project": project}
        body = {"messages": [{"role": "user", "text": "Tea, please."}]}
        said(client.post(f"/api/sessions/{session}/messages", json=body, params=asked))
    made = said(client.post("/api/tokens", json={"permission": "read", "project": shop}))
    with server.client(made["text"]) as limited:
        for project, session in sessions.items():
            expected = 404 if project == "other" else 200
            for path in ("", "/messages", "/messages?order=newest", "/stats"):
                assert limited.get(f"/api/sessions/{session}{path}").status_code == expected, (project, path)
            context = limited.post("/api/context", json={"session_id": session, "max_tokens": 500})
            assert context.status_code == expected, project
