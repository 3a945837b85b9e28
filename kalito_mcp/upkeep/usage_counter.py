"""Counts what is used: a record that a context or a search gave back. As owed work, never in the path of a read.

Uses are gathered in memory and written together, some seconds after the first. They are the one thing that a crash may
lose: a few counts, and never a record.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import anyio

from kalito_mcp.domain.validation import Policy
from kalito_mcp.errors import StorageError
from kalito_mcp.ports.clock import Clock
from kalito_mcp.ports.store import Store


@dataclass(frozen=True, slots=True)
class UsagePolicy(Policy):
    """`enabled` counts at all. Uses are written `write_after_s` seconds after the first of them."""

    enabled: bool = True
    write_after_s: float = 10.0


class UsageCounter:
    """Gathers uses, and writes them in one task."""

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
        """Write what is gathered, until cancelled; what is left then is written by `flush`."""
        while True:
            await self._waiting.wait()
            await anyio.sleep(self._policy.write_after_s)
            await self.flush()

    async def flush(self) -> None:
        """Write what is gathered now. Where the database cannot be written, it waits for the next time."""
        if self._waiting.is_set():  # else `run` may be waiting for it, and must hear of the next use
            self._waiting = anyio.Event()
        uses, self._uses = self._uses, Counter()
        if not uses:
            return
        try:
            # What is cancelled in between would be neither gathered nor written.
            with anyio.CancelScope(shield=True):
                async with self._store.write() as transaction:
                    await transaction.records.count_uses(uses, used_at=self._clock.now_ms())
        except StorageError:
            self._uses.update(uses)
