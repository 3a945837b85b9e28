"""The audit log, and which ids a transaction changed, and how.

Triggers on the canonical tables notice each change of a row, so that no way to change one can be forgotten. They are in
the schema, and write only in a transaction that asks for its changes.
"""

from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kalito_mcp.domain.audit import MOST_IDS, AuditEntry, Change, NewEntry, columns_of, next_entry
from kalito_mcp.storage.audit import COLUMNS, SELECT_HEAD, AuditQueries, changes_of_rows, head_of

if TYPE_CHECKING:
    from kalito_mcp.storage.postgres.transactions import Transaction

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

SELECT_HEAD_LOCKED: Final = f"{SELECT_HEAD} FOR UPDATE"
INSERT_ENTRY: Final = f"""
WITH head AS (UPDATE audit_head SET count = :number, hash = :hash)
INSERT INTO audit_log (number, hash, {COLUMNS})
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


class AuditStatements(AuditQueries):
    """`ports.audit.AuditWriter`."""

    _transaction: "Transaction"

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
