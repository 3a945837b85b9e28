"""Everything remembered is a record. The typed values here are views of it.

Field names come from the specification's `memory-types`, in snake_case. Moments are milliseconds since 1970, and
ISO 8601 in `to_dict()`. `seq` numbers the messages of a session from 1 without gaps. It alone decides their order:
clocks can go back.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from kalito_mcp.domain.time import to_iso
from kalito_mcp.domain.validation import MESSAGE_ID_PREFIX

SUMMARY_IMPORTANCE: Final = 0.7
NOTE: Final = "note"
"""What `remember` calls a document without a source of its own."""
NOTE_SOURCE: Final = f"{NOTE}:"
"""How the source of a note begins, which is made for it."""

PIN_IMPORTANCE: Final = 0.8
_WITH_MOMENT: Final = re.compile(r"([a-z]+)_\d+_([0-9a-z]{9}(?:\.\d+)?)")
HOOK_KEY: Final = "hook:"
"""How the client keys begin of what hooks report."""


class RecordType(StrEnum):
    """The kinds of records."""

    MESSAGE = "message"
    THOUGHT = "thought"
    DOCUMENT = "document"
    TASK = "task"
    PIN = "pin"
    SUMMARY = "summary"


class Repetition(StrEnum):
    """The result for a message that repeats something forgotten.

    LEFT_OUT: it is not stored. HIDDEN: it is stored as a forgotten record. BROUGHT_BACK: the user said it again, so it
    is remembered again.
    """

    LEFT_OUT = "left_out"
    HIDDEN = "hidden"
    BROUGHT_BACK = "brought_back"


class Origin(StrEnum):
    """Where the words of a record came from, most trusted first."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    DOCUMENT = "document"
    IMPORT = "import"

    @property
    def distrust(self) -> int:
        """0 for the user's words; higher means less trusted."""
        return _ORIGINS.index(self)


_ORIGINS: Final = tuple(Origin)


def least_trusted(origins: Iterable[Origin]) -> Origin:
    """The origin of a text derived from all of these. ASSISTANT without texts."""
    return max(origins, key=lambda origin: origin.distrust, default=Origin.ASSISTANT)


class Visibility(StrEnum):
    """Whether a record may be shown in a chat. INTERNAL records are shown only on request."""

    CHAT = "chat"
    INTERNAL = "internal"


class Role(StrEnum):
    """Senders of messages."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"


class PinType(StrEnum):
    """How a pin was made, or what it contains."""

    MANUAL = "manual"
    AUTO = "auto"
    CODE = "code"
    CONCEPT = "concept"
    SYSTEM = "system"


class Reach(StrEnum):
    """Where a pin is known: in its conversation, in all of its project, or in all of the person's."""

    SESSION = "session"
    PROJECT = "project"
    PERSON = "person"


class SummaryMethod(StrEnum):
    """Authors of summaries."""

    CALLER = "caller"
    MODEL = "model"
    EXTRACTIVE = "extractive"


def origin_of_role(role: Role) -> Origin:
    """The origin of a message that names none. SYSTEM maps to TOOL: neither the user nor the assistant wrote it."""
    return {Role.USER: Origin.USER, Role.ASSISTANT: Origin.ASSISTANT, Role.SYSTEM: Origin.TOOL}[role]


def message_record_id(number: int | str) -> str:
    """The record id of message `number`: `msg_45`."""
    return f"{MESSAGE_ID_PREFIX}{number}"


def full_record_id(record_id: str) -> str:
    """The id itself, or `msg_45` for `45`: a message may be named by its number."""
    return message_record_id(record_id) if record_id.isdecimal() else record_id


def short_record_id(record_id: str) -> str:
    """The id without the moment in its middle: `pin_mmt85sz8b` for `pin_1763107261124_mmt85sz8b`. Other ids are
    returned as they are."""
    parts = _WITH_MOMENT.fullmatch(record_id)
    return record_id if parts is None else f"{parts[1]}_{parts[2]}"


