"""Reads and writes whole memories as entries. Implements `ports.archive.ArchiveReader` and `ArchiveWriter`.

Each canonical table is a kind of entry, and its columns are the fields. Rows keep the keys of the archive, because
their hashes are made of them, and the sequences go on beyond them.
"""

import math
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from itertools import groupby
from typing import Any, Final

import asyncpg

from kalito_mcp.domain.archive import FIELDS, ArchiveEntry, Selection, unstorable
from kalito_mcp.domain.scope import PERSONAL
from kalito_mcp.errors import InvalidInput
from kalito_mcp.storage.numbered import message_key
from kalito_mcp.storage.postgres.queries import Queries
from kalito_mcp.storage.record_rows import STORED_NAMES
from kalito_mcp.storage.row_hash import hash_of_record, real
from kalito_mcp.storage.superseded import FIELD, named_in

_PROJECT_OF: Final = f"""
    coalesce((SELECT p.id FROM projects p WHERE p.owner_key = :owner AND p.key = project_key), '{PERSONAL}')
"""
_IS_ASKED: Final = f"""(:agent IS NULL OR agent_key = (SELECT key FROM agents WHERE owner_key = :owner AND id = :agent))
    AND (:project IS NULL OR {_PROJECT_OF} = :project)
"""
_SESSION: Final = f"owner_key = :owner AND (:session IS NULL OR id = :session) AND {_IS_ASKED}"
_SESSIONS: Final = f"SELECT key FROM sessions WHERE {_SESSION}"
_RECORD: Final = f"""owner_key = :owner
    AND (:is_all::boolean OR session_key IN ({_SESSIONS}) OR (session_key IS NULL AND :session IS NULL AND {_IS_ASKED}))
    AND (:types IS NULL OR type = ANY(:types))
    AND (:since_ms::bigint IS NULL OR created_at >= :since_ms::bigint)
    AND (:until_ms::bigint IS NULL OR created_at <= :until_ms::bigint)
"""
_RECORDS: Final = f"SELECT key FROM records WHERE {_RECORD}"
_OF_RECORDS: Final = f"owner_key = :owner AND (:is_all::boolean OR record_key IN ({_RECORDS}))"


def _named_by(column: str) -> str:
    """Keys in this column of sessions and records of the selection."""
    return f"SELECT {column} FROM sessions WHERE {_SESSION} UNION SELECT {column} FROM records WHERE {_RECORD}"


