"""Records over REST: their life from the first version to the last, with ETags."""

import httpx2

from kalito_mcp.domain.access import Permission
from tests.web.rest.served import Served, fresh, record, said


def test_a_note_is_kept_edited_forgotten_restored_and_reverted(client: httpx2.Client) -> None:
    word = fresh("bees")
    kept = client.post(
        "/api/records", json={"type": "note", "text": f"The shop has {word}.", "fields": {"tags": ["x"]}}
    )
    assert kept.status_code == 201
    url = kept.headers["location"]
    assert said(client.get(url))["tags"] == ["x"]
    edited = client.patch(url, json={"text": f"The shop had {word}.", "tags": None}, headers={"if-match": '"1"'})
    assert (said(edited)["revision"], edited.headers["etag"]) == (2, '"2"')
    assert said(edited)["tags"] == []
    assert said(client.delete(url, headers={"if-match": '"2"'}))["revision"] == 3
    assert said(client.get(url))["is_deleted"]
    assert said(client.post("/api/search", json={"query": word}))["hits"] == []
    assert said(client.post(f"{url}/restore"))["revision"] == 4
    assert said(client.post(f"{url}/revert", json={"version": 1}))["text"] == f"The shop has {word}."
    edits = said(client.get(f"{url}/history"))["edits"]
    assert [one["edit_type"] for one in edits] == ["create", "update", "delete", "restore", "revert"]
    assert said(client.get(url, params={"version": 2}))["text"] == f"The shop had {word}."
    assert any("had" in line for line in said(client.get(f"{url}/diff", params={"old": 1, "new": 2}))["lines"])


def test_an_edit_names_the_pins_that_still_say_the_old_words(client: httpx2.Client) -> None:
    session, word = fresh("s"), fresh("Oslo")
    [message] = record(client, session, f"We fly to {word}.")
    pin = said(
        client.post("/api/memory/pins", json={"session_id": session, "content": word, "source_message_id": message})
    )["id"]
    edited = said(client.patch(f"/api/records/{message}", json={"text": "To Bergen."}, headers={"if-match": '"1"'}))
    assert (edited["text"], edited["still_says"]) == (
        "To Bergen.",
        [{"record_id": pin, "made_from": message, "text": word}],
    )
    reverted = said(client.post(f"/api/records/{message}/revert", json={"version": 1}))
    assert reverted["still_says"] == []


def test_an_edit_needs_the_etag_that_was_read(client: httpx2.Client) -> None:
    url = client.post("/api/records", json={"type": "note", "text": fresh("tea")}).headers["location"]
    for method, body in (("PATCH", {"text": "Rum."}), ("DELETE", None)):
        missing = client.request(method, url, json=body)
        assert (missing.status_code, missing.json()["error"]) == (428, "revision_required")
        for sent in ("*", "1", '"x"'):
            assert client.request(method, url, json=body, headers={"if-match": sent}).status_code == 428, sent
        stale = client.request(method, url, json=body, headers={"if-match": '"7"'})
        assert (stale.status_code, stale.json()["error"]) == (412, "revision_conflict")
        assert 'If-Match: "1"' in stale.json()["error_description"]
    assert said(client.get(url))["revision"] == 1
    # A proxy that compresses makes an ETag weak.
    assert said(client.patch(url, json={"text": "Rum."}, headers={"if-match": 'W/"1"'}))["revision"] == 2
    for path, body in (("restore", None), ("revert", {"version": 1})):
        assert client.post(f"{url}/{path}", json=body, headers={"if-match": '"1"'}).status_code == 412


