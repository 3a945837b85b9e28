"""The fields of each record type, as one model per type that checks their values. Pure.

Only this module of the package needs pydantic. `schemas.py` imports it at the first check, so that commands that only
read start faster.
"""

import json
import re
from collections.abc import Callable, Mapping
from datetime import date
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from kalito_mcp.domain.importance import clamp_importance
from kalito_mcp.domain.kinds import PASSING, Kind
from kalito_mcp.domain.records import (
    PIN_IMPORTANCE,
    SUMMARY_IMPORTANCE,
    PinType,
    Reach,
    RecordType,
    Role,
    Visibility,
    full_record_id,
    message_record_id,
)
from kalito_mcp.domain.tasks import TaskPriority, TaskStatus, importance_of
from kalito_mcp.domain.time import from_iso, moment_as_text, to_iso
from kalito_mcp.domain.validation import message_number
from kalito_mcp.domain.wording import shown
from kalito_mcp.errors import InvalidInput

USUAL_IMPORTANCE: Final = 0.5
"""The importance of a message, a thought or a document for which none was sent."""
MAX_TAGS: Final = 32
MAX_ATTACHMENTS: Final = 32
MAX_ATTACHMENT_BYTES: Final = 65_536
"""The limit for all attachments of a message together, as JSON."""
MAX_RELATED: Final = 100

_LONGEST_NAME: Final = 200
_LONGEST_TAG: Final = 100
_LONGEST_SOURCE: Final = 2_000
_LONGEST_PROJECT: Final = 1_000
_MOST_CHUNKS: Final = 1_000_000
_UNPRINTABLE: Final = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_RECORD_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,99}")
_KEPT_KINDS: Final = [str(kind) for kind in Kind if kind not in PASSING]
_MIME: Final = re.compile(r"[A-Za-z0-9][\w.+-]*/[\w.+*-]+( *;.*)?", re.ASCII)
_EXTENSION: Final = re.compile(r"[a-z0-9][a-z0-9_+\-]{0,19}(\.[a-z0-9]{1,9})?")
_DEFAULTS: Final[Mapping[str, Any]] = {
    "tags": [],
    "critical": False,
    "visibility": Visibility.CHAT,
    "attachments": [],
    "related_to": [],
    "supersedes": [],
    "message_type": "text",
    "scope": Reach.SESSION,
}
"""Values that mean the same as no value, and are not stored."""

_MOST_MESSAGES: Final = 10**18
_WORDS: Final[Mapping[str, str]] = {
    "missing": "is missing; it is required",
    "string_type": "must be a string, not {given}",
    "string_unicode": "has an unpaired surrogate; send valid Unicode",
    "int_type": "must be a whole number, not {given}",
    "float_type": "must be a number, not {given}",
    "bool_type": "must be true or false, not {given}",
    "list_type": "must be a list, not {given}",
    "too_long": "has {actual_length} items; send at most {max_length}",
    "enum": "must be {expected}, not {given}",
    "greater_than_equal": "must be at least {ge}, not {given}",
    "less_than_equal": "must be at most {le}, not {given}",
    "value_error": "{error}",
}
"""Our words for pydantic's error types. Other types keep pydantic's words."""


def _text(value: str) -> str:
    if not value:
        raise ValueError("is empty; send the text to remember")
    if _SURROGATE.search(value):
        raise ValueError("has an unpaired surrogate; send valid Unicode")
    return value


def _line(longest: int) -> Callable[[str], str]:
    """A check of one line of text. It removes white space around the line."""

    def checked(value: str) -> str:
        value = value.strip()
        if not value:
            raise ValueError(f"is empty; send 1 to {longest} characters, or leave it out")
        if len(value) > longest:
            raise ValueError(f"has {len(value)} characters; send at most {longest}")
        if _UNPRINTABLE.search(value):
            raise ValueError("has line breaks, control characters or unpaired surrogates; send one line of text")
        return value

    return checked


def _score(value: float) -> float:
    if value != value:  # noqa: PLR0124 - only NaN differs from itself
        raise ValueError("is NaN; send a number between 0 and 1, or leave it out")
    return clamp_importance(value)


def _distinct(values: list[str]) -> list[str]:
    return list(dict.fromkeys(values))


def _kept_kind(value: Any) -> Kind:
    if not isinstance(value, str) or value not in _KEPT_KINDS:
        *others, last = (f"'{kind}'" for kind in _KEPT_KINDS)
        raise ValueError(f"must be {', '.join(others)} or {last}, not {shown(value)}")
    return Kind(value)


