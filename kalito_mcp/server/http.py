"""MCP over streamable HTTP, and over the older HTTP with server-sent events, behind one guard."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, Literal

import uvicorn
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, AuthorizationContext
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kalito_mcp.access.policy import HttpPolicy
from kalito_mcp.domain.access import Permission, Principal
from kalito_mcp.domain.scope import LOCAL_OWNER
from kalito_mcp.errors import ConfigurationError
from kalito_mcp.server.arrival import IDLE_S, TimelyConnection, WholeRequests
from kalito_mcp.server.build import KalitoServer
from kalito_mcp.server.event_history import EventHistories
from kalito_mcp.server.gate import http_denial
from kalito_mcp.server.http_server import ENDING_S, DrainingServer, most_connections
from kalito_mcp.server.state_keys import principal_key
from kalito_mcp.web.guard import LOOPBACK, PRINCIPAL_KEY, Guard, Needs
from kalito_mcp.web.health import health_routes

_AGAIN_MS: Final = 1_000
"""When a client whose stream broke should come back for what it missed."""


def check_address(host: str, *, has_login: bool) -> None:
    """Refuse an address that other machines reach while everybody may call.

    Raises:
        ConfigurationError: it is not one of this machine's own addresses, and no token is needed.
    """
    if not has_login and host not in LOOPBACK:
        raise ConfigurationError(
            f"--host {host} would let other machines read and write this memory without a token; leave out "
            f"--without-login, or use one of {', '.join(LOOPBACK)}"
        )


def http_app(
    server: KalitoServer, transport: Literal["http", "sse"], policy: HttpPolicy, *, owner: str | None
) -> ASGIApp:
    """All that is served over HTTP: MCP, and what `web` has.

    Every request needs a token, unless `owner` says whose memory everybody may use.
    """
    # The guard checks the names that the SDK would check, on every route.
    unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    mcp = _streamable_http(server, unchecked) if transport == "http" else server.sse_app(transport_security=unchecked)

    async def authenticate(token: str) -> Principal | None:
        return await (await server.opened.memory()).principal_of(token)

    others = health_routes(server.opened.memory, server.draining.has_begun)
    app = Starlette(routes=[*mcp.routes, *others], lifespan=mcp.router.lifespan_context)
    return Guard(
        WholeRequests(Needs(_OwnSessions(_WholeAnswers(app)), http_denial)),
        policy,
        authenticate=authenticate if owner is None else None,
        anyone=Principal("anyone", owner or LOCAL_OWNER, Permission.ADMIN),
    )


class _Sessions(StreamableHTTPSessionManager):
    """The SDK's sessions of the 2025 protocol, each with a history of its own. The SDK has one for all: the id of an
    event would tell what another session was sent."""

    _histories = EventHistories()

    def _admit_session(self, requestor: AuthorizationContext | None) -> StreamableHTTPServerTransport | None:
        self.event_store = self._histories.new()
        return super()._admit_session(requestor)


def _streamable_http(server: KalitoServer, security: TransportSecuritySettings) -> Starlette:
    """As the SDK's app, with our sessions."""
    sessions = _Sessions(server._lowlevel_server, retry_interval=_AGAIN_MS, security_settings=security)

    @asynccontextmanager
    async def lifespan(_app: Any) -> AsyncIterator[None]:
        async with sessions.run():
            yield

    return Starlette(routes=[Route("/mcp", StreamableHTTPASGIApp(sessions))], lifespan=lifespan)


class _WholeAnswers:
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


class _OwnSessions:
    """Tells the SDK who sends a request, so that a session is only used by the principal who began it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        principal = scope.get(PRINCIPAL_KEY)
        if isinstance(principal, Principal):
            known_as = AccessToken(token="", client_id=principal_key(principal), scopes=[])
            scope["user"] = AuthenticatedUser(known_as)
        await self._app(scope, receive, send)


async def serve_http(
    app: ASGIApp, path: str, *, server: KalitoServer, host: str, port: int, announce: Callable[[str], None]
) -> None:
    """Serve the app of a server until interrupted. `announce` gets the URL of `path` as soon as it can be connected to;
    port 0 takes a free one. What does not arrive in time is closed (see `arrival`), and what runs at the end finishes
    (see `draining`).

    Raises:
        ConfigurationError: the port is taken.
    """
    config = uvicorn.Config(
        app,
        http=TimelyConnection,
        limit_concurrency=most_connections(),
        timeout_keep_alive=IDLE_S,
        log_config=None,
        log_level="warning",
        timeout_graceful_shutdown=ENDING_S,
    )
    with _listen(host, port) as listening:
        shown = f"[{host}]" if ":" in host else host
        url = f"http://{shown}:{listening.getsockname()[1]}{path}"
        # Once the server handles Ctrl-C, which it does before it first waits: earlier, Ctrl-C would end in a traceback.
        asyncio.get_running_loop().call_soon(announce, url)
        await DrainingServer(config, server.draining, server.subscriptions.end).serve(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    try:
        bound = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise ConfigurationError(f"cannot listen on {host}, port {port}: {reason}; use another --port") from error
    # asyncio sends small parts of an answer at once only if the socket names its protocol. Otherwise each call on a
    # kept connection waits 40 ms for the host's delayed acknowledgement.
    return socket.socket(bound.family, bound.type, socket.IPPROTO_TCP, fileno=bound.detach())
