"""Who is subscribed to what, in both protocols: `subscriptions/listen` of 2026, and `resources/subscribe` of 2025.

The SDK serves only the first. Each subscriber keeps the principal that it subscribed as, which decides what it
may hear of. `watcher` finds what changed and delivers it; no tool does.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, cast

import anyio
from anyio.abc import TaskGroup
from mcp.server import MCPServer
from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.server.subscriptions import (
    SUBSCRIPTION_ID_META_KEY,
    ListenHandler,
    ResourceUpdated,
    ServerEvent,
)
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    EmptyResult,
    SubscribeRequestParams,
    SubscriptionFilter,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    UnsubscribeRequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from kalito_mcp.domain.scope import NO_LIMITS, Limits
from kalito_mcp.domain.watching import Watched
from kalito_mcp.runtime.acting import acting
from kalito_mcp.server.addresses import SESSION_LIST, watched_at

LISTEN: Final = "subscriptions/listen"
MOST_SUBSCRIPTIONS: Final = 4_096
"""Open streams of `subscriptions/listen`. Each costs some 30 KB."""
MOST_OF_ONE: Final = 2_048
"""Open streams of one principal, so that a program that never closes any cannot use up all of them."""
MOST_RESOURCES: Final = 1_000
"""Resources of one stream, or of one connection of the 2025 protocol."""
_TOO_MANY_RESOURCES: Final = f"more than {MOST_RESOURCES:,} resources in one subscription; subscribe to fewer"
_LISTENING: Final[ContextVar[tuple[SubscriptionFilter, Callable[[], None]]]] = ContextVar("listening")
"""What the stream that this task is opening asks for, and what ends it: the SDK does not pass these to `subscribe`."""
_log: Final = logging.getLogger("kalito.server")


@dataclass(frozen=True, slots=True)
class Audience:
    """Subscribers who may read the same part of the same memory. Over stdio there is one owner: None."""

    owner: str | None = None
    limits: Limits = NO_LIMITS


def audience() -> Audience:
    """The audience that the principal of this task's call belongs to."""
    called = acting()
    return Audience() if called is None else Audience(called.principal.owner, called.principal.limits)


def _principal_id() -> str | None:
    called = acting()
    return None if called is None else called.principal.id


Prepare = Callable[[Audience, Collection[Watched]], Awaitable[None]]


class Subscriber(Protocol):
    """One stream, or one connection of the 2025 protocol."""

    @property
    def audience(self) -> Audience: ...
    @property
    def principal_id(self) -> str | None:
        """The principal that subscribed; None over stdio."""

    def end(self) -> None:
        """Stop notifying it."""

    @property
    def wants_list(self) -> bool:
        """Whether it wants to know when the list of sessions changes."""

    @property
    def watched(self) -> Mapping[str, Watched | None]:
        """The resources that it subscribed to, by URI as it wrote it; None if there is no resource with this URI."""

    def deliver(self, event: ServerEvent) -> None:
        """Send the event soon, if the subscriber wants it. Returns at once and never raises."""


@dataclass(frozen=True, slots=True, eq=False)
class _Stream:
    """A stream of `subscriptions/listen`."""

    audience: Audience
    principal_id: str | None
    watched: Mapping[str, Watched | None]
    wants_list: bool
    deliver: Callable[[ServerEvent], None]
    end: Callable[[], None]


@dataclass(slots=True, eq=False)
class _OlderHost:
    """A connection of the 2025 protocol. Equal notifications that were not sent yet are sent once."""

    audience: Audience
    principal_id: str | None
    connection: Connection
    watched: dict[str, Watched | None] = field(default_factory=dict)
    wants_list: bool = False
    sending: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    _unsent: dict[ServerEvent, None] = field(default_factory=dict)
    _changed: anyio.Event = field(default_factory=anyio.Event)

    def deliver(self, event: ServerEvent) -> None:
        if not isinstance(event, ResourceUpdated) or event.uri in self.watched:
            self._unsent[event] = None
            self._changed.set()

    def end(self) -> None:
        self.watched.clear()
        self.wants_list = False
        self._unsent.clear()

    async def send(self) -> None:
        """Send events until the host disconnects. In its own task, so that a host that does not read delays nobody."""
        with self.sending:
            while True:
                await self._changed.wait()
                self._changed = anyio.Event()
                while self._unsent:
                    event = next(iter(self._unsent))
                    del self._unsent[event]
                    try:
                        if isinstance(event, ResourceUpdated):
                            await self.connection.send_resource_updated(event.uri)
                        else:
                            await self.connection.send_resource_list_changed()
                    except Exception:  # whatever the SDK's connection raises, the server goes on
                        _log.info("a subscriber could not be notified", exc_info=True)


