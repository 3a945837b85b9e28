"""What several endpoints answer. Fields are named as in the specification: in snake_case, except in its `MemoryContext`
and `MemoryStats`.
"""

from typing import Annotated, Any, Final

from pydantic import AfterValidator, ConfigDict, Field

from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.domain.records import MessageWithImportance, RecordType
from kalito_mcp.domain.validation import checked_name
from kalito_mcp.shapes import KindName, OriginName, Output, ReachName, Redacted, RoleName, TypeName, sent_fields_schema
from kalito_mcp.web.arguments import inlined

_NAME: Final[dict[str, Any]] = {"pattern": r"^[^\x00-\x1f\x7f]+$"}
"""The memory's rule for names, for readers of the schema."""
SessionName = Annotated[
    str,
    Field(description="The id of a conversation.", min_length=1, max_length=200, json_schema_extra=_NAME),
    AfterValidator(lambda name: checked_name(name, "session_id")),
]
AgentName = Annotated[
    str | None,
    Field(description="Which agent's memory. Default: `default`, or the session's.", min_length=1, max_length=200),
]
PageSize = Annotated[int, Field(description="How many at most.", ge=1, le=200)]
CursorText = Annotated[
    str | None,
    Field(description="`next_cursor` of the page before, with the same query.", min_length=1, max_length=400),
]
NextCursor = Annotated[str | None, Field(description="For the next page; left out on the last.")]


def fields_schema(*types: RecordType) -> dict[str, Any]:
    """The fields that may be sent of an object with the fields of these types, for readers of the schema."""
    properties: dict[str, Any] = {}
    for one in types:
        properties = {**inlined(sent_fields_schema(one))["properties"], **properties}
    return {"properties": properties}


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


def message_body(message: MessageWithImportance) -> Message:
    """A message as it is answered."""
    return Message(**message.to_dict(), seq=message.seq, hidden=message.is_hidden)


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


class Known(Output):
    """A pin or a note that is known beyond its conversation."""

    record_id: str
    type: TypeName
    scope: ReachName
    kind: KindName | None = None
    project: str | None = None
    session_id: str | None = None
    text: str
    origin: OriginName
    importance_score: float
    created_at: str


class GraphNode(Output):
    """A question or an entity of a graph."""

    id: str
    text: str
    rank: float
    repeat: float
    feedback: float
    degree: int
    pinned: bool


class GraphBody(Output):
    """The overview of a graph: its size, and the questions and entities that rank highest."""

    agent_id: str
    session_id: str | None = None
    nodes: int
    edges: int
    nodes_by_type: dict[str, int]
    edges_by_type: dict[str, int]
    slept_at: str | None = None
    top_queries: list[GraphNode]
    top_entities: list[GraphNode]
