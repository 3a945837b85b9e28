"""The audit log."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from kalito_mcp.domain.audit import AuditEntry, AuditHead, Chain, Change, NewEntry, Outcome, changes_from
from kalito_mcp.storage.intact_rows import intact_rows
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
NO_HEAD: Final = "what is kept of its newest entry is missing"
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
        return [_entry_of(row) for row in await self._all(SELECT_ENTRIES, **parameters)]

    async def count(self, owner: str | None, *, since_ms: int = 0) -> int:
        [[count]] = await self._all(COUNT_ENTRIES, whose=owner, since_ms=since_ms)
        return int(count)

    async def check(self, noted: AuditHead | None) -> tuple[str | None, AuditHead]:
        chain = Chain(noted)
        while page := await self._all(SELECT_CHAIN, after=chain.last.count, limit=_PAGE):
            if (fault := fault_in_page(chain, page)) is not None:
                return fault, chain.last
        return fault_at_end(chain, await self._all(SELECT_HEAD)), chain.last


def _entry_of(row: Any) -> AuditEntry:
    """The entry of a row: its number, its hash, and its other columns."""
    number, stored, at, principal, owner, client, action, outcome, count, changes = row
    with intact_rows():
        said = NewEntry(at, principal, owner, action, client, Outcome(outcome), count, changes_from(changes))
        return AuditEntry(number, said, bytes(stored))


def head_of(rows: Sequence[Any]) -> AuditHead:
    """The head of the only row that there may be."""
    with intact_rows():
        [[count, stored]] = rows
        return AuditHead(count, bytes(stored))


def fault_in_page(chain: Chain, rows: Iterable[Any]) -> str | None:
    """The first fault of the next entries of a chain, or None."""
    for number, stored, *columns in rows:
        if (fault := chain.fault(number, columns, bytes(stored))) is not None:
            return fault
    return None


def fault_at_end(chain: Chain, heads: Sequence[Any]) -> str | None:
    """The fault of a chain that was followed to its end, or None."""
    return chain.fault_at_end(AuditHead(heads[0][0], bytes(heads[0][1]))) if heads else NO_HEAD


def changes_of_rows(rows: Iterable[Any]) -> list[Change]:
    """The changes of rows of what was done, to how many, and one id: those of the same kind follow one another."""
    found: dict[str, tuple[int, list[str]]] = {}
    for what, total, named in rows:
        found.setdefault(what, (total, []))[1].append(named)
    return [Change(what, total, tuple(ids)) for what, (total, ids) in found.items()]
