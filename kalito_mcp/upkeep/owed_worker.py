"""Owed background work: automatic pins, due summaries, due folds, messages that are not in the graph yet, and
interrupted erasures.

Owed work is a query over stored data, not a queue in memory, so a crash loses none of it. A nudge only says where to
look first. A failure is logged and retried at the next nudge or the next start.
"""

import logging
import math
from contextlib import nullcontext
from typing import Final

import anyio

from kalito_mcp.domain.scope import Scope
from kalito_mcp.editing.eraser import Eraser
from kalito_mcp.orchestrator.observer import Observer
from kalito_mcp.pins.collector import PinCollector
from kalito_mcp.ports.store import Store
from kalito_mcp.summaries.keeper import SummaryKeeper
from kalito_mcp.upkeep.watched_store import background_work

_log: Final = logging.getLogger("kalito.owed")
_PAGE: Final = 100


class OwedWorker:
    """Does the owed work of sessions, one session after the other, in one task."""

    def __init__(
        self,
        store: Store,
        summaries: SummaryKeeper,
        pins: PinCollector,
        observer: Observer,
        eraser: Eraser,
        *,
        max_per_level: int,
        threshold: int,
    ) -> None:
        self._store = store
        self._summaries = summaries
        self._pins = pins
        self._observer = observer
        self._eraser = eraser
        self._max_per_level = max_per_level
        self._threshold = threshold
        self._pending: dict[tuple[str, str | None], Scope] = {}
        self._wake = anyio.Event()
        self._idle = anyio.Event()

    def nudge(self, scope: Scope | None = None) -> None:
        """Report that a session may owe work, or with no scope that an erasure may. Returns at once."""
        if scope is not None:
            self._pending[(scope.owner, scope.session)] = scope
        if self._idle.is_set():
            self._idle = anyio.Event()
        self._wake.set()

    async def run(self) -> None:
        """Work until cancelled, starting with what an earlier process left owed. Calls go first."""
        with background_work():
            await self._work()

    async def _work(self) -> None:
        pause_s = await self._finish_erasures()
        await self._catch_up()
        await self._find_debts()
        while True:
            while self._pending:
                await self.pay(self._pending.pop(next(iter(self._pending))))
                await self._catch_up()
            self._idle.set()
            with anyio.move_on_after(pause_s) if pause_s < math.inf else nullcontext():
                await self._wake.wait()
            self._wake = anyio.Event()
            pause_s = await self._finish_erasures()

    async def settled(self) -> None:
        """Wait until the work of all nudged sessions was tried."""
        while not self._idle.is_set():
            await self._idle.wait()

    async def pay(self, scope: Scope) -> None:
        """Do all work that one session owes. Raises nothing except cancellation."""
        try:
            await self._pins.collect(scope)
            if await self._summaries.owes(scope):
                while await self._summaries.summarize_due(scope) is not None:
                    pass
                while await self._summaries.fold_due(scope) is not None:
                    pass
            await self._observer.observe(scope)
        except Exception:
            _log.exception("owed work of session %r failed; it stays owed", scope.session)

    async def _finish_erasures(self) -> float:
        try:
            return await self._eraser.finish()
        except Exception:
            _log.exception("the files may still contain erased text; cleaning them is tried again later")
            return 0.0

    async def _catch_up(self) -> None:
        try:
            while await self._store.catch_up():
                pass
        except Exception:
            _log.exception("some records are not read for facts yet; the next start goes on")

    async def _find_debts(self) -> None:
        last_key = 0
        try:
            while True:
                async with self._store.read() as view:
                    sessions = await view.sessions.list_owing(
                        threshold=self._threshold,
                        max_summaries=self._max_per_level,
                        after_key=last_key,
                        limit=_PAGE,
                    )
                for session in sessions:
                    await self.pay(Scope(owner=session.owner, session=session.id))
                    last_key = session.key
                if len(sessions) < _PAGE:
                    return
        except Exception:
            _log.exception("could not look for owed work; the next start looks again")
