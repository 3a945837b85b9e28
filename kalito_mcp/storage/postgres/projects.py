"""Gives a project another id, or makes two projects one."""

from typing import Final

from kalito_mcp.storage import record_rows as rows
from kalito_mcp.storage.postgres.queries import Queries
from kalito_mcp.storage.postgres.record_statements import STORED_COLUMNS, UPDATE_RECORD

SELECT_PROJECT_KEYS: Final = "SELECT id, key FROM projects WHERE owner_key = :owner AND id = ANY(:ids)"
UPDATE_PROJECT_ID: Final = "UPDATE projects SET id = :new WHERE owner_key = :owner AND key = :key"
UPDATE_SESSIONS_OF_PROJECT: Final = """
UPDATE sessions SET project_key = :new_key, revision = revision + 1
WHERE owner_key = :owner AND project_key = :old_key
"""
# A record without a session has its project in its hash.
UPDATE_SESSION_RECORDS_OF_PROJECT: Final = """
UPDATE records SET project_key = :new_key
WHERE owner_key = :owner AND project_key = :old_key AND session_key IS NOT NULL
"""
SELECT_OWN_RECORDS_OF_PROJECT: Final = f"""
SELECT {STORED_COLUMNS} FROM records r
WHERE r.owner_key = :owner AND r.project_key = :old_key AND r.session_key IS NULL
"""
# What both projects forgot is forgotten as it was in the one that goes.
DELETE_FORGOTTEN_OF_BOTH: Final = """
DELETE FROM forgotten_values f WHERE f.owner_key = :owner AND f.project_key = :new_key AND EXISTS (
    SELECT 1 FROM forgotten_values o
    WHERE o.owner_key = :owner AND o.project_key = :old_key
        AND o.value_hash = f.value_hash AND o.agent_key = f.agent_key
)
"""
UPDATE_FORGOTTEN_OF_PROJECT: Final = """
UPDATE forgotten_values SET project_key = :new_key WHERE owner_key = :owner AND project_key = :old_key
"""
UPDATE_GIVEN_OF_PROJECT: Final = "UPDATE given SET project = :new WHERE owner_key = :owner AND project = :old"
DELETE_PROJECT: Final = "DELETE FROM projects WHERE owner_key = :owner AND key = :old_key"


class ProjectStatements(Queries):
    """Renames the projects of an owner."""

    async def rename_project(self, owner: str, old: str, new: str) -> None:
        """Give a known project another id. If that is a known project, too, the two become one.

        Raises:
            asyncpg.UniqueViolationError: both have a document of the same source.
        """
        found = await self._all(SELECT_PROJECT_KEYS, owner=owner, ids=[old, new])
        keys = {str(row[0]): int(row[1]) for row in found}
        await self._all(UPDATE_GIVEN_OF_PROJECT, owner=owner, old=old, new=new)
        if new in keys:
            await self._merge(owner, old_key=keys[old], new_key=keys[new])
        else:
            await self._all(UPDATE_PROJECT_ID, owner=owner, key=keys[old], new=new)

    async def _merge(self, owner: str, *, old_key: int, new_key: int) -> None:
        """Give all that is of the project `old_key` to `new_key`."""
        merged = {"owner": owner, "old_key": old_key, "new_key": new_key}
        for statement in (
            UPDATE_SESSIONS_OF_PROJECT,
            UPDATE_SESSION_RECORDS_OF_PROJECT,
            DELETE_FORGOTTEN_OF_BOTH,
            UPDATE_FORGOTTEN_OF_PROJECT,
        ):
            await self._all(statement, **merged)
        found = await self._all(SELECT_OWN_RECORDS_OF_PROJECT, owner=owner, old_key=old_key)
        own = [rows.hashed({**rows.stored(row), "project_key": new_key}) for row in found]
        await self._many(UPDATE_RECORD, own, owner=owner)
        await self._all(DELETE_PROJECT, owner=owner, old_key=old_key)
