"""Listens for HTTP on a port. What does not arrive in time does not stay (see `arrival`).

It ends in this order: no new connections, running calls finish, subscriptions end, then the process. From the signal
on, `/health/ready` says no, so that a balancer looks elsewhere.
"""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable
from types import FrameType
from typing import Final

import uvicorn
from sse_starlette.sse import AppStatus
from starlette.types import ASGIApp

from kalito_mcp.errors import ConfigurationError
from kalito_mcp.safety.addresses import LOOPBACK_HOSTS
from kalito_mcp.server.arrival import IDLE_S, TimelyConnection
from kalito_mcp.server.build import KalitoServer
from kalito_mcp.server.draining import Draining
from kalito_mcp.web.guard import LONGEST_HEAD_BYTES

_ENDING_S: Final = 2
"""Time for the rest after the calls: answers on their way, streams that end."""
_MOST_CONNECTIONS: Final = 4_096
_OTHER_FILES: Final = 128
"""File descriptors that are not connections: the database and files that libraries open."""


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
            limit_concurrency=_most_connections(),
            timeout_keep_alive=IDLE_S,
            log_config=None,
            log_level="warning",
            timeout_graceful_shutdown=_ENDING_S,
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


def _most_connections() -> int:
    """How many connections this process can have; requests beyond are refused with status 503. From now on it may open
    as many files."""
    if sys.platform != "win32":
        import resource  # noqa: PLC0415 - Windows has no such limit

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = _MOST_CONNECTIONS + _OTHER_FILES
        if soft != resource.RLIM_INFINITY and soft < wanted:
            allowed = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
            return max(allowed - _OTHER_FILES, 1)
    return _MOST_CONNECTIONS


class DrainingServer(uvicorn.Server):
    """uvicorn's server, which waits for calls before it cuts streams. SIGTERM is its usual end: the exit code is 0."""

    def __init__(self, config: uvicorn.Config, draining: Draining, end_streams: Callable[[], None]) -> None:
        super().__init__(config)
        self._draining = draining
        self._end_streams = end_streams
        # The library of the SDK's streams cuts them at the signal, and with them the answers of running calls.
        AppStatus.enable_automatic_graceful_drain = False
        AppStatus.should_exit = False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Note that the process is asked to end."""
        self._draining.begin()
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End all connections, each after its call."""
        for server in self.servers:
            server.close()
        for listening in sockets or []:
            listening.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        self._end_streams()
        await self._draining.calls_ended()
        AppStatus.should_exit = True
        await super().shutdown(sockets)
        self._captured_signals = [sig for sig in self._captured_signals if sig != signal.SIGTERM]
