"""The table: who may use which endpoint, and that nothing else is served."""

import re
from collections.abc import Mapping
from typing import Any

import httpx2
import pytest

from kalito_mcp.domain.access import Permission
from kalito_mcp.web.rest.endpoint import AnyEndpoint
from kalito_mcp.web.rest.openapi import document_of
from kalito_mcp.web.rest.table import TABLE
from tests.web.rest.served import Served, fresh, said

EXPECTED = {
    "POST /api/memory/summaries": "write",
    "POST /api/memory/pins": "write",
    "POST /api/memory/{session_id}/score-messages": "write",
    "GET /api/sessions": "read",
    "GET /api/sessions/{session_id}": "read",
    "GET /api/sessions/{session_id}/messages": "read",
    "POST /api/sessions/{session_id}/messages": "write",
    "GET /api/sessions/{session_id}/stats": "read",
    "GET /api/sessions/{session_id}/graph": "read",
    "POST /api/sessions/{session_id}/finalize": "write",
    "POST /api/context": "read",
    "GET /api/records": "read",
    "POST /api/records": "write",
    "GET /api/records/{record_id}": "read",
    "PATCH /api/records/{record_id}": "write",
    "DELETE /api/records/{record_id}": "write",
    "GET /api/records/{record_id}/parts": "read",
    "POST /api/records/{record_id}/restore": "write",
    "POST /api/records/{record_id}/share": "write",
    "GET /api/spaces": "read",
    "POST /api/records/{record_id}/revert": "write",
    "GET /api/records/{record_id}/history": "read",
    "GET /api/records/{record_id}/diff": "read",
    "GET /api/pins": "read",
    "POST /api/purge": "admin",
    "POST /api/forgetting/preview": "read",
    "POST /api/forgetting": "write",
    "POST /api/forgetting/purge": "admin",
    "POST /api/search": "read",
    "POST /api/past-answers": "read",
    "POST /api/feedback": "write",
    "GET /api/profile": "read",
    "GET /api/tasks": "read",
    "GET /api/graph": "read",
    "GET /api/snapshots": "read",
    "GET /api/snapshots/{snapshot_id}": "read",
    "GET /api/projects": "read",
    "GET /api/agents": "read",
    "GET /api/stats": "read",
    "GET /api/export": "admin",
    "GET /api/audit": "admin",
    "GET /api/tokens": "admin",
    "POST /api/tokens": "admin",
    "DELETE /api/tokens/{token_id}": "admin",
    "GET /api/openapi.json": "read",
}
"""Each endpoint, and the permission that it needs."""
BODIES: dict[str, Any] = {
    "POST /api/memory/summaries": {"session_id": "s", "start_message_id": 1, "end_message_id": 1},
    "POST /api/memory/pins": {"session_id": "s", "content": "Tea."},
    "POST /api/sessions/{session_id}/messages": {"messages": [{"role": "user", "text": "Tea."}]},
    "POST /api/context": {"query": "tea"},
    "POST /api/records": {"type": "note", "text": "Tea."},
    "POST /api/records/{record_id}/revert": {"version": 1},
    "PATCH /api/records/{record_id}": {"text": "Tea."},
    "POST /api/purge": {"record_ids": ["none"]},
    "POST /api/forgetting/preview": {"about": "tea"},
    "POST /api/forgetting": {"about": "tea", "token": "none"},
    "POST /api/forgetting/purge": {"about": "tea", "token": "none"},
    "POST /api/search": {"query": "tea"},
    "POST /api/past-answers": {"query": "tea"},
    "POST /api/feedback": {"target_id": "msg_1", "label": "up"},
    "POST /api/tokens": {"permission": "read"},
}
"""A body that fits, for the endpoints that need one."""


def test_the_table_is_as_written_here() -> None:
    # Whoever adds an endpoint says here who may use it.
    assert {one.name: str(one.permission) for one in TABLE} == EXPECTED


@pytest.mark.parametrize("given", [None, *Permission], ids=str)
def test_an_endpoint_is_open_to_its_permission_and_those_above(server: Served, given: Permission | None) -> None:
    for endpoint in TABLE:
        with server.client(given) as client:
            answer = asked(client, endpoint)
        if given is None:
            assert answer.status_code == 401, endpoint.name
            assert answer.headers["www-authenticate"].startswith("Bearer")
        elif given.includes(endpoint.permission):
            assert answer.status_code not in (401, 403) and answer.status_code < 500, (endpoint.name, answer.text)
        else:
            assert (answer.status_code, answer.json()["error"]) == (403, "insufficient_scope"), endpoint.name
            needed = f'Bearer error="insufficient_scope", scope="{endpoint.permission}"'
            assert answer.headers["www-authenticate"] == needed
            assert f"needs the permission {endpoint.permission}" in answer.json()["error_description"]


