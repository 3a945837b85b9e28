"""MCP over streamable HTTP: the SDK's sessions, each with its own history and for one principal alone. Answers are
complete, even when the server ends."""

import logging
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Any, Final

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, AuthorizationContext, authorization_context
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http import StreamableHTTPServerTransport, check_accept_headers
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kalito_mcp.domain.access import Principal
from kalito_mcp.server.build import KalitoServer
from kalito_mcp.server.event_history import EventHistories
from kalito_mcp.server.state_keys import principal_key
from kalito_mcp.web.guard import METHOD_KEY, PRINCIPAL_KEY
from kalito_mcp.web.metrics import ROUTE_KEY

MOST_OF_ONE: Final = 2_048
"""Open sessions of one principal, of the SDK's 10,000 in all: a program that begins one a second leaves the others
theirs."""
_QUIET_S: Final = 60.0
_log: Final = logging.getLogger("kalito.server")
# It has a line for each refused session, with a number that is not ours.
logging.getLogger("mcp.server.streamable_http_manager").addFilter(
    lambda record: not str(record.msg).startswith("Refusing to open a new session")
)
_SESSION: Final = "mcp-session-id"
_BEGINS: Final = "initialize"
_AGAIN_MS: Final = 1_000
"""When a client whose stream broke should reconnect for what it missed."""


class _Sessions(StreamableHTTPSessionManager):
    """The SDK's sessions of the 2025 protocol, each with its own history. The SDK shares one, so an event's id would
    give access to another session's events."""

    _histories = EventHistories()

    def __init__(self, app: Any, security: TransportSecuritySettings) -> None:
        super().__init__(app, retry_interval=_AGAIN_MS, security_settings=security)
        self._quiet_until = 0.0

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        headers = MutableHeaders(scope=scope)
        if not headers.get("accept"):
            headers["accept"] = "*/*"  # HTTP says that it means the same, and the SDK that nothing is accepted
        if scope.get(METHOD_KEY) == _BEGINS and not self._is_own(scope, headers.get(_SESSION)):
            del headers[_SESSION]  # a client that has lost its session begins with its old id
        # A request of the 2026 protocol reads it at once; nothing else does, because each session has its own.
        self.json_response = _takes_json_alone(scope)
        # Past the SDK's limit of the body: ours is in front of all routes, and it would cost each subscription 2 KB.
        return self._handle_request(scope, receive, send)

    def _is_own(self, scope: Scope, session: str | None) -> bool:
        """Whether this session is open, and was begun by who sends the request."""
        user = scope.get("user")
        owner = authorization_context(user) if isinstance(user, AuthenticatedUser) else None
        return session in self._server_instances and self._session_owners.get(session or "") == owner

    async def _serve_opening_request(
        self, http_transport: StreamableHTTPServerTransport, scope: Scope, receive: Receive, send: Send
    ) -> None:
        http_transport.is_json_response_enabled = _takes_json_alone(scope)
        await super()._serve_opening_request(http_transport, scope, receive, send)

    def _admit_session(self, requestor: AuthorizationContext | None) -> StreamableHTTPServerTransport | None:
        is_full = requestor is not None and list(self._session_owners.values()).count(requestor) >= MOST_OF_ONE
        transport = None
        if not is_full:
            self.event_store = self._histories.new()
            transport = super()._admit_session(requestor)
        if transport is None and time.monotonic() >= self._quiet_until:
            self._quiet_until = time.monotonic() + _QUIET_S
            whose = "one token" if is_full else "all tokens"
            _log.warning("new sessions are refused: too many of %s are open; said once a minute", whose)
        return transport


def _takes_json_alone(scope: Scope) -> bool:
    """Whether the client reads an answer in JSON, but no stream of events."""
    takes_json, takes_events = check_accept_headers(Request(scope))
    return takes_json and not takes_events


def streamable_http(server: KalitoServer, security: TransportSecuritySettings) -> Starlette:
    """As the SDK's app, with our sessions."""
    sessions = _Sessions(server._lowlevel_server, security)

    @asynccontextmanager
    async def lifespan(_app: Any) -> AsyncIterator[None]:
        async with sessions.run():
            yield

    return Starlette(routes=[Route("/mcp", sessions)], lifespan=lifespan)


class CompleteResponses:
    """Ends every answer that was begun. The library of the SDK's streams leaves those open that the end of the server
    cuts, and the SDK then begins a second answer in the same place."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_begun = has_ended = False

        async def send_once(message: Message) -> None:
            nonlocal has_begun, has_ended
            is_second = has_begun and message["type"] == "http.response.start"
            if has_ended or is_second:
                return
            has_begun = has_begun or message["type"] == "http.response.start"
            has_ended = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        await self._app(scope, receive, send_once)
        if has_begun and not has_ended:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


class SessionOwners:
    """Tells the SDK who sends a request, so that a session is only used by the principal who began it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        principal = scope.get(PRINCIPAL_KEY)
        if isinstance(principal, Principal):
            scope["user"] = _user(principal_key(principal))
        return self._app(scope, receive, send)


@lru_cache(maxsize=1_024)
def _user(known_as: str) -> AuthenticatedUser:
    return AuthenticatedUser(AccessToken(token="", client_id=known_as, scopes=[]))


def direct_route(endpoint: ASGIApp, path: str, others: ASGIApp) -> ASGIApp:
    """Sends requests for a path straight to its endpoint, and the rest to `others`. Starlette's layers in front of an
    endpoint would cost each subscription 4 KB."""

    def choose(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] != "http" or scope["path"] != path:
            return others(scope, receive, send)
        scope[ROUTE_KEY] = path
        return endpoint(scope, receive, send)

    return choose
