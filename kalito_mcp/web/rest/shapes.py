"""What several endpoints answer. Fields are named as in the specification: in snake_case, except in its `MemoryContext`
and `MemoryStats`.
"""

from typing import Annotated

from pydantic import ConfigDict, Field

from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.domain.records import MessageWithImportance
from kalito_mcp.memory.verbs.shapes import (
    KindName,
    OriginName,
    Output,
    ReachName,
    Redacted,
    RoleName,
    TypeName,
)

PageSize = Annotated[int, Field(description="How many at most.", ge=1, le=200)]
CursorText = Annotated[
    str | None,
    Field(description="`next_cursor` of the page before, with the same query.", min_length=1, max_length=400),
]
NextCursor = Annotated[str | None, Field(description="For the next page; left out on the last.")]


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
    space: Annotated[str | None, Field(description="The space that it is in, if you are a member.")] = None
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
    space: str | None = None
    shared_by: str | None = None
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
