"""The schema of each record type: what may be sent, what is stored, and what is shown. Pure.

Input names may be snake_case or camelCase. All fields are checked together: one refusal lists up to five faults. Stored
and shown fields are flat and in snake_case. Each meaning has one stored name: `visibility` for `is_internal_message`
and `not_for_chat`, and `importance_score` for the level `importance`. The other names are accepted as input. The fields
themselves are in `fields.py`.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any, Final

from kalito_mcp.domain.importance import ImportanceLevel, importance_level, score_of_level
from kalito_mcp.domain.memory_records import DELETED_AT, EditType, MemoryRecord, StoredEdit, with_changes
from kalito_mcp.domain.records import Reach, RecordType, Visibility
from kalito_mcp.domain.statements import HOLDS_WITH, KEPT_AT
from kalito_mcp.domain.tasks import TaskPriority, TaskStatus, checked_transition, importance_of
from kalito_mcp.domain.time import to_iso
from kalito_mcp.domain.validation import LimitsPolicy, check_lengths, checked_text
from kalito_mcp.domain.wording import camel_case, did_you_mean, shown
from kalito_mcp.errors import InvalidInput
from kalito_mcp.records.diffs import diff_summary

MEMORY_EDITS: Final = "memory_edits"
"""The `type` of a shown edit: the specification's name of the collection."""

_HIDING: Final = ("is_internal_message", "not_for_chat")
_INPUT_ONLY: Final = ("importance", *_HIDING)
_NEVER_SENT: Final = ("chunk_index", "total_chunks")
_TEXT_ALIASES: Final[Mapping[RecordType, str]] = {RecordType.PIN: "content", RecordType.SUMMARY: "summary"}

_MAX_FAULTS: Final = 5
_RULED: Final = ("status", "priority", "completed_at")
"""Fields of a task that its rules also read when another field is sent."""

_COUNTED: Final = "the memory counts how often a context or a search returns the record; leave it out"
_PLACE: Final = "a record stays where it was recorded; leave it out"
_MOMENT: Final = "the timestamp is fixed; leave it out, and put other dates in the text"
_FORGET: Final = "forget the record to hide it, restore it to show it again"
_DECIDED: Final = "only a person decides that, on the page of what is known; leave it out"
_PARTS: Final = "it depends on how the document was split; remember the document again from the same source"
_RANGE: Final = "it depends on the summarised messages; only the text of a summary can be edited"
_READ_ONLY: Final[Mapping[str, str]] = {
    "id": "ids are assigned by the memory; leave it out",
    "type": "a record keeps its type; leave it out, or remember the text as a new record of the other type",
    "metadata": "there is no such object; send its fields where metadata is now",
    "timestamp": _MOMENT,
    "created_at": _MOMENT,
    "recorded_at": _MOMENT,
    "agent_id": _PLACE,
    "session_id": _PLACE,
    "seq": _PLACE,
    "user_id": "it is who is logged in; leave it out",
    "origin": "the memory records where the text came from; leave it out",
    "client": "the memory records which host wrote it; leave it out",
    "client_key": "send it when the record is created, next to fields",
    "revision": "every edit increases it; send expected_revision next to the changes to name the one you read",
    "project": "send it next to fields, when the record is created",
    "led_to": "it is derived from caused_by; set caused_by on the record that this one led to",
    "usage_count": _COUNTED,
    "last_used": _COUNTED,
    "is_deleted": _FORGET,
    DELETED_AT: _FORGET,
    KEPT_AT: _DECIDED,
    HOLDS_WITH: _DECIDED,
}
_READ_ONLY_OF_TYPE: Final[Mapping[RecordType, Mapping[str, str]]] = {
    RecordType.DOCUMENT: {"document_id": _PARTS},
    RecordType.SUMMARY: dict.fromkeys(
        (
            "method model_id level message_count start_message_id end_message_id"
            " start_seq end_seq first_message last_message started_at ended_at"
        ).split(),
        _RANGE,
    ),
}
_OF_SESSION: Final = "it is the session's; `kalito-mcp project move` moves the session"
_MOVABLE: Final = frozenset({RecordType.THOUGHT, RecordType.DOCUMENT, RecordType.TASK})
_FIXED: Final[Mapping[RecordType, Mapping[str, str]]] = {
    RecordType.MESSAGE: {"role": "the sender of a message is fixed; leave it out"},
    RecordType.DOCUMENT: {
        "source": "it identifies the document; forget this document and remember it from its new source",
        "chunk_index": _PARTS,
        "total_chunks": _PARTS,
    },
}
"""Fields that may be sent when a record is created, and are read-only afterwards."""


def check_size(record_type: RecordType, fields: Mapping[str, Any], limits: LimitsPolicy) -> None:
    """Refuse a new record with a text that is too long. Raises TextTooLarge."""
    limit = limits.max_document_bytes if record_type is RecordType.DOCUMENT else limits.max_text_bytes
    check_lengths(fields, limit)
    text = fields.get("text")
    if isinstance(text, str):
        checked_text(text, "text", max_bytes=limit)


