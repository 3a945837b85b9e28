"""A real HTTP server on loopback that answers as scripted, well or badly. Runs in the test's event loop."""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

MIB = 1 << 20
Reply = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Call:
    path: str
    headers: dict[str, str]
    body: Any


class ScriptedServer:
    """Sends its replies in order, and then repeats the last one. `calls` are the requests that arrived."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = replies
        self.calls: list[Call] = []
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for connection in list(self._connections):
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        # A client that has had enough hangs up, and the end of the test cancels those that still wait.
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            self.calls.append(await _read_call(reader))
            await self.replies[min(len(self.calls), len(self.replies)) - 1](writer)
        writer.close()
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            await writer.wait_closed()
        self._connections.discard(task)


async def _read_call(reader: asyncio.StreamReader) -> Call:
    first = await reader.readexactly(1)
    if first == b"\x16":  # a TLS handshake
        raise ConnectionError
    head = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    request_line, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Call(request_line.split()[1], headers, json.loads(body) if body else None)


async def _head(writer: asyncio.StreamWriter, status: int, *headers: str) -> None:
    lines = (f"HTTP/1.1 {status} Scripted", "Connection: close", *headers)
    writer.write("".join(f"{line}\r\n" for line in lines).encode() + b"\r\n")
    await writer.drain()


def body(content: bytes, *headers: str) -> Reply:
    async def reply(writer: asyncio.StreamWriter) -> None:
        await _head(writer, 200, f"Content-Length: {len(content)}", *headers)
        writer.write(content)
        await writer.drain()

    return reply


def json_body(value: object) -> Reply:
    return body(json.dumps(value).encode())


def ollama_says(text: str) -> Reply:
    return json_body({"model": "m", "message": {"role": "assistant", "content": text}, "done": True})


def openai_says(text: str) -> Reply:
    return json_body({"choices": [{"index": 0, "message": {"role": "assistant", "content": text}}]})


def status(code: int, *headers: str, content: bytes = b"no") -> Reply:
    async def reply(writer: asyncio.StreamWriter) -> None:
        await _head(writer, code, f"Content-Length: {len(content)}", *headers)
        writer.write(content)
        await writer.drain()

    return reply


def redirects_to(url: str) -> Reply:
    return status(307, f"Location: {url}")


async def never_answers(writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def hangs_after_the_head(writer: asyncio.StreamWriter) -> None:
    await _head(writer, 200, "Content-Length: 100")
    await asyncio.Event().wait()


async def drips(writer: asyncio.StreamWriter) -> None:
    """Sends one byte at a time, often enough that no read ever times out."""
    await _head(writer, 200, "Content-Length: 1000000")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.01)  # the pace is what is scripted; no test waits for it


async def closes_at_once(writer: asyncio.StreamWriter) -> None:
    writer.close()


async def closes_mid_body(writer: asyncio.StreamWriter) -> None:
    await _head(writer, 200, "Content-Length: 1000")
    writer.write(b'{"message": {"con')
    await writer.drain()


async def speaks_no_http(writer: asyncio.StreamWriter) -> None:
    writer.write(b"\x00\xff220 mail.example ESMTP\r\n\r\n")
    await writer.drain()


class Flood:
    """A body of any size, generated while it is sent. `sent` counts the bytes that the client accepted."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.sent = 0

    async def __call__(self, writer: asyncio.StreamWriter) -> None:
        await _head(writer, 200, f"Content-Length: {self.size}")
        chunk = b" " * (MIB // 16)
        while self.sent < self.size:
            writer.write(chunk)
            await writer.drain()
            self.sent += len(chunk)
