"""A record of any type with all its fields, and its edits. Pure.

Edits change the record's `content`: a flat mapping of field names to JSON values. An absent field equals None. An edit
stores the previous value of each field it changed. To get version n, undo the edits after n, newest first. So nothing
is stored twice, and a record that was never edited stores no edits.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from kalito_mcp.domain.importance import importance_level
from kalito_mcp.domain.records import NOTE_SOURCE, Origin, RecordType, Role, Visibility
from kalito_mcp.domain.scope import NO_LIMITS, PERSONAL, Limits, Scope
from kalito_mcp.domain.time import to_iso

DELETED_AT: Final = "deleted_at"
"""The field of `content` with the moment a record was forgotten, in milliseconds. Absent if it is not forgotten."""

AUTO_KEY: Final = "auto:"
"""Prefix of the client_key of an automatic pin; a digest of 32 hex digits follows. Callers may not give a pin such a
key."""
_AUTOMATIC: Final = re.compile(f"{AUTO_KEY}[0-9a-f]{{32}}")


class EditType(StrEnum):
    """Kinds of edits."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    RESTORE = "restore"
    REVERT = "revert"


class EditorType(StrEnum):
    """Kinds of editors."""

    HUMAN = "human"
    AGENT = "agent"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class Editor:
    """The author of an edit: the person at the command line, an assistant with its host's name, or the memory
    itself. In a space, `user` is the member on whose behalf it is; edits do not store it."""

    type: EditorType
    id: str | None = None
    user: str | None = field(default=None, compare=False)