@cache
def field_names() -> frozenset[str]:
    """The names of all fields that a record of some type may be given, in snake_case and in camelCase."""
    from kalito_mcp.records.fields import FIELDS  # noqa: PLC0415 - as below

    names = {name for fields in FIELDS.values() for name in fields.model_fields} | {*_INPUT_ONLY}
    return frozenset(names) | frozenset(map(camel_case, names))


def fields_schema(record_type: RecordType) -> dict[str, Any]:
    """The JSON schema of the fields of a new record, except those that are separate arguments."""
    from kalito_mcp.records.fields import FIELDS  # noqa: PLC0415 - as below

    schema = FIELDS[record_type].model_json_schema()
    apart = {"text", "role", "name", "model_id", "token_usage", "project", *_NEVER_SENT}
    apart |= {"caused_by"} if record_type is RecordType.MESSAGE else set()
    properties = {name: one for name, one in schema["properties"].items() if name not in apart}
    return {**schema, "properties": properties}


def checked_content(record_type: RecordType, fields: Mapping[str, Any], *, now_ms: int | None = None) -> dict[str, Any]:
    """Check the fields of a new record and return its content. None means absent, and default values (no tags, not
    critical, visible in chats) are left out. A task created as completed gets `now_ms` as `completed_at`. A message's
    content includes its `role`, and its importance only if it was sent: otherwise the recorder scores its text.

    Raises:
        InvalidInput: a field is unknown, read-only, missing or wrong; the message says which, and what to send.
    """
    from kalito_mcp.records.fields import checked  # noqa: PLC0415 - needs pydantic; reading does not

    given, faults = _named(record_type, fields, _read_only(record_type))
    content, more = checked(record_type, with_changes({}, given))
    _refuse([*faults, *more])
    if record_type is RecordType.MESSAGE and given.get("importance_score") is None:
        del content["importance_score"]
    if now_ms is not None and content.get("status") == TaskStatus.COMPLETED:
        content.setdefault("completed_at", to_iso(now_ms))
    return content


def checked_changes(record: MemoryRecord, changes: Mapping[str, Any], *, now_ms: int) -> dict[str, Any]:
    """Check these changes and return the whole new content. None removes a field, or resets it to its default.

    Other fields do not change, with two exceptions: a task's `completed_at` follows its status, and its importance
    follows its priority until somebody sets it. No changes return an equal content.

    Raises:
        InvalidInput: a field is unknown, read-only, missing or wrong; the message says which, and what to send.
        Conflict: the task cannot move to this status.
    """
    from kalito_mcp.records.fields import FIELDS, checked  # noqa: PLC0415 - as above

    fixed = _FIXED.get(record.type, {})
    stored = dict(record.content)
    read_only = {**_read_only(record.type), **fixed}
    if record.session_id is not None:
        read_only["project"] = _OF_SESSION
    elif record.type in _MOVABLE:
        del read_only["project"]
    given, faults = _named(record.type, changes, read_only, stored=stored)
    dependent = _dependent_changes(stored, given) if record.type is RecordType.TASK else {}
    # Check only what is sent, with the stored fields it depends on: these were checked when they were stored.
    needed = {name for name, field in FIELDS[record.type].model_fields.items() if field.is_required()}
    known = {name: value for name, value in stored.items() if name in needed or name in _RULED}
    if record.role is not None:
        known["role"] = record.role
    content, more = checked(record.type, with_changes(known, {**dependent, **given}))
    _refuse([*faults, *more, *_faults_of_scope(stored, given)])
    touched = {name: content.get(name) for name in {*given, *dependent}}
    if record.type is RecordType.TASK:
        checked_transition(TaskStatus(stored["status"]), TaskStatus(content["status"]))
        if content["status"] == TaskStatus.COMPLETED and content.get("completed_at") is None:
            touched["completed_at"] = to_iso(now_ms)
    if record.session_id is None and touched.get("scope") == Reach.PERSON:
        touched["project"] = None
    return with_changes(stored, touched)


def _faults_of_scope(stored: Mapping[str, Any], given: Mapping[str, Any]) -> list[str]:
    """Why the record cannot have this scope together with its parts or with this project."""
    scope = given.get("scope", stored.get("scope"))
    if given.get("scope") and stored.get("total_chunks", 1) > 1:
        return ["scope is for pins and notes, and this document has several parts; pin what matters of it"]
    if scope == Reach.PERSON and given.get("project") is not None:
        return ["what is the person's is of no project; send scope='project' with project"]
    return []


