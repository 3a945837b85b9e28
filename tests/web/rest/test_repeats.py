"""Requests that are sent again with the same Idempotency-Key, and edits that are based on an old version."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from kalito_mcp.domain.access import Permission
from tests.server.web import web
from tests.web.rest.served import Served, fresh, record, said, served

Request = tuple[str, dict[str, Any], dict[str, Any]]


def requests_of(client: httpx2.Client) -> Mapping[str, Request]:
    """By what they write: a path, a body, and another body."""
    session, summarised = fresh("talk"), fresh("talk")
    ids = record(client, summarised, "We fly to Oslo in May.", "Noted.")
    span = {"session_id": summarised, "start_message_id": ids[0], "end_message_id": ids[1]}
    said_once = [{"role": "user", "text": "Tea, please."}, {"role": "assistant", "text": "Here you are."}]
    return {
        "messages": (
            f"/api/sessions/{session}/messages",
            {"messages": said_once},
            {"messages": [*said_once, {"role": "user", "text": "Thank you."}]},
        ),
        "pin": (
            "/api/memory/pins",
            {"session_id": session, "content": "Likes tea."},
            {"session_id": session, "content": "Likes tea.", "importance_score": 0.1},
        ),
        "summary": ("/api/memory/summaries", {**span, "summary": "Oslo, May."}, {**span, "summary": "Oslo."}),
        "automatic summary": ("/api/memory/summaries", span, {**span, "end_message_id": ids[0]}),
        "note": (
            "/api/records",
            {"type": "note", "text": f"Tea {session} is green."},
            {"type": "note", "text": f"Tea {session} is black."},
        ),
        "task": (
            "/api/records",
            {"type": "task", "text": f"Buy tea {session}.", "session_id": session},
            {"type": "task", "text": f"Buy tea {session}.", "session_id": session, "fields": {"priority": "high"}},
        ),
    }


def test_a_hit_shows_no_key_that_was_made_for_a_request(client: httpx2.Client) -> None:
    url, word = f"/api/sessions/{fresh('talk')}/messages", fresh("tea")
    sent = {"messages": [{"role": "user", "text": f"The {word} is mine."}]}
    said(client.post(url, json=sent, headers={"idempotency-key": fresh("key")}))
    [hit] = said(client.post("/api/search", json={"query": word}))["hits"]
    assert "client_key" not in hit


KINDS = ("messages", "pin", "summary", "automatic summary", "note", "task")


@pytest.mark.parametrize("kind", KINDS)
def test_a_repetition_has_one_effect_and_the_same_answer(client: httpx2.Client, kind: str) -> None:
    path, body, other = requests_of(client)[kind]
    key = {"idempotency-key": fresh("key")}
    first = client.post(path, json=body, headers=key)
    before = said(client.get("/api/stats"))
    assert first.status_code == 201, first.text
    again = client.post(path, json=body, headers=key)
    assert (again.status_code, again.json()) == (201, first.json())
    assert again.headers.get("location") == first.headers.get("location")
    refused = client.post(path, json=other, headers=key)
    assert (refused.status_code, refused.json()["error"]) == (409, "client_key_reused")
    assert "Idempotency-Key" in refused.json()["error_description"]
    assert said(client.get("/api/stats")) == before


@pytest.mark.parametrize("kind", ["messages", "automatic summary", "note"])
def test_of_many_at_once_one_has_an_effect(server: Served, client: httpx2.Client, kind: str) -> None:
    path, body, _ = requests_of(client)[kind]
    key = {"idempotency-key": fresh("key")}

    def send(_place: int) -> Any:
        with server.client() as one:
            return said(one.post(path, json=body, headers=key))

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(send, range(4)))
    assert answers == [answers[0]] * 4


def test_a_key_of_another_owner_never_matches(server: Served, client: httpx2.Client) -> None:
    session, key = fresh("talk"), {"idempotency-key": fresh("key")}
    path, body = "/api/memory/pins", {"session_id": session, "content": "Likes tea."}
    ours = said(client.post(path, json=body, headers=key))
    with server.client(server.other) as other:
        theirs = said(other.post(path, json={**body, "content": "Likes coffee."}, headers=key))
        assert theirs["id"] != ours["id"]
        assert other.get(f"/api/records/{ours['id']}").status_code == 404


def test_a_repetition_answers_what_was_edited_meanwhile_as_it_is_now(client: httpx2.Client) -> None:
    key, body = {"idempotency-key": fresh("key")}, {"session_id": fresh("talk"), "content": "Likes tea."}
    made = said(client.post("/api/memory/pins", json=body, headers=key))
    said(client.patch(f"/api/records/{made['id']}", json={"text": "Likes rum."}, headers={"if-match": '"1"'}))
    again = said(client.post("/api/memory/pins", json=body, headers=key))
    assert (again["id"], again["content"]) == (made["id"], "Likes rum.")


def test_no_word_of_an_erased_record_comes_back_by_its_key(server: Served, client: httpx2.Client) -> None:
    word = fresh("zanzibar")
    key, body = {"idempotency-key": fresh("key")}, {"session_id": fresh("talk"), "content": f"Flies to {word}."}
    made = said(client.post("/api/memory/pins", json=body, headers=key))
    said(client.post("/api/purge", json={"record_ids": [made["id"]]}))
    again = client.post("/api/memory/pins", json=body, headers=key)
    assert (again.status_code, word in again.text) == (409, False)
    for file in server.database.parent.rglob("*"):
        assert not file.is_file() or word.encode() not in file.read_bytes(), file


def test_a_key_survives_a_killed_server(tmp_path: Path) -> None:
    session, key = fresh("talk"), {"idempotency-key": fresh("key")}
    path, body = f"/api/sessions/{session}/messages", {"messages": [{"role": "user", "text": "Tea, please."}]}
    with served(tmp_path) as first, first.client() as client:
        made = said(client.post(path, json=body, headers=key))
        token = first.tokens[Permission.ADMIN]
        # The server is killed as its block ends.
    with web("http", tmp_path / "memory.db", login=True) as second:
        headers = {"authorization": f"Bearer {token}", **key}
        with httpx2.Client(
            base_url=second.url.removesuffix("/mcp"), headers=headers, trust_env=False, verify=False
        ) as client:
            assert said(client.post(path, json=body)) == made
            assert said(client.get(f"/api/sessions/{session}"))["messages"] == 1


def test_what_may_be_sent_again_without_a_key_changes_nothing_the_second_time(client: httpx2.Client) -> None:
    word = fresh("tea")
    kept = [
        said(client.post("/api/records", json={"type": "note", "text": f"{word}, cup {place}."})) for place in (1, 2)
    ]
    url = f"/api/records/{kept[0]['id']}"
    said(client.patch(url, json={"text": f"{word}, pot."}, headers={"if-match": '"1"'}))
    again = [said(client.post(f"{url}/revert", json={"version": 1}))["revision"] for _ in range(2)]
    assert again == [3, 3]
    for purge, path in ((False, "/api/forgetting"), (True, "/api/forgetting/purge")):
        subject = {"about": word}
        token = said(client.post("/api/forgetting/preview", json={**subject, "purge": purge}))["token"]
        said(client.post(path, json={**subject, "token": token}))
        before = said(client.get("/api/stats"))
        repeated = client.post(path, json={**subject, "token": token})
        assert (repeated.status_code, repeated.json()["error"]) == (409, "conflict")
        assert "If you already sent it, it is done" in repeated.json()["error_description"]
        assert said(client.get("/api/stats")) == before


def test_a_key_is_refused_where_it_cannot_be_kept(client: httpx2.Client) -> None:
    refused = client.post(
        "/api/feedback", json={"target_id": "msg_1", "label": "up"}, headers={"idempotency-key": "12345678"}
    )
    assert refused.status_code == 422
    assert "leave Idempotency-Key out" in refused.json()["error_description"]
    for key in ("1234567", "x" * 201):
        answer = client.post("/api/records", json={"type": "note", "text": "Tea."}, headers={"idempotency-key": key})
        assert answer.status_code == 422
        assert "send 8 to 200" in answer.json()["error_description"]


def test_what_is_safe_to_repeat_takes_any_key(client: httpx2.Client) -> None:
    session = fresh("talk")
    record(client, session, "Tea, please.")
    for _ in range(2):
        done = said(client.post(f"/api/sessions/{session}/finalize", headers={"idempotency-key": "12345678"}))
        assert done["session"]["state"] == "FINALIZED"


def test_a_secret_that_was_removed_is_not_in_the_key(server: Served, client: httpx2.Client) -> None:
    session, key = fresh("talk"), {"idempotency-key": fresh("key")}
    one, two = (f"The password is {word}xx." for word in ("hunter2", "hunter3"))
    path = "/api/memory/pins"
    first = said(client.post(path, json={"session_id": session, "content": one}, headers=key))
    # As it is stored without the password, the other request asks for the same.
    second = said(client.post(path, json={"session_id": session, "content": two}, headers=key))
    assert first["id"] == second["id"]
    assert "hunter" not in first["content"]
    assert first["redacted"] == ["password"]
