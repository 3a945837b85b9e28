"""A plain balancer in front of HTTP servers: each request goes to the next one, and to another if that is gone."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

_CHUNK = 65_536


@asynccontextmanager
async def round_robin(urls: Sequence[str]) -> AsyncIterator[str]:
    """The URL of a balancer in front of the servers at these URLs, which all have the same path."""
    backends = deque((urlsplit(url).hostname, urlsplit(url).port) for url in urls)

    connections: set[asyncio.Task[None]] = set()

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        with suppress(asyncio.CancelledError):
            await _pass_on(reader, writer, backends)
        await _close(writer)
        connections.discard(task)

    server = await asyncio.start_server(pass_on, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}{urlsplit(urls[0]).path}"
    finally:
        server.close()
        for connection in list(connections):
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        await server.wait_closed()


async def _pass_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, backends: deque[tuple[str | None, int | None]]
) -> None:
    """Pass one request on, and its answer back. The client then opens another connection."""
    with suppress(ConnectionError, asyncio.IncompleteReadError):
        head = await reader.readuntil(b"\r\n\r\n")
        answers, requests = await _next(backends)
        requests.write(head[:-2] + b"Connection: close\r\n\r\n")
        sending = asyncio.create_task(_copy(reader, requests))
        try:
            await _copy(answers, writer)
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            await _close(requests)


async def _next(backends: deque[tuple[str | None, int | None]]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to the server whose turn it is, or to the next one that accepts one."""
    for _ in range(len(backends)):
        host, port = backends[0]
        backends.rotate(-1)
        with suppress(ConnectionRefusedError):
            return await asyncio.open_connection(host, port)
    raise ConnectionRefusedError("no server accepts connections")


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while chunk := await source.read(_CHUNK):
            target.write(chunk)
            await target.drain()


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(ConnectionError, asyncio.CancelledError):
        await writer.wait_closed()
