"""Whose memories there are, and the end of one.

A table that is not named here loses its rows of an owner with those that they belong to: by a foreign key, by a
trigger, or with the record (see `_erase_records`).
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from kalito_mcp.domain.people import OwnerCounts
from kalito_mcp.storage.record_rows import stored
from kalito_mcp.storage.row_hash import hash_of_record
from kalito_mcp.storage.sqlite.queries import Queries, Transaction
from kalito_mcp.storage.sqlite.record_statements import STORED_COLUMNS
from kalito_mcp.storage.sqlite.text_index import FORGET_CHANGES, TextIndexStatements
from kalito_mcp.storage.tombstones import Tombstones
from kalito_mcp.text.analysis import index_text

_AGENTS: Final = "(SELECT key FROM agents WHERE owner = :owner)"
_GRAPHS: Final = f"(SELECT key FROM graphs WHERE agent_key IN {_AGENTS})"

_NAMES: Final = """
    SELECT owner FROM agents UNION SELECT owner FROM sessions UNION SELECT owner FROM projects
    UNION SELECT owner FROM tombstones UNION SELECT owner FROM imports UNION SELECT owner FROM given
    UNION SELECT owner FROM access_tokens UNION SELECT owner FROM oauth_grants UNION SELECT owner FROM passphrases
    UNION SELECT member FROM space_members
"""
SELECT_NAMES: Final = f"{_NAMES} ORDER BY 1"
SELECT_OWNERS: Final = f"""
WITH names (owner) AS ({_NAMES}), theirs (owner, records) AS (
    SELECT a.owner, count(*) FROM records r JOIN agents a ON a.key = r.agent_key
    WHERE r.deleted_at IS NULL GROUP BY a.owner
)
SELECT n.owner, (SELECT count(*) FROM sessions s WHERE s.owner = n.owner),
    coalesce((SELECT t.records FROM theirs t WHERE t.owner = n.owner), 0),
    (SELECT max(s.updated_at) FROM sessions s WHERE s.owner = n.owner)
FROM names n ORDER BY n.owner
"""
SELECT_HAS: Final = """
SELECT EXISTS (SELECT 1 FROM agents WHERE owner = :owner) OR EXISTS (SELECT 1 FROM space_members WHERE member = :owner)
"""
UPDATE_CLOSED: Final = "UPDATE sessions SET state = 'FINALIZED' WHERE owner = :owner AND state <> 'FINALIZED'"
DELETE_ACCESS: Final[Mapping[str, str]] = {
    "access_tokens": "DELETE FROM access_tokens WHERE owner = :owner",
    "oauth_grants": "DELETE FROM oauth_grants WHERE owner = :owner",
    "passphrases": "DELETE FROM passphrases WHERE owner = :owner",
}
SELECT_ERASED_RECORDS: Final = f"SELECT {STORED_COLUMNS} FROM records r WHERE r.agent_key IN {_AGENTS} LIMIT :limit"
_KEYS: Final = "(SELECT value FROM json_each(:keys))"
DELETE_RECORDS: Final[Mapping[str, str]] = {
    "memory_edits": f"DELETE FROM memory_edits WHERE record_key IN {_KEYS}",
    "record_usage": f"DELETE FROM record_usage WHERE record_key IN {_KEYS}",
    "feedback": f"DELETE FROM feedback WHERE record_key IN {_KEYS}",
    "superseded_records": f"DELETE FROM superseded_records WHERE by_key IN {_KEYS}",
    "records": f"DELETE FROM records WHERE key IN {_KEYS}",
}
DELETE_SLICES: Final[Mapping[str, str]] = {
    "graph_nodes": f"""
        DELETE FROM graph_nodes WHERE key IN (SELECT key FROM graph_nodes WHERE graph_key IN {_GRAPHS} LIMIT :limit)
    """,
    "graphs": f"DELETE FROM graphs WHERE key IN (SELECT key FROM graphs WHERE agent_key IN {_AGENTS} LIMIT :limit)",
    "forgotten_values": f"""
        DELETE FROM forgotten_values
        WHERE key IN (SELECT key FROM forgotten_values WHERE agent_key IN {_AGENTS} LIMIT :limit)
    """,
    "tombstones": """
        DELETE FROM tombstones WHERE (record_id, text_hash) IN (
            SELECT record_id, text_hash FROM tombstones WHERE owner = :owner LIMIT :limit
        )
    """,
    "imports": "DELETE FROM imports WHERE key IN (SELECT key FROM imports WHERE owner = :owner LIMIT :limit)",
    "given": "DELETE FROM given WHERE key IN (SELECT key FROM given WHERE owner = :owner LIMIT :limit)",
}
_OF_EMPTY_PROJECTS: Final = f"""
    SELECT p.key FROM projects p WHERE p.owner = :owner
        AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.owner = :owner AND s.project_key = p.key)
        AND NOT EXISTS (SELECT 1 FROM records r WHERE r.agent_key IN {_AGENTS} AND r.project_key = p.key)