_AGENT: Final = f"owner_key = :owner AND (:is_all::boolean OR key IN ({_named_by('agent_key')}))"
_PROJECT: Final = f"owner_key = :owner AND (:is_all::boolean OR key IN ({_named_by('project_key')}))"
_GRAPH: Final = f"""owner_key = :owner AND :is_restorable::boolean AND (session_key IN ({_SESSIONS}) OR (
        session_key IS NULL AND :session IS NULL AND :project IS NULL
        AND (:agent IS NULL OR agent_key = (SELECT key FROM agents WHERE owner_key = :owner AND id = :agent))
    ))
"""
_OF_GRAPHS: Final = f"owner_key = :owner AND graph_key IN (SELECT key FROM graphs WHERE {_GRAPH})"
_FORGOTTEN: Final = f"""owner_key = :owner AND :is_restorable::boolean
    AND agent_key IN (SELECT key FROM agents WHERE {_AGENT})
    AND (project_key IS NULL OR project_key IN (SELECT key FROM projects WHERE {_PROJECT}))
"""
_LAST_KEYS: Final = """(
    SELECT 'graphs' AS name, last_value AS seq, is_called FROM graph_keys
    UNION ALL SELECT 'records', last_value, is_called FROM record_keys
) AS last_keys"""
_SELECTED: Final = {
    "identity": ("identity", ":is_restorable::boolean", "secret"),
    "projects": ("projects", _PROJECT, "key"),
    "agents": ("agents", _AGENT, "key"),
    "sessions": ("sessions", _SESSION, "key"),
    "records": ("records", _RECORD, "key"),
    "memory_edits": ("memory_edits", _OF_RECORDS, "record_key, version"),
    "record_usage": ("record_usage", _OF_RECORDS, "record_key"),
    "feedback": ("feedback", _OF_RECORDS, 'record_key, label COLLATE "C"'),
    "graphs": ("graphs", _GRAPH, "key"),
    "graph_nodes": ("graph_nodes", _OF_GRAPHS, "key"),
    "graph_edges": ("graph_edges", _OF_GRAPHS, 'from_key, type COLLATE "C", to_key'),
    "forgotten_values": ("forgotten_values", _FORGOTTEN, "key"),
    "tombstones": ("tombstones", "owner_key = :owner AND :is_restorable::boolean", "record_id, text_hash"),
    "sqlite_sequence": (_LAST_KEYS, ":is_restorable::boolean AND is_called", 'name COLLATE "C"'),
}
"""By kind: its table, which rows are in the selection, and their order."""
SELECT_ARCHIVED: Final = {
    kind: f"SELECT {', '.join(FIELDS[kind])} FROM {table} WHERE {condition} ORDER BY {order}"
    for kind, (table, condition, order) in _SELECTED.items()
}
SELECT_IS_EMPTY: Final = "SELECT is_nothing_stored()"
UPDATE_IDENTITY: Final = "UPDATE identity SET secret = :secret"
INSERT_ARCHIVED: Final[Mapping[str, str]] = {
    kind: f"INSERT INTO {kind} (owner_key, {', '.join(names)}) VALUES (:owner, {', '.join(f':{one}' for one in names)})"
    for kind, names in FIELDS.items()
    if kind not in ("identity", "sqlite_sequence")
}
"""By kind, the statement that stores an entry."""
# An archive is only restored into an empty store, so that nobody takes a key between the comparison and the change.
SELECT_BEYOND: Final = {
    sequence: f"SELECT setval('{sequence}', :seq) FROM {sequence} WHERE last_value < :seq OR NOT is_called"
    for sequence in ("record_keys", "session_keys", "graph_keys", "other_keys")
}
"""By sequence, the statement after which its next key is greater than this one."""
_SEQUENCES: Final = {
    "records": "record_keys",
    "sessions": "session_keys",
    "graphs": "graph_keys",
    **dict.fromkeys(("agents", "projects", "graph_nodes", "forgotten_values"), "other_keys"),
}
"""By kind, the sequence of its keys."""
SELECT_WITHOUT_CAUSE: Final = f"""
SELECT {", ".join(f"r.{name}" for name in STORED_NAMES)} FROM records r
WHERE r.owner_key = :owner AND r.caused_by IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM records c WHERE c.owner_key = :owner AND c.key = r.caused_by)
"""
UPDATE_WITHOUT_CAUSE: Final = """
UPDATE records SET caused_by = NULL, hash = :hash WHERE owner_key = :owner AND key = :key
"""
UPDATE_COUNTS_OF_AGENTS: Final = """
UPDATE agents SET record_count = (
    SELECT count(*) FROM records r
    WHERE r.owner_key = :owner AND r.agent_key = agents.key AND r.deleted_at IS NULL
) WHERE owner_key = :owner
"""
SELECT_SUPERSEDING: Final = f"""
SELECT key, attributes FROM records WHERE owner_key = :owner AND strpos(attributes, '"{FIELD}"') > 0
"""
# A message has its number in its id, and no id of its own in its row.
INSERT_ALL_SUPERSEDED: Final = """
INSERT INTO superseded_records (owner_key, by_key, record_key)
SELECT :owner, n.key, r.key FROM unnest(:keys, :ids, :numbers) AS named (by_key, id, number)
JOIN records n ON n.owner_key = :owner AND n.key = named.by_key
JOIN records r ON r.owner_key = :owner AND r.key = coalesce(
    (SELECT key FROM records WHERE owner_key = :owner AND id = named.id), named.number
)
WHERE (r.id = named.id OR (r.id IS NULL AND r.key = named.number))
    AND r.agent_key = n.agent_key AND r.key <> n.key AND r.purged_at IS NULL
ON CONFLICT DO NOTHING
"""
UPDATE_ANALYSIS: Final = "UPDATE identity SET analysis = :version"

_PAGE: Final = 500
_GREATEST_KEY: Final = (1 << 63) - 1
_REALS: Final = frozenset({"importance", "importance_sum", "repeat", "feedback", "weight"})
_REFUSED: Final = (
    asyncpg.IntegrityConstraintViolationError,
    asyncpg.DataError,
    asyncpg.ProgramLimitExceededError,
    ValueError,  # the driver's own DataError is one
)
Row = Mapping[str, Any]


class ArchiveQueries(Queries):
    """`ports.archive.ArchiveReader`."""

    async def entries(self, owner: str, selection: Selection) -> AsyncGenerator[Sequence[ArchiveEntry]]:
        parameters = {
            "owner": owner,
            **{name: getattr(selection, name) for name in ("session", "project", "agent", "since_ms", "until_ms")},
            "types": sorted(map(str, selection.types)) or None,
            "is_all": selection.is_all,
            "is_restorable": selection.is_restorable,
        }
        for kind, statement in SELECT_ARCHIVED.items():
            async with aclosing(self._transaction.pages(statement, _PAGE, **parameters)) as pages:
                async for page in pages:
                    yield [ArchiveEntry(kind, dict(row)) for row in page]


