"""Statements on tokens."""

from typing import Final

# A token of a consent counts for the consent: its principal is known by that.
SELECT_ENDS: Final = """
SELECT principal, max(ends) FROM (
    SELECT id AS principal, CASE WHEN revoked_at IS NULL THEN expires_at ELSE 0 END AS ends FROM access_tokens
    WHERE grant_id IS NULL AND id IN (SELECT value FROM json_each(:principals))
    UNION ALL
    SELECT grant_id, CASE WHEN revoked_at IS NULL THEN expires_at ELSE 0 END FROM access_tokens
    WHERE grant_id IN (SELECT value FROM json_each(:principals))
) GROUP BY principal HAVING count(ends) = count(*)
"""
INSERT_ACCESS: Final = """
INSERT INTO access_tokens (
    id, text_hash, prefix, name, kind, owner, permission, agent, project, client, grant_id, resource, created_at,
    expires_at
) VALUES (
    :id, :text_hash, :prefix, :name, :kind, :whose, :permission, :agent, :project, :client, :grant, :resource,
    :created_at, :expires_at
)
"""
UPDATES_OF_USE: Final = (
    "UPDATE access_tokens SET last_used_at = :now_ms WHERE id = :id",
    """
    UPDATE oauth_grants SET last_used_at = :now_ms WHERE id = (SELECT grant_id FROM access_tokens WHERE id = :id)
    """,
)
