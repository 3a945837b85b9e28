"""How people let programs in: the statements that SQLite takes in its own way."""

from typing import Final

DELETE_UNUSED_CLIENTS: Final = """
DELETE FROM oauth_clients WHERE id IN (
    SELECT id FROM (
        SELECT id, created_at, row_number() OVER (ORDER BY created_at DESC) AS place FROM oauth_clients
        WHERE id NOT IN (SELECT client FROM oauth_grants) AND id NOT IN (SELECT client FROM oauth_requests)
    ) WHERE created_at < :unused_since OR place > :most
)
"""
DELETE_OLDEST_REQUEST: Final = """
DELETE FROM oauth_requests WHERE handle_hash = (
    SELECT handle_hash FROM oauth_requests ORDER BY browser_hash IS NOT NULL, expires_at LIMIT 1
)
"""
DELETE_EXPIRED: Final = (
    "DELETE FROM oauth_requests WHERE expires_at <= :now_ms",
    """
DELETE FROM access_tokens WHERE kind IN ('access', 'refresh') AND expires_at < :day_ago
""",
    "DELETE FROM oauth_codes WHERE expires_at < :day_ago",
    """
DELETE FROM oauth_grants
WHERE created_at < :day_ago AND id NOT IN (SELECT grant_id FROM access_tokens WHERE grant_id IS NOT NULL)
""",
    "DELETE FROM access_attempts WHERE last_at < :day_ago",
    """
DELETE FROM access_attempts WHERE subject IN (
    SELECT subject FROM access_attempts ORDER BY last_at DESC LIMIT -1 OFFSET :most
)
""",
)
