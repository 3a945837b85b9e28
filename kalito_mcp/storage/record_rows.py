"""Converts rows of the records table to whole records and back, and rows of edits. Runs no SQL.

`storage.record_fields` says which field of a record's content is in which column.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from kalito_mcp.domain.kinds import Kind
from kalito_mcp.domain.known import KnownRecord
from kalito_mcp.domain.memory_records import (
    DELETED_AT,
    Editor,
    EditorType,
    EditType,
    RecordDraft,
    StoredEdit,
    with_changes,
)
from kalito_mcp.domain.records import Reach, RecordType, Role, message_record_id
from kalito_mcp.storage import record_fields
from kalito_mcp.storage.intact_rows import intact_rows
from kalito_mcp.storage.numbered import NumberedRecord
from kalito_mcp.storage.record_fields import origin_of, stored_origin
from kalito_mcp.storage.row_hash import hash_of_record, row_hash

EDIT_COLUMNS: Final = "e.record_key, e.version, e.edit_type, e.editor_type, e.editor_id, e.changes, e.edited_at"
"""The hash of an edit covers the same columns."""

_EDIT_NAMES: Final = ("record_key", "version", "edit_type", "editor_type", "editor_id", "changes", "edited_at", "hash")

STORED_NAMES: Final = (
    "key agent_key session_key type id seq end_seq level role name text importance tokens created_at client_key "
    "attributes origin client recorded_at revision deleted_at purged_at is_internal is_critical tags caused_by source "
    "document_id project_key reach hash"
).split()
"""Columns of a record, to which `cause` and `project` are added: ids."""

STORED_WIDTH: Final = len(STORED_NAMES) + 2

AT_THE_END: Final = 6
"""Messages of a conversation. Items left open before them are often settled in them."""


class Place(NamedTuple):
    """Where a record belongs, by keys."""

    agent_key: int
    session_key: int | None
    project_key: int | None


Row = Sequence[Any]
StoredRow = dict[str, Any]
"""A row of STORED_NAMES. `caused_by` is the key of the cause and `cause` its id; `project` is the id of the
project."""


def stored(row: Row) -> StoredRow:
    """The first STORED_WIDTH values of a row, by name."""
    return dict(zip((*STORED_NAMES, "cause", "project"), row, strict=False))


def record(row: Row, *, owner: str = "") -> NumberedRecord:
    """A record from a row: STORED_NAMES, cause, project, ids of agent and session, usage, last use, effects as JSON.
    `owner` is for a store that needs it to find the row again."""
    agent_id, session_id, usage_count, last_used, led_to = row[STORED_WIDTH:]
    with intact_rows():
        fields = stored(row)
        kind = RecordType(fields["type"])
        return NumberedRecord(
            key=fields["key"],
            id=fields["id"] or message_record_id(fields["key"]),
            type=kind,
            agent_id=agent_id,
            session_id=session_id,
            project=fields["project"],
            content=content_of(fields),
            origin=origin_of(fields["role"], fields["origin"]),
            client=fields["client"],
            created_at=fields["created_at"],
            recorded_at=fields["created_at"] if fields["recorded_at"] is None else fields["recorded_at"],
            revision=fields["revision"],
            role=None if fields["role"] is None else Role(fields["role"]),
            seq=fields["seq"] if kind is RecordType.MESSAGE else None,
            client_key=fields["client_key"],
            usage_count=usage_count or 0,
            last_used=last_used,
            led_to=tuple(json.loads(led_to)),
            owner=owner,
        )


def known(row: Row) -> KnownRecord:
    """A row of the columns of SELECT_KNOWN, and of who shared it, if that is asked."""
    record_id, kind, reach, text, importance, created_at, tokens, role, origin, session_id, *more = row
    project, attributes, *sharer = more
    with intact_rows():
        said = None if attributes is None else json.loads(attributes).get("kind")
        return KnownRecord(
            record_id=record_id,
            type=RecordType(kind),
            reach=Reach(reach),
            text=text,
            importance=importance,
            created_at=created_at,
            tokens=tokens,
            origin=origin_of(role, origin),
            session_id=session_id,
            project=project,
            kind=None if said is None else Kind(said),
            shared_by=next(iter(sharer), None),
        )


def content_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a record that may be edited."""
    with intact_rows():
        return record_fields.content_of(row)


def with_content(
    row: StoredRow, content: Mapping[str, Any], *, caused_by: int | None, project_key: int | None, tokens: int
) -> StoredRow:
    """The row with other content and a new hash. `caused_by` is the key of the cause. A summary keeps its range."""
    kind, has_project = RecordType(row["type"]), project_key is not None
    kept = {name: row[name] for name in ("level", "seq", "end_seq")} if kind is RecordType.SUMMARY else {}
    return hashed(
        {
            **row,
            **record_fields.fields_of(kind, content, has_project=has_project),
            **kept,
            "tokens": tokens,
            "caused_by": caused_by,
            "project_key": project_key,
            "project": row["project"] if row["session_key"] is not None else project_key and content.get("project"),
        }
    )


def hashed(row: StoredRow) -> StoredRow:
    """The row with the hash of its present values."""
    return {**row, "hash": hash_of_record(row)}


def new_row(key: int, place: Place, draft: RecordDraft, *, caused_by: int | None, now_ms: int) -> StoredRow:
    """The row of a thought, document or task."""
    empty: StoredRow = dict.fromkeys((*STORED_NAMES, "project"))
    return with_content(
        {
            **empty,
            "key": key,
            "agent_key": place.agent_key,
            "session_key": place.session_key,
            "type": str(draft.type),
            "id": draft.id,
            "created_at": draft.created_at,
            "client_key": draft.client_key,
            "origin": stored_origin(None, draft.origin),
            "client": draft.client,
            "recorded_at": None if now_ms == draft.created_at else now_ms,
            "revision": 1,
        },
        with_changes(draft.content, {DELETED_AT: None}),
        caused_by=caused_by,
        project_key=None if draft.content.get("scope") == Reach.PERSON else place.project_key,
        tokens=draft.tokens,
    )


def insert_parameters(row: StoredRow) -> Row:
    """The parameters of INSERT_RECORD for a row of `new_row`."""
    return (
        *(row[name] for name in ("key", "agent_key", "session_key", "type", "id", "seq", "end_seq", "level")),
        None,
        *(row[name] for name in ("role", "name", "text", "importance", "tokens", "created_at", "client_key")),
        *(row[name] for name in ("attributes", "hash", "origin", "client", "recorded_at")),
        *(row[name] for name in ("is_internal", "is_critical", "tags", "caused_by", "source", "document_id")),
        *(row["project_key"], row["reach"]),
    )


def edit_row(
    key: int, version: int, edit_type: EditType, editor: Editor, edited_at: int, before: Mapping[str, Any]
) -> StoredRow:
    """The parameters of INSERT_EDIT."""
    changes = json.dumps(before, ensure_ascii=False, separators=(",", ":"))
    fields = (key, version, str(edit_type), str(editor.type), editor.id, changes, edited_at)
    return dict(zip(_EDIT_NAMES, (*fields, row_hash(*fields)), strict=True))


def stored_edit(row: Row) -> StoredEdit:
    """A row of EDIT_COLUMNS."""
    _, version, edit_type, editor_type, editor_id, changes, edited_at = row
    with intact_rows():
        return StoredEdit(
            version=version,
            type=EditType(edit_type),
            editor=Editor(EditorType(editor_type), editor_id),
            edited_at=edited_at,
            before=json.loads(changes),
        )