class Subscriptions:
    """All subscribers of a server: the SDK's `SubscriptionBus`, and the handlers of both protocols."""

    def __init__(self) -> None:
        self.prepare: Prepare = _nothing_to_prepare
        """Called with what a new subscriber wants before it is acknowledged, so that no later change is missed."""
        self.nudged: anyio.Event | None = None
        """Set when the watcher should look at once. None while no watcher runs."""
        self.senders: TaskGroup | None = None
        """The tasks that notify hosts of the 2025 protocol. None while no watcher runs."""
        self._streams: dict[object, _Stream] = {}
        self._older: dict[Connection, _OlderHost] = {}
        self._listening = ListenHandler(self, max_subscriptions=MOST_SUBSCRIPTIONS)

    def open_count(self) -> int:
        """How many streams and subscribed connections there are."""
        return len(self._streams) + len(self._older)

    def serve(self, server: MCPServer[Any]) -> None:
        """Answer `subscriptions/listen`, `resources/subscribe` and `resources/unsubscribe`."""
        core = server._lowlevel_server  # MCPServer has no public way to add or replace methods
        core.add_request_handler(LISTEN, SubscriptionsListenRequestParams, self._listen)
        core.add_request_handler("resources/subscribe", SubscribeRequestParams, self._subscribe)
        core.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, self._unsubscribe)

    def __iter__(self) -> Iterator[Subscriber]:
        return iter([*self._streams.values(), *self._older.values()])

    def nudge(self) -> None:
        """Have the watcher look at once."""
        if self.nudged is not None:
            self.nudged.set()

    async def after_calls(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Middleware that has the watcher look after each tool call, because most of them write."""
        try:
            return await call_next(ctx)
        finally:
            if ctx.method == "tools/call":
                self.nudge()

    async def publish(self, event: ServerEvent) -> None:
        """Deliver nothing. The SDK's bus must have this method, but only the watcher knows who may hear of an event."""

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Add a stream for the principal of this call. Returns a function that removes it."""
        (wanted, end), token = _LISTENING.get(), object()
        watched = {uri: watched_at(uri) for uri in wanted.resource_subscriptions or ()}
        wants_list = bool(wanted.resources_list_changed)
        self._streams[token] = _Stream(audience(), _principal_id(), watched, wants_list, listener, end)
        self.nudge()  # the watcher sleeps while nobody is subscribed

        def unsubscribe() -> None:
            self._streams.pop(token, None)
            self.nudge()  # so that it forgets what nobody wants any more

        return unsubscribe

    def end(self) -> None:
        """End all streams: each sends its remaining events, and then its result."""
        self._listening.close()

    async def notify_of_sessions(self, context: ServerRequestContext[Any]) -> None:
        """From now on, notify this host of changes of the list of sessions, which it is reading. Only in the 2025
        protocol; in the other, a host subscribes to the list."""
        if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            host = self._older_host(context)
            await self.prepare(host.audience, [SESSION_LIST])
            host.wants_list = True
            self.nudge()

    async def _listen(
        self, context: ServerRequestContext[Any], params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        filters = params.notifications
        uris = filters.resource_subscriptions or []
        if len(uris) > MOST_RESOURCES:
            raise _too_many(_TOO_MANY_RESOURCES)
        mine = _principal_id()
        if mine is not None and sum(one.principal_id == mine for one in self._streams.values()) >= MOST_OF_ONE:
            raise _too_many(f"you have {MOST_OF_ONE:,} open subscriptions; close some")
        wanted = [found for found in map(watched_at, uris) if found is not None]
        await self.prepare(audience(), [*wanted, *([SESSION_LIST] if filters.resources_list_changed else [])])
        with anyio.CancelScope() as lasting:
            _LISTENING.set((filters, lasting.cancel))
            return await self._listening(context, params)
        # Reached when `lasting.cancel` was called, because the token is no longer valid. The result ends the stream.
        return SubscriptionsListenResult(_meta={SUBSCRIPTION_ID_META_KEY: context.request_id})

    async def _subscribe(self, context: ServerRequestContext[Any], params: SubscribeRequestParams) -> EmptyResult:
        host = self._older_host(context)
        if len(host.watched) >= MOST_RESOURCES:
            raise _too_many(_TOO_MANY_RESOURCES)
        watched = watched_at(params.uri)
        await self.prepare(host.audience, [] if watched is None else [watched])
        host.watched[params.uri] = watched
        self.nudge()
        return EmptyResult()

    async def _unsubscribe(self, context: ServerRequestContext[Any], params: UnsubscribeRequestParams) -> EmptyResult:
        self._older_host(context).watched.pop(params.uri, None)
        return EmptyResult()

    def _older_host(self, context: ServerRequestContext[Any]) -> _OlderHost:
        # Each request has its own session object; the connection behind it is the same.
        connection = context.session._connection
        host = self._older.get(connection)
        if host is None:
            host = self._older[connection] = _OlderHost(audience(), _principal_id(), connection)
            connection.exit_stack.callback(self._leave, host)
            if self.senders is not None:
                self.senders.start_soon(host.send)
        # A client that got a new consent keeps its connection.
        host.principal_id = _principal_id()
        return host

    def _leave(self, host: _OlderHost) -> None:
        self._older.pop(host.connection, None)
        self.nudge()
        host.sending.cancel()


def except_subscriptions(middleware: ServerMiddleware[Any]) -> ServerMiddleware[Any]:
    """The middleware for all requests except `subscriptions/listen`, which lasts for hours and would keep its frame."""

    def passed(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> Awaitable[HandlerResult]:
        return call_next(ctx) if ctx.method == LISTEN else middleware(ctx, call_next)

    return cast("ServerMiddleware[Any]", passed)  # the SDK awaits what it returns


async def _nothing_to_prepare(_audience: Audience, _watched: Collection[Watched]) -> None:
    """Used while there is no watcher."""


def _too_many(said: str) -> MCPError:
    return MCPError(code=INVALID_PARAMS, message=said)
