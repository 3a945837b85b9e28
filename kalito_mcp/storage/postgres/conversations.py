"""Statements on the messages, pins and summaries of a session."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kalito_mcp.storage.conversation_rows import RECORD_COLUMNS
from kalito_mcp.storage.postgres.queries import within
from kalito_mcp.storage.postgres.record_statements import (
    STORED_COLUMNS,
)
from kalito_mcp.storage.postgres.superseded import NOT_SUPERSEDED
from kalito_mcp.storage.queries import SqlTransaction

_OF_SESSION: Final = (
    f"SELECT {RECORD_COLUMNS} FROM records r WHERE r.owner_key = :owner AND r.session_key = :session_key"
)
_IN_VIEW: Final = "r.deleted_at IS NULL AND (r.is_internal = 0 OR :include_internal)"
SELECT_VIEW: Final = f"""
SELECT * FROM (
    ({_OF_SESSION} AND r.type = 'message' AND {_IN_VIEW} ORDER BY r.seq DESC LIMIT :tail)
    UNION ALL (
        {_OF_SESSION} AND r.type = 'pin' AND {_IN_VIEW} AND {NOT_SUPERSEDED}
        ORDER BY r.importance DESC, r.created_at DESC, r.key DESC LIMIT :pins
    )
    UNION ALL ({_OF_SESSION} AND r.type = 'summary' AND r.is_covered = 0 AND {_IN_VIEW})
) found
ORDER BY type, CASE type WHEN 'message' THEN -seq ELSE seq END,
    CASE type WHEN 'pin' THEN importance END DESC, created_at DESC, key DESC
"""
SELECT_MESSAGES: Final = f"""
{_OF_SESSION} AND r.type = 'message' AND r.seq BETWEEN :first_seq AND :last_seq ORDER BY r.seq
"""
SELECT_MESSAGE: Final = f"""
SELECT s.id, {RECORD_COLUMNS} FROM records r JOIN sessions s ON s.owner_key = :owner AND s.key = r.session_key
WHERE r.owner_key = :owner AND r.key = :number AND r.type = 'message' AND (:session IS NULL OR s.id = :session)
    AND {within("s")}
"""
# Read by key (OFFSET): a plan by session might read all messages of a long one.
_OF_KEYS: Final = "(SELECT * FROM records WHERE owner_key = :owner AND key = ANY(:keys) OFFSET 0) r"
SELECT_MESSAGES_BY_NUMBER: Final = f"""
SELECT {RECORD_COLUMNS} FROM {_OF_KEYS} WHERE r.session_key = :session_key AND r.type = 'message' ORDER BY r.seq
"""
SELECT_SUMMARIES: Final = f"""
{_OF_SESSION} AND r.type = 'summary' AND r.level = :level AND r.seq > :after_seq ORDER BY r.seq
"""
SELECT_UNCOVERED_SUMMARIES: Final = f"{_OF_SESSION} AND r.type = 'summary' AND r.is_covered = 0 ORDER BY r.seq"
SELECT_PIN_BY_CLIENT_KEY: Final = f"{_OF_SESSION} AND r.type = 'pin' AND r.client_key = :client_key"
SELECT_SUMMARY_BY_CLIENT_KEY: Final = f"{_OF_SESSION} AND r.type = 'summary' AND r.client_key = :client_key"
SELECT_LEVEL_END: Final = """
SELECT end_seq FROM records
WHERE owner_key = :owner AND session_key = :session_key AND type = 'summary' AND level = :level
ORDER BY seq DESC LIMIT 1
"""
# The owner is locked before this statement, so the keys of one owner ascend. It returns them with the keys of the
# session's agent and project.
_TAKE_KEYS: Final = """
, of_agent AS (
    UPDATE agents SET record_count = record_count + :records::bigint
    WHERE owner_key = :owner AND key = (SELECT agent_key FROM counted)
)
SELECT agent_key, project_key, ARRAY(SELECT nextval('record_keys') FROM generate_series(1, :records::bigint))
FROM counted
"""
UPDATE_COUNTERS_OF_MESSAGES: Final = f"""
WITH counted AS (
    UPDATE sessions SET
        message_count = message_count + :records::bigint,
        importance_sum = importance_sum + :importance,
        model = coalesce(:model, model),
        oldest_message_at = least(oldest_message_at, :oldest),
        newest_message_at = greatest(newest_message_at, :newest),
        updated_at = :now_ms, revision = revision + 1
    WHERE owner_key = :owner AND key = :session_key
    RETURNING agent_key, project_key
){_TAKE_KEYS}
"""
UPDATE_COUNTERS_OF_PINS: Final = f"""
WITH counted AS (
    UPDATE sessions SET
        pin_count = pin_count + :records::bigint, updated_at = greatest(updated_at, :now_ms), revision = revision + 1
    WHERE owner_key = :owner AND key = :session_key
    RETURNING agent_key, project_key
){_TAKE_KEYS}
"""
UPDATE_COVERED: Final = """
UPDATE records SET is_covered = 1
WHERE owner_key = :owner AND session_key = :session_key AND type = 'summary' AND level = :level::bigint - 1
    AND seq BETWEEN :start_seq AND :end_seq
"""
UPDATE_COUNTERS_OF_SUMMARIES: Final = f"""
WITH counted AS (
    UPDATE sessions SET
        summary_count = summary_count + :records::bigint,
        summarized_seq = CASE WHEN :level::bigint = 0 THEN :end_seq ELSE summarized_seq END,
        revision = revision + 1
    WHERE owner_key = :owner AND key = :session_key
    RETURNING agent_key, project_key
){_TAKE_KEYS}
"""
SELECT_SCORED: Final = f"""
SELECT {STORED_COLUMNS} FROM {_OF_KEYS}
WHERE r.session_key = :session_key AND r.type = 'message' AND r.deleted_at IS NULL
"""
UPDATE_IMPORTANCE_SUM: Final = """
UPDATE sessions SET importance_sum = importance_sum + :change, revision = revision + 1
WHERE owner_key = :owner AND key = :session_key
"""


async def counted(
    transaction: SqlTransaction, statement: str, parameters: Mapping[str, Any]
) -> tuple[int, int | None, Sequence[int]]:
    """Count new records. The keys of the session's agent and project, and a key for each record."""
    [[agent_key, project_key, keys]] = await transaction.all(statement, **parameters)
    return agent_key, project_key, keys
