"""What several endpoints answer. Fields are named as the specification names them: in snake_case, but for its
`MemoryContext` and `MemoryStats`.
"""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.web.rest.endpoint import Output

SessionName = Annotated[str, Field(description="The id of a conversation.", min_length=1, max_length=200)]
AgentName = Annotated[
    str | None, Field(description="Whose memory. Default: `default`, or the session's.", min_length=1, max_length=200)
]
PageSize = Annotated[int, Field(description="How many at most.", ge=1, le=200)]
CursorText = Annotated[
    str | None,
    Field(description="`next_cursor` of the page before, with the same query.", min_length=1, max_length=400),
]
NextCursor = Annotated[str | None, Field(description="For the next page; left out on the last.")]
RoleName = Literal["user", "assistant", "system"]
TypeName = Literal["message", "thought", "document", "task", "pin", "summary"]
OriginName = Literal["user", "assistant", "tool", "document", "import"]
ReachName = Literal["session", "project", "person"]
PinTypeName = Literal["manual", "auto", "code", "concept", "system"]
Redacted = Annotated[list[str] | None, Field(description="What was removed and not stored: kinds of secrets.")]


class Message(Output):
    """The specification's MessageWithImportance. `id` is its number, and `record_id` its id as a record. A message that
    is `hidden` was forgotten or erased, or is internal: it has no text."""

    id: int
    record_id: str
    session_id: str
    seq: int
    role: RoleName
    name: str | None = None
    text: str
    model_id: str | None = None
    token_usage: int | None = None
    created_at: str
    importance_score: float
    client_key: str | None = None
    hidden: bool


class Pin(Output):
    """The specification's SemanticPin. `scope` says which contexts show it."""

    id: str
    session_id: str
    content: str
    scope: ReachName
    source_message_id: str | None = None
    importance_score: float
    pin_type: PinTypeName
    created_at: str
    redacted: Redacted = None


class Summary(Output):
    """The specification's ConversationSummary, of the messages `first_message` to `last_message`, counted from 1."""

    id: str
    session_id: str
    summary: str
    message_count: int
    start_message_id: str
    end_message_id: str
    importance_score: float
    created_at: str
    level: int
    first_message: int
    last_message: int
    method: Literal["caller", "model", "extractive"]
    model_id: str | None = None
    redacted: Redacted = None


class RecordBody(Output):
    """A record with all its fields: these, and those of its type."""

    model_config = ConfigDict(extra="allow", frozen=True)

    id: str
    type: TypeName
    text: str
    timestamp: str
    agent_id: str
    project: str | None = None
    session_id: str | None = None
    origin: OriginName
    importance_score: float
    tags: list[str]
    revision: int
    is_deleted: Annotated[bool, Field(description="Whether it is forgotten.")]
    redacted: Redacted = None


def record_body(record: MemoryRecord) -> RecordBody:
    """A record as it is answered."""
    return RecordBody(**record.to_dict() | {"redacted": list(record.redacted) or None})


JsonObject = dict[str, Any]
