"""Statements on the messages, pins and summaries of a session."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kalito_mcp.storage.conversation_rows import RECORD_COLUMNS, Row, placed
from kalito_mcp.storage.sqlite.queries import Transaction, within
from kalito_mcp.storage.sqlite.record_statements import NEXT_KEY, STORED_COLUMNS, UPDATE_AGENT_COUNT, new_keys
from kalito_mcp.storage.sqlite.superseded import NOT_SUPERSEDED
from kalito_mcp.storage.sqlite.text_index import TextIndexStatements
from kalito_mcp.text.analysis import IndexedText

SELECT_VIEW: Final = f"""
SELECT * FROM (
    SELECT {RECORD_COLUMNS} FROM records r
    WHERE r.session_key = :session_key AND r.type = 'message' AND r.deleted_at IS NULL
        AND (r.is_internal = 0 OR :include_internal)
    ORDER BY r.seq DESC LIMIT :tail
)
UNION ALL SELECT * FROM (
    SELECT {RECORD_COLUMNS} FROM records r
    WHERE r.session_key = :session_key AND r.type = 'pin' AND r.deleted_at IS NULL
        AND (r.is_internal = 0 OR :include_internal) AND {NOT_SUPERSEDED}
    ORDER BY r.importance DESC, r.created_at DESC, r.key DESC LIMIT :pins
)
UNION ALL SELECT * FROM (
    SELECT {RECORD_COLUMNS} FROM records r
    WHERE r.session_key = :session_key AND r.type = 'summary' AND r.is_covered = 0 AND r.deleted_at IS NULL
        AND (r.is_internal = 0 OR :include_internal)
    ORDER BY r.seq
)
"""
SELECT_MESSAGES: Final = f"""
SELECT {RECORD_COLUMNS} FROM records r
WHERE r.session_key = :session_key AND r.type = 'message' AND r.seq BETWEEN :first_seq AND :last_seq ORDER BY r.seq
"""
SELECT_MESSAGE: Final = f"""
SELECT s.id, {RECORD_COLUMNS} FROM records r JOIN sessions s ON s.key = r.session_key
WHERE r.key = :number AND r.type = 'message' AND s.owner = :owner AND (:session IS NULL OR s.id = :session)
    AND {within("s")}
"""
SELECT_MESSAGES_BY_NUMBER: Final = f"""
SELECT {RECORD_COLUMNS} FROM records r
WHERE r.key IN (SELECT value FROM json_each(:keys)) AND r.session_key = :session_key AND r.type = 'message'
ORDER BY r.seq
"""
SELECT_SUMMARIES: Final = f"""
SELECT {RECORD_COLUMNS} FROM records r
WHERE r.session_key = :session_key AND r.type = 'summary' AND r.level = :level AND r.seq > :after_seq
ORDER BY r.seq
"""
SELECT_UNCOVERED_SUMMARIES: Final = f"""
SELECT {RECORD_COLUMNS} FROM records r
WHERE r.session_key = :session_key AND r.type = 'summary' AND r.is_covered = 0 ORDER BY r.seq
"""
SELECT_PIN_BY_CLIENT_KEY: Final = f"""
SELECT {RECORD_COLUMNS} FROM records r
WHERE r.session_key = :session_key AND r.type = 'pin' AND r.client_key = :client_key
"""
SELECT_SUMMARY_BY_CLIENT_KEY: Final = f"""
SELECT {RECORD_COLUMNS} FROM records r
WHERE r.session_key = :session_key AND r.type = 'summary' AND r.client_key = :client_key
"""
# They return the keys of the session's agent and project, and the first key of new records.
_TAKE_KEYS: Final = f"RETURNING agent_key, project_key, {NEXT_KEY}"
UPDATE_COUNTERS_OF_MESSAGES: Final = f"""
UPDATE sessions SET
    message_count = message_count + :records,
    importance_sum = importance_sum + :importance,
    model = coalesce(:model, model),
    oldest_message_at = min(coalesce(oldest_message_at, :oldest), :oldest),
    newest_message_at = max(coalesce(newest_message_at, :newest), :newest),
    updated_at = :now_ms, revision = revision + 1
WHERE key = :session_key {_TAKE_KEYS}
"""
UPDATE_COUNTERS_OF_PINS: Final = f"""
UPDATE sessions SET pin_count = pin_count + :records, updated_at = max(updated_at, :now_ms), revision = revision + 1
WHERE key = :session_key {_TAKE_KEYS}
"""
UPDATE_COUNTERS_OF_SUMMARIES: Final = f"""
UPDATE sessions SET
    summary_count = summary_count + :records,
    summarized_seq = CASE WHEN :level = 0 THEN :end_seq ELSE summarized_seq END,
    revision = revision + 1
WHERE key = :session_key {_TAKE_KEYS}
"""
SELECT_LEVEL_END: Final = """
SELECT end_seq FROM records WHERE session_key = :session_key AND type = 'summary' AND level = :level
ORDER BY seq DESC LIMIT 1
"""
UPDATE_COVERED: Final = """
UPDATE records SET is_covered = 1
WHERE session_key = :session_key AND type = 'summary' AND level = :level - 1 AND seq BETWEEN :start_seq AND :end_seq
"""
SELECT_SCORED: Final = f"""
SELECT {STORED_COLUMNS} FROM records r
WHERE r.key IN (SELECT value FROM json_each(:keys)) AND r.session_key = :session_key AND r.type = 'message'
    AND r.deleted_at IS NULL
"""
UPDATE_IMPORTANCE_SUM: Final = """
UPDATE sessions SET importance_sum = importance_sum + :change, revision = revision + 1 WHERE key = :session_key
"""


async def stored(
    transaction: Transaction,
    statement: str,
    parameters: Mapping[str, Any],
    entries: Sequence[tuple[Row, IndexedText]],
) -> Sequence[int]:
    """Store new records of a session with their index entries, and count them. Returns their keys."""
    [[agent_key, project_key, first]] = await transaction.all(statement, **parameters)
    await transaction.all(UPDATE_AGENT_COUNT, agent_key=agent_key, records=len(entries))
    keys = new_keys(first, len(entries))
    rows = placed([row for row, _ in entries], keys, agent_key, project_key)
    await TextIndexStatements(transaction).insert(parameters["owner"], rows, [indexed for _, indexed in entries])
    return keys
