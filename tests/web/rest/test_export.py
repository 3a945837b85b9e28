"""The export over REST: the same archive as the command line's, as a stream."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from kalito_mcp.domain.access import Permission, Principal
from kalito_mcp.domain.archive import Selection
from kalito_mcp.exchange.archive import restore_archive
from kalito_mcp.memory import Memory
from kalito_mcp.web.guard import PRINCIPAL_KEY
from kalito_mcp.web.rest.app import RestApp
from kalito_mcp.web.rest.table import TABLE
from kalito_mcp.wiring import open_memory
from tests.empty_database import lay_empty_database
from tests.web.rest.served import Served, fresh, record, said


def test_an_exported_memory_is_restored_as_it_was(client: httpx2.Client, tmp_path: Path) -> None:
    session = fresh("talk")
    record(client, session, "Tea, please.", "Here you are.")
    said(client.post("/api/records", json={"type": "note", "text": f"Tea of {session}."}))
    answer = client.get("/api/export")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/x-ndjson")
    (tmp_path / "archive").write_bytes(answer.content)

    async def restored() -> int:
        async with open_memory(lay_empty_database(tmp_path / "other.db")) as memory:
            await restore_archive(memory, tmp_path / "archive")
            return (await memory.conversations.stats(session)).total_messages

    assert anyio.run(restored) == 2


def test_one_conversation_is_exported_alone(client: httpx2.Client) -> None:
    ours, theirs = fresh("ours"), fresh("theirs")
    record(client, ours, "Tea, please.")
    record(client, theirs, "Rum, please.")
    text = client.get("/api/export", params={"session": ours}).text
    assert "Tea, please." in text
    assert "Rum, please." not in text


def test_a_refusal_comes_before_the_stream_begins(client: httpx2.Client) -> None:
    answer = client.get("/api/export", params={"session": "no-such-session"})
    assert (answer.status_code, answer.json()["error"]) == (404, "session_not_found")


def test_another_owner_exports_nothing_of_ours(server: Served, client: httpx2.Client) -> None:
    word = fresh("tea")
    record(client, fresh("talk"), f"The {word} is green.")
    with server.client(server.other) as other:
        assert word not in other.get("/api/export").text


def test_a_limited_token_exports_nothing_and_no_export_is_logged(server: Served, client: httpx2.Client) -> None:
    word = fresh("tea")
    record(client, fresh("talk"), f"The {word} is green.")
    made = said(client.post("/api/tokens", json={"permission": "admin", "agent_id": "coder"}))
    with server.client(made["text"]) as limited:
        for asked in ({}, {"agent": "coder"}, {"agent": "default"}):
            answer = limited.get("/api/export", params=asked)
            assert (answer.status_code, answer.json()["error"], word in answer.text) == (403, "forbidden", False)
    logged = said(client.get("/api/audit"))["entries"]
    assert not [one for one in logged if one["principal"] == made["id"]]


@pytest.mark.parametrize(("method", "read"), [("GET", 3), ("HEAD", 1)])
def test_an_export_reads_no_further_than_its_reader(tmp_path: Path, method: str, read: int) -> None:
    """As uvicorn does it: who is gone is told by `receive`, and `send` takes what comes all the same."""
    pieces, sent = 0, list[Any]()

    async def exporter(_memory: Memory, _selection: Selection) -> AsyncGenerator[bytes]:
        nonlocal pieces
        while pieces < 50:
            pieces += 1
            yield b"{}\n"

    async def receive() -> dict[str, Any]:
        if not sent:
            return {"type": "http.request", "body": b"", "more_body": False}
        if pieces < 3:
            await anyio.sleep_forever()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    async def export() -> None:
        async with open_memory(lay_empty_database(tmp_path / "memory.db")) as memory:

            async def opened() -> Memory:
                return memory

            scope = {
                **{"type": "http", "method": method, "path": "/api/export", "raw_path": b"/api/export"},
                **{"query_string": b"", "headers": [], PRINCIPAL_KEY: Principal("tok_1", "local", Permission.ADMIN)},
            }
            await RestApp(TABLE, opened, exporter)(scope, receive, send)

    anyio.run(export)
    assert (pieces, sent[0]["status"]) == (read, 200)
    assert sent[-1].get("more_body", False) == (method == "GET"), "whoever has not got all of it must see that"
