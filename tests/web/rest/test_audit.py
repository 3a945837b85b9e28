"""The audit log over REST: each call that changes something is in it, for its owner alone."""

import httpx2

from kalito_mcp.domain.access import Permission
from kalito_mcp.domain.scope import Limits
from tests.web.rest.served import Served, fresh, made_token, record, said


def test_each_change_is_logged_under_the_name_of_its_endpoint(server: Served, client: httpx2.Client) -> None:
    session = fresh("talk")
    [first, _] = record(client, session, "To Oslo.", "Noted.")
    said(client.patch(f"/api/records/{first}", json={"text": "To Bergen."}, headers={"if-match": '"1"'}))
    said(client.get(f"/api/records/{first}"))
    client.get("/api/export")
    found = said(client.get("/api/audit", params={"limit": 3}))["entries"]
    assert [one["action"] for one in found] == [
        "GET /api/export",
        "PATCH /api/records/{record_id}",
        "POST /api/sessions/{session_id}/messages",
    ]
    assert {"what": "changed", "count": 1, "ids": [first]} in found[1]["changes"]
    assert session in found[2]["changes"][0]["ids"]
    assert len({one["principal"] for one in found}) == 1
    assert "Oslo" not in str(found)


def test_the_log_comes_in_pages_and_shows_no_other_owner(server: Served, client: httpx2.Client) -> None:
    record(client, fresh("talk"), "One.")
    page = said(client.get("/api/audit", params={"limit": 1}))
    more = said(client.get("/api/audit", params={"limit": 1, "cursor": page["next_cursor"]}))
    assert more["entries"][0]["number"] < page["entries"][0]["number"]
    with server.client(server.other) as other:
        numbers = {one["number"] for one in said(other.get("/api/audit"))["entries"]}
    assert page["entries"][0]["number"] not in numbers


def test_who_is_limited_to_a_project_gets_it_and_neither_all_of_them_nor_the_log(server: Served) -> None:
    with server.client(made_token(server.database, Permission.ADMIN, limits=Limits(project="shop"))) as client:
        said(client.get("/api/sessions"))
        for path, asked in (("/api/sessions", {"project": "*"}), ("/api/audit", {})):
            answer = client.get(path, params=asked)
            assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")
