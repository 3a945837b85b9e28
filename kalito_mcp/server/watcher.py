"""Notifies subscribers of what changed in the memory, whichever process changed it.

It looks only while somebody is subscribed: after each tool call, when the store hears of a change, and each second. If
the revision of an owner's memory has changed, it reads what that owner's subscribers watch, with their limits, and
compares it with what it read before. So nobody hears of what they cannot read, not even by the time of a notification.
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
"""Pause after a look, as a multiple of its duration, so that looking takes at most a tenth of a processor."""
_IN_FILES: Final = frozenset({WatchedKind.SNAPSHOTS, WatchedKind.SNAPSHOT})
"""What changes without a commit."""
_log: Final = logging.getLogger("kalito.server")


@dataclass(frozen=True, slots=True)
class _Seen:
    """The version of a resource. `revision` was read before it."""

    version: int
    revision: int


class Watcher:
    """Compares what the subscribers of one server see now with what they saw before."""

    def __init__(self, subscriptions: Subscriptions, memory: "Callable[[], Awaitable[Memory]]") -> None:
        self._subscriptions = subscriptions
        self._memory = memory
        self._seen: defaultdict[Audience, dict[Watched, _Seen]] = defaultdict(dict)
        self._ends_ms: Mapping[str, int] = {}
        """When the access of each principal ends."""
        self._ends_as_of: tuple[Mapping[Audience, int], set[str]] | None = None
        """The revisions and the principals for which `_ends_ms` was read."""
        self._hearing: anyio.CancelScope | None = None
        """The task that hears of changes."""
        subscriptions.prepare = self._prepare

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Watch until cancelled. Reports that it has started once hosts of the 2025 protocol can be notified."""
        async with anyio.create_task_group() as senders:
            self._subscriptions.senders, self._subscriptions.nudged = senders, anyio.Event()
            self._seen.clear()
            task_status.started()
            has_failed = False
            try:
                while True:
                    await self._wait(self._subscriptions.nudged)
                    self._subscriptions.nudged = anyio.Event()
                    self._hear_if_needed(senders)
                    began = anyio.current_time()
                    try:
                        await self._look()
                        has_failed = False
                    except Exception:  # logged once; tool calls report what is wrong with the memory
                        if not has_failed:
                            _log.warning("subscribers cannot be notified", exc_info=True)
                        has_failed = True
                    await anyio.sleep(_REST * (anyio.current_time() - began))
            finally:
                self._subscriptions.senders = self._subscriptions.nudged = self._hearing = None

    async def _wait(self, nudged: anyio.Event) -> None:
        """Wait until it is time to look."""
        with anyio.move_on_after(LOOK_S if self._is_needed() else math.inf):
            await nudged.wait()

    def _hear_if_needed(self, tasks: anyio.abc.TaskGroup) -> None:
        """Hear of changes while somebody is subscribed."""
        if not self._is_needed():
            if self._hearing is not None:
                self._hearing.cancel()
            self._hearing = None
        elif self._hearing is None:
            self._hearing = anyio.CancelScope()
            tasks.start_soon(self._hear, self._hearing)

    async def _hear(self, scope: anyio.CancelScope) -> None:
        with scope:
            try:
                memory = await self._memory()
                owner = memory.place.owner
                await memory.changes.listen(
                    lambda: {one.audience.owner or owner for one in self._subscriptions}, self._subscriptions.nudge
                )
            except Exception:  # the look each second finds what is not heard
                _log.warning("changes of other processes are seen a second late", exc_info=True)

    async def _look(self) -> None:
        """Notify each audience of what looks different from before."""
        if not self._is_needed():
            self._seen.clear()  # the next subscriber is notified only of later changes
            return
        wanted = self._wanted()  # who subscribes from here on is prepared, and looked at next time
        revisions = {one: await self._revision(one) for one in {each.audience for each in self._subscriptions}}
        await self._end_those_without_access(revisions)
        failures: list[Exception] = []
        for audience, watched in wanted.items():
            try:
                changed = await self._changes(audience, watched, revisions[audience])
            except Exception as error:  # the others are still notified, and this audience at the next look
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
        """Return which resources look different to the audience, and remember how they look now. `revision` was read
        before them."""
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

    async def _end_those_without_access(self, revisions: Mapping[Audience, int]) -> None:
        """End the subscriptions whose token or consent has expired or was revoked. Tokens of an OpenID provider are not
        stored, so nothing is known of their end."""
        memory, principals = await self._memory(), self._principals()
        if self._ends_as_of != (revisions, principals):
            self._ends_ms = await memory.access.ends_of(principals)
            self._ends_as_of = revisions, principals
        for one in list(self._subscriptions):
            if self._ends_ms.get(one.principal_id or "", math.inf) <= memory.place.clock.now_ms():
                one.end()

    async def _prepare(self, audience: Audience, watched: Collection[Watched]) -> None:
        """Remember what the audience sees now of resources that it did not watch before."""
        if all(one in self._seen[audience] for one in watched):
            return
        with suppress(KalitoError):  # a memory that cannot be opened has no changes to miss
            revision = await self._revision(audience)
            found = await self._as_seen_by(audience, watched)
            # Nothing is awaited from here until the subscriber is added, so `_forget_unwanted` cannot run in between.
            seen = self._seen[audience]
            for one, version in found.items():
                seen.setdefault(one, _Seen(version, revision))

    async def _as_seen_by(self, audience: Audience, watched: Collection[Watched]) -> Mapping[Watched, int]:
        return await (await self._memory_of(audience)).changes.versions(watched) if watched else {}

    async def _revision(self, audience: Audience) -> int:
        return await (await self._memory_of(audience)).changes.revision()

    async def _memory_of(self, audience: Audience) -> "Memory":
        """The memory as the audience may read it."""
        memory = await self._memory()
        return memory if audience.owner is None else memory.of_owner(audience.owner, audience.limits)

    def _is_needed(self) -> bool:
        """Whether anybody watches something, or may lose access."""
        return any(one.watched or one.wants_list or one.principal_id is not None for one in self._subscriptions)

    def _principals(self) -> set[str]:
        """The principals of the subscribers over HTTP."""
        return {one.principal_id for one in self._subscriptions if one.principal_id is not None}

    def _wanted(self) -> dict[Audience, set[Watched]]:
        """What each audience watches."""
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
    """The changes that the subscriber asked for, with the URIs as it wrote them."""
    if subscriber.wants_list and SESSION_LIST in changed:
        yield ResourcesListChanged()
    for uri, watched in subscriber.watched.items():
        if watched in changed:
            yield ResourceUpdated(uri=uri)
