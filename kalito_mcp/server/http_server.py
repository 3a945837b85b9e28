"""uvicorn's server, and how it ends: no new connections, running calls finish, subscriptions end, then the process.

From the signal on, `/health/ready` says no, so that a balancer looks elsewhere.
"""

import signal
import socket
import sys
from collections.abc import Callable
from types import FrameType
from typing import Final

import uvicorn
from sse_starlette.sse import AppStatus

from kalito_mcp.server.draining import Draining

ENDING_S: Final = 2
"""Time for the rest after the calls: answers on their way, streams that end."""
_MOST_CONNECTIONS: Final = 4_096
_OTHER_FILES: Final = 128
"""File descriptors that are not connections: the database and files that libraries open."""


def most_connections() -> int:
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
