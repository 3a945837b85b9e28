"""The chores of a store on PostgreSQL. Implements `ports.maintenance.Maintenance`."""

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final

import asyncpg

from kalito_mcp.ports.maintenance import OwedErasures
from kalito_mcp.storage.postgres.archive import UPDATE_ANALYSIS
from kalito_mcp.storage.postgres.leases import Lease
from kalito_mcp.storage.postgres.owed_work import OwedWork
from kalito_mcp.storage.postgres.text_index import FOLDED_AT_ONCE, TextIndexStatements
from kalito_mcp.storage.postgres.text_rebuild import rebuild_terms
from kalito_mcp.storage.postgres.transactions import Transaction
from kalito_mcp.storage.postgres.vector_graphs import tidy_graphs
from kalito_mcp.storage.postgres.views import WriteTransactionOfPostgres
from kalito_mcp.storage.receiving import refuse_unfinished
from kalito_mcp.storage.tombstones import SELECT_UNSWEPT, Tombstones
from kalito_mcp.text.analysis_version import ANALYSIS_VERSION

SELECT_ANALYSIS: Final = "SELECT analysis FROM identity"
SELECT_OWNERS: Final = "SELECT name FROM owners ORDER BY key"
DELETE_UNSWEPT: Final = "DELETE FROM unswept WHERE key = ANY(:keys)"
# ANALYZE leaves the statistics of a table without rows as they were, with samples of words. Giving a column the type
# that it has removes them, and rewrites nothing. Triggers that name columns go meanwhile: in one transaction, because
# these statements are executed as one text. Numbers, booleans and moments are no words.
SELECT_FORGETTING_STATISTICS: Final = """
SELECT c.relname, concat_ws('; ', g.dropped, format('ALTER TABLE %s %s', c.oid::regclass, string_agg(
    format('ALTER %I TYPE %s%s', a.attname, format_type(a.atttypid, a.atttypmod),
        CASE WHEN a.attcollation <> 0 THEN ' COLLATE ' || a.attcollation::regcollation ELSE '' END), ', ')), g.made)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type t ON t.oid = a.atttypid CROSS JOIN LATERAL (
    SELECT string_agg(format('DROP TRIGGER %I ON %s', tgname, c.oid::regclass), '; ') AS dropped,
        string_agg(pg_get_triggerdef(oid), '; ') AS made
    FROM pg_trigger
    WHERE tgrelid = c.oid AND NOT tgisinternal AND (cardinality(tgattr::int2[]) > 0 OR tgqual IS NOT NULL)
) g
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND c.reltuples = 0 AND a.attnum > 0
    AND NOT a.attisdropped AND t.typcategory NOT IN ('N', 'B', 'D')
GROUP BY c.oid, c.relname, g.dropped, g.made ORDER BY c.relname
"""
_LOCK_TIMEOUT: Final = "SET lock_timeout = '200ms'"
"""Whoever wants to read or write waits behind who waits for such a lock."""

_NOT_CLEANED: Final = (
    "rows that were erased stay on its disk until PostgreSQL vacuums them; name the role that owns the tables in "
    "KALITO_DATABASE_DIRECT, and it is done at once"
)


