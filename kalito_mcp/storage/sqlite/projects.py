"""Gives a project another id, or makes two projects one."""

from typing import Final

import aiosqlite

from kalito_mcp.storage import record_rows as rows
from kalito_mcp.storage.sqlite.record_statements import STORED_COLUMNS, UPDATE_RECORD

SELECT_PROJECT_KEYS: Final = "SELECT id, key FROM projects WHERE owner = :owner AND id IN (:old, :new)"
UPDATE_PROJECT_ID: Final = "UPDATE projects SET id = :new WHERE key = :key"
UPDATE_SESSIONS_OF_PROJECT: Final = """
UPDATE sessions SET project_key = :new_key, revision = revision + 1 WHERE project_key = :old_key
"""
# A record without a session has its project in its hash.
UPDATE_SESSION_RECORDS_OF_PROJECT: Final = """
UPDATE records SET project_key = :new_key WHERE project_key = :old_key AND session_key IS NOT NULL
"""
SELECT_OWN_RECORDS_OF_PROJECT: Final = f"""
SELECT {STORED_COLUMNS} FROM records r WHERE r.project_key = :old_key AND r.session_key IS NULL
"""
UPDATE_FORGOTTEN_OF_PROJECT: Final = """
UPDATE OR REPLACE forgotten_values SET project_key = :new_key WHERE project_key = :old_key
"""
UPDATE_GIVEN_OF_PROJECT: Final = "UPDATE given SET project = :new WHERE owner = :owner AND project = :old"
DELETE_PROJECT: Final = "DELETE FROM projects WHERE key = :old_key"


async def rename_project(connection: aiosqlite.Connection, owner: str, old: str, new: str) -> None:
    """Give a known project another id. If that is a known project, too, the two become one.

    Raises:
        sqlite3.IntegrityError: both have a document of the same source.
    """
    parameters = {"owner": owner, "old": old, "new": new}
    keys = {str(row[0]): int(row[1]) for row in await connection.execute_fetchall(SELECT_PROJECT_KEYS, parameters)}
    await connection.execute_fetchall(UPDATE_GIVEN_OF_PROJECT, parameters)
    if new in keys:
        await _merge(connection, {"old_key": keys[old], "new_key": keys[new]})
    else:
        await connection.execute_fetchall(UPDATE_PROJECT_ID, {"key": keys[old], "new": new})


async def _merge(connection: aiosqlite.Connection, merged: dict[str, int]) -> None:
    """Give all that is of the project `old_key` to `new_key`."""
    for statement in (UPDATE_SESSIONS_OF_PROJECT, UPDATE_SESSION_RECORDS_OF_PROJECT, UPDATE_FORGOTTEN_OF_PROJECT):
        await connection.execute_fetchall(statement, merged)
    found = await connection.execute_fetchall(SELECT_OWN_RECORDS_OF_PROJECT, merged)
    own = [rows.hashed({**rows.stored(row), "project_key": merged["new_key"]}) for row in found]
    await connection.executemany(UPDATE_RECORD, own)
    await connection.execute_fetchall(DELETE_PROJECT, merged)