def _record_ref(value: Any) -> str:
    """The id in an id, a message's number or `{"record_id": ...}`."""
    if isinstance(value, Mapping) and list(value) == ["record_id"]:
        value = value["record_id"]
    if isinstance(value, int) and 0 < value < _MOST_MESSAGES and not isinstance(value, bool):
        return message_record_id(value)
    if not isinstance(value, str) or not _RECORD_ID.fullmatch(value.strip()):
        raise ValueError(f"must be a record's id such as 'msg_45', not {shown(value)}")
    return full_record_id(value.strip())


def _message_ref(value: Any) -> str:
    try:
        return message_record_id(message_number(_record_ref(value)))
    except InvalidInput:
        raise ValueError(f"must be a message's id such as 'msg_45', not {shown(value)}") from None


def _attachments(values: list[Any]) -> list[Any]:
    if not all(isinstance(one, str | dict) for one in values):
        raise ValueError("must contain only strings and JSON objects")
    try:
        written = json.dumps(values, ensure_ascii=False, allow_nan=False)
        size = len(written.encode())
    except (TypeError, ValueError, RecursionError):
        raise ValueError(
            "has a value that JSON cannot represent; send strings, finite numbers, true, false, null, lists"
        ) from None
    if size > MAX_ATTACHMENT_BYTES:
        raise ValueError(
            f"has {size:,} bytes of JSON and the limit is {MAX_ATTACHMENT_BYTES:,}; send a path or a URL instead"
        )
    kept: list[Any] = json.loads(written)
    return kept


def _mime(value: str) -> str:
    if not _MIME.fullmatch(value):
        raise ValueError(f"must be a MIME type such as 'text/markdown', not {shown(value)}")
    kind, semicolon, parameters = value.partition(";")
    return kind.strip().lower() + semicolon + parameters


def _extension(value: str) -> str:
    value = value.lower().removeprefix(".")
    if not _EXTENSION.fullmatch(value):
        raise ValueError(f"must be a file's extension such as 'md', not {shown(value)}")
    return value


def _moment(value: str) -> str:
    try:
        return to_iso(from_iso(value))
    except InvalidInput:
        raise ValueError(
            f"must be an ISO 8601 time between the years 1 and 9999 such as '2026-03-04T05:06:07Z', not {shown(value)}"
        ) from None


def _day_or_moment(value: str) -> str:
    """A date or a moment. A date stays a date: it means the whole day in any time zone."""
    try:
        return date.fromisoformat(value.strip()).isoformat()
    except ValueError:
        pass
    try:
        return _moment(value)
    except ValueError:
        raise ValueError(
            f"must be an ISO 8601 date or time such as '2026-03-04' or '2026-03-04T05:06:07Z', not {shown(value)}"
        ) from None


def _internal(value: Visibility) -> Visibility:
    if value is not Visibility.INTERNAL:
        raise ValueError("of a thought is always 'internal'; leave it out, or remember a document to show it in chats")
    return value


Name = Annotated[str, AfterValidator(_line(_LONGEST_NAME))]
Project = Annotated[str, AfterValidator(_line(_LONGEST_PROJECT))]
Tag = Annotated[str, AfterValidator(_line(_LONGEST_TAG))]
Score = Annotated[float, AfterValidator(_score)]
RecordRef = Annotated[str, BeforeValidator(_record_ref)]
_NUMBER: Final = BeforeValidator(moment_as_text)
Moment = Annotated[str, AfterValidator(_moment), _NUMBER]
_LAX: Final = Field(strict=False)  # enumerations are sent as their values


class ThoughtType(StrEnum):
    """What kind of thought it is."""

    THOUGHT = "thought"
    REFLECTION = "reflection"
    PLANNING = "planning"


class RecordFields(BaseModel):
    """The fields of every record. An `importance_score` outside [0, 1] is clamped."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    usual_importance: ClassVar[float] = USUAL_IMPORTANCE

    text: Annotated[str, AfterValidator(_text)]
    importance_score: Score | None = None
    tags: Annotated[list[Tag], Field(max_length=MAX_TAGS), AfterValidator(_distinct)] = []
    critical: bool = False
    visibility: Annotated[Visibility, _LAX] = Visibility.CHAT
    caused_by: RecordRef | None = None
    supersedes: Annotated[list[RecordRef], Field(max_length=MAX_RELATED), AfterValidator(_distinct)] = []
    """Records that this one makes outdated."""

    @property
    def default_importance(self) -> float:
        """The importance score if none was sent."""
        return self.usual_importance

    def content(self) -> dict[str, Any]:
        """The fields as stored in a record's content: JSON values, without None and without defaults."""
        values = self.model_dump(mode="json")
        if values["importance_score"] is None:
            values["importance_score"] = self.default_importance
        return {name: value for name, value in values.items() if value is not None and _DEFAULTS.get(name) != value}


