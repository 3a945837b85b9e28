"""Statements that several writers of records share."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from kalito_mcp.storage.record_rows import STORED_NAMES, Row

STORED_COLUMNS: Final = f"""
    {", ".join(f"r.{name}" for name in STORED_NAMES)},
    (SELECT coalesce(c.id, 'msg_' || c.key) FROM records c WHERE c.owner_key = :owner AND c.key = r.caused_by) AS cause,
    (SELECT p.id FROM projects p WHERE p.owner_key = :owner AND p.key = r.project_key) AS project
"""
UPDATE_RECORD: Final = """
UPDATE records SET
    seq = :seq, name = :name, text = :text, importance = :importance, tokens = :tokens, client_key = :client_key,
    attributes = :attributes, client = :client, revision = :revision, deleted_at = :deleted_at, purged_at = :purged_at,
    is_internal = :is_internal, is_critical = :is_critical, tags = :tags, caused_by = :caused_by,
    source = :source, document_id = :document_id, project_key = :project_key, reach = :reach, hash = :hash
WHERE owner_key = :owner AND key = :key
"""
INSERT_EDIT: Final = """
INSERT INTO memory_edits (owner_key, record_key, version, edit_type, editor_type, editor_id, changes, edited_at, hash)
VALUES (:owner, :record_key, :version, :edit_type, :editor_type, :editor_id, :changes, :edited_at, :hash)
"""
_INSERTED: Final = {
    **dict.fromkeys(("key", "agent_key", "session_key"), "bigint"),
    **dict.fromkeys(("type", "id"), "text"),
    **dict.fromkeys(("seq", "end_seq", "level"), "bigint"),
    "is_covered": "smallint",
    **dict.fromkeys(("role", "name", "text"), "text"),
    "importance": "double precision",
    **dict.fromkeys(("tokens", "created_at"), "bigint"),
    **dict.fromkeys(("client_key", "attributes"), "text"),
    "hash": "bytea",
    **dict.fromkeys(("origin", "client"), "text"),
    "recorded_at": "bigint",
    **dict.fromkeys(("is_internal", "is_critical"), "smallint"),
    "tags": "text",
    "caused_by": "bigint",
    **dict.fromkeys(("source", "document_id"), "text"),
    "project_key": "bigint",
    "reach": "text",
}
"""The columns of a new record, as `record_rows` and `conversation_rows` order them, and their types."""

# A thousand records are 25 ms so, and 140 one by one.
INSERT_RECORDS: Final = f"""
INSERT INTO records (owner_key, {", ".join(_INSERTED)})
SELECT :owner, listed.* FROM unnest({", ".join(f":all_{name}::{of_type}[]" for name, of_type in _INSERTED.items())})
    AS listed
"""
_OF_SESSION: Final = [name for name in _INSERTED if name not in ("key", "agent_key", "project_key")]
"""The columns that are given for a record of a session; the others follow from it."""

_LISTED: Final = f"""unnest(
    {", ".join(f":all_{name}::{_INSERTED[name]}[]" for name in _OF_SESSION)},
    :texts::text[], :word_counts::bigint[], :first_persons::smallint[]
) AS listed ({", ".join(_OF_SESSION)}, terms, word_count, is_first_person)"""
_INSERT_LISTED: Final = f"""
INSERT INTO records (owner_key, key, agent_key, project_key, {", ".join(_OF_SESSION)})
SELECT :owner, added.key, counted.agent_key, CASE WHEN added.reach = 'person' THEN NULL ELSE counted.project_key END,
    {", ".join(f"added.{name}" for name in _OF_SESSION)} FROM added CROSS JOIN counted
"""
INSERTING_OF_SESSION: Final = f"""added AS (
    SELECT nextval('record_keys') AS key, listed.* FROM {_LISTED}
), stored AS ({_INSERT_LISTED})"""
SELECT_OWNERSHIP: Final = "SELECT agent_key, project_key FROM sessions WHERE owner_key = :owner AND key = :session_key"
UPDATE_AGENT_COUNT: Final = """
UPDATE agents SET record_count = record_count + :records WHERE owner_key = :owner AND key = :agent_key
"""


def attribute(alias: str, name: str) -> str:
    """The field of a row's attributes, as text. NULL if PostgreSQL cannot read them, because a text has a NUL."""
    attributes = f"{alias}.attributes"
    return f"(CASE WHEN pg_input_is_valid({attributes}, 'jsonb') THEN {attributes}::jsonb ->> '{name}' END)"


def inserted(rows: Iterable[Row]) -> dict[str, list[Any]]:
    """The parameters of INSERT_RECORDS, for rows of `record_rows` or `conversation_rows`."""
    columns = zip(*rows, strict=True)
    return {f"all_{name}": list(values) for name, values in zip(_INSERTED, columns, strict=True)}


def inserted_of_session(rows: Iterable[Row]) -> dict[str, list[Any]]:
    """The parameters of INSERTING_OF_SESSION, for columns of `conversation_rows`."""
    columns = zip(*rows, strict=True)
    return {f"all_{name}": list(values) for name, values in zip(_OF_SESSION, columns, strict=True)}


def new_keys(taken: Sequence[int], count: int) -> Sequence[int]:
    """The keys of new records, from what the statement that counts them returned."""
    del count
    return taken
