"""Finds what changed in the memory, in any process, and reports it to subscribers.

It looks only while somebody is subscribed: right after a tool call, and each second at the store's revision. Every
process that writes moves it, and so does the background work of this one. What was last read at another revision is
read again, as each audience would read it, and compared with what was there before. So no subscriber learns of what it
cannot read, not even from the time of a notification.
"""

import logging
import math
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import anyio
import anyio.abc
from mcp.server.subscriptions import ResourcesListChanged, ResourceUpdated, ServerEvent

from kalito_mcp.domain.watching import Watched, WatchedKind
from kalito_mcp.errors import KalitoError
from kalito_mcp.server.addresses import SESSION_LIST
from kalito_mcp.server.subscriptions import Audience, Subscriber, Subscriptions

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory

LOOK_S: Final = 1.0
_REST: Final = 9
"""Pause after a look, as a multiple of its duration: looking costs at most a tenth of a processor."""
_IN_FILES: Final = frozenset({WatchedKind.SNAPSHOTS, WatchedKind.SNAPSHOT})
"""What changes without a commit."""
_log: Final = logging.getLogger("kalito.server")


@dataclass(frozen=True, slots=True)
class _Seen:
    """The version of something, read when the store was at `revision` or later."""

    version: int
    revision: int


class Watcher:
    """Compares what the subscribers of one server see."""

    def __init__(self, subscriptions: Subscriptions, memory: "Callable[[], Awaitable[Memory]]") -> None:
        self._subscriptions = subscriptions
        self._memory = memory
        self._seen: defaultdict[Audience, dict[Watched, _Seen]] = defaultdict(dict)
        self._ends_ms: Mapping[str, int] = {}
        """When each principal's access ends, as of the revision below."""
        self._ends_of: tuple[int, set[str]] | None = None
        """The revision, and the principals."""
        subscriptions.prepare = self._prepare

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Watch until cancelled. Started as soon as hosts of the 2025 protocol can be notified."""
        async with anyio.create_task_group() as senders:
            self._subscriptions.senders, self._subscriptions.nudged = senders, anyio.Event()
            self._seen.clear()
            task_status.started()
            has_failed = False
            try:
                while True:
                    await self._wait(self._subscriptions.nudged)
                    self._subscriptions.nudged = anyio.Event()
                    began = anyio.current_time()
                    try:
                        await self._look()
                        has_failed = False
                    except Exception:  # said once; calls go on, and say what is wrong with the memory
                        if not has_failed:
                            _log.warning("subscribers cannot be notified", exc_info=True)
                        has_failed = True
                    await anyio.sleep(_REST * (anyio.current_time() - began))
            finally:
                self._subscriptions.senders = self._subscriptions.nudged = None

    async def _wait(self, nudged: anyio.Event) -> None:
        """Wait until it is time to look."""
        with anyio.move_on_after(LOOK_S if self._is_needed() else math.inf):
            await nudged.wait()

    async def _look(self) -> None:
        """Compare what each audience sees with what it saw, and pass on what differs."""
        if not self._is_needed():
            self._seen.clear()  # the next subscriber hears of changes from then on
            return
        memory = await self._memory()
        revision = await memory.changes.revision()
        await self._end_those_without_token(memory, revision)
        failures: list[Exception] = []
        for audience, watched in self._wanted().items():
            try:
                changed = await self._changes(audience, watched, revision)
            except Exception as error:  # the others are notified all the same, and this audience next time
                failures.append(error)
                continue
            for one in self._subscriptions if changed else ():
                if one.audience == audience:
                    for event in _events(one, changed):
                        one.deliver(event)
        self._forget_unwanted()
        if failures:
            raise failures[0]

    async def _changes(self, audience: Audience, watched: Collection[Watched], revision: int) -> set[Watched]:
        """Which resources look different to the audience than before; and note it. `revision` was read before them."""
        seen = self._seen[audience]
        to_read = {
            one
            for one in watched
            if one.kind in _IN_FILES or (before := seen.get(one)) is None or before.revision != revision
        }
        found = await self._as_seen_by(audience, to_read)
        changed = {one for one, version in found.items() if one in seen and seen[one].version != version}
        seen.update({one: _Seen(version, revision) for one, version in found.items()})
        return changed

    async def _end_those_without_token(self, memory: "Memory", revision: int) -> None:
        """End the subscriptions whose token, or consent, was revoked or has expired. A provider's tokens are not known
        here."""
        principals = self._principals()
        if self._ends_of != (revision, principals):
            self._ends_ms = await memory.access.ends_of(principals)
            self._ends_of = revision, principals
        for one in list(self._subscriptions):
            if self._ends_ms.get(one.principal_id or "", math.inf) <= memory.place.clock.now_ms():
                one.end()

    async def _prepare(self, audience: Audience, watched: Collection[Watched]) -> None:
        """Note what the audience sees now, where that was not yet noted."""
        if all(one in self._seen[audience] for one in watched):
            return
        with suppress(KalitoError):  # of a memory that cannot be opened, there is nothing to be missed
            revision = await (await self._memory()).changes.revision()
            found = await self._as_seen_by(audience, watched)
            # From here to the subscription nothing is awaited, so nothing is forgotten in between.
            seen = self._seen[audience]
            for one, version in found.items():
                seen.setdefault(one, _Seen(version, revision))

    async def _as_seen_by(self, audience: Audience, watched: Collection[Watched]) -> Mapping[Watched, int]:
        if not watched:
            return {}
        memory = await self._memory()
        if audience.owner is not None:
            memory = memory.of_owner(audience.owner, audience.limits)
        return await memory.changes.versions(watched)

    def _is_needed(self) -> bool:
        """Whether a subscriber must be notified, or may have lost access."""
        return any(one.watched or one.wants_list or one.principal_id is not None for one in self._subscriptions)

    def _principals(self) -> set[str]:
        """The principals that subscribed over HTTP."""
        return {one.principal_id for one in self._subscriptions if one.principal_id is not None}

    def _wanted(self) -> dict[Audience, set[Watched]]:
        """The current subscriptions."""
        wanted: defaultdict[Audience, set[Watched]] = defaultdict(set)
        for one in self._subscriptions:
            watched = {each for each in one.watched.values() if each is not None}
            if watched or one.wants_list:
                wanted[one.audience] |= watched | ({SESSION_LIST} if one.wants_list else set())
        return dict(wanted)

    def _forget_unwanted(self) -> None:
        wanted = self._wanted()
        kept = {audience: wanted.get(audience, set()) for audience in self._seen}
        for audience, still in kept.items():
            self._seen[audience] = {one: seen for one, seen in self._seen[audience].items() if one in still}
            if not still:
                del self._seen[audience]


def _events(subscriber: Subscriber, changed: Collection[Watched]) -> Iterator[ServerEvent]:
    """The subscriber's filter, as it was requested."""
    if not changed:
        return
    if subscriber.wants_list and SESSION_LIST in changed:
        yield ResourcesListChanged()
    for uri, watched in subscriber.watched.items():
        if watched in changed:
            yield ResourceUpdated(uri=uri)
