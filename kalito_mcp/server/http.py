"""MCP over streamable HTTP, and over the older HTTP with server-sent events, behind one guard."""

import asyncio
import os
import socket
from collections.abc import Callable
from typing import Final, Literal

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from kalito_mcp.access.policy import HttpPolicy
from kalito_mcp.domain.access import Permission, Principal
from kalito_mcp.domain.scope import LOCAL_OWNER
from kalito_mcp.errors import ConfigurationError
from kalito_mcp.server.arrival import IDLE_S, TimelyConnection, WholeRequests
from kalito_mcp.server.build import KalitoServer
from kalito_mcp.server.gate import http_denial
from kalito_mcp.web.guard import LOOPBACK, Guard, Needs
from kalito_mcp.web.health import health_routes
from kalito_mcp.web.rest.app import RestApp
from kalito_mcp.web.rest.endpoint import Exporter
from kalito_mcp.web.rest.table import TABLE

_GRACE_S: Final = 2
"""How long open requests may continue after the process was asked to end: a subscription never ends by itself."""
_MOST_CONNECTIONS: Final = 512
"""Requests beyond are refused with status 503. Many systems give a process 1,024 files at most."""


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
    server: KalitoServer,
    transport: Literal["http", "sse"],
    policy: HttpPolicy,
    *,
    owner: str | None,
    exporter: Exporter,
) -> ASGIApp:
    """All that is served over HTTP: MCP, and what `web` has. `exporter` writes the archives that REST sends.

    Every request needs a token, unless `owner` says whose memory everybody may use.
    """
    # The guard checks the names that the SDK would check, on every route.
    unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    if transport == "http":
        mcp = server.streamable_http_app(transport_security=unchecked)
    else:
        mcp = server.sse_app(transport_security=unchecked)

    async def authenticate(token: str) -> Principal | None:
        return await (await server.opened.memory()).principal_of(token)

    app = Starlette(routes=[*mcp.routes, *health_routes(server.opened.memory)], lifespan=mcp.router.lifespan_context)
    rest = RestApp(TABLE, server.opened.memory, exporter)
    return Guard(
        WholeRequests(_below_api(rest, Needs(app, http_denial))),
        policy,
        authenticate=authenticate if owner is None else None,
        anyone=Principal("anyone", owner or LOCAL_OWNER, Permission.ADMIN),
    )


def _below_api(rest: ASGIApp, other: ASGIApp) -> ASGIApp:
    """Gives `rest` what is below /api. Starlette's own mounts match no path with a line break in it."""

    async def choose(scope: Scope, receive: Receive, send: Send) -> None:
        is_rest = scope["type"] == "http" and scope["path"].startswith("/api/")
        await (rest if is_rest else other)(scope, receive, send)

    return choose


async def serve_http(app: ASGIApp, path: str, *, host: str, port: int, announce: Callable[[str], None]) -> None:
    """Serve until interrupted. `announce` gets the URL of `path` as soon as it can be connected to; port 0 takes a free
    one. What does not arrive in time is closed (see `arrival`).

    Raises:
        ConfigurationError: the port is taken.
    """
    config = uvicorn.Config(
        app,
        http=TimelyConnection,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_keep_alive=IDLE_S,
        log_config=None,
        log_level="warning",
        timeout_graceful_shutdown=_GRACE_S,
    )
    with _listen(host, port) as listening:
        shown = f"[{host}]" if ":" in host else host
        url = f"http://{shown}:{listening.getsockname()[1]}{path}"
        # Once the server handles Ctrl-C, which it does before it first waits: earlier, Ctrl-C would end in a traceback.
        asyncio.get_running_loop().call_soon(announce, url)
        await uvicorn.Server(config).serve(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    try:
        bound = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise ConfigurationError(f"cannot listen on {host}, port {port}: {reason}; use another --port") from error
    # asyncio sends small parts of an answer at once only if the socket names its protocol. Otherwise each call on a
    # kept connection waits 40 ms for the host's delayed acknowledgement.
    return socket.socket(bound.family, bound.type, socket.IPPROTO_TCP, fileno=bound.detach())
