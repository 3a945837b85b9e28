"""Notifies hosts of changed resources: through the SDK's bus (2026 protocol) or their connection (2025 protocol).

The SDK serves `subscriptions/listen`, but not `resources/subscribe` of the older protocol. A host is notified of
changes made through this process. It sees the writes of other processes when it reads next.
"""

import logging
from typing import Any, Final
from urllib.parse import quote
from weakref import WeakKeyDictionary

from mcp.server import MCPServer
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourceUpdated
from mcp.types import EmptyResult, SubscribeRequestParams, UnsubscribeRequestParams

SESSIONS_URI: Final = "memory://sessions"
AGENT_URI: Final = "memory://agent"
PROFILE_URI: Final = "memory://profile"
SNAPSHOTS_URI: Final = "memory://snapshots"
_log: Final = logging.getLogger("kalito.server")


def stats_uri(session_id: str) -> str:
    """The address of a session's numbers."""
    return f"{SESSIONS_URI}/{quote(session_id, safe='')}/stats"


def graph_uri(session_id: str) -> str:
    """The address of a session's graph."""
    return f"{SESSIONS_URI}/{quote(session_id, safe='')}/graph"


class Subscriptions:
    """Which connections are subscribed to which resources."""

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        self._connections: WeakKeyDictionary[Connection, set[str]] = WeakKeyDictionary()

    def open_count(self) -> int:
        """How many hosts are subscribed to something, of both protocols."""
        return len(self._connections) + len(self.bus._listeners)

    def serve_older_hosts(self, server: MCPServer[Any]) -> None:
        """Answer resources/subscribe and resources/unsubscribe."""
        core = server._lowlevel_server  # MCPServer has no public way to add these two methods
        core.add_request_handler("resources/subscribe", SubscribeRequestParams, self._subscribe)
        core.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, self._unsubscribe)

    async def session_changed(self, session_id: str) -> None:
        """Notify every subscriber of the session, and of the list of sessions."""
        await self.changed(stats_uri(session_id), SESSIONS_URI)

    async def changed(self, *uris: str) -> None:
        """Notify every subscriber of these resources, and drop connections that are gone.

        A message enters its graph a moment after it was recorded, and nobody is notified of that.
        """
        for uri in uris:
            await self.bus.publish(ResourceUpdated(uri=uri))
            for connection, wanted in list(self._connections.items()):
                if uri in wanted:
                    await self._notify(connection, uri)

    async def _notify(self, connection: Connection, uri: str) -> None:
        try:
            await connection.send_resource_updated(uri)
        except Exception:  # the connection is the SDK's: whatever it raises, the record is stored
            _log.info("a subscriber is gone", exc_info=True)
            self._connections.pop(connection, None)

    async def _subscribe(self, context: ServerRequestContext[Any], params: SubscribeRequestParams) -> EmptyResult:
        self._connections.setdefault(_connection(context), set()).add(params.uri)
        return EmptyResult()

    async def _unsubscribe(self, context: ServerRequestContext[Any], params: UnsubscribeRequestParams) -> EmptyResult:
        self._connections.get(_connection(context), set()).discard(params.uri)
        return EmptyResult()


def _connection(context: ServerRequestContext[Any]) -> Connection:
    # Each request has a session object of its own; the connection behind it lasts.
    return context.session._connection
