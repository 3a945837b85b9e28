"""Which records state something: pins, and notes that are known beyond their session. Runs no SQL."""

from typing import Final

from kalito_mcp.storage.sqlite.queries import AGENT_KEY, within

_READ: Final = f"""(:project IS NULL OR r.project_key IS NULL OR r.project_key = (
        SELECT key FROM projects WHERE owner = :owner AND id = :project
    )) AND {within("r")}
"""
STATED_KEYS: Final = f"""
SELECT key FROM (
    SELECT r.key FROM records r INDEXED BY records_known
    WHERE r.agent_key = {AGENT_KEY} AND r.reach IS NOT NULL AND r.deleted_at IS NULL AND {_READ}
    ORDER BY r.key DESC LIMIT :lasting
)
UNION ALL
SELECT key FROM (
    SELECT r.key FROM records r INDEXED BY records_of_types
    WHERE r.agent_key = {AGENT_KEY} AND r.type = 'pin' AND r.id IS NOT NULL AND r.deleted_at IS NULL
        AND r.reach IS NULL AND {_READ}
    ORDER BY r.key DESC LIMIT :of_sessions
)
UNION ALL
SELECT key FROM (
    SELECT r.key FROM records r INDEXED BY records_columns
    WHERE r.agent_key = {AGENT_KEY} AND r.deleted_at IS NOT NULL
        AND (r.type = 'pin' OR (r.type = 'document' AND r.reach IS NOT NULL)) AND r.purged_at IS NULL AND {_READ}
    ORDER BY r.key DESC LIMIT :forgotten
)
"""
"""Their keys. Its parameters: how many of each, and `places_of`."""
