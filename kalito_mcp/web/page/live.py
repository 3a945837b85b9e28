"""Tells open pages that something changed. What changed they read by themselves, as whoever they are.

However many pages of an owner are open, one look at the memory serves all of them.
"""

import logging
import math
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import anyio
from sse_starlette import EventSourceResponse

from kalito_mcp.errors import KalitoError

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory

LOOK_S: Final = 0.4
"""How often the memory is looked at. A page hears of a change within twice that."""
_REST_S: Final = 1.0
"""How long a page has to show one change before it hears of the next."""
_LASTS_S: Final = 600.0
"""After that, the browser asks again, and shows whether it still may."""
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

    def stream(self, memory: "Memory", since: str | None) -> EventSourceResponse:
        """The answer with the events."""
        return EventSourceResponse(self.events(memory, since), headers=_HEADERS)

    async def events(self, memory: "Memory", since: str | None = None) -> AsyncIterator[Mapping[str, str]]:
        """An event `changed` for each change of the memory since the version `since`, or from now on."""
        ends_s = anyio.current_time() + _LASTS_S
        while anyio.current_time() < ends_s:
            try:
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
