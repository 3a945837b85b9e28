"""Erases records for good: the words are gone from the database, from what was made of them, and from the file.

The transaction that erases also notes that the files are to be swept. So a purge that was cut short is finished: by the
next purge, or in the background by whoever opens the memory, or writes to it, next.
"""

from collections.abc import Sequence
from typing import Final

import anyio

from kalito_mcp.crash_points import crash_point
from kalito_mcp.domain.erasing import PurgeReport
from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.domain.scope import Scope
from kalito_mcp.editing.cascade import Cascade
from kalito_mcp.editing.snapshot_eraser import SnapshotEraser
from kalito_mcp.errors import RecordErased
from kalito_mcp.graph.canonical import canonical_key
from kalito_mcp.ports.clock import Clock
from kalito_mcp.ports.store import Store
from kalito_mcp.records.historian import get_record, get_records

_PAUSE_S: Final = 300.0


class Eraser:
    """The one way to erase."""

    def __init__(self, store: Store, cascade: Cascade, snapshots: SnapshotEraser, clock: Clock) -> None:
        self._store = store
        self._cascade = cascade
        self._snapshots = snapshots
        self._clock = clock
        self._sweeping = anyio.Lock()
        self._next_try_s = float("-inf")

    async def purge(self, scope: Scope, record_ids: Sequence[str]) -> PurgeReport:
        """Erase the records, or all parts of the documents, of these ids, and everything that was made of them. What is
        erased already stays so.

        Each record goes in one transaction; the files are swept once, at the end. An interrupted purge has erased some
        of the records; the sweep that it owes is made up for.

        Raises:
            RecordNotFound: an id is unknown; nothing was erased.
            StorageFull, StorageBusy: the records are erased, and the files are not swept yet.
        """
        found: list[MemoryRecord] = []
        erased: list[str] = []
        rewritten: list[str] = []
        async with self._store.read() as view:
            for record_id in record_ids:
                try:
                    found += await get_records(view.records, scope, record_id)
                except RecordErased as error:
                    erased.append(error.record_id)
        for target in found:
            if target.id in erased:
                continue
            async with self._cascade.changing(target) as transaction:
                record = await get_record(transaction.records, scope, target.id)
                followed = await self._cascade.follow(transaction, before=record, after=None)
                text_keys = followed.erased_keys or (canonical_key(record.text),)
                await transaction.records.purge(record, now_ms=self._clock.now_ms(), text_keys=text_keys)
            erased += [record.id, *followed.erased]
            rewritten += [one for one in followed.rewritten if one not in rewritten]
        crash_point("purge.erased")
        swept = await self.sweep()
        return PurgeReport(
            erased=tuple(dict.fromkeys(erased)),
            rewritten=(*rewritten, *swept.rewritten),
            remaining=swept.remaining,
        )

    async def sweep(self) -> PurgeReport:
        """Clean the snapshots and the database file of what is erased from the memory already."""
        async with self._sweeping:
            async with self._store.read() as view:
                unswept = await view.records.unswept()
            snapshots = await self._snapshots.erase(unswept.text_keys)
            crash_point("purge.snapshots")
            swept = await self._store.sweep(0 if snapshots.is_owed else unswept.last)
            return PurgeReport((), snapshots.rewritten, {**snapshots.remaining, **swept.remaining})

    async def finish(self) -> None:
        """Sweep where a purge was cut short. After one that failed the next is some minutes later.

        Raises:
            StorageError: as `Store.sweep`; it is owed still.
        """
        async with self._store.read() as view:
            is_owed = (await view.records.unswept()).last > 0
        if not is_owed:
            self._next_try_s = float("-inf")
        elif self._clock.steady_s() >= self._next_try_s and not self._sweeping.locked():
            self._next_try_s = self._clock.steady_s() + _PAUSE_S
            await self.sweep()
