"""Owed background work: automatic pins, due summaries, due folds, and interrupted erasures.

Owed work is a query over stored data, not a queue in memory, so a crash loses none of it. A nudge only says where to
look first. A failure is logged and retried at the next nudge or the next start.

Where several processes serve one database, each does what is owed for the owners that it holds, and takes over what a
process left that ended.
"""

import logging
import math
import time
from collections.abc import Callable, Collection, Coroutine, Sequence
from functools import partial
from typing import Any, Final

import anyio

from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import Session
from kalito_mcp.editing.eraser import Eraser
from kalito_mcp.errors import KalitoError, StorageUnreachable
from kalito_mcp.pins.collector import PinCollector, Unsearched
from kalito_mcp.ports.store import ReadView, Store
from kalito_mcp.summaries.keeper import SummaryKeeper
from kalito_mcp.upkeep.store_layers import background_work

_log: Final = logging.getLogger("kalito.owed")
_PAGE: Final = 100
_GATHER_S: Final = 0.02
"""Messages that follow each other so fast are done together, for half the cost. The first is done at once: when the
processor has turned to something else, the same work costs more."""

_QUIET_S: Final = 1.0
"""After this time without work, tasks that make later calls faster may begin, and what other processes wrote for owners
that this one holds is looked for."""


class OwedWorker:
    """Does the owed work of sessions, one session after the other, in one task."""

    def __init__(
        self,
        store: Store,
        summaries: SummaryKeeper,
        pins: PinCollector,
        eraser: Eraser,
        *,
        max_per_level: int,
        threshold: int,
        worked_for: Callable[[str], None],
    ) -> None:
        """`worked_for` is called with the owner whose session's work was done. It must return at once."""
        self._store = store
        self._summaries = summaries
        self._pins = pins
        self._eraser = eraser
        self._max_per_level = max_per_level
        self._threshold = threshold
        self._worked_for = worked_for
        self._pending: dict[tuple[str, str | None], Scope] = {}
        self._wake = anyio.Event()
        self._idle = anyio.Event()
        self._hurry = anyio.Event()
        self._owed_since_s: float | None = None
        self._look_at = math.inf
        """When to look for what nobody reported to this process."""
        self._failing = set[tuple[str, str | None]]()

    @property
    def age_s(self) -> float:
        """For how long work has been owed; 0 if none is."""
        return 0.0 if self._owed_since_s is None else max(0.0, time.monotonic() - self._owed_since_s)

    def nudge(self, scope: Scope | None = None) -> None:
        """Report that a session may owe work, or with no scope that an erasure may. Returns at once."""
        if scope is not None:
            self._pending[(scope.owner, scope.session)] = scope
        if self._idle.is_set():
            self._idle = anyio.Event()
        if self._owed_since_s is None:
            self._owed_since_s = time.monotonic()
        self._look_at = min(self._look_at, self._look_within(_QUIET_S))
        self._wake.set()

    async def run(self) -> None:
        """Work until cancelled, starting with what an earlier process left owed. Calls go first."""
        with background_work():
            await self._work()

    async def _work(self) -> None:
        pause_s = await self._finish_erasures()
        await self._look()
        busy_until = -math.inf
        while True:
            while self._pending:
                if anyio.current_time() < busy_until:
                    with anyio.move_on_after(_GATHER_S):
                        await self._hurry.wait()
                scopes, self._pending = self._pending, {}
                held = self._store.maintenance.held({scope.owner for scope in scopes.values()})
                for scope in scopes.values():
                    if scope.owner in held:  # another process finds what is owed of the others
                        await self.pay(scope)
                busy_until = anyio.current_time() + _GATHER_S
                await self._look_if_due()
            self._idle.set()
            self._owed_since_s = None
            self._hurry = anyio.Event()
            if not await self._is_nudged(min(pause_s, _QUIET_S)) and pause_s > _QUIET_S:
                await self._tidy()
                await self._look_if_due()
                await self._is_nudged(min(pause_s, max(0.0, self._look_at - anyio.current_time())))
            self._wake = anyio.Event()
            pause_s = await self._finish_erasures()

    async def _is_nudged(self, within_s: float) -> bool:
        """Wait for a nudge, but not longer than this. Whether it came."""
        with anyio.move_on_after(within_s):
            await self._wake.wait()
        return self._wake.is_set()

    async def _tidy(self) -> None:
        try:
            await self._store.maintenance.tidy()
        except Exception as error:
            _report(error, "the text index was not merged; searches take a little longer until it is")

    async def settled(self) -> None:
        """Wait until the work of all nudged sessions was tried."""
        while not self._idle.is_set():
            self._hurry.set()
            await self._idle.wait()

    async def pin(self, scope: Scope) -> None:
        """Make the automatic pins that one session owes."""
        await self._pins.collect(scope)

    async def pay(self, scope: Scope, *, is_listed: bool = False) -> None:
        """Do all work that one session owes after new messages, or because the store listed it. Only if it `is_listed`,
        and after a summary or a failure, a fold may be due. Raises nothing except cancellation."""
        of_session = scope.owner, scope.session
        try:
            found, is_due = await self._store.read(partial(self._owed_by, scope))
            await self._pins.add_found(scope, found)
            if is_due or is_listed or of_session in self._failing:
                await self._summaries.catch_up(scope)
        except Exception as error:
            if of_session not in self._failing:
                _report(error, f"owed work of session {scope.session!r} failed; it stays owed")
            self._failing.add(of_session)
        else:
            self._failing.discard(of_session)
            self._worked_for(scope.owner)

    async def _owed_by(self, scope: Scope, view: ReadView) -> tuple[Unsearched | None, bool]:
        """The messages of the session that were not searched for pins, and whether it owes a summary."""
        session = await view.sessions.get(scope)
        if session is None:
            return None, False
        return await self._pins.look(session, view), await self._summaries.is_due_in(view, session)

    async def _finish_erasures(self) -> float:
        try:
            return await self._eraser.finish()
        except StorageUnreachable as error:
            _report(error, "could not look whether files are to be cleaned of erased text; that is tried again later")
            return 0.0
        except Exception as error:
            _report(error, "the files may still contain erased text; cleaning them is tried again later")
            return 0.0

    def _look_within(self, seconds: float) -> float:
        """The moment until which to look again, if owed work is shared."""
        lease_s = self._store.maintenance.lease_s
        return math.inf if math.isinf(lease_s) else anyio.current_time() + min(seconds, lease_s / 2)

    async def _look_if_due(self) -> None:
        if anyio.current_time() >= self._look_at:
            await self._look()

    async def _look(self) -> None:
        """Do what is owed for owners that this process holds and for those that nobody holds any more; for all, where
        no owed work is shared."""
        chores = self._store.maintenance
        self._look_at = self._look_within(math.inf)
        try:
            if math.isinf(chores.lease_s):
                await self._find_debts(None)
            elif claimed := await chores.claim_owed():
                self._look_at = self._look_within(_QUIET_S)
                owing = await self._find_debts(claimed)
                await chores.settle_owed({owner: seen for owner, seen in claimed.items() if owner not in owing})
        except Exception as error:
            _report(error, "could not look for owed work; a later look or the next start finds it")

    async def _find_debts(self, owners: Collection[str] | None) -> set[str]:
        """Do what sessions of these owners (None: of all) owe. Whose sessions those were."""
        last: Session | None = None
        owing = set[str]()
        while sessions := await self._owing(last, owners):
            for last in sessions:
                owing.add(last.owner)
                await self.pay(Scope(owner=last.owner, session=last.id), is_listed=True)
        return owing

    async def _owing(self, after: Session | None, owners: Collection[str] | None) -> Sequence[Session]:
        def look(view: ReadView) -> Coroutine[Any, Any, Sequence[Session]]:
            return view.sessions.list_owing(
                threshold=self._threshold, max_summaries=self._max_per_level, after=after, limit=_PAGE, owners=owners
            )

        return await self._store.read(look)


def _report(error: Exception, what_follows: str) -> None:
    """Log a failure. The words of our own errors say what to do; only of others is it known where they come from."""
    if isinstance(error, KalitoError):
        _log.error("%s: %s", what_follows, error)
    else:
        _log.error(what_follows, exc_info=error)