def test_who_has_the_answer_already_gets_only_that(client: httpx2.Client) -> None:
    url = client.post("/api/records", json={"type": "note", "text": fresh("tea")}).headers["location"]
    etag = client.get(url).headers["etag"]
    assert etag == '"1"'
    same = client.get(url, headers={"if-none-match": f'"0", W/{etag}'})
    assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", etag)
    said(client.patch(url, json={"text": "Rum."}, headers={"if-match": etag}))
    assert client.get(url, headers={"if-none-match": etag}).status_code == 200
    listed = client.get("/api/agents").headers["etag"]
    assert listed.startswith('W/"')
    assert client.get("/api/agents", headers={"if-none-match": listed}).status_code == 304


def test_the_parts_of_a_document_are_listed_and_forgotten_together(client: httpx2.Client) -> None:
    text = "\n\n".join(f"Chapter {place}. " + "Bees fly far. " * 120 for place in range(4))
    kept = said(
        client.post("/api/records", json={"type": "document", "text": text, "fields": {"source": fresh("book")}})
    )
    url = f"/api/records/{kept['id']}"
    assert len(kept["record_ids"]) > 1
    assert [one["id"] for one in said(client.get(f"{url}/parts"))["records"]] == kept["record_ids"]
    refused = client.get(url)
    assert refused.status_code == 422
    assert kept["record_ids"][0] in refused.json()["error_description"]
    gone = said(client.delete(url, headers={"if-match": '"1"'}))
    assert gone["record_ids"] == kept["record_ids"]


def test_what_was_made_from_each_of_many_forgotten_records_is_named(client: httpx2.Client) -> None:
    session, word = fresh("talk"), fresh("beetle")
    messages = record(client, session, *(f"{word} {place} is green." for place in range(14)))
    pinned = {"session_id": session, "content": "What the meadow has", "source_message_id": messages[-1]}
    pin = said(client.post("/api/memory/pins", json=pinned))["id"]
    span = {"session_id": session, "start_message_id": messages[0], "end_message_id": messages[-1]}
    summary = said(client.post("/api/memory/summaries", json=span))["id"]
    subject = {"about": word}
    token = said(client.post("/api/forgetting/preview", json=subject))["token"]
    gone = said(client.post("/api/forgetting", json={**subject, "token": token}))
    assert set(messages) <= set(gone["record_ids"])
    assert gone["rewritten"] == [summary]
    assert gone["still_says"] == [{"record_id": pin, "made_from": messages[-1], "text": "What the meadow has"}]


def test_records_are_listed_page_by_page(client: httpx2.Client) -> None:
    session = fresh("talk")
    for place in range(5):
        said(client.post("/api/records", json={"type": "task", "text": f"Step {place}.", "session_id": session}))
    pinned = said(client.post("/api/memory/pins", json={"session_id": session, "content": "A step at a time."}))
    asked = {"session_id": session, "type": "task", "limit": 2}
    first = said(client.get("/api/records", params=asked))
    second = said(client.get("/api/records", params={**asked, "cursor": first["next_cursor"]}))
    third = said(client.get("/api/records", params={**asked, "cursor": second["next_cursor"], "limit": 50}))
    texts = [one["text"] for page in (first, second, third) for one in page["records"]]
    assert texts == [f"Step {place}." for place in (4, 3, 2, 1, 0)]
    assert "next_cursor" not in third
    [pin] = said(client.get("/api/pins", params={"session_id": session}))["records"]
    assert pin["id"] == pinned["id"]


def test_a_cursor_of_another_query_is_refused(client: httpx2.Client) -> None:
    session = fresh("talk")
    for place in range(3):
        said(client.post("/api/records", json={"type": "task", "text": f"Step {place}.", "session_id": session}))
    cursor = said(client.get("/api/records", params={"session_id": session, "limit": 1}))["next_cursor"]
    for path, asked in (
        ("/api/records", {"session_id": session, "type": "task"}),
        ("/api/pins", {"session_id": session}),
        ("/api/sessions", {}),
        (f"/api/sessions/{session}/messages", {}),
    ):
        refused = client.get(path, params={**asked, "cursor": cursor})
        assert refused.status_code == 422, path
        assert "another query" in refused.json()["error_description"]
    for made_up in ("x", "!!", "W10", cursor[:-2], "x" * 401):
        assert client.get("/api/records", params={"session_id": session, "cursor": made_up}).status_code == 422


