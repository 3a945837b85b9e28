"""Subscriptions of both protocol eras and their principals: hosts are only notified of what they could read.

The SDK serves `subscriptions/listen` of the 2026 protocol, but not `resources/subscribe` of the older one. A
subscription remembers its principal. Events published during a call reach only its owner's subscriptions. `watcher`
finds changes in the memory, and reads as each subscriber would.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, cast

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup
from mcp.server import MCPServer
from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.server.subscriptions import (
    SUBSCRIPTION_ID_META_KEY,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
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
"""Streams of `subscriptions/listen`. Each costs some 30 KB."""
MOST_OF_ONE: Final = 2_048
"""The same of one principal: a program that forgets its streams leaves the others theirs."""
MOST_RESOURCES: Final = 1_000
"""Resources of one subscription, or of one connection of the 2025 protocol."""
_TOO_MANY_RESOURCES: Final = f"more than {MOST_RESOURCES:,} resources in one subscription; subscribe to fewer"
_LISTENING: Final[ContextVar[tuple[SubscriptionFilter, Callable[[], None]]]] = ContextVar("listening")
"""The subscription that this task is about to begin, and what ends it: the SDK does not pass it to its bus."""
_log: Final = logging.getLogger("kalito.server")


@dataclass(frozen=True, slots=True)
class Audience:
    """Subscribers who may read the same part of the same memory. Over stdio `owner` is None: it is the owner served."""

    owner: str | None = None
    limits: Limits = NO_LIMITS

    def includes(self, other: "Audience") -> bool:
        """Whether these may know whatever those do."""
        return self.owner == other.owner and self.limits in (NO_LIMITS, other.limits)


def audience() -> Audience:
    """The audience of the call that this task works for."""
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
        """Whether it asked to hear which sessions there are."""

    @property
    def watched(self) -> Mapping[str, Watched | None]:
        """The resources that it asked for, by their addresses as it wrote them; None where we have no such resource."""

    def deliver(self, event: ServerEvent) -> None:
        """Pass the event on if it was asked for. Returns at once and does not raise."""


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
    """A connection of the 2025 protocol. Notifications that it has not read yet are merged into one."""

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
        """Send what is delivered, until the host leaves. A host that does not read delays no others."""
        with self.sending:
            while True:
                await self._changed.wait()
                self._changed = anyio.Event()
                while self._unsent:
                    event = next(iter(self._unsent))
                    del self._unsent[event]
                    try:
                        await _notify(self.connection, event)
                    except Exception:  # the connection is the SDK's: whatever it raises, the memory is as it is
                        _log.info("a subscriber could not be notified", exc_info=True)


async def _notify(connection: Connection, event: ServerEvent) -> None:
    match event:
        case ResourceUpdated(uri=uri):
            await connection.send_resource_updated(uri)
        case ResourcesListChanged():
            await connection.send_resource_list_changed()
        case ToolsListChanged():
            await connection.send_tool_list_changed()
        case PromptsListChanged():
            await connection.send_prompt_list_changed()


class Subscriptions:
    """All subscriptions of a server: the SDK's bus, the methods of both eras, and what the watcher asks."""

    def __init__(self) -> None:
        self.prepare: Prepare = _nothing_to_prepare
        """Gets what a new subscriber wants before it is acknowledged, so that no later change is missed."""
        self.nudged: anyio.Event | None = None
        """Set when something was probably written, or somebody has subscribed or left. None without subscribers."""
        self.senders: TaskGroup | None = None
        """Where hosts of the 2025 protocol are notified, each in a task of its own."""
        self._streams: dict[object, _Stream] = {}
        self._older: dict[Connection, _OlderHost] = {}
        self._listening = ListenHandler(self, max_subscriptions=MOST_SUBSCRIPTIONS)

    def open_count(self) -> int:
        """How many subscriptions of hosts there are, of both protocols."""
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
        """The SDK's middleware that has the watcher look after each tool call: most of them write."""
        try:
            return await call_next(ctx)
        finally:
            if ctx.method == "tools/call":
                self.nudge()

    async def publish(self, event: ServerEvent) -> None:
        """Pass an event of a call on to those who may know what its principal knows."""
        known_to = audience()
        for one in self:
            if not isinstance(event, ResourceUpdated) or one.audience.includes(known_to):
                one.deliver(event)
        await anyio.lowlevel.checkpoint()

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Add a stream for the principal of this call. Returns what removes it."""
        (wanted, end), token = _LISTENING.get(), object()
        watched = {uri: watched_at(uri) for uri in wanted.resource_subscriptions or ()}
        wants_list = bool(wanted.resources_list_changed)
        self._streams[token] = _Stream(audience(), _principal_id(), watched, wants_list, listener, end)
        self.nudge()  # the watcher may be waiting for somebody

        def unsubscribe() -> None:
            self._streams.pop(token, None)
            self.nudge()  # what has no subscriber any more is forgotten

        return unsubscribe

    def end(self) -> None:
        """Have each stream send what it holds and then its result, by which the protocol ends it."""
        self._listening.close()

    async def notify_of_sessions(self, context: ServerRequestContext[Any]) -> None:
        """Notify a host that reads the list of sessions, from now on, if it has the 2025 protocol."""
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
        # Its token is no longer valid: with this the protocol ends a stream.
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
        # Each request has a session object of its own; the connection behind it lasts.
        connection = context.session._connection
        host = self._older.get(connection)
        if host is None:
            host = self._older[connection] = _OlderHost(audience(), _principal_id(), connection)
            connection.exit_stack.callback(self._leave, host)
            if self.senders is not None:
                self.senders.start_soon(host.send)
        # A client with a new consent goes on in its session.
        host.principal_id = _principal_id()
        return host

    def _leave(self, host: _OlderHost) -> None:
        self._older.pop(host.connection, None)
        self.nudge()
        host.sending.cancel()


def except_subscriptions(middleware: ServerMiddleware[Any]) -> ServerMiddleware[Any]:
    """The SDK's middleware for all messages but subscriptions. They last for hours, and would hold a frame of each."""

    def passed(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> Awaitable[HandlerResult]:
        return call_next(ctx) if ctx.method == LISTEN else middleware(ctx, call_next)

    return cast("ServerMiddleware[Any]", passed)  # the SDK awaits what it returns


async def _nothing_to_prepare(_audience: Audience, _watched: Collection[Watched]) -> None:
    """Without a watcher."""


def _too_many(said: str) -> MCPError:
    return MCPError(code=INVALID_PARAMS, message=said)
