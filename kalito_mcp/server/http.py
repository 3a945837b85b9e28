"""MCP over streamable HTTP, and over the older HTTP with server-sent events. Loopback only: there is no login."""

import asyncio
import os
import socket
from collections.abc import Callable
from typing import Final, Literal

from kalito_mcp.errors import ConfigurationError
from kalito_mcp.server.build import KalitoServer

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_GRACE_S: Final = 2
"""How long open requests may continue after the process was asked to end: a subscription never ends by itself."""
_MOST_CONNECTIONS: Final = 512
"""Requests beyond are refused with status 503. Many systems give a process 1,024 files at most."""


def check_address(host: str) -> None:
    """Refuse every address except this machine's own.

    Raises:
        ConfigurationError: other machines could reach the address, and there is no login yet.
    """
    if host not in LOOPBACK:
        raise ConfigurationError(
            f"--host {host} would let other machines read and write this memory, and there is no login yet; "
            f"use one of {', '.join(LOOPBACK)}"
        )


async def serve_http(
    server: KalitoServer,
    transport: Literal["http", "sse"],
    *,
    host: str,
    port: int,
    announce: Callable[[str], None],
) -> None:
    """Serve until interrupted. `announce` gets the URL as soon as it can be connected to; port 0 takes a free one.

    The SDK checks the Host and Origin of every request against the loopback names, which keeps web pages from
    reaching it through DNS rebinding. What does not arrive in time is closed (see `arrival`).

    Raises:
        ConfigurationError: the address is not loopback, or the port is taken.
    """
    import uvicorn  # noqa: PLC0415 - stdio does not need it

    from kalito_mcp.server.arrival import IDLE_S, TimelyConnection, WholeRequests  # noqa: PLC0415 - as above

    check_address(host)
    app = server.streamable_http_app(host=host) if transport == "http" else server.sse_app(host=host)
    config = uvicorn.Config(
        WholeRequests(app),
        http=TimelyConnection,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_keep_alive=IDLE_S,
        log_config=None,
        log_level="warning",
        timeout_graceful_shutdown=_GRACE_S,
    )
    with _listen(host, port) as listening:
        shown = f"[{host}]" if ":" in host else host
        url = f"http://{shown}:{listening.getsockname()[1]}/{'mcp' if transport == 'http' else 'sse'}"
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
