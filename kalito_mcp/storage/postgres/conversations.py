"""Statements on the messages, pins and summaries of a session."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kalito_mcp.storage.conversation_rows import RECORD_COLUMNS, Row
from kalito_mcp.storage.postgres.queries import within
from kalito_mcp.storage.postgres.record_statements import (
    STORED_COLUMNS,
)
from kalito_mcp.storage.postgres.superseded import NOT_SUPERSEDED
from kalito_mcp.storage.postgres.text_index import TextIndexStatements, storing
from kalito_mcp.text.analysis import IndexedText

if TYPE_CHECKING:
    from kalito_mcp.storage.postgres.transactions import Transaction

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
# They store the records, too.
UPDATE_COUNTERS_OF_MESSAGES: Final = storing("""
    message_count = message_count + :records::bigint,
    importance_sum = importance_sum + :importance,
    model = coalesce(:model, model),
    oldest_message_at = least(oldest_message_at, :oldest),
    newest_message_at = greatest(newest_message_at, :newest),
    updated_at = :now_ms
""")
UPDATE_COUNTERS_OF_PINS: Final = storing("""
    pin_count = pin_count + :records::bigint, updated_at = greatest(updated_at, :now_ms)
""")
UPDATE_COUNTERS_OF_SUMMARIES: Final = storing("""
    summary_count = summary_count + :records::bigint,
    summarized_seq = CASE WHEN :level::bigint = 0 THEN :end_seq ELSE summarized_seq END
""")
UPDATE_COVERED: Final = """
UPDATE records SET is_covered = 1
WHERE owner_key = :owner AND session_key = :session_key AND type = 'summary' AND level = :level::bigint - 1
    AND seq BETWEEN :start_seq AND :end_seq
"""
SELECT_SCORED: Final = f"""
SELECT {STORED_COLUMNS} FROM {_OF_KEYS}
WHERE r.session_key = :session_key AND r.type = 'message' AND r.deleted_at IS NULL
"""
UPDATE_IMPORTANCE_SUM: Final = """
UPDATE sessions SET importance_sum = importance_sum + :change, revision = revision + 1
WHERE owner_key = :owner AND key = :session_key
"""


async def stored(
    transaction: "Transaction",
    statement: str,
    parameters: Mapping[str, Any],
    entries: Sequence[tuple[Row, IndexedText]],
) -> Sequence[int]:
    """Store new records of a session with their index entries, and count them. Returns their keys."""
    return await TextIndexStatements(transaction).store(statement, entries, **parameters)
