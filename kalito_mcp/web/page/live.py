"""Notifies open pages that something changed. Each then reads by itself what its person may see.

However many pages of an owner are open, one look at the memory serves all of them.
"""

import logging
import math
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import anyio
from sse_starlette import EventSourceResponse

from kalito_mcp.errors import KalitoError
from kalito_mcp.web.problems import Problem

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory

LOOK_S: Final = 0.4
"""How often the memory is looked at. A page hears of a change within twice that."""
_REST_S: Final = 1.0
"""How long a page has to show one change before it hears of the next."""
_LASTS_S: Final = 600.0
"""After that, the browser asks again."""
_CHECKED_S: Final = 30.0
"""How often it is checked whether a page still may hear of changes."""
_MOST_OF_ONE: Final = 64
"""Open streams of one principal."""
_HEADERS: Final[Mapping[str, str]] = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
_log: Final = logging.getLogger("kalito.server")


@dataclass(slots=True)
class _Look:
    """The newest look at one owner's memory."""

    version: str = ""
    at_s: float = -math.inf
    lock: anyio.Lock = field(default_factory=lambda: anyio.Lock(fast_acquire=True))


class Live:
    """The streams of one server."""

    def __init__(self) -> None:
        self._looks: defaultdict[str, _Look] = defaultdict(_Look)
        self._open: Counter[str] = Counter()

    def stream(
        self, memory: "Memory", principal_id: str, may_go_on: Callable[[], Awaitable[bool]], since: str | None
    ) -> EventSourceResponse:
        """The answer with the events, until `may_go_on` says no. Raises Problem if the principal has too many open."""
        if self._open[principal_id] >= _MOST_OF_ONE:
            raise Problem(429, "too_many_requests", f"more than {_MOST_OF_ONE} pages are open; close some")
        return EventSourceResponse(self._counted(memory, principal_id, may_go_on, since), headers=_HEADERS)

    async def _counted(
        self, memory: "Memory", principal_id: str, may_go_on: Callable[[], Awaitable[bool]], since: str | None
    ) -> AsyncIterator[Mapping[str, str]]:
        self._open[principal_id] += 1
        try:
            async with aclosing(self.events(memory, since, may_go_on)) as events:
                async for event in events:
                    yield event
        finally:
            self._open[principal_id] -= 1
            if not self._open[principal_id]:
                del self._open[principal_id]

    async def events(
        self, memory: "Memory", since: str | None = None, may_go_on: Callable[[], Awaitable[bool]] | None = None
    ) -> AsyncGenerator[Mapping[str, str]]:
        """An event `changed` for each change of the memory since the version `since`, or from now on."""
        checked_s = anyio.current_time()
        ends_s = checked_s + _LASTS_S
        while anyio.current_time() < ends_s:
            try:
                if may_go_on is not None and anyio.current_time() - checked_s >= _CHECKED_S:
                    checked_s = anyio.current_time()
                    if not await may_go_on():
                        return
                version = await self._version(memory)
            except KalitoError as error:
                _log.info("an open page hears of no more changes: %s", error)
                return
            since, before = version, since
            if before not in (None, version):
                yield {"event": "changed", "data": version}
                await anyio.sleep(_REST_S)
            await anyio.sleep(LOOK_S)

    async def _version(self, memory: "Memory") -> str:
        look = self._looks[memory.place.owner]
        async with look.lock:
            if anyio.current_time() - look.at_s >= LOOK_S:
                look.version, look.at_s = await memory.given.version(), anyio.current_time()
            return look.version
