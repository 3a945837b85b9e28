"""Reads and writes whole memories as rows. Implements `ports.archive.ArchiveReader` and `ArchiveWriter`.

An archive has every column of every canonical table, also those of later migrations, so its statements are the only
ones with `*`. Rows keep their keys: hashes, ids of messages and graphs are made of them. A migration that adds columns
gives them a default, which rows of older archives get. A migration that moves data must convert older rows in
`_prepared`.
"""

import json
import sqlite3
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Final

from kalito_mcp.domain.archive import ArchiveRow, Selection, Value
from kalito_mcp.domain.scope import PERSONAL
from kalito_mcp.errors import InvalidInput
from kalito_mcp.storage.sqlite.queries import Queries
from kalito_mcp.storage.sqlite.record_rows import STORED_COLUMNS, UPDATE_RECORD, hashed, stored
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
SELECT_ARCHIVED: Final = {
    "identity": "SELECT secret FROM identity WHERE :is_restorable",
    "projects": f"SELECT * FROM projects WHERE key IN ({_PROJECTS}) ORDER BY key",
    "agents": f"SELECT * FROM agents WHERE key IN ({_AGENTS}) ORDER BY key",
    "sessions": f"SELECT * FROM sessions WHERE key IN ({_SESSIONS}) ORDER BY key",
    "records": f"SELECT * FROM records WHERE key IN ({_RECORDS}) ORDER BY key",
    "memory_edits": f"SELECT * FROM memory_edits WHERE record_key IN ({_RECORDS}) ORDER BY record_key, version",
    "record_usage": f"SELECT * FROM record_usage WHERE record_key IN ({_RECORDS}) ORDER BY record_key",
    "feedback": f"SELECT * FROM feedback WHERE record_key IN ({_RECORDS}) ORDER BY record_key, label",
    "graphs": f"SELECT * FROM graphs WHERE key IN ({_GRAPHS}) ORDER BY key",
    "graph_nodes": f"SELECT * FROM graph_nodes WHERE graph_key IN ({_GRAPHS}) ORDER BY key",
    "graph_edges": f"SELECT * FROM graph_edges WHERE graph_key IN ({_GRAPHS}) ORDER BY from_key, type, to_key",
    "forgotten_values": f"""
        SELECT * FROM forgotten_values WHERE :is_restorable AND agent_key IN ({_AGENTS})
            AND (project_key IS NULL OR project_key IN ({_PROJECTS})) ORDER BY key
    """,
    "tombstones": """
        SELECT * FROM tombstones WHERE :is_restorable AND owner = :owner ORDER BY record_id, text_hash
    """,
    "sqlite_sequence": """
        SELECT name, seq FROM sqlite_sequence WHERE :is_restorable AND name IN ('graphs', 'records') ORDER BY name
    """,
}
"""The canonical tables. A row that another one names comes before it."""

SELECT_VERSION: Final = "SELECT user_version FROM pragma_user_version"
SELECT_COLUMNS_OF_TABLE: Final = "SELECT name FROM pragma_table_info(:table)"
SELECT_ANY_CANONICAL: Final = """
SELECT EXISTS (SELECT 1 FROM agents) OR EXISTS (SELECT 1 FROM projects) OR EXISTS (SELECT 1 FROM tombstones)
"""
UPDATE_IDENTITY: Final = "UPDATE identity SET secret = :secret"
DELETE_SEQUENCE: Final = "DELETE FROM sqlite_sequence WHERE name = :name AND seq <= :seq"
INSERT_SEQUENCE: Final = """
INSERT INTO sqlite_sequence (name, seq) SELECT :name, :seq
WHERE :name IN ('graphs', 'records') AND NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = :name)
"""
UPDATE_COUNTS_OF_AGENTS: Final = """
UPDATE agents SET record_count = (
    SELECT count(*) FROM records r WHERE r.agent_key = agents.key AND r.deleted_at IS NULL
)
"""
SELECT_WITHOUT_CAUSE: Final = f"""
SELECT {STORED_COLUMNS} FROM records r
WHERE r.caused_by IS NOT NULL AND NOT EXISTS (SELECT 1 FROM records c WHERE c.key = r.caused_by)
"""
_OF_OWNERS: Final = frozenset({"agents", "projects", "sessions", "tombstones"})
_PAGE: Final = 500
_SECRET_BYTES: Final = 16


