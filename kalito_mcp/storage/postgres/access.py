"""Statements on tokens. They are read before it is known who asks, so their tables have no policy."""

from typing import Final

# A token of a consent counts for the consent: its principal is known by that.
SELECT_ENDS: Final = """
SELECT principal, max(ends) FROM (
    SELECT id AS principal, CASE WHEN revoked_at IS NULL THEN expires_at ELSE 0 END AS ends FROM access_tokens
    WHERE grant_id IS NULL AND id = ANY(:principals::text[])
    UNION ALL
    SELECT grant_id, CASE WHEN revoked_at IS NULL THEN expires_at ELSE 0 END FROM access_tokens
    WHERE grant_id = ANY(:principals::text[])
) AS tokens GROUP BY principal HAVING count(ends) = count(*)
"""
# The consent too learns when the last of its tokens ends, and nobody compares moments with the largest of all.
INSERT_ACCESS: Final = """
WITH consent AS (
    UPDATE oauth_grants
    SET ends_at = greatest(ends_at, coalesce(:expires_at, 9223372036854775807)) WHERE id = :grant
)
INSERT INTO access_tokens (
    id, text_hash, prefix, name, kind, owner, permission, agent, project, client, grant_id, resource, created_at,
    expires_at
) VALUES (
    :id, :text_hash, :prefix, :name, :kind, :whose, :permission, :agent, :project, :client, :grant, :resource,
    :created_at, :expires_at
)
"""
# A use is no change, so it waits for nobody: who has the row changes it, or notes a use at the same moment.
UPDATES_OF_USE: Final = (
    """
WITH used AS (
    UPDATE access_tokens SET last_used_at = :now_ms
    WHERE key = (SELECT key FROM access_tokens WHERE id = :id FOR NO KEY UPDATE SKIP LOCKED)
    RETURNING grant_id
)
UPDATE oauth_grants SET last_used_at = :now_ms
WHERE key = (
    SELECT g.key FROM oauth_grants AS g JOIN used ON used.grant_id = g.id FOR NO KEY UPDATE OF g SKIP LOCKED
)
""",
)
