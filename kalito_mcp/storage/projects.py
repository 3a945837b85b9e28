"""Gives a project another id, or makes two projects one."""

from kalito_mcp.storage import record_rows as rows
from kalito_mcp.storage.queries import Queries


class ProjectStatements(Queries):
    """Renames the projects of an owner."""

    async def rename_project(self, owner: str, old: str, new: str) -> None:
        """Give a known project another id. If that is a known project, too, the two become one.

        Raises:
            AlreadyStored: both have a document of the same source.
        """
        with self._transaction.stored_once():
            found = await self._all(self._sql.projects.SELECT_PROJECT_KEYS, owner=owner, ids=[old, new])
            keys = {str(row[0]): int(row[1]) for row in found}
            await self._all(self._sql.projects.UPDATE_GIVEN_OF_PROJECT, owner=owner, old=old, new=new)
            if new in keys:
                await self._merge(owner, old_key=keys[old], new_key=keys[new])
            else:
                await self._all(self._sql.projects.UPDATE_PROJECT_ID, owner=owner, key=keys[old], new=new)

    async def _merge(self, owner: str, *, old_key: int, new_key: int) -> None:
        """Give all that is of the project `old_key` to `new_key`."""
        merged = {"owner": owner, "old_key": old_key, "new_key": new_key}
        for statement in (
            self._sql.projects.UPDATE_SESSIONS_OF_PROJECT,
            self._sql.projects.UPDATE_SESSION_RECORDS_OF_PROJECT,
            self._sql.projects.DELETE_FORGOTTEN_OF_BOTH,
            self._sql.projects.UPDATE_FORGOTTEN_OF_PROJECT,
        ):
            await self._all(statement, **merged)
        found = await self._all(self._sql.projects.SELECT_OWN_RECORDS_OF_PROJECT, owner=owner, old_key=old_key)
        own = [rows.hashed({**rows.stored(row), "project_key": new_key}) for row in found]
        await self._many(self._sql.record_statements.UPDATE_RECORD, own, owner=owner)
        await self._all(self._sql.projects.DELETE_PROJECT, owner=owner, old_key=old_key)
