"""The audit log."""

from collections.abc import Sequence
from typing import Final

from kalito_mcp.domain.audit import AuditEntry, AuditHead, Chain
from kalito_mcp.storage.audit_rows import entry_of, fault_at_end, fault_in_page, head_of
from kalito_mcp.storage.queries import Queries

COLUMNS: Final = "at, principal, owner, client, action, outcome, count, changes"
SELECT_HEAD: Final = "SELECT count, hash FROM audit_head"
SELECT_ENTRIES: Final = f"""
SELECT number, hash, {COLUMNS} FROM audit_log
WHERE number < :below AND at >= :since_ms AND (CAST(:whose AS text) IS NULL OR owner = :whose)
ORDER BY number DESC LIMIT :limit
"""
COUNT_ENTRIES: Final = """
SELECT count(*) FROM audit_log WHERE at >= :since_ms AND (CAST(:whose AS text) IS NULL OR owner = :whose)
"""
SELECT_CHAIN: Final = f"""
SELECT number, hash, {COLUMNS} FROM audit_log WHERE number > :after ORDER BY number LIMIT :limit
"""
_PAGE: Final = 1_000
_NO_LIMIT: Final = 1 << 62


class AuditQueries(Queries):
    """`ports.audit.AuditReader`."""

    async def head(self) -> AuditHead:
        return head_of(await self._all(SELECT_HEAD))

    async def entries(
        self, owner: str | None, *, since_ms: int = 0, before: int | None = None, limit: int
    ) -> Sequence[AuditEntry]:
        parameters = {"whose": owner, "since_ms": since_ms, "below": before or _NO_LIMIT, "limit": limit}
        return [entry_of(row) for row in await self._all(SELECT_ENTRIES, **parameters)]

    async def count(self, owner: str | None, *, since_ms: int = 0) -> int:
        [[count]] = await self._all(COUNT_ENTRIES, whose=owner, since_ms=since_ms)
        return int(count)

    async def check(self, noted: AuditHead | None) -> tuple[str | None, AuditHead]:
        chain = Chain(noted)
        while page := await self._all(SELECT_CHAIN, after=chain.last.count, limit=_PAGE):
            if (fault := fault_in_page(chain, page)) is not None:
                return fault, chain.last
        return fault_at_end(chain, await self._all(SELECT_HEAD)), chain.last
