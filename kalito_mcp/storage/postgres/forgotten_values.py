"""Statements on forgotten values."""

from typing import Final

from kalito_mcp.storage.postgres.queries import within

# The order makes PostgreSQL look into the index, where an owner without any is found at once.
SELECT_ANY_FORGOTTEN: Final = "SELECT key FROM forgotten_values WHERE owner_key = :owner ORDER BY key LIMIT 1"
SELECT_IDENTITY_IF_FORGOTTEN: Final = f"SELECT secret FROM identity WHERE ({SELECT_ANY_FORGOTTEN}) IS NOT NULL"
_AGENT: Final = "(SELECT key FROM agents WHERE owner_key = :owner AND id = :agent)"
_PROJECT: Final = "(SELECT key FROM projects WHERE owner_key = :owner AND id = :project)"
_OF_SCOPE: Final = f"""
    owner_key = :owner AND value_hash = ANY(:hashes) AND agent_key = {_AGENT}
    AND (:project IS NULL OR project_key IS NULL OR project_key = {_PROJECT}) AND {within("forgotten_values")}
"""
SELECT_FORGOTTEN: Final = f"""
SELECT value_hash, max(forgotten_at), max(is_erased) FROM forgotten_values WHERE {_OF_SCOPE} GROUP BY value_hash
"""
UPSERT_FORGOTTEN: Final = f"""
INSERT INTO forgotten_values (owner_key, value_hash, agent_key, project_key, forgotten_at, is_erased)
SELECT :owner, value_hash, {_AGENT}, {_PROJECT}, :now_ms, :is_erased::smallint
FROM unnest(:hashes::text[]) AS value_hash
ON CONFLICT (owner_key, value_hash, agent_key, (coalesce(project_key, 0))) DO UPDATE SET
    forgotten_at = excluded.forgotten_at, is_erased = greatest(forgotten_values.is_erased, excluded.is_erased)
"""
DELETE_FORGOTTEN: Final = f"DELETE FROM forgotten_values WHERE {_OF_SCOPE}"
