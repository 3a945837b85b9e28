"""Counts uses: how often a context or a search returned a record. Writes in the background, never during a read.

Uses are collected in memory and written together some seconds after the first. A crash may lose a few counts; it
never loses a record.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import anyio

from kalito_mcp.domain.validation import Policy
from kalito_mcp.errors import StorageError
from kalito_mcp.ports.clock import Clock
from kalito_mcp.ports.store import Store
from kalito_mcp.upkeep.store_layers import no_new_words


@dataclass(frozen=True, slots=True)
class UsagePolicy(Policy):
    """If not `enabled`, nothing is counted. Uses are written `write_after_s` seconds after the first of them."""

    enabled: bool = True
    write_after_s: float = 10.0


class UsageCounter:
    """Collects uses and writes them in one task."""

    def __init__(self, store: Store, clock: Clock, policy: UsagePolicy) -> None:
        self._store = store
        self._clock = clock
        self._policy = policy
        self._uses: Counter[str] = Counter()
        self._waiting = anyio.Event()

    def used(self, record_ids: Iterable[str]) -> None:
        """Count one use of each record. Returns at once."""
        if not self._policy.enabled:
            return
        self._uses.update(record_ids)
        if self._uses:
            self._waiting.set()

    async def run(self) -> None:
        """Write collected uses until cancelled. Call `flush` afterwards to write the rest."""
        while True:
            await self._waiting.wait()
            await anyio.sleep(self._policy.write_after_s)
            await self.flush()

    async def flush(self) -> None:
        """Write the collected uses now. If the database cannot be written, they are kept for the next flush."""
        if self._waiting.is_set():  # otherwise `run` may be waiting on this event for the next use
            self._waiting = anyio.Event()
        uses, self._uses = self._uses, Counter()
        if not uses:
            return
        try:
            # Cancelled halfway, the uses would be neither kept nor written.
            with anyio.CancelScope(shield=True), no_new_words():
                used_at = self._clock.now_ms()
                await self._store.write(lambda transaction: transaction.records.count_uses(uses, used_at=used_at))
        except StorageError:
            self._uses.update(uses)