class MaintenanceOfPostgres(OwedWork):
    """`ports.maintenance.Maintenance`.

    `write` opens a transaction, `alone` what runs a statement on its own. `direct` opens a connection of the role that
    owns the tables; None if its URL was not named.
    """

    def __init__(
        self,
        *,
        lease: Lease,
        write: Callable[[], AbstractAsyncContextManager[WriteTransactionOfPostgres]],
        alone: Callable[[], AbstractAsyncContextManager[Transaction]],
        direct: Callable[[], AbstractAsyncContextManager[asyncpg.Connection]] | None,
        place: str,
    ) -> None:
        super().__init__(lease, alone)
        self._write = write
        self._direct = direct
        self._place = place
        self._to_fold = set[str]()

    def note_written(self, leases: Mapping[str, float]) -> None:
        """Report a commit for these owners, so that chores look at what they have."""
        super().note_written(leases)
        self._to_fold.update(leases)

    async def claim_owed(self) -> Mapping[str, int]:
        """As the port says. What a process left that ended may be to fold, too."""
        claimed = await super().claim_owed()
        self._to_fold.update(claimed)
        return claimed

    async def tidy(self) -> None:
        """Fold the terms of new records into pages, and make graphs of vectors where an agent has very many."""
        owners, self._to_fold = self._to_fold, set()
        folded = [await self._fold(owner) for owner in sorted(owners)]
        if any(folded) and self._direct is not None:
            async with self._direct() as connection:
                await tidy_graphs(connection)

    async def _fold(self, owner: str) -> bool:
        """Fold what is due of an owner; whether anything was."""
        async with self._alone() as view:  # a write would owe work again
            due = await TextIndexStatements(view).fold_due(owner)
        for agent_key in due:
            folded = FOLDED_AT_ONCE
            while folded == FOLDED_AT_ONCE:
                async with self._write() as transaction:
                    folded = await transaction.text.fold(owner, agent_key)
        return bool(due)

    async def rebuild_derived(self) -> None:
        """Rebuild the text index if another release's analysis made it, or an archive came in."""
        async with self._write() as transaction:
            [[analysis]] = await transaction.transaction.all(SELECT_ANALYSIS)
        refuse_unfinished(analysis)
        if analysis != ANALYSIS_VERSION:
            await self.reindex()

    async def reindex(self) -> int:
        """Rebuild the text index, owner by owner; how many records are in it."""
        async with self._write() as transaction:
            owners = await transaction.transaction.all(SELECT_OWNERS)
        count = 0
        for [owner] in owners:
            async with self._write() as transaction:
                count += await rebuild_terms(transaction.transaction, owner)
        async with self._write() as transaction:
            await transaction.transaction.all(UPDATE_ANALYSIS, version=ANALYSIS_VERSION)
        return count

    async def owed_erasures(self) -> OwedErasures:
        """As the port says."""
        async with self._write() as transaction:
            return await Tombstones(transaction.transaction).unswept()

    async def finish_erasures(self, owed: OwedErasures | None = None) -> Mapping[str, str]:
        """Vacuum, so that no row that was erased is left in a table, nor a sample of it in the statistics. Its bytes
        are in the files until others are written there, as in the write-ahead log and backups."""
        if self._direct is None:
            return {self._place: _NOT_CLEANED}
        done = [] if owed is None else await self._seen(owed)
        async with self._direct() as connection:
            await connection.execute("ANALYZE")
            busy = await _forget_statistics(connection)
            await connection.execute("VACUUM")
        if busy:
            return {
                self._place: f"the statistics of {', '.join(busy)} may have erased words: in use; tried again later"
            }
        async with self._write() as transaction:
            await transaction.transaction.all(DELETE_UNSWEPT, keys=done)
        return {}

    async def _seen(self, owed: OwedErasures) -> list[int]:
        """The numbers of these erasures. One with a smaller number may become visible only now."""
        async with self._write() as transaction:
            found = await transaction.transaction.all(SELECT_UNSWEPT)
        return [
            key for key, text_keys in found if key <= owed.last and owed.text_keys.issuperset(json.loads(text_keys))
        ]

    async def move_vectors(self, *, is_whole: bool = False) -> bool:
        """Vectors are nowhere else."""
        del is_whole
        return False


async def _forget_statistics(connection: asyncpg.Connection) -> list[str]:
    """Remove the statistics of tables in which ANALYZE found no row. The tables that were in use for too long."""
    busy: list[str] = []
    await connection.execute(_LOCK_TIMEOUT)
    for table, alter in await connection.fetch(SELECT_FORGETTING_STATISTICS):
        try:
            await connection.execute(alter)
        except asyncpg.LockNotAvailableError:
            busy.append(table)
    return busy
