"""Statements that change whole records."""

from typing import Final

from kalito_mcp.storage.sqlite.queries import owned, within
from kalito_mcp.storage.sqlite.record_statements import NEXT_KEY, STORED_COLUMNS
from kalito_mcp.storage.sqlite.session_changes import PROJECT_KEY

SELECT_PLACE_OF_SESSION: Final = f"""
SELECT s.agent_key, s.key, s.project_key, {NEXT_KEY} FROM sessions s JOIN agents a ON a.key = s.agent_key
WHERE s.owner = :owner AND s.id = :session AND (:agent IS NULL OR a.id = :agent) AND {within("s")}
"""
SELECT_PLACE_OF_AGENT: Final = f"""
SELECT (SELECT key FROM agents WHERE owner = :owner AND id = :agent), NULL, {PROJECT_KEY}, {NEXT_KEY}
"""
SELECT_KEY: Final = f"""
SELECT key FROM records WHERE (id = :id OR (key = :number AND type = 'message')) AND {owned("records")}
"""
SELECT_PROJECT_KEY: Final = f"SELECT {PROJECT_KEY}"
SELECT_STORED: Final = f"SELECT {STORED_COLUMNS} FROM records r WHERE r.key = :key"
SELECT_EFFECTS: Final = f"SELECT {STORED_COLUMNS} FROM records r WHERE r.caused_by = :key"
UPDATE_COUNTERS: Final = """
UPDATE sessions SET
    hidden_count = hidden_count + :hidden, pin_count = pin_count + :pins, summary_count = summary_count + :summaries,
    importance_sum = importance_sum + :importance, revision = revision + 1
WHERE key = :session_key
"""
# Only if no other message of the session named the same model.
UPDATE_MODEL: Final = """
UPDATE sessions SET model = (
    SELECT json_extract(r.attributes, '$.model_id') FROM records r
    WHERE r.session_key = :session_key AND r.type = 'message' AND json_extract(r.attributes, '$.model_id') IS NOT NULL
    ORDER BY r.seq DESC LIMIT 1
) WHERE key = :session_key AND model = :model
"""
UPDATE_WRITTEN: Final = """
UPDATE sessions SET updated_at = max(updated_at, :now_ms), revision = revision + 1 + :records WHERE key = :session_key
"""
UPSERT_USAGE: Final = f"""
INSERT INTO record_usage (record_key, usage_count, last_used)
SELECT r.key, json_extract(:counts, used.fullkey), :used_at FROM json_each(:ids) used CROSS JOIN records r
    ON r.key = coalesce(json_extract(:numbers, used.fullkey), (SELECT key FROM records WHERE id = used.value))
WHERE r.purged_at IS NULL AND {owned("r")}
ON CONFLICT (record_key) DO UPDATE SET
    usage_count = usage_count + excluded.usage_count, last_used = max(last_used, excluded.last_used)
"""
DELETE_EDITS: Final = "DELETE FROM memory_edits WHERE record_key = :key"
DELETES_OF_RECORD: Final = (
    DELETE_EDITS,
    "DELETE FROM record_usage WHERE record_key = :key",
    "DELETE FROM feedback WHERE record_key = :key",
)
DELETE_RECORD: Final = "DELETE FROM records WHERE key = :key"
