"""Answers that are sent in pieces, as they are made."""

import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Final

import anyio
from starlette.requests import Request
from starlette.types import Send

from kalito_mcp.web.problems import Problem, problems

_log: Final = logging.getLogger("kalito.server")
_SLOW_S: Final = 30.0
"""How long a client may take to read a piece of a stream. Until its end, the log of the database cannot be cut."""


async def send_stream(
    name: str, stream: AsyncGenerator[bytes], headers: Mapping[str, str], request: Request, send: Send
) -> None:
    """Send a stream piece by piece. Its first piece comes before the status, so that a refusal has a status of its own.
    If the client is too slow or the stream fails, the answer stays incomplete, which the client can detect. Reading
    stops once the client has left. HEAD gets the status alone. `name` is what the log calls it."""
    async with aclosing(stream):
        first = await anext(stream, None)
        sent = [(field.encode(), value.encode()) for field, value in headers.items()]
        await send({"type": "http.response.start", "status": 200, "headers": sent})
        try:
            with problems(name):
                piece = None if request.method == "HEAD" else first
                while piece is not None:
                    await _send_piece(piece, send)
                    # `send` succeeds even after the client disconnects.
                    if await request.is_disconnected():
                        _log.info("%s was cut short: its reader has left", name)
                        return
                    piece = await anext(stream, None)
        except Problem as problem:
            _log.warning("%s was cut short: %s", name, problem)
            return
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _send_piece(piece: bytes, send: Send) -> None:
    with anyio.fail_after(_SLOW_S):
        await send({"type": "http.response.body", "body": piece, "more_body": True})
