"""Requests over HTTP that do not arrive: too slow, too long, or broken off."""

import asyncio
import gc
import json
import re
import socket
import weakref
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from kalito_mcp.domain.access import Principal
from kalito_mcp.server import arrival
from kalito_mcp.server.arrival import TimelyConnection, WholeRequests
from kalito_mcp.web.guard import PRINCIPAL_KEY
from tests.server.web import web
from tests.server.wire import MODERN, PATIENCE_S

pytestmark = pytest.mark.anyio

_STRANGER = {"type": "http", "method": "POST", "path": "/token", "headers": []}
_HTTP = {**_STRANGER, "path": "/mcp", PRINCIPAL_KEY: Principal("ann", "ann")}


class _Exchange:
    """One request of these messages, whose last one never comes if `is_endless`; and what became of it."""

    def __init__(self, *messages: Message, is_endless: bool = False) -> None:
        self._messages: Iterator[Message] = iter(messages)
        self._is_endless = is_endless
        self.read: list[Message] = []
        self.sent: list[Message] = []

    async def run(self, *, body_s: float = PATIENCE_S, scope: Scope = _HTTP) -> None:
        await WholeRequests(self._app, body_s=body_s)(scope, self._receive, self._send)

    async def _app(self, _: Scope, receive: Receive, send: Send) -> None:
        self.read += [await receive(), await receive()]
        await PlainTextResponse("done")(_HTTP, receive, send)

    async def _receive(self) -> Message:
        message = next(self._messages, None)
        if message is None and self._is_endless:
            await asyncio.Event().wait()
        return message or {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        self.sent.append(message)


def _part(body: bytes, *, is_last: bool = False) -> Message:
    return {"type": "http.request", "body": body, "more_body": not is_last}


async def test_a_body_in_parts_is_passed_on_whole() -> None:
    exchange = _Exchange(_part(b"one "), _part(b"two", is_last=True))
    await exchange.run()
    assert exchange.read == [_part(b"one two", is_last=True), {"type": "http.disconnect"}]
    assert exchange.sent[0]["status"] == 200


async def test_a_body_that_does_not_end_is_refused_when_its_time_is_over() -> None:
    exchange = _Exchange(_part(b"one "), is_endless=True)
    await exchange.run(body_s=0.01)
    assert exchange.read == []
    assert exchange.sent[0]["status"] == 408
    assert (b"connection", b"close") in exchange.sent[0]["headers"]
    assert json.loads(exchange.sent[1]["body"]) == {
        "error": "too_slow",
        "error_description": "the body of the request did not arrive within 0.01 s; send it again",
    }


async def test_a_body_without_a_length_is_read_no_further_than_its_limit() -> None:
    exchange = _Exchange(*[_part(b"x" * 1_048_576)] * 5, is_endless=True)
    await exchange.run()
    assert exchange.read == []
    assert exchange.sent[0]["status"] == 413


async def test_of_a_stranger_no_more_is_read_than_a_form_has() -> None:
    exchange = _Exchange(_part(b"x" * 65_537), is_endless=True)
    await exchange.run(scope=_STRANGER)
    assert exchange.read == []
    assert exchange.sent[0]["status"] == 413
    exchange = _Exchange(_part(b"x" * 65_537, is_last=True))
    await exchange.run()
    assert exchange.sent[0]["status"] == 200


async def test_a_client_that_leaves_within_the_body_is_not_answered() -> None:
    exchange = _Exchange(_part(b"one "))
    await exchange.run()
    assert (exchange.read, exchange.sent) == ([], [])


@pytest.mark.parametrize("sent", [b"", b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-"])
async def test_a_connection_without_a_whole_head_is_closed_when_its_time_is_over(
    monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(arrival, "HEAD_S", 0.05)
    async with _connected() as (reader, writer):
        writer.write(sent)
        assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""


async def test_a_connection_is_kept_after_an_answer_for_longer_than_a_head_may_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(arrival, "HEAD_S", 0.05)
    async with _connected() as (reader, writer):
        for _ in range(2):
            writer.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert await asyncio.wait_for(reader.readuntil(b"done"), PATIENCE_S)
            await asyncio.sleep(0.1)
        monkeypatch.setattr(arrival, "IDLE_S", 0.05)
        writer.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert (await asyncio.wait_for(reader.read(), PATIENCE_S)).endswith(b"done")


@asynccontextmanager
async def _connected(
    kind: type[TimelyConnection] = TimelyConnection,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection to a server that answers every request with `done`."""
    config = uvicorn.Config(
        PlainTextResponse("done"), http=kind, timeout_keep_alive=75, lifespan="off", log_config=None
    )
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        yield reader, writer
        writer.close()
        server.should_exit = True
        await serving


def test_clients_that_leave_write_nothing_to_the_log(tmp_path: Path) -> None:
    params = {"name": "search_memory", "arguments": {"query": "x"}, "_meta": MODERN}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    fields = {"Mcp-Method": "tools/call", "Mcp-Name": "search_memory", "MCP-Protocol-Version": "2026-07-28"}
    fields |= {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    with web("http", tmp_path / "memory.db") as serving:
        [port] = re.findall(r":(\d+)/", serving.url)
        head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: {len(body)}\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in fields.items()) + "\r\n"
        for sent in (b"POST /m", head.encode()[:-2], head.encode(), head.encode() + body[:20], head.encode() + body):
            with socket.create_connection(("127.0.0.1", int(port))) as client:
                client.sendall(sent)
        assert httpx2.post(serving.url, content=body, headers=fields).status_code == 200
    assert serving.log == []


def _ports_of(url: str) -> int:
    [found] = re.findall(r":(\d+)/", url)
    return int(found)


@pytest.mark.parametrize("sent_before", [b"", b"5\r\nhello\r\n"])
def test_a_body_that_stops_being_http_is_refused_without_a_traceback(tmp_path: Path, sent_before: bytes) -> None:
    head = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    with web("http", tmp_path / "memory.db", login=True) as serving:
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", _ports_of(serving.url)), timeout=PATIENCE_S) as client:
                client.sendall(head + sent_before + b"ZZ\r\n")
                answer = b""
                while chunk := client.recv(65_536):
                    answer += chunk
            assert answer.startswith(b"HTTP/1.1 40")
    assert b"Traceback" not in b"".join(serving.log)


async def test_an_ended_connection_is_not_kept_until_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrival, "HEAD_S", 3_600)
    made: list[weakref.ref[TimelyConnection]] = []

    class Noted(TimelyConnection):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            made.append(weakref.ref(self))

    async with _connected(Noted) as (reader, writer):
        writer.write(b"\0" * 64)
        await asyncio.wait_for(reader.read(), PATIENCE_S)
        writer.close()
        await writer.wait_closed()
        with anyio.fail_after(PATIENCE_S):
            while made[0]() is not None:
                await asyncio.sleep(0)
                gc.collect()