class MessageFields(RecordFields):
    """One message of a conversation."""

    role: Annotated[Role, _LAX]
    name: Name | None = None
    message_type: Annotated[str, AfterValidator(_line(50))] = "text"
    attachments: Annotated[list[Any], Field(max_length=MAX_ATTACHMENTS), AfterValidator(_attachments)] = []
    vision_response_for: RecordRef | None = None
    model_id: Name | None = None
    token_usage: Annotated[int, Field(ge=0, le=1_000_000_000)] | None = None


class MovableFields(RecordFields):
    """The fields of a record that may be outside any session, and then may have a project."""

    project: Project | None = None


class ThoughtFields(MovableFields):
    """An agent's thought. It is always internal: no value of any field shows it in a chat."""

    visibility: Annotated[Visibility, _LAX, AfterValidator(_internal)] = Visibility.INTERNAL
    message_type: Annotated[ThoughtType, _LAX] = ThoughtType.THOUGHT
    agent_id: Name | None = None
    related_to: Annotated[list[RecordRef], Field(max_length=MAX_RELATED), AfterValidator(_distinct)] = []


class DocumentFields(MovableFields):
    """A document, or one part of it."""

    source: Annotated[str, AfterValidator(_line(_LONGEST_SOURCE))]
    title: Name | None = None
    content_type: Annotated[str, AfterValidator(_line(_LONGEST_NAME)), AfterValidator(_mime)] | None = None
    file_type: Annotated[str, AfterValidator(_extension)] | None = None
    chunk_index: Annotated[int, Field(ge=0, le=_MOST_CHUNKS)] | None = None
    total_chunks: Annotated[int, Field(ge=1, le=_MOST_CHUNKS)] | None = None
    scope: Annotated[Reach, _LAX] = Reach.SESSION

    @model_validator(mode="after")
    def _part_numbers_fit(self) -> Self:
        if (self.chunk_index is None) is not (self.total_chunks is None):
            raise ValueError("chunk_index and total_chunks come together: send both, or neither")
        if self.chunk_index is not None and self.total_chunks is not None and self.chunk_index >= self.total_chunks:
            raise ValueError(
                f"chunk_index={self.chunk_index} must be below total_chunks={self.total_chunks}; it counts from 0"
            )
        return self


class TaskFields(MovableFields):
    """Something to do."""

    status: Annotated[TaskStatus, _LAX] = TaskStatus.PENDING
    priority: Annotated[TaskPriority, _LAX] = TaskPriority.MEDIUM
    due_date: Annotated[str, AfterValidator(_day_or_moment), _NUMBER] | None = None
    assigned_to: Name | None = None
    completed_at: Moment | None = None

    @model_validator(mode="after")
    def _completed_at_needs_completed(self) -> Self:
        if self.completed_at is not None and self.status is not TaskStatus.COMPLETED:
            raise ValueError(
                f"completed_at does not go with status={str(self.status)!r}; "
                "send status='completed', or leave completed_at out"
            )
        return self

    @property
    def default_importance(self) -> float:
        return importance_of(self.priority)


class PinFields(RecordFields):
    """An important fact that contexts show, by its scope: contexts of its session, of its project, or all."""

    usual_importance: ClassVar[float] = PIN_IMPORTANCE

    pin_type: Annotated[PinType, _LAX] = PinType.MANUAL
    source_message_id: Annotated[str, BeforeValidator(_message_ref)] | None = None
    scope: Annotated[Reach, _LAX] = Reach.SESSION
    kind: (
        Annotated[Kind, BeforeValidator(_kept_kind), WithJsonSchema({"enum": _KEPT_KINDS, "type": "string"})] | None
    ) = None


class SummaryFields(RecordFields):
    """A summary of a range of messages. A caller cannot set its range or its author."""

    usual_importance: ClassVar[float] = SUMMARY_IMPORTANCE


FIELDS: Final[Mapping[RecordType, type[RecordFields]]] = {
    RecordType.MESSAGE: MessageFields,
    RecordType.THOUGHT: ThoughtFields,
    RecordType.DOCUMENT: DocumentFields,
    RecordType.TASK: TaskFields,
    RecordType.PIN: PinFields,
    RecordType.SUMMARY: SummaryFields,
}


def checked(record_type: RecordType, values: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The content of these values, or their faults, one sentence each. One of the two is empty."""
    try:
        return FIELDS[record_type].model_validate(dict(values)).content(), []
    except ValidationError as error:
        return {}, [_in_words(fault) for fault in error.errors(include_url=False)]


def _in_words(fault: Mapping[str, Any]) -> str:
    place = "".join(f"[{part}]" if isinstance(part, int) else str(part) for part in fault["loc"])
    words = _WORDS.get(fault["type"], "").format(given=shown(fault["input"]), **fault.get("ctx", {}))
    return f"{place} {words or 'should be ' + fault['msg'].removeprefix('Input should be ')}".lstrip()
