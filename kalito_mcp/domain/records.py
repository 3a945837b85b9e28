"""Everything remembered is a record. The typed values here are views of it.

Field names follow `memory-types` of the specification in snake_case. Moments are milliseconds since the epoch
inside and ISO 8601 in `to_dict()`. `seq` counts the messages of a session from 1 without gaps and is their order;
clocks never are.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from kalito_mcp.domain.time import to_iso

MESSAGE_ID_PREFIX: Final = "msg_"
SUMMARY_IMPORTANCE: Final = 0.7
PIN_IMPORTANCE: Final = 0.8


class RecordType(StrEnum):
    """What kinds of things are remembered."""

    MESSAGE = "message"
    THOUGHT = "thought"
    DOCUMENT = "document"
    TASK = "task"
    PIN = "pin"
    SUMMARY = "summary"


class Origin(StrEnum):
    """Where the words of a record came from, most trusted first."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    DOCUMENT = "document"
    IMPORT = "import"

    @property
    def distrust(self) -> int:
        """0 for what the user said, more for what is trusted less."""
        return _ORIGINS.index(self)


_ORIGINS: Final = tuple(Origin)


def least_trusted(origins: Iterable[Origin]) -> Origin:
    """The origin of what is made of all of these; ASSISTANT where there are none."""
    return max(origins, key=lambda origin: origin.distrust, default=Origin.ASSISTANT)


class Visibility(StrEnum):
    """Whether a record may come into a chat; INTERNAL ones only where they are asked for."""

    CHAT = "chat"
    INTERNAL = "internal"


class Role(StrEnum):
    """Who sent a message."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"


class PinType(StrEnum):
    """How a pin came to be, or what it holds."""

    MANUAL = "manual"
    AUTO = "auto"
    CODE = "code"
    CONCEPT = "concept"
    SYSTEM = "system"


class SummaryMethod(StrEnum):
    """Who wrote a summary."""

    CALLER = "caller"
    MODEL = "model"
    EXTRACTIVE = "extractive"


def origin_of_role(role: Role) -> Origin:
    """Whose words a message is, where nobody says: a host hands over as `system` what neither side said."""
    return {Role.USER: Origin.USER, Role.ASSISTANT: Origin.ASSISTANT, Role.SYSTEM: Origin.TOOL}[role]


def message_record_id(number: int) -> str:
    """The record id of message `number`: `msg_45`."""
    return f"{MESSAGE_ID_PREFIX}{number}"


@dataclass(frozen=True, slots=True)
class MessageWithImportance:
    """One message of a conversation.

    `id` is its number, unique in the database and never used again; `record_id` is the same as text, `msg_<id>`,
    and every call that takes a message id takes either. `tokens` was counted when the message was
    written, as a context shows its text.
    `is_hidden` where it was forgotten or is internal: then it keeps its place, and its text is empty.
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
        """`msg_<id>`."""
        return message_record_id(self.id)

    @property
    def speaker(self) -> str:
        """The name where there is one, else the role."""
        return self.name or self.role

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; None left out."""
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
    """One important thing, kept in sight: `pin_<milliseconds>_<nine characters>`."""

    id: str
    session_id: str
    content: str
    source_message_id: str | None
    importance_score: float
    pin_type: PinType
    created_at: int
    tokens: int
    origin: Origin = Origin.ASSISTANT
    redacted: tuple[str, ...] = field(default=(), compare=False)
    """What was not kept of what the call that returns this was given; nothing where it is read."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; None left out."""
        return _without_none(
            {
                "id": self.id,
                "session_id": self.session_id,
                "content": self.content,
                "source_message_id": self.source_message_id,
                "importance_score": self.importance_score,
                "pin_type": str(self.pin_type),
                "created_at": to_iso(self.created_at),
            }
        )


@dataclass(frozen=True, slots=True)
class ConversationSummary:
    """What messages `start_seq` to `end_seq` said: `summary_<milliseconds>_<nine characters>`.

    Level 0 summarises messages; level n + 1 summarises summaries of level n. The summaries of one level never
    overlap and leave no gap between them.
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
    """What was not kept of what the call that returns this was given; nothing where it is read."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; None left out."""
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
            }
        )


@dataclass(frozen=True, slots=True)
class CreateSummaryRequest:
    """Summarise the messages from `start_message_id` to `end_message_id`, both included.

    Ids are `45` or `msg_45`. `message_count`, when given, must be the number of messages in the range.
    `summary` is the text, when the caller wrote it; otherwise the configured model or the extractive
    summarizer writes it.
    """

    session_id: str
    start_message_id: str
    end_message_id: str
    message_count: int | None = None
    summary: str | None = None


@dataclass(frozen=True, slots=True)
class CreatePinRequest:
    """Pin `content`. Absent importance means 0.8; 0.0 is 0.0. Absent type means manual.

    Two requests with one `client_key` make one pin. `is_confirmed` says that the user wants it, whoever said it first.
    """

    session_id: str
    content: str
    source_message_id: str | None = None
    importance_score: float | None = None
    pin_type: PinType = PinType.MANUAL
    client_key: str | None = None
    origin: Origin = Origin.ASSISTANT
    client: str | None = None
    is_confirmed: bool = False


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message as the caller hands it over. Absent `created_at` means now, absent `origin` the role's.

    `details` has any other field of a message: `message_type`, `attachments`, `vision_response_for`, `tags`,
    `critical`, `visibility`, `importance_score`.
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
