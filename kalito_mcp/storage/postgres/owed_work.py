"""Which process does the owed work of an owner: one of them, for a while, by the server's clock.

Whoever writes for an owner gets the lease in the statement that locks the owner's row, unless another process has it.
It is free when its holder has found nothing owed, and when it has run out. The vectors of an owner are leased apart, in
the rows of `vector_debtors`, each of which goes with the last vector that it stands for. A lease only saves work: what
keeps a late process from changing anything is what the transaction of its work compares.
"""

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from time import monotonic
from typing import Any, Final

from kalito_mcp.storage.postgres.leases import Lease
from kalito_mcp.storage.postgres.transactions import Transaction

_CLAIMED_AT_ONCE: Final = 100

# A row that is locked belongs to an owner who is just written for, and that process has the lease then.
CLAIM_OWED: Final = """
WITH lapsed AS (
    UPDATE owners SET holder = :holder, leased_until = now() + make_interval(secs => :lease_s)
    WHERE key = ANY(ARRAY(
        SELECT key FROM owners WHERE owes AND leased_until < now()
        ORDER BY leased_until, key LIMIT :limit FOR UPDATE SKIP LOCKED
    )) RETURNING name, revision
)
SELECT name, revision FROM lapsed UNION
SELECT name, revision FROM owners
WHERE name = ANY(:names) AND owes AND holder = :holder AND leased_until > now()
"""
# A row that is locked gets another revision, or none, and is looked at again.
UPDATE_SETTLED: Final = """
UPDATE owners SET owes = false WHERE key = ANY(ARRAY(
    SELECT o.key FROM owners o
    JOIN unnest(:names::text[], :revisions::bigint[]) AS seen (name, revision) USING (name, revision)
    WHERE o.holder = :holder FOR UPDATE OF o SKIP LOCKED
)) RETURNING name
"""
CLAIM_VECTORS: Final = """
UPDATE vector_debtors d SET holder = :holder, leased_until = now() + make_interval(secs => :lease_s)
FROM (
    SELECT o.owner, o.index_key, o.kind
    FROM vector_debtors o JOIN vector_indexes i ON i.key = o.index_key AND i.fingerprint = :fingerprint
    WHERE i.state <> 'dropped' AND (o.holder = :holder OR o.leased_until < now())
    ORDER BY o.kind, o.newest DESC, o.owner LIMIT :limit FOR UPDATE OF o SKIP LOCKED
) free WHERE d.owner = free.owner AND d.index_key = free.index_key AND d.kind = free.kind
"""
RELEASE_OWED: Final = "UPDATE owners SET leased_until = '-infinity' WHERE owes AND holder = :holder"
RELEASE_VECTORS: Final = "UPDATE vector_debtors SET leased_until = '-infinity' WHERE holder = :holder"


class OwedWork:
    """The part of `ports.maintenance.Maintenance` about who does owed work. `alone` opens what runs a statement on its
    own."""

    def __init__(self, lease: Lease, alone: Callable[[], AbstractAsyncContextManager[Transaction]]) -> None:
        self.lease_s = lease.seconds
        self._alone = alone
        self._holder = {"holder": lease.holder}
        self._claiming = {"holder": lease.holder, "lease_s": lease.seconds}
        self._written = set[str]()
        """The owners for whom was written since this process looked for their owed work."""
        self._leases = dict[str, float]()
        """Until when this process has the lease of an owner."""

    def note_written(self, leases: Mapping[str, float]) -> None:
        """Report a commit for these owners, and until when this process has their leases, by `time.monotonic`."""
        self._written.update(leases)
        self._leases.update(leases)

    def held(self, owners: Collection[str]) -> Collection[str]:
        """As the port says."""
        now = monotonic()
        return {owner for owner in owners if self._leases.get(owner, 0.0) > now}

    async def claim_owed(self) -> Mapping[str, int]:
        """As the port says."""
        written, self._written = self._written, set()
        until = monotonic() + self.lease_s
        try:
            rows = await self._all(CLAIM_OWED, names=list(written), limit=_CLAIMED_AT_ONCE, **self._claiming)
        except BaseException:
            self._written |= written
            raise
        claimed: dict[str, int] = dict(rows)
        held = self.held(claimed)
        self._leases |= {owner: until for owner in claimed if owner not in held}
        return claimed

    async def settle_owed(self, looked_at: Mapping[str, int]) -> None:
        """As the port says."""
        names, revisions = list(looked_at), list(looked_at.values())
        settled = await self._all(UPDATE_SETTLED, names=names, revisions=revisions, **self._holder) if names else []
        self._written |= looked_at.keys() - {name for [name] in settled}

    async def claim_vectors(self, fingerprint: str, *, limit: int) -> None:
        """As the port says."""
        await self._all(CLAIM_VECTORS, fingerprint=fingerprint, limit=limit, **self._claiming)

    async def release(self) -> None:
        """Leave all that is held to other processes."""
        self._leases.clear()
        await self._all(RELEASE_OWED, **self._holder)
        await self._all(RELEASE_VECTORS, **self._holder)

    async def _all(self, statement: str, **parameters: Any) -> list[Any]:
        async with self._alone() as transaction:
            return await transaction.all(statement, **parameters)
