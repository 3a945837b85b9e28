"""Requests that are wrong: each is refused in words, and nothing is written."""

import sqlite3
from pathlib import Path
from typing import Any

import httpx2

from kalito_mcp.domain.access import Permission
from kalito_mcp.runtime.database_address import LocalFiles
from kalito_mcp.switch import FOR_EVER, Switch, write_switch
from tests.server.web import web
from tests.web.rest.served import Served, fresh, record, said, served

NOTE = "/api/records"


def test_a_wrong_body_is_refused_in_words(client: httpx2.Client) -> None:
    for sent, words in (
        (b"{", "not valid JSON"),
        (b"[]", "the body must be an object"),
        (b'{"type":"note","text":"a","text":"b"}', "'text' twice"),
        (b'{"type":"note","text":"a","fields":{"importance_score":NaN}}', "not valid JSON"),
        (b'{"type":"note","text":"\xff"}', "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b'{"type":"note"}', "text is missing; send it"),
        (b'{"type":"notes","text":"a"}', "type must be 'note', 'task', 'document' or 'thought'"),
        (b'{"type":"note","text":5}', "text must be a string, not 5"),
        (b'{"type":"note","text":"a","txet":"b"}', "unknown key 'txet'; did you mean 'text'?"),
        (b'{"type":"note","text":"a","fields":{"tag":["x"]}}', "did you mean 'tags'?"),
    ):
        answer = client.post(NOTE, content=sent, headers={"content-type": "application/json"})
        assert (answer.status_code, answer.json()["error"]) == (422, "invalid_input"), answer.text
        assert words in answer.json()["error_description"]


def test_a_fault_within_a_list_names_its_place(client: httpx2.Client) -> None:
    body = {"messages": [{"role": "user", "text": "Tea."}, {"role": "user", "texts": "Rum."}]}
    answer = client.post(f"/api/sessions/{fresh('talk')}/messages", json=body)
    said_why = answer.json()["error_description"]
    assert "messages[1].text is missing" in said_why
    assert "unknown key 'texts' in messages[1]; did you mean 'text'?" in said_why


def test_another_content_type_is_refused(client: httpx2.Client) -> None:
    answer = client.post(NOTE, content=b'{"type":"note","text":"a"}', headers={"content-type": "text/plain"})
    assert (answer.status_code, answer.json()["error"]) == (415, "unsupported_media_type")
    patch = {"content-type": "application/merge-patch+json", "if-match": '"1"'}
    url = client.post(NOTE, json={"type": "note", "text": fresh("tea")}).headers["location"]
    assert said(client.patch(url, content=b'{"text":"Rum."}', headers=patch))["text"] == "Rum."


def test_a_wrong_query_is_refused_in_words(client: httpx2.Client) -> None:
    for query, words in (
        ("limt=5", "unknown argument 'limt'; did you mean 'limit'?"),
        ("limit=5&limit=6", "limit is given twice"),
        ("limit=0", "limit must be at least 1"),
        ("limit=201", "limit must be at most 200"),
        ("limit=x", "limit must be a whole number"),
        ("type=pins", "type[0] must be"),
        ("%FF=1", "not valid"),
        ("session_id=a%00b", "session_id contains control characters"),
    ):
        answer = client.get(f"{NOTE}?{query}")
        assert (answer.status_code, answer.json()["error"]) == (422, "invalid_input"), query
        assert words in answer.json()["error_description"]


def test_what_is_too_large_is_refused(client: httpx2.Client) -> None:
    text = client.post(NOTE, json={"type": "task", "text": "x" * 600_000})
    assert (text.status_code, text.json()["error"]) == (413, "text_too_large")
    whole = client.post(NOTE, json={"type": "task", "text": "x" * 5_000_000})
    assert (whole.status_code, whole.json()["error"]) == (413, "request_too_large")
    many = client.post("/api/purge", json={"record_ids": [f"msg_{place}" for place in range(101)]})
    assert (many.status_code, "at most 100" in many.json()["error_description"]) == (422, True)


def test_a_mistyped_session_is_asked_back(client: httpx2.Client) -> None:
    session = fresh("november")
    record(client, session, "Hello.")
    answer = client.get(f"/api/sessions/{session.replace('november', 'novembre')}")
    assert (answer.status_code, answer.json()["error"]) == (404, "session_not_found")
    assert f"did you mean '{session}'?" in answer.json()["error_description"]


def test_a_damaged_record_is_trouble_of_the_storage(tmp_path: Path) -> None:
    with served(tmp_path) as running, running.client() as client:
        url = client.post(NOTE, json={"type": "note", "text": "Tea."}).headers["location"]
        with sqlite3.connect(running.database) as raw:
            raw.execute("UPDATE records SET text = 'Rum.' WHERE text = 'Tea.'")
        answer = client.get(url)
        assert (answer.status_code, answer.json()["error"]) == (503, "storage_damaged")
        assert int(answer.headers["retry-after"]) > 0


def test_a_paused_memory_takes_no_words_and_still_shows_what_it_has(tmp_path: Path) -> None:
    with served(tmp_path) as running, running.client() as client:
        [message] = record(client, "talk", "Tea, please.")
        write_switch(LocalFiles(running.database).switch, Switch(FOR_EVER))
        refused = client.post(NOTE, json={"type": "note", "text": "Rum."})
        assert (refused.status_code, "kalito-mcp resume" in refused.json()["error_description"]) == (409, True)
        assert said(client.get(f"/api/records/{message}"))["text"] == "Tea, please."
        assert said(client.delete(f"/api/records/{message}", headers={"if-match": '"1"'}))


def test_without_login_everybody_on_this_machine_may_do_all(tmp_path: Path) -> None:
    with web("http", tmp_path / "memory.db") as serving:
        origin = serving.url.removesuffix("/mcp")
        with httpx2.Client(base_url=origin, trust_env=False, verify=False) as client:
            assert said(client.post(NOTE, json={"type": "note", "text": "Tea."}))
            assert said(client.get("/api/tokens")) == {"tokens": []}
            evil: dict[str, Any] = {"origin": "https://evil.example"}
            assert client.get("/api/stats", headers=evil).status_code == 403


def test_a_revoked_token_opens_nothing(server: Served, client: httpx2.Client) -> None:
    made = client.post("/api/tokens", json={"permission": "write", "name": "phone", "days": 1})
    assert (made.status_code, made.json()["name"], made.json()["owner"]) == (201, "phone", "local")
    with server.client(made.json()["text"]) as phone:
        assert phone.get("/api/stats").status_code == 200
        assert phone.get("/api/tokens").status_code == 403
        assert said(client.delete(made.headers["location"])) == {"revoked": [made.json()["id"]]}
        assert phone.get("/api/stats").status_code == 401
    assert client.delete(made.headers["location"]).status_code == 404
    listed = {one["id"]: one for one in said(client.get("/api/tokens"))["tokens"]}
    assert listed[made.json()["id"]]["revoked_at"]
    assert "text" not in listed[made.json()["id"]]
    assert {one["owner"] for one in listed.values()} == {"local"}


def test_a_limited_token_cannot_make_a_wider_one(server: Served, client: httpx2.Client) -> None:
    made = said(client.post("/api/tokens", json={"permission": "admin", "agent_id": "coder"}))
    with server.client(made["text"]) as limited:
        for method, path, body in (
            ("GET", "/api/tokens", None),
            ("POST", "/api/tokens", {"permission": "admin"}),
            ("DELETE", f"/api/tokens/{made['id']}", None),
        ):
            answer = limited.request(method, path, json=body)
            assert (answer.status_code, answer.json()["error"]) == (403, "forbidden"), path


def test_a_token_that_ends_cannot_make_one_that_is_valid_for_longer(server: Served, client: httpx2.Client) -> None:
    made = said(client.post("/api/tokens", json={"permission": "admin", "days": 3}))
    with server.client(made["text"]) as ending:
        for days in (None, 4):
            answer = ending.post("/api/tokens", json={"permission": "read", "days": days})
            assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")
            assert made["expires_at"] in answer.json()["error_description"]
        assert said(ending.post("/api/tokens", json={"permission": "read", "days": 2}))


def test_a_token_of_another_owner_cannot_be_revoked(server: Served, client: httpx2.Client) -> None:
    with server.client(server.other) as other:
        [theirs] = said(other.get("/api/tokens"))["tokens"]
        assert client.delete(f"/api/tokens/{theirs['id']}").status_code == 404
        assert other.get("/api/stats").status_code == 200


def test_the_permission_is_checked_before_the_body_is_looked_at(server: Served) -> None:
    with server.client(Permission.READ) as reader:
        answer = reader.post(NOTE, content=b"{", headers={"content-type": "application/json"})
        assert answer.status_code == 403


def test_only_what_may_change_something_counts_as_a_write(tmp_path: Path) -> None:
    with served(tmp_path, KALITO_HTTP_WRITES_PER_MINUTE="1") as running, running.client() as client:
        for _ in range(3):
            said(client.post("/api/search", json={"query": "tea"}))
        assert client.post(NOTE, json={"type": "note", "text": "Tea."}).status_code == 201
        refused = client.post(NOTE, json={"type": "note", "text": "Rum."})
        assert (refused.status_code, refused.json()["error"]) == (429, "too_many_requests")
        assert client.get("/api/stats").status_code == 200


def test_requests_are_counted_by_the_path_of_the_table(client: httpx2.Client) -> None:
    session = fresh("talk")
    record(client, session, "Tea, please.")
    said(client.get(f"/api/sessions/{session}"))
    numbers = client.get("/metrics").text
    assert 'route="/api/sessions/{session_id}"' in numbers
    assert session not in numbers
