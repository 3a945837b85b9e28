"""Owed background work: automatic pins, due summaries, due folds, messages that are not in the graph yet, and
interrupted erasures.

Owed work is a query over stored data, not a queue in memory, so a crash loses none of it. A nudge only says where to
look first. A failure is logged and retried at the next nudge or the next start.
"""

import logging
import math
import time
from typing import TYPE_CHECKING, Final

import anyio

from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import SessionState
from kalito_mcp.editing.eraser import Eraser
from kalito_mcp.errors import KalitoError
from kalito_mcp.orchestrator.observer import LOOK_BACK, Observer
from kalito_mcp.pins.collector import PinCollector
from kalito_mcp.ports.store import Store, WriteTransaction
from kalito_mcp.summaries.keeper import SummaryKeeper
from kalito_mcp.upkeep.watched_store import background_work

if TYPE_CHECKING:
    from kalito_mcp.graph.store import GraphStore

_log: Final = logging.getLogger("kalito.owed")
_PAGE: Final = 100
_GATHER_S: Final = 0.02
"""Messages that follow each other so fast are done together, for half the cost. The first is done at once: when the
processor has turned to something else, the same work costs more."""

_QUIET_S: Final = 1.0
"""After so long without work, nobody waits for what makes later calls faster."""

_FEW: Final = 8
_FEW_CHARS: Final = 2_500
"""So much is done in one transaction: in less than 5 ms, as other writers wait."""


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
        self._hurry = anyio.Event()
        self._owed_since_s: float | None = None

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
        self._wake.set()

    async def run(self) -> None:
        """Work until cancelled, starting with what an earlier process left owed. Calls go first."""
        with background_work():
            await self._work()

    async def _work(self) -> None:
        pause_s = await self._finish_erasures()
        await self._find_debts()
        busy_until = -math.inf
        while True:
            while self._pending:
                if anyio.current_time() < busy_until:
                    with anyio.move_on_after(_GATHER_S):
                        await self._hurry.wait()
                scopes, self._pending = self._pending, {}
                for scope in scopes.values():
                    await self.pay(scope)
                busy_until = anyio.current_time() + _GATHER_S
            self._idle.set()
            self._owed_since_s = None
            self._hurry = anyio.Event()
            if not await self._is_nudged(min(pause_s, _QUIET_S)) and pause_s > _QUIET_S:
                await self._tidy()
                await self._is_nudged(pause_s)
            self._wake = anyio.Event()
            pause_s = await self._finish_erasures()

    async def _is_nudged(self, within_s: float) -> bool:
        """Wait for a nudge, but not longer than this. Whether it came."""
        with anyio.move_on_after(within_s):
            await self._wake.wait()
        return self._wake.is_set()

    async def _tidy(self) -> None:
        try:
            await self._store.tidy()
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

    async def pay(self, scope: Scope) -> None:
        """Do all work that one session owes. Raises nothing except cancellation."""
        try:
            owes_summary = await self._try_few(scope)
            is_paid = owes_summary is not None
            if owes_summary is None:
                await self._pins.collect(scope)
                owes_summary = await self._summaries.owes(scope)
            if owes_summary:
                while await self._summaries.summarize_due(scope) is not None:
                    pass
                while await self._summaries.fold_due(scope) is not None:
                    pass
            if not is_paid:
                await self._observer.observe(scope)
        except Exception as error:
            _report(error, f"owed work of session {scope.session!r} failed; it stays owed")

    async def _try_few(self, scope: Scope) -> bool | None:
        try:
            return await self._pay_few(scope)
        except Exception:
            # One by one, pins and summaries are made even if the graph cannot be read.
            _log.debug("the owed work of session %r is tried one by one", scope.session, exc_info=True)
            return None

    async def _pay_few(self, scope: Scope) -> bool | None:
        """Do what a few messages owe, except summaries, in one transaction. Whether a summary is due. None, and nothing
        was done, if it would take long."""
        if not self._observer.policy.enabled:
            return None
        searched = await self._pins.search(scope, most=_FEW)

        async def work(transaction: WriteTransaction, graph: "GraphStore") -> bool | None:
            session = await transaction.sessions.get(scope)
            if session is None or session.state is SessionState.FINALIZED:
                return False
            done = min(session.pinned_seq, session.observed_seq)
            if session.message_count - done > _FEW:
                return None
            if searched is not None and (searched.after, searched.last) != (session.pinned_seq, session.message_count):
                return None
            first = session.observed_seq + 1 - LOOK_BACK
            messages = await transaction.conversations.messages(
                session, first_seq=max(1, first), last_seq=session.message_count
            )
            if sum(len(message.text) for message in messages if message.seq > done) > _FEW_CHARS:
                return None
            if searched is not None:
                await self._pins.add(transaction, session, searched)
            await self._observer.observe_few(transaction, session, messages, graph)
            return await self._summaries.owes_in(transaction, session)

        return await self._observer.change(scope, work)

    async def _finish_erasures(self) -> float:
        try:
            return await self._eraser.finish()
        except Exception as error:
            _report(error, "the files may still contain erased text; cleaning them is tried again later")
            return 0.0

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
        except Exception as error:
            _report(error, "could not look for owed work; the next start looks again")


def _report(error: Exception, what_follows: str) -> None:
    """Log a failure. The words of our own errors say what to do; only of others is it known where they come from."""
    if isinstance(error, KalitoError):
        _log.error("%s: %s", what_follows, error)
    else:
        _log.error(what_follows, exc_info=error)
