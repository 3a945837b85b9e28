"""Erases records for good: the words are gone from the database, from what was made of them, and from the file."""

from collections.abc import Sequence

from kalito_mcp.domain.erasing import PurgeReport
from kalito_mcp.domain.scope import Scope
from kalito_mcp.orchestrator.followers import Followers
from kalito_mcp.orchestrator.snapshot_eraser import SnapshotEraser
from kalito_mcp.ports.clock import Clock
from kalito_mcp.ports.store import Store
from kalito_mcp.records.historian import found_record, found_records


class Eraser:
    """The one way to erase."""

    def __init__(self, store: Store, followers: Followers, snapshots: SnapshotEraser, clock: Clock) -> None:
        self._store = store
        self._followers = followers
        self._snapshots = snapshots
        self._clock = clock

    async def purge(self, scope: Scope, record_ids: Sequence[str]) -> PurgeReport:
        """Erase the records, or all parts of the documents, of these ids, and everything that was made of them.

        Each record goes in one transaction; the files are swept once, at the end. An interrupted purge has erased some
        of the records; a purge of the others, or of nothing, sweeps the files.

        Raises:
            RecordNotFound: an id is unknown, or erased already; nothing was erased.
        """
        async with self._store.read() as view:
            found = [one for record_id in record_ids for one in await found_records(view.edits, scope, record_id)]
        erased: list[str] = []
        rewritten: list[str] = []
        texts: list[str] = []
        for target in found:
            if target.id in erased:
                continue
            async with self._followers.changing(target) as transaction:
                record = await found_record(transaction.edits, scope, target.id)
                followed = await self._followers.follow(transaction, before=record, after=None)
                await transaction.edits.purge(record, now_ms=self._clock.now_ms())
            texts += followed.texts or (record.text,)
            erased += [record.id, *followed.erased]
            rewritten += [one for one in followed.rewritten if one not in rewritten]
        swept = await self.sweep(erased, texts)
        return PurgeReport(
            erased=tuple(erased),
            rewritten=(*rewritten, *swept.rewritten),
            remaining=swept.remaining,
        )

    async def sweep(self, record_ids: Sequence[str] = (), texts: Sequence[str] = ()) -> PurgeReport:
        """Clean the snapshots and the database file of what is erased from the memory already."""
        snapshots = await self._snapshots.erase(record_ids, texts)
        swept = await self._store.sweep()
        return PurgeReport((), snapshots.rewritten, {**snapshots.remaining, **swept.remaining})
