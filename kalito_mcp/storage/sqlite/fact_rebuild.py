"""Rebuilds the facts from the records, in pieces that each store how far they came. Also reads what a large batch left
to do.

The facts of few records are rebuilt when the database is opened, those of many in the background: each piece reads its
records outside of the transaction that stores what they state. Until the last piece, an outdated fact may stand
unmarked. A process that is killed has lost one piece, and processes that open the database at once share them.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, NamedTuple, Protocol

import anyio
import anyio.to_thread

from kalito_mcp.storage.sqlite.fact_rows import Source, Stated, read_source
from kalito_mcp.storage.sqlite.facts import FactQueries, FactStatements
from kalito_mcp.text.plurals import plural

FACTS_STEP: Final = 11
"""The migration from which on there are facts."""

_AT_ONCE: Final = 1_000
"""So many records are read for facts in a quarter of a second."""

_PAUSE_S: Final = 0.005
"""Between two pieces. Whoever waits for the mutex asks for it every 2 milliseconds."""

_TELL_EVERY_S: Final = 5.0
_log: Final = logging.getLogger("kalito.storage")


_Left = tuple[int, Sequence[Source]]


class _View(Protocol):
    @property
    def facts(self) -> FactQueries: ...


class _Transaction(Protocol):
    @property
    def facts(self) -> FactStatements: ...


class _Telling(NamedTuple):
    began_at: float
    told_at: float
    read: int


class FactRebuild:
    """The rebuild of a database, by one process."""

    def __init__(
        self,
        trip: Callable[[Callable[[_View], Coroutine[Any, Any, _Left]]], Awaitable[_Left]],
        write: Callable[[], AbstractAsyncContextManager[_Transaction]],
    ) -> None:
        self._trip = trip
        self._write = write
        self._telling: _Telling | None = None

    async def begin(self) -> None:
        """Begin a rebuild if other rules made the facts. Those of few records are rebuilt when this returns.

        Raises:
            StorageBusy: another process held the lock too long.
        """
        async with self._write() as transaction:
            left = await transaction.facts.restart(is_forced=False)
        if 0 < left <= _AT_ONCE:
            await self._finish()

    async def run(self) -> None:
        """Rebuild all facts, whichever rules made them."""
        async with self._write() as transaction:
            await transaction.facts.restart(is_forced=True)
        await self._finish()

    async def go_on(self) -> bool:
        """Rebuild the next piece, and tell now and then how far it is. Whether more are left."""
        left, sources = await self._trip(lambda view: view.facts.left())
        if not left:
            return False
        self._tell(left)
        read = dict(zip(sources, await anyio.to_thread.run_sync(_read, sources), strict=True))
        async with self._write() as transaction:
            left = await transaction.facts.go_on(read)
        if self._telling is not None:
            self._telling = self._telling._replace(read=self._telling.read + len(sources))
        if not left and self._telling is not None:
            _log.warning("all records are read for facts, after %.0f s", time.monotonic() - self._telling.began_at)
            self._telling = None
        await anyio.sleep(_PAUSE_S)
        return bool(left)

    async def _finish(self) -> None:
        while await self.go_on():
            pass

    def _tell(self, left: int) -> None:
        now = time.monotonic()
        if self._telling is None:
            if left <= _AT_ONCE:
                return
            self._telling = _Telling(now, now, 0)
            _log.warning(
                "reading %s for facts, in the background: until then an outdated fact may stand unmarked. It may be "
                "interrupted; the next start goes on",
                plural(left, "record"),
            )
        elif now >= self._telling.told_at + _TELL_EVERY_S:
            # By what was read, not by what is left: more is recorded meanwhile.
            left_s = (now - self._telling.began_at) / max(1, self._telling.read) * left
            self._telling = self._telling._replace(told_at=now)
            _log.warning("reading records for facts: %s left, about %d s", f"{left:,}", round(left_s))


def _read(sources: Sequence[Source]) -> list[Stated]:
    return [read_source(source) for source in sources]
