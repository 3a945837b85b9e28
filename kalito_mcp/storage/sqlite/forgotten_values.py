"""Statements on forgotten values."""

from typing import Final

from kalito_mcp.storage.sqlite.queries import within

SELECT_IDENTITY_IF_FORGOTTEN: Final = "SELECT secret FROM identity WHERE EXISTS (SELECT 1 FROM forgotten_values)"
_AGENT: Final = "(SELECT key FROM agents WHERE owner = :owner AND id = :agent)"
_PROJECT: Final = "(SELECT key FROM projects WHERE owner = :owner AND id = :project)"
_OF_SCOPE: Final = f"""
    value_hash IN (SELECT value FROM json_each(:hashes)) AND agent_key = {_AGENT}
    AND (:project IS NULL OR project_key IS NULL OR project_key = {_PROJECT}) AND {within("forgotten_values")}
"""
SELECT_FORGOTTEN: Final = f"""
SELECT value_hash, max(forgotten_at), max(is_erased) FROM forgotten_values WHERE {_OF_SCOPE} GROUP BY value_hash
"""
UPSERT_FORGOTTEN: Final = f"""
INSERT INTO forgotten_values (value_hash, agent_key, project_key, forgotten_at, is_erased)
SELECT value, {_AGENT}, {_PROJECT}, :now_ms, :is_erased FROM json_each(:hashes) WHERE true
ON CONFLICT (value_hash, agent_key, coalesce(project_key, 0))
DO UPDATE SET forgotten_at = excluded.forgotten_at, is_erased = max(is_erased, excluded.is_erased)
"""
DELETE_FORGOTTEN: Final = f"DELETE FROM forgotten_values WHERE {_OF_SCOPE}"
