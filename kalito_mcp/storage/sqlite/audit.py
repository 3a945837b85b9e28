"""The audit log, and which ids a transaction changed, and how.

Temporary triggers on the canonical tables notice each change of a row, so that no way to change one can be forgotten.
The first transaction that asks for its changes makes them, so a server over stdio never has them. In a transaction that
does not ask, each trigger looks once at an empty table.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, TypeVar

from kalito_mcp.domain.audit import MOST_IDS, AuditEntry, Change, NewEntry, columns_of, next_entry
from kalito_mcp.storage.audit import COLUMNS, AuditQueries, changes_of_rows

T = TypeVar("T")

INSERT_ENTRY: Final = f"""
INSERT INTO audit_log (number, hash, {COLUMNS})
VALUES (:number, :hash, :at, :principal, :owner, :client, :action, :outcome, :count, :changes)
"""
UPDATE_HEAD: Final = "UPDATE audit_head SET count = :count, hash = :hash"

CREATE_NOTICED: Final = "CREATE TEMP TABLE audit_noticed (what TEXT NOT NULL, id TEXT NOT NULL)"
CREATE_NOTICING: Final = "CREATE TEMP TABLE audit_noticing (is_on INTEGER NOT NULL)"
SELECT_IS_SET_UP: Final = "SELECT 1 FROM temp.sqlite_schema WHERE name = 'audit_noticing'"
INSERT_NOTICING: Final = "INSERT INTO temp.audit_noticing VALUES (1)"
DELETE_NOTICING: Final = "DELETE FROM temp.audit_noticing"
DELETE_NOTICED: Final = "DELETE FROM temp.audit_noticed"
SELECT_NOTICED: Final = """
SELECT what, total, id FROM (
    SELECT what, id, first, count(*) OVER (PARTITION BY what) AS total,
        row_number() OVER (PARTITION BY what ORDER BY first) AS place
    FROM (
        SELECT id, min(rowid) AS first, CASE
            WHEN max(what = 'erased') THEN 'erased' WHEN max(what = 'added') THEN 'added' ELSE max(what) END AS what
        FROM temp.audit_noticed GROUP BY id
    )
) WHERE place <= :most ORDER BY what, place
"""

_WHAT_OF_RECORD: Final = """CASE
    WHEN new.purged_at IS NOT NULL AND old.purged_at IS NULL THEN 'erased'
    WHEN new.deleted_at IS NOT NULL AND old.deleted_at IS NULL THEN 'forgotten'
    WHEN new.deleted_at IS NULL AND old.deleted_at IS NOT NULL THEN 'restored'
    ELSE 'changed' END"""
_NEW_RECORD: Final = "coalesce(new.id, 'msg_' || new.key)"
NOTICED: Final[Mapping[str, tuple[tuple[str, str, str], ...]]] = {
    "records": (
        ("INSERT", "'added'", _NEW_RECORD),
        ("UPDATE", _WHAT_OF_RECORD, _NEW_RECORD),
        ("DELETE", "'erased'", "coalesce(old.id, 'msg_' || old.key)"),
    ),
    "sessions": (
        ("INSERT", "'added'", "new.id"),
        # Its other columns are counters, and how far background work has come.
        ("UPDATE OF owner, id, agent_key, state, project_key, stage", "'changed'", "new.id"),
        ("DELETE", "'erased'", "old.id"),
    ),
    "projects": (
        ("INSERT", "'added'", "'project_' || new.key"),
        ("UPDATE", "'changed'", "'project_' || new.key"),
        ("DELETE", "'erased'", "'project_' || old.key"),
    ),
    # Not the ids of nodes: they are hashes of words, and a guess of the words could be tested against them.
    "graphs": (
        ("INSERT", "'added'", "'graph_' || new.key"),
        ("UPDATE", "'changed'", "'graph_' || new.key"),
        ("DELETE", "'erased'", "'graph_' || old.key"),
    ),
    "forgotten_values": (
        ("INSERT", "'added'", "'forgotten_' || new.key"),
        ("UPDATE", "'changed'", "'forgotten_' || new.key"),
        ("DELETE", "'erased'", "'forgotten_' || old.key"),
    ),
    "access_tokens": (
        ("INSERT", "'added'", "new.id"),
        ("UPDATE OF revoked_at", "'revoked'", "new.id"),
        ("UPDATE OF owner, permission, agent, project, expires_at", "'changed'", "new.id"),
        ("DELETE", "'erased'", "old.id"),
    ),
    "oauth_grants": (
        ("INSERT", "'added'", "new.id"),
        ("UPDATE OF revoked_at", "'revoked'", "new.id"),
        ("DELETE", "'erased'", "old.id"),
    ),
    "passphrases": (
        ("INSERT", "'added'", "'passphrase of ' || new.owner"),
        ("UPDATE", "'changed'", "'passphrase of ' || new.owner"),
        ("DELETE", "'erased'", "'passphrase of ' || old.owner"),
    ),
    "spaces": (
        ("INSERT", "'added'", "'space:' || new.name"),
        ("UPDATE", "'changed'", "'space:' || new.name"),
        ("DELETE", "'erased'", "'space:' || old.name"),
    ),
    "space_members": (
        ("INSERT", "'added'", "new.space || '/' || new.member"),
        ("UPDATE", "'changed'", "new.space || '/' || new.member"),
        ("DELETE", "'erased'", "old.space || '/' || old.member"),
    ),
}
"""By table: when a change of a row is noticed, what it is called, and the id."""


def _trigger(table: str, number: int, event: str, what: str, record_id: str) -> str:
    return f"""
    CREATE TEMP TRIGGER audit_{table}_{number} AFTER {event} ON main.{table}
    WHEN EXISTS (SELECT 1 FROM temp.audit_noticing)
    BEGIN
        INSERT INTO audit_noticed (what, id) VALUES ({what}, {record_id});
    END
    """


CREATE_TRIGGERS: Final = tuple(
    _trigger(table, number, *event) for table, events in NOTICED.items() for number, event in enumerate(events)
)


class AuditStatements(AuditQueries):
    """`ports.audit.AuditWriter`."""

    async def changes_of(self, work: Callable[[], Coroutine[Any, Any, T]]) -> tuple[T, Sequence[Change]]:
        # In each transaction: one that is rolled back takes along what it made.
        if not await self._all(SELECT_IS_SET_UP):
            for statement in (CREATE_NOTICED, CREATE_NOTICING, *CREATE_TRIGGERS):
                await self._all(statement)
        await self._all(INSERT_NOTICING)
        result = await work()
        await self._all(DELETE_NOTICING)
        changes = changes_of_rows(await self._all(SELECT_NOTICED, most=MOST_IDS))
        if changes:
            await self._all(DELETE_NOTICED)
        return result, changes

    async def add(self, entry: NewEntry) -> AuditEntry:
        made = next_entry(await self.head(), entry)
        await self._all(INSERT_ENTRY, number=made.number, hash=made.hash, **columns_of(entry))
        await self._all(UPDATE_HEAD, count=made.number, hash=made.hash)
        return made
