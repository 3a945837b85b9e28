"""A record with every field that it has, whatever its type, and the edits that made it what it is. Pure.

What may be edited is the record's `content`: a flat mapping of field names to JSON values, in which an absent field
and None are the same. An edit keeps, for each field it changed, the value from before: version n is the record as it
is, with the edits after n undone, newest first. So nothing is stored twice, and a record that nobody has edited has no
edits but its creation.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from kalito_mcp.domain.records import Origin, RecordType, Role, Visibility

DELETED_AT: Final = "deleted_at"
"""The field of `content` that says since when a record is forgotten, in milliseconds; absent where it is not."""

AUTO_KEY: Final = "auto:"
"""How the client_key of a pin begins that the memory found by itself; a digest of 32 hex digits follows. No caller may
give a pin such a key."""
_FOUND: Final = re.compile(f"{AUTO_KEY}[0-9a-f]{{32}}")


class EditType(StrEnum):
    """What an edit did."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    RESTORE = "restore"
    REVERT = "revert"


class EditorType(StrEnum):
    """Who edited."""

    HUMAN = "human"
    AGENT = "agent"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class Editor:
    """Who edits: the person at the command line, an assistant with its host's name, or the memory itself."""

    type: EditorType
    id: str | None = None


SYSTEM_EDITOR: Final = Editor(EditorType.SYSTEM, "kalito")


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """One remembered thing.

    `content` holds what may be edited: `text`, `importance_score`, `tags`, `critical`, `visibility`, `caused_by` (a
    record's id), `deleted_at`, and the fields of its type. `revision` is the number of its version, from 1. `client` is
    the host that wrote it. `created_at` is when it was said, `recorded_at` when it was stored. `led_to` are the records
    that name it as their cause.
    """

    key: int
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
    redacted: tuple[str, ...] = field(default=(), compare=False)
    """What was not kept of what the call that returns this was given; nothing where it is read."""

    @property
    def text(self) -> str:
        """What it says."""
        return str(self.content["text"])

    @property
    def is_deleted(self) -> bool:
        """Whether it is forgotten, and can be restored."""
        return self.content.get(DELETED_AT) is not None

    @property
    def visibility(self) -> Visibility:
        """Whether it may come into a chat."""
        return Visibility(self.content.get("visibility", Visibility.CHAT))

    @property
    def is_automatic(self) -> bool:
        """Whether it is a pin that the memory found by itself in a message."""
        # Databases may hold keys of callers that begin so too: with a host's name, or of another shape.
        is_found = self.client is None and _FOUND.fullmatch(self.client_key or "") is not None
        return is_found and self.type is RecordType.PIN

    @property
    def version_id(self) -> str:
        """`<id>@<revision>`."""
        return f"{self.id}@{self.revision}"


@dataclass(frozen=True, slots=True)
class RecordDraft:
    """A thought, document or task ready to be written. `session_id` None belongs to the agent as a whole."""

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
    """An edit ready to be written: the record's whole new content, counted as its text is now."""

    type: EditType
    editor: Editor
    edited_at: int
    content: Mapping[str, Any]
    tokens: int


@dataclass(frozen=True, slots=True)
class StoredEdit:
    """An edit as kept: it made `version`, and `before` has the changed fields as they were in the version before."""

    version: int
    type: EditType
    editor: Editor
    edited_at: int
    before: Mapping[str, Any] = field(default_factory=dict[str, Any])


def versions(record: MemoryRecord, edits: Sequence[StoredEdit]) -> list[tuple[StoredEdit, Mapping[str, Any]]]:
    """Every version of the record, oldest first: the edit that made it, and its content. `edits` has the stored ones,
    oldest first; the creation is told by the record itself."""
    content: Mapping[str, Any] = dict(record.content)
    found: list[tuple[StoredEdit, Mapping[str, Any]]] = []
    for edit in reversed(edits):
        found.append((edit, content))
        content = with_changes(content, edit.before)
    first = record.revision - len(edits)
    found.append((StoredEdit(first, EditType.CREATE, _creator(record, content), record.recorded_at), content))
    return found[::-1]


def _creator(record: MemoryRecord, content: Mapping[str, Any]) -> Editor:
    """Who made the record: the memory itself its automatic pins and summaries, else whose words it has."""
    is_summary = record.type is RecordType.SUMMARY and content.get("method") != "caller"
    if is_summary or record.is_automatic:
        return SYSTEM_EDITOR
    # What a person hands in has no client, and need not be in their words.
    is_handed_in = record.origin in (Origin.DOCUMENT, Origin.IMPORT) and record.client is None
    is_human = record.origin is Origin.USER or is_handed_in
    return Editor(EditorType.HUMAN if is_human else EditorType.AGENT, record.client)


def with_changes(content: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The content with fields replaced, and those that became None left out."""
    return {name: value for name, value in {**content, **changes}.items() if value is not None}


def changed_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that differ, with their values before: None where there was none."""
    return {name: before.get(name) for name in sorted({*before, *after}) if before.get(name) != after.get(name)}
