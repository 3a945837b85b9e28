"""Statements that change whole records."""

from typing import Final

from kalito_mcp.storage.postgres.queries import within
from kalito_mcp.storage.postgres.record_statements import (
    STORED_COLUMNS,
    attribute,
)
from kalito_mcp.storage.postgres.session_changes import PROJECT_KEY

_KEYS: Final = "ARRAY(SELECT nextval('record_keys') FROM generate_series(1, :count::integer))"
SELECT_PLACE_OF_SESSION: Final = f"""
SELECT s.agent_key, s.key, s.project_key, {_KEYS}
FROM sessions s JOIN agents a ON a.owner_key = :owner AND a.key = s.agent_key
WHERE s.owner_key = :owner AND s.id = :session AND (:agent IS NULL OR a.id = :agent) AND {within("s")}
"""
SELECT_PLACE_OF_AGENT: Final = f"""
SELECT (SELECT key FROM agents WHERE owner_key = :owner AND id = :agent), NULL::bigint, {PROJECT_KEY}, {_KEYS}
"""
SELECT_KEY: Final = """
SELECT key FROM records WHERE owner_key = :owner AND (id = :id OR (key = :number AND type = 'message'))
"""
SELECT_PROJECT_KEY: Final = f"SELECT {PROJECT_KEY}"
SELECT_STORED: Final = f"SELECT {STORED_COLUMNS} FROM records r WHERE r.owner_key = :owner AND r.key = :key"
SELECT_EFFECTS: Final = f"SELECT {STORED_COLUMNS} FROM records r WHERE r.owner_key = :owner AND r.caused_by = :key"
UPDATE_COUNTERS: Final = """
UPDATE sessions SET
    hidden_count = hidden_count + :hidden, pin_count = pin_count + :pins, summary_count = summary_count + :summaries,
    importance_sum = importance_sum + :importance, revision = revision + 1
WHERE owner_key = :owner AND key = :session_key
"""
# Only if no other message of the session named the same model.
UPDATE_MODEL: Final = f"""
UPDATE sessions SET model = (
    SELECT {attribute("r", "model_id")} FROM records r
    WHERE r.owner_key = :owner AND r.session_key = :session_key AND r.type = 'message'
        AND {attribute("r", "model_id")} IS NOT NULL
    ORDER BY r.seq DESC LIMIT 1
) WHERE owner_key = :owner AND key = :session_key AND model = :model
"""
# Once for the call, and once for each record that is counted.
UPDATE_WRITTEN: Final = """
UPDATE sessions SET updated_at = greatest(updated_at, :now_ms), revision = revision + 1 + :records
WHERE owner_key = :owner AND key = :session_key
"""
UPSERT_USAGE: Final = """
INSERT INTO record_usage (owner_key, record_key, usage_count, last_used)
SELECT :owner, used.key, listed.count, :used_at
FROM unnest(:ids, :numbers, :counts::bigint[]) AS listed (id, number, count) CROSS JOIN LATERAL (
    SELECT key FROM records WHERE owner_key = :owner AND key = listed.number AND purged_at IS NULL
    UNION ALL
    SELECT key FROM records
    WHERE owner_key = :owner AND id = listed.id AND listed.number IS NULL AND purged_at IS NULL
) used
ON CONFLICT (owner_key, record_key) DO UPDATE SET
    usage_count = record_usage.usage_count + excluded.usage_count,
    last_used = greatest(record_usage.last_used, excluded.last_used)
"""
DELETE_EDITS: Final = "DELETE FROM memory_edits WHERE owner_key = :owner AND record_key = :key"
DELETES_OF_RECORD: Final = (
    """
WITH edits AS (
    DELETE FROM memory_edits WHERE owner_key = :owner AND record_key = :key
), usage AS (
    DELETE FROM record_usage WHERE owner_key = :owner AND record_key = :key
)
DELETE FROM feedback WHERE owner_key = :owner AND record_key = :key
""",
)
DELETE_RECORD: Final = "DELETE FROM records WHERE owner_key = :owner AND key = :key"
