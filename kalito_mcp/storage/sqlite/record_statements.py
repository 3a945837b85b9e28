"""Statements that several writers of records share."""

from collections.abc import Iterable, Sequence
from typing import Final

from kalito_mcp.storage.record_rows import STORED_NAMES, Row
from kalito_mcp.storage.sqlite.queries import Transaction

STORED_COLUMNS: Final = f"""
    {", ".join(f"r.{name}" for name in STORED_NAMES)},
    (SELECT coalesce(c.id, 'msg_' || c.key) FROM records c WHERE c.key = r.caused_by) AS cause,
    (SELECT p.id FROM projects p WHERE p.key = r.project_key) AS project
"""
UPDATE_RECORD: Final = """
UPDATE records SET
    seq = :seq, name = :name, text = :text, importance = :importance, tokens = :tokens, client_key = :client_key,
    attributes = :attributes, client = :client, revision = :revision, deleted_at = :deleted_at, purged_at = :purged_at,
    is_internal = :is_internal, is_critical = :is_critical, tags = :tags, caused_by = :caused_by,
    source = :source, document_id = :document_id, project_key = :project_key, reach = :reach, hash = :hash
WHERE key = :key
"""
INSERT_EDIT: Final = """
INSERT INTO memory_edits (record_key, version, edit_type, editor_type, editor_id, changes, edited_at, hash)
VALUES (:record_key, :version, :edit_type, :editor_type, :editor_id, :changes, :edited_at, :hash)
"""
INSERT_RECORD: Final = """
INSERT INTO records (
    key, agent_key, session_key, type, id, seq, end_seq, level, is_covered, role, name, text, importance, tokens,
    created_at, client_key, attributes, hash, origin, client, recorded_at, is_internal, is_critical, tags, caused_by,
    source, document_id, project_key, reach
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
NEXT_KEY: Final = "(SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'records')"
SELECT_OWNERSHIP: Final = "SELECT agent_key, project_key FROM sessions WHERE key = :session_key"
UPDATE_AGENT_COUNT: Final = "UPDATE agents SET record_count = record_count + :records WHERE key = :agent_key"


async def insert(transaction: Transaction, owner: str, rows: Iterable[Row]) -> None:
    """Insert new records, which are rows of `record_rows` or `conversation_rows`."""
    del owner  # their agent says whose they are
    with transaction.stored_once():
        await transaction.connection.executemany(INSERT_RECORD, rows)


def new_keys(first: int, count: int) -> Sequence[int]:
    """The keys of new records, from what the statement that counts them returned."""
    return range(first, first + count)
