"""MCP over stdin and stdout, on asyncio's own pipes.

The SDK's transport hops through a worker thread for every line. This one needs a third of its CPU a call (0.67
instead of 2.0 ms, measured). It also answers a line that is not a message: with a JSON-RPC error, and with the line's
id if that can be read. While it runs, fd 1 leads to stderr, so that only the protocol reaches the host. If stdin or
stdout is not a pipe (a file, a console on Windows), the SDK's transport is used.

The number of calls that run at once is limited (see `calls`). A host that does not read its answers makes the others
wait as lines.
"""

import asyncio
import codecs
import json
import logging
import math
import os
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import anyio
from mcp.server.stdio import stdio_server
from mcp.shared._context_streams import ContextReceiveStream, ContextSendStream, create_context_streams
from mcp.shared.jsonrpc_dispatcher import cancelled_request_id_from_params
from mcp.shared.message import SessionMessage
from mcp.types import (
    CONNECTION_CLOSED,
    INVALID_REQUEST,
    PARSE_ERROR,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from kalito_mcp.server.build import KalitoServer
from kalito_mcp.server.calls import Calls
from kalito_mcp.server.first_answers import Begun, claim_pipes, is_pipe
from kalito_mcp.web.arguments import mended_body

_log: Final = logging.getLogger("kalito.server")
_MAX_LINE_BYTES: Final = 64 * 1024 * 1024
_CHUNK_BYTES: Final = 256 * 1024
_LONGEST_NUMBER: Final = 400
_ID: Final = rb'(-?(?:0|[1-9][0-9]{0,17})|"[\w.:-]{1,100}")'
# Where SDKs write the id: right after the version, at the start of the message or at its end.
_ID_OF_BROKEN_LINE: Final = re.compile(
    rb'\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*%(id)b\s*,|.*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*%(id)b\s*\}\s*$'
    % {b"id": _ID}
)
_KEEP_EVERY_S: Final = 0.2
_GRACE_S: Final = 2.0
"""After the host has closed stdin: how long calls may continue while none is answered, how long ending them may take,
and how long the host may take to read what is left."""

Incoming = ContextSendStream[SessionMessage | Exception]
Outgoing = ContextReceiveStream[SessionMessage]


async def serve_stdio(
    server: KalitoServer, begun: Begun | None = None, before_cancelling: Callable[[], Awaitable[None]] | None = None
) -> None:
    """Serve until the host closes stdin and its requests are answered, or until it closes stdout.

    `begun` is the connection to go on with. Without it, stdin and stdout are used. `before_cancelling` runs again and
    again, from the moment when the host has closed stdin until unanswered calls are cancelled: hosts kill a server that
    still runs after two seconds, or are gone themselves. It does not run if the SDK's transport is used.
    """
    core = server._lowlevel_server  # the SDK has no public way to use another transport
    options = core.create_initialization_options()
    if begun is None and (sys.platform == "win32" or not (is_pipe(0) and is_pipe(1))):
        async with stdio_server() as (incoming, outgoing):
            await core.run(incoming, outgoing, options)
        return
    begun = begun or Begun(*claim_pipes())
    async with _opened_pipes(begun) as (reader, writer):
        send_incoming, incoming = create_context_streams[SessionMessage | Exception](0)
        outgoing, receive_outgoing = create_context_streams[SessionMessage](0)
        calls = Calls()
        with anyio.CancelScope() as scope:

            async def read() -> None:
                async with send_incoming, anyio.create_task_group() as starting:
                    starting.start_soon(_start_waiting, calls, send_incoming)
                    await _read_messages(reader, writer, send_incoming, calls)
                    if before_cancelling is not None:
                        starting.start_soon(_repeat, before_cancelling)
                    # The SDK cancels running calls as soon as its input ends.
                    await calls.wait_until_answered(_GRACE_S)
                    if before_cancelling is not None:
                        await before_cancelling()
                    starting.cancel_scope.cancel()
                scope.deadline = anyio.current_time() + _GRACE_S
                for request_id in calls.waiting_ids():
                    await _send(writer, _error(request_id, CONNECTION_CLOSED, "Connection closed"))

            try:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(read)
                    tasks.start_soon(_write_messages, receive_outgoing, writer, calls, begun)
                    await core.run(incoming, outgoing, options)
                    tasks.cancel_scope.cancel()
            except* ConnectionError:
                _log.info("the host has closed stdout")


async def _repeat(act: Callable[[], Awaitable[None]]) -> None:
    while True:
        await act()
        await anyio.sleep(_KEEP_EVERY_S)


@asynccontextmanager
async def _opened_pipes(begun: Begun) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """The pipes to the host, opened for asyncio. Reading starts with the kept input."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_CHUNK_BYTES)
    if begun.kept:
        reader.feed_data(begun.kept)
    source = os.fdopen(begun.wire_in, "rb", buffering=0)
    sink = os.fdopen(begun.wire_out, "wb", buffering=0)
    reading, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
    writing, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sink)
    # `drain` then waits until the last byte is in the pipe: bytes still buffered when the loop ends would be lost.
    writing.set_write_buffer_limits(high=0)
    writer = asyncio.StreamWriter(writing, protocol, None, loop)
    if begun.unsent:
        writer.write(begun.unsent)
    try:
        yield reader, writer
    finally:
        # Closing alone would cut off output that is not in the pipe yet.
        with anyio.move_on_after(_GRACE_S, shield=True), suppress(ConnectionError):
            await writer.drain()
        writing.close()
        reading.close()


async def _read_messages(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, incoming: Incoming, calls: Calls
) -> None:
    async for line in _lines(reader):
        if line is None:
            flaw = f"the message is longer than {_MAX_LINE_BYTES:,} bytes; send less at once"
            await _send(writer, _error(None, INVALID_REQUEST, flaw))
            continue
        if not line.strip():
            continue
        line = line.removeprefix(codecs.BOM_UTF8)  # noqa: PLW2901 - some Windows shells write one
        for one in _batched(line) or (line,):
            await _take(one, writer, incoming, calls)


async def _take(line: bytes, writer: asyncio.StreamWriter, incoming: Incoming, calls: Calls) -> None:
    """Pass on one message, or let it wait, or refuse it."""
    try:
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValidationError:
            line = mended_body(line)
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except (ValidationError, ValueError, RecursionError):
        await _send(writer, _refusal(line))
        return
    # The SDK reads a request whose id is null, a float or an object as a notification, and never answers it.
    if isinstance(message, JSONRPCNotification) and "id" in json.loads(line, parse_int=_short_integer):
        await _send(writer, _refusal(line))
    elif isinstance(message, JSONRPCRequest) and not calls.begin(message):
        await calls.keep(message, line)
    elif not _cancels_what_waits(message, calls):
        await incoming.send(SessionMessage(message))


def _batched(line: bytes) -> list[bytes]:
    """The messages of a batch, which the 2025-03-26 protocol requires us to accept; empty if the line is not a batch.
    Each is answered on its own line, under its id."""
    if not line.lstrip().startswith(b"["):
        return []
    try:
        content = json.loads(line)
        return [json.dumps(one).encode() for one in content]
    except (ValueError, RecursionError):  # also a number that is too long to be read or written
        return []


async def _start_waiting(calls: Calls, incoming: Incoming) -> None:
    """Start the calls that wait, each as soon as it may run."""
    while True:
        message = jsonrpc_message_adapter.validate_json(await calls.next_line(), by_name=False)
        await incoming.send(SessionMessage(message))


def _cancels_what_waits(message: JSONRPCMessage, calls: Calls) -> bool:
    """Whether the message cancels a call that the SDK has not got yet. The call is forgotten, started or not."""
    if not isinstance(message, JSONRPCNotification) or message.method != "notifications/cancelled":
        return False
    request_id = cancelled_request_id_from_params(message.params)
    return request_id is not None and calls.cancel(request_id)


async def _lines(reader: asyncio.StreamReader) -> AsyncIterator[bytes | None]:
    """The lines of the stream; None for a line that is too long. The last line needs no newline."""
    pending, size, is_skipping = [b""], 0, False
    while chunk := await reader.read(_CHUNK_BYTES):
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            yield None if is_skipping else b"".join((*pending, end))
            pending, size, is_skipping = [], 0, False
        size += len(rest)
        if size > _MAX_LINE_BYTES:
            pending, is_skipping = [], True
        elif not is_skipping:
            pending.append(rest)
    if any(pending):
        yield b"".join(pending)


async def _write_messages(outgoing: Outgoing, writer: asyncio.StreamWriter, calls: Calls, begun: Begun) -> None:
    async with outgoing:
        async for message in outgoing:
            if getattr(message.message, "id", None) != begun.hidden:
                await _send(writer, message.message.model_dump_json(by_alias=True, exclude_unset=True).encode())
            if isinstance(message.message, JSONRPCResponse | JSONRPCError) and message.message.id is not None:
                calls.end(message.message.id)


async def _send(writer: asyncio.StreamWriter, message: bytes) -> None:
    writer.write(message + b"\n")
    await writer.drain()


def _refusal(line: bytes) -> bytes:
    """The JSON-RPC error for a line that is not a message, with its id if that can be read."""
    try:
        content = json.loads(line.decode(errors="surrogatepass"), parse_int=_short_integer)
    except (ValueError, RecursionError):
        found = _ID_OF_BROKEN_LINE.match(line)
        return _error(
            json.loads(found[1] or found[2]) if found else None,
            PARSE_ERROR,
            "not valid JSON; send one JSON-RPC 2.0 message a line, in UTF-8",
        )
    if isinstance(content, list):
        return _error(None, INVALID_REQUEST, "a batch needs messages; send one message a line")
    fields = content if isinstance(content, dict) else {}
    request_id = fields.get("id")
    is_readable = isinstance(request_id, str | int) and not isinstance(request_id, bool)
    if not is_readable and not (isinstance(request_id, float) and math.isfinite(request_id)):
        request_id = None
    if is_readable and fields.get("jsonrpc") == "2.0" and isinstance(fields.get("method"), str):
        return _error(
            request_id,
            INVALID_REQUEST,
            "params is not an object, is nested too deeply, or has a number that is too long; send plainer params",
        )
    return _error(
        request_id,
        INVALID_REQUEST,
        "not a JSON-RPC 2.0 message: it needs jsonrpc, an id (a string or an integer) and a method",
    )


def _short_integer(digits: str) -> int | None:
    """The integer; None if it has too many digits to be worth reading."""
    return int(digits) if len(digits) < _LONGEST_NUMBER else None


def _error(request_id: Any, code: int, message: str) -> bytes:
    error = {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}}
    return json.dumps(error).encode()
