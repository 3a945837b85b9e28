"""Reads and writes whole memories as entries. Implements `ports.archive.ArchiveReader` and `ArchiveWriter`.

Each canonical table is a kind of entry, and its columns are the fields. So far all have the archive's names. A column
that is renamed keeps its field, because the two statements of a kind translate it: `SELECT new AS field`, and
`INSERT ... (new) VALUES (:field)`. Rows keep the keys of the archive, because their hashes are made of them.
"""

import json
import sqlite3
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Final

from kalito_mcp.domain.archive import FIELDS, ArchiveEntry, Selection, unstorable
from kalito_mcp.domain.scope import PERSONAL
from kalito_mcp.storage.record_rows import hashed, stored
from kalito_mcp.storage.sqlite.queries import Queries
from kalito_mcp.storage.sqlite.record_statements import STORED_COLUMNS, UPDATE_RECORD
from kalito_mcp.storage.sqlite.superseded import INSERT_ALL_SUPERSEDED
from kalito_mcp.storage.sqlite.text_index import UPDATE_ANALYSIS

_SESSIONS: Final = f"""
    SELECT s.key FROM sessions s JOIN agents a ON a.key = s.agent_key LEFT JOIN projects p ON p.key = s.project_key
    WHERE s.owner = :owner AND (:session IS NULL OR s.id = :session) AND (:agent IS NULL OR a.id = :agent)
        AND (:project IS NULL OR coalesce(p.id, '{PERSONAL}') = :project)
"""
_RECORDS: Final = f"""
    SELECT r.key FROM records r JOIN agents a ON a.key = r.agent_key LEFT JOIN projects p ON p.key = r.project_key
    WHERE a.owner = :owner AND (r.session_key IN ({_SESSIONS}) OR (
        r.session_key IS NULL AND :session IS NULL AND (:agent IS NULL OR a.id = :agent)
        AND (:project IS NULL OR coalesce(p.id, '{PERSONAL}') = :project)
    ))
    AND (:types IS NULL OR r.type IN (SELECT value FROM json_each(:types)))
    AND (:since_ms IS NULL OR r.created_at >= :since_ms) AND (:until_ms IS NULL OR r.created_at <= :until_ms)
"""
_AGENTS: Final = f"""
    SELECT key FROM agents WHERE owner = :owner AND (:is_all OR key IN (
        SELECT agent_key FROM sessions WHERE key IN ({_SESSIONS})
        UNION SELECT agent_key FROM records WHERE key IN ({_RECORDS})
    ))
"""
_PROJECTS: Final = f"""
    SELECT key FROM projects WHERE owner = :owner AND (:is_all OR key IN (
        SELECT project_key FROM sessions WHERE key IN ({_SESSIONS})
        UNION SELECT project_key FROM records WHERE key IN ({_RECORDS})
    ))
"""
_GRAPHS: Final = f"""
    SELECT g.key FROM graphs g JOIN agents a ON a.key = g.agent_key
    WHERE :is_restorable AND a.owner = :owner AND (g.session_key IN ({_SESSIONS}) OR (
        g.session_key IS NULL AND :session IS NULL AND :project IS NULL AND (:agent IS NULL OR a.id = :agent)
    ))
"""
_SELECTED: Final = {
    "identity": (":is_restorable", "secret"),
    "projects": (f"key IN ({_PROJECTS})", "key"),
    "agents": (f"key IN ({_AGENTS})", "key"),
    "sessions": (f"key IN ({_SESSIONS})", "key"),
    "records": (f"key IN ({_RECORDS})", "key"),
    "memory_edits": (f"record_key IN ({_RECORDS})", "record_key, version"),
    "record_usage": (f"record_key IN ({_RECORDS})", "record_key"),
    "feedback": (f"record_key IN ({_RECORDS})", "record_key, label"),
    "graphs": (f"key IN ({_GRAPHS})", "key"),
    "graph_nodes": (f"graph_key IN ({_GRAPHS})", "key"),
    "graph_edges": (f"graph_key IN ({_GRAPHS})", "from_key, type, to_key"),
    "forgotten_values": (
        f":is_restorable AND agent_key IN ({_AGENTS}) AND (project_key IS NULL OR project_key IN ({_PROJECTS}))",
        "key",
    ),
    "tombstones": (":is_restorable AND owner = :owner", "record_id, text_hash"),
    "sqlite_sequence": (":is_restorable AND name IN ('graphs', 'records')", "name"),
}
"""By kind, which rows of its table are in the selection, and their order."""
SELECT_ARCHIVED: Final = {
    kind: f"SELECT {', '.join(FIELDS[kind])} FROM {kind} WHERE {condition} ORDER BY {order}"
    for kind, (condition, order) in _SELECTED.items()
}
SELECT_ANY_CANONICAL: Final = """
SELECT EXISTS (SELECT 1 FROM agents) OR EXISTS (SELECT 1 FROM projects) OR EXISTS (SELECT 1 FROM tombstones)
"""
UPDATE_IDENTITY: Final = "UPDATE identity SET secret = :secret"
DELETE_SEQUENCE: Final = "DELETE FROM sqlite_sequence WHERE name = :name AND seq <= :seq"
INSERT_SEQUENCE: Final = """
INSERT INTO sqlite_sequence (name, seq) SELECT :name, :seq
WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = :name)
"""
_OF_OWNERS: Final = frozenset({"agents", "projects", "sessions", "tombstones"})


