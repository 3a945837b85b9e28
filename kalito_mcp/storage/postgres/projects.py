"""Statements on projects."""

from typing import Final

from kalito_mcp.storage.postgres.record_statements import STORED_COLUMNS

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