@dataclass(frozen=True, slots=True)
class MessageWithImportance:
    """One message of a conversation.

    `id` is its number in the database and is never reused. `record_id` is `msg_<id>`; every call accepts either form.
    `tokens` counts its text as a context shows it, and was counted when the message was written. A message that was
    forgotten or is internal `is_hidden`: it keeps its `seq`, and its text is empty.
    """

    id: int
    session_id: str
    role: Role
    text: str
    model_id: str | None
    token_usage: int | None
    created_at: int
    importance_score: float
    seq: int
    tokens: int
    name: str | None = None
    client_key: str | None = None
    origin: Origin = Origin.USER
    is_hidden: bool = False

    @property
    def record_id(self) -> str:
        """The id as text: `msg_<id>`."""
        return message_record_id(self.id)

    @property
    def speaker(self) -> str:
        """The name, or the role if it has no name."""
        return self.name or self.role

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, without fields that are None."""
        return _without_none(
            {
                "id": self.id,
                "record_id": self.record_id,
                "session_id": self.session_id,
                "role": str(self.role),
                "name": self.name,
                "text": self.text,
                "model_id": self.model_id,
                "token_usage": self.token_usage,
                "created_at": to_iso(self.created_at),
                "importance_score": self.importance_score,
                "client_key": self.client_key,
            }
        )


@dataclass(frozen=True, slots=True)
class SemanticPin:
    """An important fact that contexts show: contexts of its session, of its project, or all of the person's, by its
    `reach`. Its id is `pin_<milliseconds>_<nine characters>`.

    `created_at` is when its source message was said; without one, when it was pinned. A pin that was made outside of
    any session is a note of its project or the person, with a note's id and no session.
    """

    id: str
    session_id: str | None
    content: str
    source_message_id: str | None
    importance_score: float
    pin_type: PinType
    created_at: int
    tokens: int
    origin: Origin = Origin.ASSISTANT
    reach: Reach = Reach.SESSION
    redacted: tuple[str, ...] = field(default=(), compare=False)
    """What the call that returns this removed from its input: kinds of secrets, and `private`. Empty after a read."""
    is_known: bool = field(default=False, compare=False)
    """Whether the call that returns this pinned nothing, because this says the same. False after a read."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, without fields that are None."""
        return _without_none(
            {
                "id": self.id,
                "session_id": self.session_id,
                "scope": str(self.reach),
                "content": self.content,
                "source_message_id": self.source_message_id,
                "importance_score": self.importance_score,
                "pin_type": str(self.pin_type),
                "created_at": to_iso(self.created_at),
            }
        )


@dataclass(frozen=True, slots=True)
class ConversationSummary:
    """A summary of the messages `start_seq` to `end_seq`. Its id is `summary_<milliseconds>_<nine characters>`.

    Level 0 summarises messages, and level n + 1 summarises summaries of level n. The summaries of one level neither
    overlap nor leave gaps.
    """

    id: str
    session_id: str
    summary: str
    message_count: int
    start_message_id: str
    end_message_id: str
    importance_score: float
    created_at: int
    tokens: int
    level: int
    start_seq: int
    end_seq: int
    started_at: int
    ended_at: int
    method: SummaryMethod
    model_id: str | None = None
    origin: Origin = Origin.ASSISTANT
    redacted: tuple[str, ...] = field(default=(), compare=False)
    """What the call that returns this removed from its input: kinds of secrets, and `private`. Empty after a read."""
    note: str | None = field(default=None, compare=False)
    """If a model was asked in vain by the call that returns this. None after a read."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, without fields that are None."""
        return _without_none(
            {
                "id": self.id,
                "session_id": self.session_id,
                "summary": self.summary,
                "message_count": self.message_count,
                "start_message_id": self.start_message_id,
                "end_message_id": self.end_message_id,
                "importance_score": self.importance_score,
                "created_at": to_iso(self.created_at),
                "level": self.level,
                "first_message": self.start_seq,
                "last_message": self.end_seq,
                "method": str(self.method),
                "model_id": self.model_id,
                "note": self.note,
            }
        )


@dataclass(frozen=True, slots=True)
class SessionView:
    """The parts of a session's context.

    `tail`: the newest messages, oldest first. `pins`: the most important pins, ties newest first. `summaries`: those
    that no higher level covers, oldest first.
    """

    tail: tuple[MessageWithImportance, ...]
    pins: tuple[SemanticPin, ...]
    summaries: tuple[ConversationSummary, ...]


@dataclass(frozen=True, slots=True)
class CreateSummaryRequest:
    """Summarise the messages from `start_message_id` to `end_message_id`, both included.

    Ids are `45` or `msg_45`. `message_count`, if given, must be the number of messages in the range. `summary` is the
    caller's text; without it the configured model or the extractive summarizer writes one. Requests with the same
    `client_key` make one summary.
    """

    session_id: str
    start_message_id: str
    end_message_id: str
    message_count: int | None = None
    summary: str | None = None
    client_key: str | None = None


@dataclass(frozen=True, slots=True)
class CreatePinRequest:
    """Pin `content`. No importance means 0.8. Without a session it is known in its project, or to the person.

    Requests with the same `client_key` make one pin. `is_confirmed` says that the user wants this pin, even if the
    words are not the user's. Without a `scope`, the words of the pin decide (see `pins.reach`). `replaces` are the
    records that no longer hold because of it: ids, or words that one of them has.
    """

    session_id: str | None = None
    content: str = ""
    source_message_id: str | None = None
    importance_score: float | None = None
    pin_type: PinType = PinType.MANUAL
    client_key: str | None = None
    origin: Origin = Origin.ASSISTANT
    client: str | None = None
    is_confirmed: bool = False
    scope: Reach | str | None = None
    replaces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message as the caller sends it. No `created_at` means now; no `origin` means the origin of its role.

    `details` contains the other fields: `message_type`, `attachments`, `vision_response_for`, `tags`, `critical`,
    `visibility`, `importance_score`.
    """

    role: Role
    text: str
    name: str | None = None
    created_at: int | None = None
    model_id: str | None = None
    token_usage: int | None = None
    client_key: str | None = None
    origin: Origin | None = None
    details: Mapping[str, Any] | None = None


def _without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}