def test_no_endpoint_shows_or_changes_what_is_another_owners_or_beyond_limits(
    server: Served, client: httpx2.Client
) -> None:
    session, word, garden = fresh("talk"), fresh("zanzibar"), {"project": fresh("garden")}
    turn = {"messages": [{"role": "user", "text": f"We fly to {word}."}]}
    [message] = said(client.post(f"/api/sessions/{session}/messages", json=turn, params=garden))["message_ids"]
    kept = {"type": "note", "text": f"The hotel is in {word}."}
    note = said(client.post("/api/records", json=kept, params=garden))["id"]
    limited = said(client.post("/api/tokens", json={"permission": "admin", "project": fresh("shop")}))["text"]
    token = said(client.post("/api/tokens", json={"permission": "read"}))
    ours = {"session_id": session, "record_id": note, "token_id": token["id"]}
    named = {"session_id": session, "record_ids": [note], "target_id": message, "query": word, "about": word}

    def kept_so_far() -> Any:
        return said(client.get(f"/api/records/{note}")), said(client.get(f"/api/sessions/{session}/messages"))

    before = kept_so_far()
    for endpoint in TABLE:
        body = BODIES.get(endpoint.name)
        if body is not None:
            body = {**body, **{name: value for name, value in named.items() if name in body}}
        for stranger in (server.other, limited):
            with server.client(stranger) as other:
                answer = asked(other, endpoint, ours, body)
            assert answer.status_code < 500, endpoint.name
            # A note says which word is not found.
            assert word not in answer.text.replace(f'"{word}"', ""), endpoint.name
            assert garden["project"] not in answer.text, endpoint.name
        assert before == kept_so_far(), endpoint.name
    with server.client(token["text"]) as reader:
        assert said(reader.get("/api/stats"))


def asked(
    client: httpx2.Client, endpoint: AnyEndpoint, ids: Mapping[str, str] | None = None, body: Any = None
) -> httpx2.Response:
    """A request that the endpoint accepts, of things that are not there, or of those with these ids."""
    path = "/api" + re.sub(r"\{(\w+)\}", lambda found: (ids or {}).get(found[1], "nothing-like-it"), endpoint.path)
    query = "?old=1&new=1" if path.endswith("/diff") else ""
    headers = {"if-match": '"1"'} if endpoint.needs_match else {}
    return client.request(endpoint.method, path + query, json=body or BODIES.get(endpoint.name), headers=headers)


def test_the_document_has_every_endpoint_of_the_table_and_no_other(client: httpx2.Client) -> None:
    found = said(client.get("/api/openapi.json"))
    assert found == document_of(TABLE)
    listed = {
        f"{method.upper()} {path}": operation["x-permission"]
        for path, operations in found["paths"].items()
        for method, operation in operations.items()
    }
    assert listed == EXPECTED
    names = [one["operationId"] for operations in found["paths"].values() for one in operations.values()]
    assert len(set(names)) == len(names)


def test_the_document_offers_a_key_where_one_counts_and_says_what_may_be_sent_again() -> None:
    for endpoint in TABLE:
        operation = document_of([endpoint])["paths"][f"/api{endpoint.path}"][endpoint.method.lower()]
        named = {one["name"] for one in operation["parameters"]}
        assert ("Idempotency-Key" in named) == endpoint.takes_key, endpoint.name
        assert ("may be sent again" in operation.get("description", "")) == endpoint.is_idempotent, endpoint.name
        refused = operation["responses"].get("409", {}).get("description", "")
        assert ("Idempotency-Key" in refused) == endpoint.takes_key, endpoint.name


def test_a_path_that_is_not_in_the_table_is_unknown(client: httpx2.Client) -> None:
    for path in ("/api/", "/api/sesions", "/api/sessions/", "/api/records/a/b/c", "/api//records"):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["error"]) == (404, "unknown_path"), path
    answer = client.put("/api/records/msg_1")
    assert (answer.status_code, answer.headers["allow"]) == (405, "DELETE, GET, PATCH")
    assert client.options("/api/stats").status_code == 405


def test_a_head_gets_the_headers_of_its_get(client: httpx2.Client) -> None:
    answer = client.head("/api/agents")
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["etag"] == client.get("/api/agents").headers["etag"]