"""
DELETE_FORGOTTEN_IN_EMPTY_PROJECTS: Final = f"""
DELETE FROM forgotten_values WHERE agent_key IN {_AGENTS} AND project_key IN ({_OF_EMPTY_PROJECTS})
"""
DELETE_EMPTY_PROJECTS: Final = f"DELETE FROM projects WHERE key IN ({_OF_EMPTY_PROJECTS})"
SELECT_ANY_SESSION: Final = "SELECT 1 FROM sessions WHERE owner = :owner LIMIT 1"
# Before a session goes, SQLite looks for rows that name it: without an index, through all records, for each session.
CREATE_FOR_SESSIONS: Final = (
    "CREATE INDEX records_of_sessions_erased ON records (session_key)",
    "CREATE INDEX graphs_of_sessions_erased ON graphs (session_key)",
)
DROP_FOR_SESSIONS: Final = ("DROP INDEX records_of_sessions_erased", "DROP INDEX graphs_of_sessions_erased")
DELETE_SESSIONS: Final = "DELETE FROM sessions WHERE owner = :owner"
DELETE_NAMES: Final[Mapping[str, str]] = {
    "projects": "DELETE FROM projects WHERE owner = :owner",
    "agents": "DELETE FROM agents WHERE owner = :owner",
}


class PeopleQueries(Queries):
    """`ports.people.PeopleReader`."""

    async def names(self) -> Sequence[str]:
        return [name for [name] in await self._all(SELECT_NAMES)]

    async def owners(self) -> Sequence[OwnerCounts]:
        return [OwnerCounts(*row) for row in await self._all(SELECT_OWNERS)]


class PeopleStatements(PeopleQueries):
    """`ports.people.PeopleWriter`."""

    async def has(self, owner: str) -> bool:
        [[has]] = await self._all(SELECT_HAS, owner=owner)
        return bool(has)

    async def erase(self, owner: str, *, most: int) -> Mapping[str, int]:
        erased = Counter[str]()
        await self._all(UPDATE_CLOSED, owner=owner)
        for table, statement in DELETE_ACCESS.items():
            erased[table] += await self._count_changed(statement, owner=owner)
        erased += await self._erase_records(owner, most)
        for table, statement in DELETE_SLICES.items():
            if (left := most - erased.total()) > 0:
                erased[table] += await self._count_changed(statement, owner=owner, limit=left)
        if erased.total() < most:
            erased["sessions"] += await self._erase_sessions(owner)
            for table, statement in DELETE_NAMES.items():
                erased[table] += await self._count_changed(statement, owner=owner)
        if erased["agents"]:
            # Somebody else's agent may get the same key: no process may take what it has in memory for theirs.
            await self._all(FORGET_CHANGES)
        erased = +erased
        if erased:
            await Tombstones(self._transaction).owe_sweep(())
        return erased

    async def drop_empty_projects(self, owner: str) -> None:
        for statement in (DELETE_FORGOTTEN_IN_EMPTY_PROJECTS, DELETE_EMPTY_PROJECTS):
            await self._all(statement, owner=owner)

    async def _erase_records(self, owner: str, most: int) -> Counter[str]:
        found = [stored(row) for row in await self._all(SELECT_ERASED_RECORDS, owner=owner, limit=most)]
        index, is_decayed = TextIndexStatements(Transaction(self._connection)), False
        for row in found:
            if row["hash"] != hash_of_record(row):
                is_decayed = True  # the index has other terms for it than the row gives
            elif row["deleted_at"] is None:
                await index.remove(owner, row["agent_key"], [(row["key"], index_text(row["text"], row["name"]))])
        keys = json.dumps([row["key"] for row in found])
        erased = Counter[str]()
        for table, statement in DELETE_RECORDS.items():
            erased[table] += await self._count_changed(statement, keys=keys) if found else 0
        if is_decayed:
            await index.rebuild()
        return erased

    async def _erase_sessions(self, owner: str) -> int:
        if not await self._all(SELECT_ANY_SESSION, owner=owner):
            return 0
        for statement in CREATE_FOR_SESSIONS:
            await self._all(statement)
        erased = await self._count_changed(DELETE_SESSIONS, owner=owner)
        for statement in DROP_FOR_SESSIONS:
            await self._all(statement)
        return erased
