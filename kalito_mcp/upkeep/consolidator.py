"""Sleep cycles from time to time: of conversations that nobody finalizes, and of the agents' graphs.

What is due is a query over stored data, so it does not matter how long a process runs. Whoever records for an owner
looks, a while later. The moment of a graph's last cycle moves in the transaction of the next one, which compares it: of
several processes, one consolidates a graph.
"""

import logging
from functools import partial
from typing import Final

import anyio

from kalito_mcp.domain.graph import GraphPolicy
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sleep import SleepCycleTrigger
from kalito_mcp.domain.time import DAY_MS
from kalito_mcp.errors import KalitoError
from kalito_mcp.orchestrator.orchestrators import Orchestrators
from kalito_mcp.ports.clock import Clock
from kalito_mcp.ports.store import Store, WriteTransaction
from kalito_mcp.upkeep.store_layers import background_work

_log: Final = logging.getLogger("kalito.graph")
_MINUTE_MS: Final = 60_000
_AFTER_S: Final = 60.0
"""After this time messages that follow each other are there. It is also the pause between two looks."""
_MOST: Final = 16
"""Graphs of an owner that one look consolidates."""


class Consolidator:
    """Consolidates graphs in one task, one after the other."""

    def __init__(self, store: Store, orchestrators: Orchestrators, clock: Clock, policy: GraphPolicy) -> None:
        self._store = store
        self._orchestrators = orchestrators
        self._clock = clock
        self._policy = policy
        self._owners = set[str]()
        self._wake = anyio.Event()

    def nudge(self, owner: str) -> None:
        """Look for this owner's graphs in a while. Returns at once."""
        self._owners.add(owner)
        self._wake.set()

    async def run(self) -> None:
        """Work until cancelled, or return at once if that is switched off. Calls go first."""
        if not self._policy.enabled or not self._policy.sleep_interval_min:
            return
        with background_work():
            while True:
                await self._wake.wait()
                await anyio.sleep(_AFTER_S)
                self._wake = anyio.Event()
                owners, self._owners = self._owners, set()
                for owner in owners:
                    await self.consolidate(owner)

    async def consolidate(self, owner: str) -> int:
        """Run the cycles of this owner that are due, at most 16. Returns how many were run. A failed one is logged, and
        stays due."""
        now_ms = self._clock.now_ms()
        before_ms = now_ms - round(self._policy.sleep_interval_min * _MINUTE_MS)
        since_ms = now_ms - round(self._policy.keep_sessions_days * DAY_MS)
        try:
            due = await self._store.read(
                lambda view: view.graphs.due(owner, before_ms=before_ms, since_ms=since_ms, limit=_MOST)
            )
        except Exception as error:
            _report(error)
            return 0
        return sum([await self._consolidate(scope, slept_at) for scope, slept_at in due])

    async def _consolidate(self, scope: Scope, slept_at: int | None) -> bool:
        """Run one cycle, unless another process has."""
        agent, is_due = self._orchestrators.of(scope), partial(_is_still_due, scope, slept_at)
        try:
            report = await agent.run_sleep_cycle(scope.session, SleepCycleTrigger.INTERVAL, force=True, only_if=is_due)
        except Exception as error:
            _report(error)
            return False
        return report is not None


async def _is_still_due(scope: Scope, slept_at: int | None, transaction: WriteTransaction) -> bool:
    return (await transaction.graphs.state(scope)).slept_at == slept_at


def _report(error: Exception) -> None:
    """Log a failure. The words of our own errors say what to do; only of others is it known where they come from."""
    if isinstance(error, KalitoError):
        _log.info("a graph was not consolidated; that is tried again later: %s", error)
    else:
        _log.error("a graph was not consolidated; that is tried again later", exc_info=error)
