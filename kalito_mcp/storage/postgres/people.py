"""Whose memories there are, and the end of one.

Rows go by the beginning of the primary key, so that a slice reads what it deletes and nothing else. Children go before
the rows that they name, so that no foreign key looks for any.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from kalito_mcp.domain.people import OwnerCounts
from kalito_mcp.storage.postgres.queries import Queries
from kalito_mcp.storage.postgres.transactions import SELECT_OWNER
from kalito_mcp.storage.tombstones import Tombstones


def _slice_of(table: str, *columns: str) -> str:
    """Delete the first rows of an owner, at most `limit`, and those that share these columns with the last of them."""
    listed = ", ".join(columns)
    return f"""
    DELETE FROM {table} WHERE owner_key = :owner AND ({listed}) <= (
        SELECT {listed} FROM (
            SELECT {listed} FROM {table} WHERE owner_key = :owner ORDER BY {listed} LIMIT :limit
        ) AS first ORDER BY {", ".join(f"{one} DESC" for one in columns)} LIMIT 1
    )
    """


# Whoever a migration brought with a key or as a member alone has no row among the owners until they write.
SELECT_NAMES: Final = """
SELECT name FROM (
    SELECT name FROM owners UNION SELECT owner FROM access_tokens UNION SELECT owner FROM oauth_grants
    UNION SELECT owner FROM passphrases UNION SELECT member FROM space_members
) AS named ORDER BY name COLLATE "C"
"""
SELECT_COUNTS: Final = """
SELECT (SELECT count(*) FROM sessions WHERE owner_key = :owner),
    (SELECT count(*) FROM records WHERE owner_key = :owner AND deleted_at IS NULL),
    (SELECT max(updated_at) FROM sessions WHERE owner_key = :owner)
"""
SELECT_IS_MEMBER: Final = "SELECT 1 FROM space_members WHERE member = :member"
UPDATE_CLOSED: Final = """
UPDATE sessions SET state = 'FINALIZED' WHERE owner_key = :owner AND state <> 'FINALIZED'
"""
DELETE_ACCESS: Final[Mapping[str, str]] = {
    "access_tokens": "DELETE FROM access_tokens WHERE owner = :whose",
    "oauth_grants": "DELETE FROM oauth_grants WHERE owner = :whose",
    "passphrases": "DELETE FROM passphrases WHERE owner = :whose",
}
DELETE_SLICES: Final[Mapping[str, str]] = {
    "term_pages": _slice_of("term_pages", "agent_key", "term", "first"),
    "fresh_terms": _slice_of("fresh_terms", "agent_key", "record_key"),
    "record_shapes": _slice_of("record_shapes", "record_key"),
    "record_vectors": _slice_of("record_vectors", "record_key"),
    "vector_debts": _slice_of("vector_debts", "record_key"),
    "memory_edits": _slice_of("memory_edits", "record_key"),
    "record_usage": _slice_of("record_usage", "record_key"),
    "feedback": _slice_of("feedback", "record_key"),
    "superseded_records": _slice_of("superseded_records", "by_key"),
    "records": _slice_of("records", "key"),
    "removed_records": _slice_of("removed_records", "agent_key", "removed_at_revision", "record_key"),
    "graph_edges": _slice_of("graph_edges", "from_key"),
    "graph_nodes": _slice_of("graph_nodes", "key"),
    "graphs": _slice_of("graphs", "key"),
    "forgotten_values": _slice_of("forgotten_values", "key"),
    "tombstones": _slice_of("tombstones", "record_id"),
    "imports": _slice_of("imports", "source", "place"),
    "given": _slice_of("given", "key"),
    "sessions": _slice_of("sessions", "key"),
    "projects": _slice_of("projects", "key"),
    "agents": _slice_of("agents", "key"),
}
_OF_EMPTY_PROJECTS: Final = """
    SELECT p.key FROM projects p WHERE p.owner_key = :owner
        AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.owner_key = :owner AND s.project_key = p.key)
        AND NOT EXISTS (SELECT 1 FROM records r WHERE r.owner_key = :owner AND r.project_key = p.key)
"""
DELETE_FORGOTTEN_IN_EMPTY_PROJECTS: Final = f"""
DELETE FROM forgotten_values WHERE owner_key = :owner AND project_key IN ({_OF_EMPTY_PROJECTS})
"""
DELETE_EMPTY_PROJECTS: Final = f"DELETE FROM projects WHERE owner_key = :owner AND key IN ({_OF_EMPTY_PROJECTS})"
DELETE_DEBTOR: Final = "DELETE FROM vector_debtors WHERE owner = :owner"
DELETE_OWNER: Final = "DELETE FROM owners WHERE key = :owner"


class PeopleQueries(Queries):
    """`ports.people.PeopleReader`."""

    async def names(self) -> Sequence[str]:
        return [name for [name] in await self._all(SELECT_NAMES)]

    async def owners(self) -> Sequence[OwnerCounts]:
        found: list[OwnerCounts] = []
        for name in await self.names():
            [counts] = await self._all(SELECT_COUNTS, owner=name)
            found.append(OwnerCounts(name, *counts))
        return found


class PeopleStatements(PeopleQueries):
    """`ports.people.PeopleWriter`."""

    async def has(self, owner: str) -> bool:
        return await self._transaction.is_known(owner) or bool(await self._all(SELECT_IS_MEMBER, member=owner))

    async def erase(self, owner: str, *, most: int) -> Mapping[str, int]:
        erased = Counter[str]()
        # A write for an owner who is not there would make them.
        if is_there := bool(await self._all(SELECT_OWNER, name=owner)):
            await self._all(UPDATE_CLOSED, owner=owner)
        for table, statement in DELETE_ACCESS.items():
            erased[table] += await self._count_changed(statement, whose=owner)
        for table, statement in DELETE_SLICES.items() if is_there else ():
            if (left := most - erased.total()) > 0:
                erased[table] += await self._count_changed(statement, owner=owner, limit=left)
        if is_there and erased.total() < most:
            erased["vector_debtors"] += await self._count_changed(DELETE_DEBTOR, owner=owner)
            erased["owners"] += await self._count_changed(DELETE_OWNER, owner=owner)
            self._transaction.forget(owner)
        erased = +erased
        if erased:
            await Tombstones(self._transaction).owe_sweep(())
        return erased

    async def drop_empty_projects(self, owner: str) -> None:
        for statement in (DELETE_FORGOTTEN_IN_EMPTY_PROJECTS, DELETE_EMPTY_PROJECTS):
            await self._all(statement, owner=owner)
