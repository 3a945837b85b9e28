"""The audit log, and which ids a transaction changed, and how.

Triggers on the canonical tables notice each change of a row, so that no way to change one can be forgotten. They are in
the schema, and write only in a transaction that asks for its changes.
"""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, TypeVar

from kalito_mcp.domain.audit import MOST_IDS, AuditEntry, AuditHead, Chain, Change, NewEntry, columns_of, next_entry
from kalito_mcp.storage.audit_rows import changes_of_rows, entry_of, fault_at_end, fault_in_page, head_of
from kalito_mcp.storage.postgres.queries import Queries

T = TypeVar("T")

NOTICED: Final = frozenset(
    (
        "records",
        "sessions",
        "projects",
        "graphs",
        "forgotten_values",
        "access_tokens",
        "oauth_grants",
        "passphrases",
        "spaces",
        "space_members",
    )
)
"""The tables whose rows are noticed. How they are named, and what counts as a change, is in the triggers."""

_COLUMNS: Final = "at, principal, owner, client, action, outcome, count, changes"
SELECT_HEAD: Final = "SELECT count, hash FROM audit_head"
SELECT_HEAD_LOCKED: Final = f"{SELECT_HEAD} FOR UPDATE"
SELECT_ENTRIES: Final = f"""
SELECT number, hash, {_COLUMNS} FROM audit_log
WHERE number < :below AND at >= :since_ms AND (:whose::text IS NULL OR owner = :whose)
ORDER BY number DESC LIMIT :limit
"""
SELECT_CHAIN: Final = f"""
SELECT number, hash, {_COLUMNS} FROM audit_log WHERE number > :after ORDER BY number LIMIT :limit
"""
INSERT_ENTRY: Final = f"""
WITH head AS (UPDATE audit_head SET count = :number, hash = :hash)
INSERT INTO audit_log (number, hash, {_COLUMNS})
VALUES (:number, :hash, :at, :principal, :whose, :client, :action, :outcome, :count, :changes)
"""
NOTICE: Final = "SELECT set_config('kalito.audited', 'on', true)"
# Ends the noticing, too, whether or not anything was noticed.
DELETE_NOTICED: Final = """
WITH taken AS (
    DELETE FROM audit_noticed WHERE xact = pg_current_xact_id_if_assigned() RETURNING number, what, id
), once AS (
    SELECT id, min(number) AS first, CASE
        WHEN bool_or(what = 'erased') THEN 'erased' WHEN bool_or(what = 'added') THEN 'added' ELSE max(what)
        END AS what
    FROM taken GROUP BY id
), placed AS (
    SELECT what, id, count(*) OVER (PARTITION BY what) AS total,
        row_number() OVER (PARTITION BY what ORDER BY first) AS place
    FROM once
)
SELECT p.what, p.total, p.id
FROM (SELECT set_config('kalito.audited', 'off', true)) AS done LEFT JOIN placed AS p ON p.place <= :most
ORDER BY p.what COLLATE "C", p.place
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

    async def check(self, noted: AuditHead | None) -> tuple[str | None, AuditHead]:
        chain = Chain(noted)
        while page := await self._all(SELECT_CHAIN, after=chain.last.count, limit=_PAGE):
            if (fault := fault_in_page(chain, page)) is not None:
                return fault, chain.last
        return fault_at_end(chain, await self._all(SELECT_HEAD)), chain.last


class AuditStatements(AuditQueries):
    """`ports.audit.AuditWriter`."""

    async def changes_of(self, work: Callable[[], Coroutine[Any, Any, T]]) -> tuple[T, Sequence[Change]]:
        await self._transaction.set(NOTICE)
        result = await work()
        rows = await self._all(DELETE_NOTICED, most=MOST_IDS)
        return result, changes_of_rows(row for row in rows if row[0] is not None)

    async def add(self, entry: NewEntry) -> AuditEntry:
        """Append an entry to the log. Whoever adds one goes on as no other owner: their lock comes before the head's,
        which the next one waits for until this transaction ends."""
        made = next_entry(head_of(await self._all(SELECT_HEAD_LOCKED)), entry)
        columns = columns_of(entry)
        await self._all(INSERT_ENTRY, number=made.number, hash=made.hash, whose=columns.pop("owner"), **columns)
        return made
