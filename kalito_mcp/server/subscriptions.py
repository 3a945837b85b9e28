"""Tells hosts that a session changed: those of the 2026 protocol by the SDK's bus, those of 2025 by their session.

The SDK serves `subscriptions/listen` by itself; `resources/subscribe` of the older protocol it leaves to us. A host
hears of changes made through this process; what another process writes, it sees when it reads next.
"""

import logging
from typing import Any, Final
from urllib.parse import quote
from weakref import WeakKeyDictionary

from mcp.server import MCPServer
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourceUpdated
from mcp.types import EmptyResult, SubscribeRequestParams, UnsubscribeRequestParams

SESSIONS_URI: Final = "memory://sessions"
_log: Final = logging.getLogger("kalito.server")


def stats_uri(session_id: str) -> str:
    """The address of a session's numbers."""
    return f"{SESSIONS_URI}/{quote(session_id, safe='')}/stats"


class Subscriptions:
    """Who wants to hear of which resource."""

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        self._sessions: WeakKeyDictionary[ServerSession, set[str]] = WeakKeyDictionary()

    def serve_older_hosts(self, server: MCPServer[Any]) -> None:
        """Answer resources/subscribe and resources/unsubscribe."""
        core = server._lowlevel_server  # MCPServer has no public way to add these two methods
        core.add_request_handler("resources/subscribe", SubscribeRequestParams, self._subscribe)
        core.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, self._unsubscribe)

    async def session_changed(self, session_id: str) -> None:
        """Tell every subscriber of the session, and of the list of sessions. A host that is gone is forgotten."""
        for uri in (stats_uri(session_id), SESSIONS_URI):
            await self.bus.publish(ResourceUpdated(uri=uri))
            for session, uris in list(self._sessions.items()):
                if uri in uris:
                    await self._tell(session, uri)

    async def _tell(self, session: ServerSession, uri: str) -> None:
        try:
            await session.send_resource_updated(uri)
        except Exception:  # the connection is the SDK's: whatever it raises, the record is written
            _log.info("a subscriber is gone", exc_info=True)
            self._sessions.pop(session, None)

    async def _subscribe(self, context: ServerRequestContext[Any], params: SubscribeRequestParams) -> EmptyResult:
        self._sessions.setdefault(context.session, set()).add(params.uri)
        return EmptyResult()

    async def _unsubscribe(self, context: ServerRequestContext[Any], params: UnsubscribeRequestParams) -> EmptyResult:
        self._sessions.get(context.session, set()).discard(params.uri)
        return EmptyResult()