def edit_as_shown(
    record: MemoryRecord, edit: StoredEdit, *, before: Mapping[str, Any], after: Mapping[str, Any]
) -> dict[str, Any]:
    """One edit of the record, JSON-ready, without fields that are None: the specification's memory edit.

    `after` is the content that the edit made, and `before` the content before it, empty for the creation.
    """
    fields = {
        "id": f"{record.id}@{edit.version}",
        "type": MEMORY_EDITS,
        "timestamp": to_iso(edit.edited_at),
        "original_memory_id": record.id,
        "original_type": str(record.type),
        "original_timestamp": to_iso(record.created_at),
        "edit_type": str(edit.type),
        "editor_type": str(edit.editor.type),
        "editor_id": edit.editor.id,
        "diff_summary": diff_summary(before, after),
        "version": edit.version,
        "current": edit.version == record.revision,
        "previous_version_id": f"{record.id}@{edit.version - 1}" if edit.type is not EditType.CREATE else None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _read_only(record_type: RecordType) -> dict[str, str]:
    reasons = {**_READ_ONLY, **_READ_ONLY_OF_TYPE.get(record_type, {})}
    if record_type is RecordType.THOUGHT:
        del reasons["agent_id"]
    return reasons


def _named(
    record_type: RecordType,
    fields: Mapping[str, Any],
    read_only: Mapping[str, str],
    *,
    stored: Mapping[str, Any] | None = None,
) -> tuple[dict[str, Any], list[str]]:
    """The fields under their stored names, and the faults of names, visibility and importance."""
    from kalito_mcp.records.fields import FIELDS  # noqa: PLC0415 - as above

    writable = [*FIELDS[record_type].model_fields, *_INPUT_ONLY]
    names = {camel_case(name): name for name in (*writable, *read_only)} | {
        name: name for name in (*writable, *read_only)
    }
    if record_type in _TEXT_ALIASES:
        names[_TEXT_ALIASES[record_type]] = "text"
    given: dict[str, Any] = {}
    faults: list[str] = []
    for sent, value in fields.items():
        name = names.get(sent)
        if name is None:
            faults.append(_unknown_field(sent, [one for one in writable if one not in (*read_only, *_NEVER_SENT)]))
        elif name in read_only:
            faults.append(f"{name} cannot be set: {read_only[name]}")
        elif name in given and given[name] != value:
            faults.append(f"{name} was sent twice, with two values; send it once")
        else:
            given[name] = value if name == "text" else _without_empty(value)
    faults += _settle_visibility(given)
    faults += _settle_importance(given, stored)
    return given, faults


def _without_empty(value: Any) -> Any:
    """The value without empty strings: "" means None, and in a list nothing."""
    if isinstance(value, list):
        return [one for one in value if one not in ("", None)]
    return None if value == "" else value


def _settle_visibility(given: dict[str, Any]) -> list[str]:
    """Replace the two flags by the `visibility` they mean. Returns the faults."""
    flags = {name: given.pop(name) for name in _HIDING if name in given}
    faults = [
        f"{name} must be true or false, not {shown(value)}"
        for name, value in flags.items()
        if not isinstance(value, bool | None)
    ]
    meant = {Visibility.INTERNAL if value else Visibility.CHAT for value in flags.values() if value is not None}
    if faults or not meant:
        return faults
    if len(meant) > 1 or given.get("visibility") not in (None, *meant):
        return [f"{', '.join(flags)} and visibility contradict each other; send only visibility: 'chat' or 'internal'"]
    given["visibility"] = meant.pop()
    return []


def _settle_importance(given: dict[str, Any], stored: Mapping[str, Any] | None) -> list[str]:
    """Replace the level by a score: the stored one if it has this level, else the level's own. Returns the faults."""
    level = given.pop("importance", None)
    if level is None:
        return []
    if level not in tuple(ImportanceLevel):
        return [f"importance must be 'low', 'medium', 'high' or 'critical', not {shown(level)}"]
    if "importance_score" not in given:
        score = None if stored is None else stored["importance_score"]
        has_level = score is not None and importance_level(score) == level
        given["importance_score"] = score if has_level else score_of_level(level)
        return []
    score = given["importance_score"]
    if not isinstance(score, int | float) or score != score:  # noqa: PLR0124 - NaN, refused later with the values
        return []
    meant = str(importance_level(min(max(score, 0.0), 1.0)))
    if meant == level:
        return []
    return [f"importance={level!r} contradicts importance_score={shown(score)}, which is {meant!r}; send one of them"]


def _dependent_changes(stored: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The changes to other fields of a task when its status or priority changes."""
    dependent: dict[str, Any] = {}
    if given.get("status", TaskStatus.COMPLETED) != TaskStatus.COMPLETED:
        dependent["completed_at"] = None
    if "priority" in given and stored["importance_score"] == importance_of(TaskPriority(stored["priority"])):
        dependent["importance_score"] = None
    return dependent


def _refuse(faults: Sequence[str]) -> None:
    """Raise InvalidInput with the first five faults and the number of the others. No faults: do nothing."""
    listed = list(faults[:_MAX_FAULTS])
    if len(faults) > _MAX_FAULTS:
        listed.append(f"and {len(faults) - _MAX_FAULTS} more")
    if listed:
        raise InvalidInput("; ".join(listed))


def _unknown_field(name: object, known: Collection[str]) -> str:
    """The fault of a field that does not exist. It names the nearest known field, or all of them."""
    return f"unknown field {shown(name)}{did_you_mean(str(name)[:100].lower(), list(known))}"