class ArchiveStatements(ArchiveQueries):
    """`ports.archive.ArchiveWriter`."""

    async def is_empty(self) -> bool:
        [[is_empty]] = await self._all(SELECT_IS_EMPTY)
        return bool(is_empty)

    async def add(self, owner: str, entries: Sequence[ArchiveEntry]) -> None:
        for kind, same in groupby(entries, lambda entry: entry.kind):
            run = list(same)
            if kind in INSERT_ARCHIVED:
                await self._add(owner, kind, run)
                if kind in _SEQUENCES:
                    await self._go_beyond(kind, max(_integer(entry, "key") for entry in run))
                continue
            for entry in run:
                if kind == "identity":
                    await self._count_changed(UPDATE_IDENTITY, secret=entry.fields["secret"])
                else:
                    await self._go_beyond(str(entry.fields["name"]), _integer(entry, "seq"))

    async def finish(self, owners: Sequence[str]) -> None:
        for owner in owners:
            without_cause = [{**row, "caused_by": None} for row in await self._all(SELECT_WITHOUT_CAUSE, owner=owner)]
            hashed = [{"key": row["key"], "hash": hash_of_record(row)} for row in without_cause]
            await self._many(UPDATE_WITHOUT_CAUSE, hashed, owner=owner)
            await self._count_changed(UPDATE_COUNTS_OF_AGENTS, owner=owner)
            await self._supersede(owner)
        # Marked as an older release's, so that the next process to open it rebuilds the index, even after a crash.
        await self._count_changed(UPDATE_ANALYSIS, version=0)

    async def _add(self, owner: str, kind: str, entries: Sequence[ArchiveEntry]) -> None:
        rows = list(map(_row, entries))
        try:
            async with self._transaction.undoable(owner):
                await self._many(INSERT_ARCHIVED[kind], rows, owner=owner)
        except _REFUSED as error:
            refusal = await self._refusal(owner, list(zip(entries, rows, strict=True)))
            raise refusal or error from None

    async def _refusal(self, owner: str, entries: Sequence[tuple[ArchiveEntry, Row]]) -> InvalidInput | None:
        """Why the first of these entries that cannot be stored cannot. Those before it are stored."""
        for entry, row in entries:
            try:
                await self._many(INSERT_ARCHIVED[entry.kind], [row], owner=owner)
            except _REFUSED as error:
                return unstorable(entry, _reason(error))
        return None

    async def _go_beyond(self, kind: str, key: int) -> None:
        """Let the next key of this kind be greater."""
        if key > 0:
            await self._all(SELECT_BEYOND[_SEQUENCES[kind]], seq=key)

    async def _supersede(self, owner: str) -> None:
        async with aclosing(self._transaction.pages(SELECT_SUPERSEDING, _PAGE, owner=owner)) as pages:
            async for page in pages:
                named = [(key, one) for key, attributes in page for one in _named(attributes)]
                keys, ids = [key for key, _ in named], [one for _, one in named]
                numbers = list(map(message_key, ids))
                await self._count_changed(INSERT_ALL_SUPERSEDED, owner=owner, keys=keys, ids=ids, numbers=numbers)


def _row(entry: ArchiveEntry) -> Row:
    return {name: _number(value) if name in _REALS else value for name, value in entry.fields.items()}


def _integer(entry: ArchiveEntry, name: str) -> int:
    number = entry.fields[name]
    if not isinstance(number, int) or number > _GREATEST_KEY:
        raise unstorable(entry, f"{name} is not a number of an entry")
    return number


def _number(value: Any) -> Any:
    """A number as SQLite stores it: not a number is nothing."""
    if not isinstance(value, int | float):
        return value
    return None if math.isnan(value) else real(value)


def _reason(error: Exception) -> object:
    """The error without the row that PostgreSQL quotes."""
    if isinstance(error.__cause__, UnicodeEncodeError):
        return "a text is not Unicode"
    return error.args[0] if error.args else type(error).__name__


def _named(attributes: str) -> list[str]:
    """The ids that the record with these attributes supersedes; none, if an archive brought no such object."""
    try:
        return [one for one in named_in(attributes) if isinstance(one, str)]
    except (ValueError, AttributeError, TypeError):
        return []