SYSTEM_EDITOR: Final = Editor(EditorType.SYSTEM, "kalito")
PROGRAM: Final = Editor(EditorType.AGENT, "python")
"""The editor unless the caller names one: a program, whose words are not the user's."""


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """One remembered thing.

    `content` contains what may be edited: `text`, `importance_score`, `tags`, `critical`, `visibility`, `caused_by` (a
    record's id), `deleted_at`, and the fields of its type. `revision` numbers its versions from 1. `client` is the host
    that wrote it. It was said at `created_at` and stored at `recorded_at`. `led_to` lists the records that it caused.
    A personal record has no `project`; a record without a session also has it in its content.
    """

    id: str
    type: RecordType
    agent_id: str
    session_id: str | None
    content: Mapping[str, Any]
    origin: Origin
    client: str | None
    created_at: int
    recorded_at: int
    revision: int
    role: Role | None = None
    seq: int | None = None
    client_key: str | None = None
    usage_count: int = 0
    last_used: int | None = None
    led_to: tuple[str, ...] = ()
    project: str | None = None
    is_known: bool = field(default=False, compare=False)
    """Whether the call that returns this stored nothing, because this says the same. False after a read."""
    redacted: tuple[str, ...] = field(default=(), compare=False)
    """Removed from the input by the call: kinds of secrets, and `private`. Empty after a read."""
    space: str | None = field(default=None, compare=False)
    """The name of the space that it is in, if it was read there by a member."""

    @property
    def text(self) -> str:
        """Its words."""
        return str(self.content["text"])

    @property
    def is_deleted(self) -> bool:
        """Whether it is forgotten. A forgotten record can be restored."""
        return self.content.get(DELETED_AT) is not None

    @property
    def visibility(self) -> Visibility:
        """Whether it may be shown in a chat."""
        return Visibility(self.content.get("visibility", Visibility.CHAT))

    @property
    def is_automatic(self) -> bool:
        """Whether it is a pin that was made automatically from a message."""
        # Old databases may contain callers' pins with this prefix. They have a client, or a key without a digest.
        has_automatic_key = self.client is None and _AUTOMATIC.fullmatch(self.client_key or "") is not None
        return has_automatic_key and self.type is RecordType.PIN

    @property
    def is_note(self) -> bool:
        """Whether it is a note: a document without a source of its own."""
        return str(self.content.get("source", "")).startswith(NOTE_SOURCE)

    @property
    def is_pin(self) -> bool:
        """Whether it is a pin, or a note that contexts show like one: a pin of no conversation is stored as that."""
        return self.type is RecordType.PIN or (self.is_note and self.content.get("scope") is not None)

    @property
    def version_id(self) -> str:
        """`<id>@<revision>`."""
        return f"{self.id}@{self.revision}"

    def to_dict(self, *, owner: str | None = None) -> dict[str, Any]:
        """The record with all its fields, JSON-ready, without fields that are None. Moments are ISO 8601.

        `owner` is the owner of the memory, shown as the `user_id` of a message. `agent_id` is whose memory it is in,
        and `thought_by` the `agent_id` that was sent with a thought. Uses of what is in a space are not counted.
        """
        content = self.content
        is_message = self.type is RecordType.MESSAGE
        fields = {
            "id": self.id,
            "type": str(self.type),
            "text": self.text,
            "timestamp": to_iso(self.created_at),
            "recorded_at": None if self.recorded_at == self.created_at else to_iso(self.recorded_at),
            "space": self.space,
            "project": self.project,
            "session_id": self.session_id,
            "role": None if self.role is None else str(self.role),
            "user_id": owner if is_message else None,
            "seq": self.seq,
            "message_type": "text" if is_message else None,
            **{name: _with_iso_moment(name, value) for name, value in content.items()},
            "agent_id": self.agent_id,
            "thought_by": content.get("agent_id"),
            "importance": str(importance_level(content["importance_score"])),
            "tags": list(content.get("tags") or []),
            "critical": bool(content.get("critical")),
            "visibility": str(self.visibility),
            "usage_count": self.usage_count if self.space is None else None,
            "last_used": None if self.last_used is None else to_iso(self.last_used),
            "caused_by": None if content.get("caused_by") is None else {"record_id": content["caused_by"]},
            "led_to": [{"record_id": one} for one in self.led_to],
            "origin": str(self.origin),
            "client": self.client,
            "client_key": None if self.is_automatic else self.client_key,
            "revision": self.revision,
            "is_deleted": self.is_deleted,
        }
        return {name: value for name, value in fields.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Derived:
    """What was made from records: the ids of the summaries over them, each once, and the pins that still say what the
    records no longer do, each with the id of the record that it was made from."""

    summary_ids: Sequence[str] = ()
    pins: Sequence[tuple[MemoryRecord, str]] = ()


@dataclass(frozen=True, slots=True)
class RecordDraft:
    """A thought, document or task ready to be written."""

    id: str
    type: RecordType
    content: Mapping[str, Any]
    origin: Origin
    client: str | None
    created_at: int
    tokens: int
    client_key: str | None = None


@dataclass(frozen=True, slots=True)
class EditDraft:
    """An edit ready to be written. `content` is the record's whole new content; `tokens` counts its new text."""

    type: EditType
    editor: Editor
    edited_at: int
    content: Mapping[str, Any]
    tokens: int


@dataclass(frozen=True, slots=True)
class StoredEdit:
    """An edit as stored. It made `version`; `before` has the previous values of the fields it changed."""

    version: int
    type: EditType
    editor: Editor
    edited_at: int
    before: Mapping[str, Any] = field(default_factory=dict[str, Any])


def scope_of(owner: str, record: MemoryRecord, limits: Limits = NO_LIMITS) -> Scope:
    """The owner and project of the record, for a caller with these limits."""
    return Scope(owner, record.agent_id, project=record.project or PERSONAL, limits=limits)


def versions(record: MemoryRecord, edits: Sequence[StoredEdit]) -> list[tuple[StoredEdit, Mapping[str, Any]]]:
    """Every version of the record, oldest first: the edit that made it, and its content. `edits` are the stored edits,
    oldest first; the creation is derived from the record."""
    content: Mapping[str, Any] = dict(record.content)
    found: list[tuple[StoredEdit, Mapping[str, Any]]] = []
    for edit in reversed(edits):
        found.append((edit, content))
        content = with_changes(content, edit.before)
    first = record.revision - len(edits)
    found.append((StoredEdit(first, EditType.CREATE, _creator(record, content), record.recorded_at), content))
    return found[::-1]


def texts_ever(record: MemoryRecord, edits: Sequence[StoredEdit]) -> list[str]:
    """The texts of all versions of the record, newest first, each once."""
    return list(dict.fromkeys(str(content["text"]) for _, content in versions(record, edits)[::-1]))


def _creator(record: MemoryRecord, content: Mapping[str, Any]) -> Editor:
    """The maker of the record: the memory for automatic pins and its own summaries, else the one that the origin
    names."""
    is_summary = record.type is RecordType.SUMMARY and content.get("method") != "caller"
    if is_summary or record.is_automatic:
        return SYSTEM_EDITOR
    # A document or an import without a client was added by a person, even if the words are not theirs.
    is_added_by_hand = record.origin in (Origin.DOCUMENT, Origin.IMPORT) and record.client is None
    is_human = record.origin is Origin.USER or is_added_by_hand
    return Editor(EditorType.HUMAN if is_human else EditorType.AGENT, record.client)


def with_changes(content: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The content with these fields replaced, without fields that are None."""
    return {name: value for name, value in {**content, **changes}.items() if value is not None}


def changed_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that differ, with their values before; None if a field was absent."""
    return {name: before.get(name) for name in sorted({*before, *after}) if before.get(name) != after.get(name)}


def _with_iso_moment(name: str, value: Any) -> Any:
    """Convert stored moments to ISO 8601. A task's moments are stored as text already."""
    return to_iso(value) if name.endswith("_at") and isinstance(value, int) else value
