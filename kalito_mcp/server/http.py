"""Listens for HTTP on a port, and keeps what does not arrive in time from staying."""

import asyncio
import os
import socket
from collections.abc import Callable

import uvicorn
from starlette.types import ASGIApp

from kalito_mcp.errors import ConfigurationError
from kalito_mcp.safety.addresses import LOOPBACK_HOSTS
from kalito_mcp.server.arrival import IDLE_S, TimelyConnection
from kalito_mcp.server.build import KalitoServer
from kalito_mcp.server.http_server import ENDING_S, DrainingServer, most_connections
from kalito_mcp.web.guard import LONGEST_HEAD_BYTES


def check_address(host: str, *, has_login: bool) -> None:
    """Refuse an address that other machines reach while everybody may call.

    Raises:
        ConfigurationError: it is not one of this machine's own addresses, and no token is needed.
    """
    if not has_login and host not in LOOPBACK_HOSTS:
        raise ConfigurationError(
            f"--host {host} would let other machines read and write this memory without a token; leave out "
            f"--without-login, or use one of {', '.join(LOOPBACK_HOSTS)}"
        )


async def serve_http(
    app_on: Callable[[int], ASGIApp],
    path: str,
    *,
    server: KalitoServer,
    host: str,
    port: int,
    announce: Callable[[str], None],
) -> None:
    """Serve until interrupted. `app_on` makes the application of the server for the port that was taken; port 0 takes a
    free one. `announce` gets the URL of `path` as soon as it can be connected to. Connections whose request does not
    arrive in time are closed (see `arrival`), and running calls finish (see `draining`).

    Raises:
        ConfigurationError: the port is taken.
    """
    with _listen(host, port) as listening:
        config = uvicorn.Config(
            app_on(listening.getsockname()[1]),
            http=TimelyConnection,
            ws="none",
            h11_max_incomplete_event_size=LONGEST_HEAD_BYTES,
            server_header=False,
            # The limits know which proxies to believe.
            proxy_headers=False,
            limit_concurrency=most_connections(),
            timeout_keep_alive=IDLE_S,
            log_config=None,
            log_level="warning",
            timeout_graceful_shutdown=ENDING_S,
        )
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