def test_an_erased_record_is_gone_from_everywhere(server: Served, client: httpx2.Client) -> None:
    word = fresh("zanzibar")
    url = client.post("/api/records", json={"type": "note", "text": f"We fly to {word}."}).headers["location"]
    name = url.rpartition("/")[2]
    report = said(client.post("/api/purge", json={"record_ids": [name]}))
    assert report == {"erased": [name], "rewritten": [], "remaining": {}}
    assert said(client.post("/api/purge", json={"record_ids": [name]}))["erased"] == [name]
    gone = client.get(url)
    assert (gone.status_code, gone.json()["error"]) == (404, "record_not_found")
    for file in server.database.parent.rglob("*"):
        assert not file.is_file() or word.encode() not in file.read_bytes(), file


def test_a_subject_is_forgotten_after_a_preview_and_erased_after_another(server: Served, client: httpx2.Client) -> None:
    word = fresh("Q")
    said(client.post("/api/records", json={"type": "note", "text": f"The key of the shed is {word}."}))
    found = said(client.post("/api/forgetting/preview", json={"identifier": word}))
    assert len(found["records"]) == 1
    wrong = client.post("/api/forgetting", json={"identifier": word, "token": "wrong"})
    assert (wrong.status_code, wrong.json()["error"]) == (409, "conflict")
    gone = said(client.post("/api/forgetting", json={"identifier": word, "token": found["token"]}))
    assert gone["record_ids"] == [found["records"][0]["id"]]
    with server.client(Permission.READ) as reader:
        more = said(reader.post("/api/forgetting/preview", json={"identifier": word, "purge": True}))
    erased = said(client.post("/api/forgetting/purge", json={"identifier": word, "token": more["token"]}))
    assert erased["erased"] == gone["record_ids"]
    assert said(client.post("/api/forgetting/preview", json={"identifier": word, "purge": True})) == {"records": []}


def test_a_record_as_it_was_at_a_moment(client: httpx2.Client) -> None:
    url = client.post("/api/records", json={"type": "note", "text": fresh("tea")}).headers["location"]
    said(client.patch(url, json={"text": "Rum."}, headers={"if-match": '"1"'}))
    assert said(client.get(url, params={"as_of": "9999-01-01"}))["text"] == "Rum."
    assert client.get(url, params={"as_of": "1999-01-01"}).status_code == 404
    both = client.get(url, params={"as_of": "1999-01-01", "version": 1})
    assert both.json()["error_description"] == "send as_of or version, not both"


def test_a_record_with_a_name_that_none_has_is_not_found(client: httpx2.Client) -> None:
    for query in ("", "?version=1", "?as_of=2026-03-05"):
        found = client.get(f"/api/records/{'x' * 201}{query}")
        assert (found.status_code, found.json()["error"]) == (404, "record_not_found")


def test_a_request_has_one_key(client: httpx2.Client) -> None:
    # The header is the key of a request over REST: a second one in the body could contradict it.
    pin = client.post("/api/memory/pins", json={"content": "Likes tea.", "client_key": "p1"})
    assert (pin.status_code, "unknown key 'client_key'" in pin.json()["error_description"]) == (422, True)


def test_the_range_of_a_summary_may_be_named_by_numbers(client: httpx2.Client) -> None:
    session = fresh("talk")
    first, last = record(client, session, "We have two hives.", "They need frames.")
    numbers = {"start_message_id": int(first[4:]), "end_message_id": int(last[4:])}
    made = client.post("/api/memory/summaries", json={"session_id": session, **numbers})
    assert said(made)["start_message_id"] == first
    long = client.post("/api/memory/summaries", json={"session_id": session, **numbers, "start_message_id": "x" * 41})
    assert "longer than 40 characters" in long.json()["error_description"]