class ArchiveQueries(Queries):
    """`ports.archive.ArchiveReader`."""

    async def schema(self) -> int:
        [[version]] = await self._all(SELECT_VERSION)
        return int(version)

    async def rows(self, owner: str, selection: Selection) -> AsyncGenerator[Sequence[ArchiveRow]]:
        parameters = {
            "owner": owner,
            **{name: getattr(selection, name) for name in ("session", "project", "agent", "since_ms", "until_ms")},
            "types": json.dumps(sorted(selection.types)) if selection.types else None,
            "is_all": selection.is_all,
            "is_restorable": selection.is_restorable,
        }
        for table, statement in SELECT_ARCHIVED.items():
            async with self._connection.execute(statement, parameters) as cursor:
                names = [column[0] for column in cursor.description]
                while page := list(await cursor.fetchmany(_PAGE)):
                    yield [ArchiveRow(table, _without_owner(dict(zip(names, row, strict=True)))) for row in page]


class ArchiveStatements(ArchiveQueries):
    """`ports.archive.ArchiveWriter`."""

    async def is_empty(self) -> bool:
        [[is_filled]] = await self._all(SELECT_ANY_CANONICAL)
        return not is_filled

    async def add_rows(self, owner: str, rows: Sequence[ArchiveRow]) -> None:
        known = {table: await self._columns(table) for table in {row.table for row in rows}}
        prepared = [_prepared(row, owner, known[row.table]) for row in rows]
        run: Any = self._connection._execute  # the driver's own way to run a function on its thread
        await run(lambda: _run(self._connection._conn, prepared))

    async def finish(self) -> None:
        without_cause = await self._all(SELECT_WITHOUT_CAUSE)
        await self._connection.executemany(
            UPDATE_RECORD, [hashed({**stored(row), "caused_by": None}) for row in without_cause]
        )
        await self._all(UPDATE_COUNTS_OF_AGENTS)
        await self._all(INSERT_ALL_SUPERSEDED)
        # As if an older release had made it: if this process is killed, the next one to open the database rebuilds it.
        await self._all(UPDATE_ANALYSIS, version=0)

    async def _columns(self, table: str) -> frozenset[str]:
        """The columns of a canonical table; none of any other."""
        if table not in SELECT_ARCHIVED:
            return frozenset()
        return frozenset(name for [name] in await self._all(SELECT_COLUMNS_OF_TABLE, table=table))


_Prepared = tuple[int, Sequence[tuple[str, Mapping[str, Value]]]]


def _without_owner(fields: dict[str, Value]) -> dict[str, Value]:
    fields.pop("owner", None)
    return fields


def _prepared(row: ArchiveRow, owner: str, columns: frozenset[str]) -> _Prepared:
    """The line of a row, and the statements that store it."""
    fields = dict(row.fields)
    if row.table == "identity":
        secret = fields.get("secret")
        if set(fields) != {"secret"} or not isinstance(secret, bytes) or len(secret) != _SECRET_BYTES:
            raise InvalidInput(f"line {row.line}: not a valid memory identity; nothing was restored")
        return row.line, [(UPDATE_IDENTITY, fields)]
    if row.table == "sqlite_sequence":
        if set(fields) != {"name", "seq"} or not isinstance(fields["seq"], int):
            raise InvalidInput(f"line {row.line}: not a valid number of the last record; nothing was restored")
        return row.line, [(DELETE_SEQUENCE, fields), (INSERT_SEQUENCE, fields)]
    if row.table in _OF_OWNERS:
        fields["owner"] = owner
    if not fields or not columns.issuperset(fields):
        unknown = min(fields.keys() - columns, default="")[:40]
        raise InvalidInput(
            f"line {row.line}: the table {row.table[:40]!r} has no column {unknown!r}; nothing was restored"
        )
    # The names come from the table's own columns.
    places = ", ".join(f":{name}" for name in fields)
    return row.line, [(f"INSERT INTO {row.table} ({', '.join(fields)}) VALUES ({places})", fields)]


def _run(connection: sqlite3.Connection, prepared: Sequence[_Prepared]) -> None:
    for line, statements in prepared:
        try:
            for statement, fields in statements:
                connection.execute(statement, fields)
        except (sqlite3.IntegrityError, sqlite3.ProgrammingError, OverflowError, UnicodeEncodeError) as error:
            reason = "a text is not Unicode" if isinstance(error, UnicodeEncodeError) else error
            raise InvalidInput(f"line {line}: this row cannot be stored ({reason}); nothing was restored") from None