def _insert(kind: str) -> str:
    columns = [*FIELDS[kind], *(["owner"] if kind in _OF_OWNERS else [])]
    return f"INSERT INTO {kind} ({', '.join(columns)}) VALUES (:{', :'.join(columns)})"


INSERT_ARCHIVED: Final[Mapping[str, Sequence[str]]] = {
    **{kind: [_insert(kind)] for kind in FIELDS},
    "identity": [UPDATE_IDENTITY],
    "sqlite_sequence": [DELETE_SEQUENCE, INSERT_SEQUENCE],
}
"""By kind, the statements that store an entry."""
UPDATE_COUNTS_OF_AGENTS: Final = """
UPDATE agents SET record_count = (
    SELECT count(*) FROM records r WHERE r.agent_key = agents.key AND r.deleted_at IS NULL
)
"""
SELECT_WITHOUT_CAUSE: Final = f"""
SELECT {STORED_COLUMNS} FROM records r
WHERE r.caused_by IS NOT NULL AND NOT EXISTS (SELECT 1 FROM records c WHERE c.key = r.caused_by)
"""
_PAGE: Final = 500


class ArchiveQueries(Queries):
    """`ports.archive.ArchiveReader`."""

    async def entries(self, owner: str, selection: Selection) -> AsyncGenerator[Sequence[ArchiveEntry]]:
        parameters = {
            "owner": owner,
            **{name: getattr(selection, name) for name in ("session", "project", "agent", "since_ms", "until_ms")},
            "types": json.dumps(sorted(selection.types)) if selection.types else None,
            "is_all": selection.is_all,
            "is_restorable": selection.is_restorable,
        }
        for kind, statement in SELECT_ARCHIVED.items():
            async with self._connection.execute(statement, parameters) as cursor:
                names = [column[0] for column in cursor.description]
                while page := list(await cursor.fetchmany(_PAGE)):
                    yield [ArchiveEntry(kind, dict(zip(names, row, strict=True))) for row in page]


class ArchiveStatements(ArchiveQueries):
    """`ports.archive.ArchiveWriter`."""

    async def is_empty(self) -> bool:
        [[is_filled]] = await self._all(SELECT_ANY_CANONICAL)
        return not is_filled

    async def add(self, owner: str, entries: Sequence[ArchiveEntry]) -> None:
        run: Any = self._connection._execute  # the driver's own way to run a function on its thread
        await run(lambda: _add(self._connection._conn, owner, entries))

    async def finish(self, owners: Sequence[str]) -> None:
        del owners  # one statement settles all of them
        without_cause = await self._all(SELECT_WITHOUT_CAUSE)
        await self._connection.executemany(
            UPDATE_RECORD, [hashed({**stored(row), "caused_by": None}) for row in without_cause]
        )
        await self._all(UPDATE_COUNTS_OF_AGENTS)
        await self._all(INSERT_ALL_SUPERSEDED)
        # Marked as an older release's, so that the next process to open it rebuilds the index, even after a kill.
        await self._all(UPDATE_ANALYSIS, version=0)


def _add(connection: sqlite3.Connection, owner: str, entries: Sequence[ArchiveEntry]) -> None:
    for entry in entries:
        try:
            for statement in INSERT_ARCHIVED[entry.kind]:
                connection.execute(statement, {**entry.fields, "owner": owner})
        except (sqlite3.IntegrityError, sqlite3.ProgrammingError, OverflowError, UnicodeEncodeError) as error:
            reason = "a text is not Unicode" if isinstance(error, UnicodeEncodeError) else error
            raise unstorable(entry, reason) from None
