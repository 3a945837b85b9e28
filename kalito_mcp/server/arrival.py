"""Requests over HTTP that do not arrive: a client that is too slow, sends too much, or leaves in the middle.

The SDK waits for a body without limit, and logs a traceback for each client that leaves. uvicorn waits for the head of
a request without limit.
"""

from asyncio import TimerHandle, Transport
from typing import Final

import anyio
from mcp.server.streamable_http_manager import DEFAULT_MAX_REQUEST_BODY_SIZE
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from kalito_mcp.web.arguments import mended_body
from kalito_mcp.web.guard import PRINCIPAL_KEY

BODY_S: Final = 30.0
"""How long the body of a request may take."""
_MOST_OF_STRANGERS: Final = 65_536
"""The longest body, in bytes, of a request without a token: a sign-in form."""
HEAD_S: Final = 15.0
"""How long a connection may be open before the head of a request has arrived."""
IDLE_S: Final = 75
"""How long a connection is kept after an answer. Agents think for longer than uvicorn's five seconds, and a call that
is sent just as its connection is closed fails."""
# Without it, who goes on sending the refused body would keep the connection.
_CLOSING: Final = {"connection": "close"}


class WholeRequests:
    """Passes a request on as soon as its whole body has arrived, and only then."""

    def __init__(self, app: ASGIApp, *, body_s: float = BODY_S) -> None:
        self._app = app
        self._body_s = body_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body: bytes | None = None
        most = DEFAULT_MAX_REQUEST_BODY_SIZE if PRINCIPAL_KEY in scope else _MOST_OF_STRANGERS
        with anyio.move_on_after(self._body_s) as limit:
            body = await _body(receive, most)
        if limit.cancelled_caught:
            said = f"the body of the request did not arrive within {self._body_s:g} s; send it again"
            await _refusal(408, "too_slow", said)(scope, receive, send)
        elif body is None:
            return  # the client has left
        elif len(body) > most:
            said = f"the body of the request is longer than {most:,} bytes; send less at once"
            await _refusal(413, "request_too_large", said)(scope, receive, send)
        else:
            whole = _before(receive, {"type": "http.request", "body": mended_body(body), "more_body": False})
            del body  # a subscription would hold it for as long as it lasts
            await self._app(scope, whole, send)


def _refusal(status: int, error: str, description: str) -> JSONResponse:
    return JSONResponse({"error": error, "error_description": description}, status, _CLOSING)


async def _body(receive: Receive, most: int) -> bytes | None:
    """The body, or its beginning if it is too long. None if the client leaves before its end."""
    body = bytearray()
    while len(body) <= most:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if not message.get("more_body", False):
            break
    return bytes(body)


def _before(receive: Receive, first: Message) -> Receive:
    """Gives `first`, and then what `receive` gives."""
    kept = [first]

    async def receive_next() -> Message:
        return kept.pop() if kept else await receive()

    return receive_next


class TimelyConnection(H11Protocol):
    """uvicorn's connection. It is closed if no request begins in time, at first or after the last one."""

    _limit: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self._expect_request(HEAD_S)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        # It would keep the connection in memory with all that it had sent.
        if self._limit is not None:
            self._limit.cancel()

    def on_response_complete(self) -> None:
        self._expect_request(IDLE_S)
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP. If that happens within a body, the answer of the app to this request is dropped: it
        would end in a traceback."""
        begun = self.cycle
        if begun is not None and not begun.response_complete:
            begun.disconnected = True
            begun.message_event.set()
            if begun.response_started:
                self.transport.close()
                return
        super().send_400_response(msg)

    def _expect_request(self, within_s: float) -> None:
        if self._limit is not None:
            self._limit.cancel()
        self._limit = self.loop.call_later(within_s, self._close_after, self.cycle)

    def _close_after(self, last: RequestResponseCycle | None) -> None:
        if self.cycle is last:
            self.timeout_keep_alive_handler()
