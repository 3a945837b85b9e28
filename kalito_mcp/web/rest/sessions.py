"""Endpoints of conversations: lists, messages, numbers, graphs, and closing one."""

from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import Field

from kalito_mcp.domain.sessions import Session, SessionCursor
from kalito_mcp.memory.verbs import conversation as verbs
from kalito_mcp.memory.verbs.shapes import AgentName, Output, Promoted, Redacted, Sleep, Summary
from kalito_mcp.web.rest.cursors import cursor_of, place_in
from kalito_mcp.web.rest.endpoint import Call, InProject, Nothing, Reply, reads, serves
from kalito_mcp.web.rest.shapes import CursorText, GraphBody, Message, NextCursor, PageSize, message_body

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory

_SHOWN_SUMMARIES: Final = 100
StateName = Literal["OPEN", "FINALIZING", "FINALIZED"]


class Sessions(InProject):
    """Which conversations to list."""

    prefix: Annotated[str, Field(description="Only ids that begin with it.", max_length=200)] = ""
    agent_id: AgentName = None
    limit: PageSize = 50
    cursor: CursorText = None


class SessionBody(Output):
    """A conversation in a list."""

    session_id: str
    title: Annotated[str | None, Field(description="Its name, or the first words of the user in it.")] = None
    agent_id: str
    project: str | None = None
    state: StateName
    messages: int
    summaries: int
    pins: int
    newest_message: Annotated[str | None, Field(description="When that was said.")] = None
    model: Annotated[str | None, Field(description="The last model that a message named.")] = None
    updated_at: str


class SessionPage(Output):
    """Conversations, those with the newest message first."""

    sessions: list[SessionBody]
    next_cursor: NextCursor = None


class Messages(InProject):
    """Which messages of a conversation to list."""

    order: Annotated[Literal["oldest", "newest"], Field(description="Which come first.")] = "oldest"
    limit: PageSize = 50
    cursor: CursorText = None


class MessagePage(Output):
    """Messages of a conversation."""

    messages: list[Message]
    next_cursor: NextCursor = None


class RecordedMessages(Output):
    """What is stored. `left_out` counts messages that were not, because they repeat what was forgotten or erased."""

    session_id: str
    project: str | None = None
    message_ids: list[str]
    left_out: int
    redacted: Redacted = None


class MemoryStatsBody(Output):
    """The specification's MemoryStats."""

    sessionId: str  # noqa: N815 - as the specification writes it
    agentId: str  # noqa: N815 - as above
    state: StateName
    totalMessages: int  # noqa: N815 - as above
    totalSummaries: int  # noqa: N815 - as above
    totalPins: int  # noqa: N815 - as above
    oldestMessage: str | None = None  # noqa: N815 - as above
    newestMessage: str | None = None  # noqa: N815 - as above
    averageImportanceScore: float | None = None  # noqa: N815 - as above
    summarizedMessages: int  # noqa: N815 - as above


class Finalized(Output):
    """The conversation as it is now, and what this call did, or would do."""

    session: SessionBody
    dry_run: bool
    summaries_made: int
    summaries: Annotated[list[Summary], Field(description="The last of the new ones, at most a hundred.")]
    sleep: Sleep | None = None
    promoted: Promoted | None = None
    snapshot: str | None = None


async def list_sessions(call: Call[Nothing, Sessions]) -> Reply:
    """A page of sessions."""
    query = call.query
    before = None if query.cursor is None else SessionCursor(*place_in(call, query, query.cursor, int, str))
    found = await call.memory.conversations.recent(
        prefix=query.prefix, agent_id=query.agent_id, limit=query.limit + 1, before=before, has_forgotten=False
    )
    page = found[: query.limit]
    following = cursor_of(call, query, *page[-1].cursor) if len(found) > len(page) else None
    titles = await call.memory.conversations.titles(one.id for one in page)
    listed = [SessionBody(**one.to_dict(titles.get(one.id)), model=one.model) for one in page]
    return Reply(SessionPage(sessions=listed, next_cursor=following))


async def read_session(call: Call[Nothing, InProject]) -> Reply:
    """One session."""
    session_id = call.path["session_id"]
    memory = await call.memory_of(session_id)
    session, _ = await memory.conversations.messages(session_id, last_seq=0)
    return Reply(await _body(memory, session))


async def list_messages(call: Call[Nothing, Messages]) -> Reply:
    """A page of messages."""
    query, session_id = call.query, call.path["session_id"]
    memory = await call.memory_of(session_id)
    place: int | None = None if query.cursor is None else place_in(call, query, query.cursor, int)[0]
    if query.order == "oldest":
        first = 1 if place is None else place + 1
        last = first + query.limit - 1
    else:
        if place is None:
            session, _ = await memory.conversations.messages(session_id, last_seq=0)
            place = session.message_count + 1
        first, last = max(1, place - query.limit), place - 1
    session, found = await memory.conversations.messages(session_id, first_seq=first, last_seq=last)
    shown = [message_body(one) for one in found]
    has_more = last < session.message_count
    if query.order == "newest":
        shown.reverse()
        has_more = first > 1
    following = cursor_of(call, query, shown[-1].seq) if has_more and shown else None
    return Reply(MessagePage(messages=shown, next_cursor=following))


async def record_messages(call: Call[verbs.RecordMessages, InProject]) -> Reply:
    """Append messages to a session; a new one is created."""
    recorded = await verbs.record_messages(await call.caller(call.path["session_id"]), call.body)
    return Reply(
        RecordedMessages(
            session_id=recorded.session.id,
            project=recorded.session.project,
            message_ids=recorded.message_ids,
            left_out=recorded.left_out_count + recorded.erased_count,
            redacted=list(recorded.redacted) or None,
        )
    )


async def session_stats(call: Call[Nothing, InProject]) -> Reply:
    """A session in numbers."""
    session_id = call.path["session_id"]
    stats = (await (await call.memory_of(session_id)).conversations.stats(session_id)).to_dict()
    return Reply(
        MemoryStatsBody(
            sessionId=stats["session_id"],
            agentId=stats["agent_id"],
            state=stats["state"],
            totalMessages=stats["total_messages"],
            totalSummaries=stats["total_summaries"],
            totalPins=stats["total_pins"],
            oldestMessage=stats["oldest_message"],
            newestMessage=stats["newest_message"],
            averageImportanceScore=stats["average_importance_score"],
            summarizedMessages=stats["summarized_messages"],
        )
    )


async def session_graph(call: Call[Nothing, InProject]) -> Reply:
    """The overview of a session's graph."""
    return Reply(GraphBody(**await call.memory.conversations.graph_overview(session_id=call.path["session_id"])))


async def finalize_session(call: Call[verbs.Finalize, InProject]) -> Reply:
    """Close a session."""
    caller = await call.caller(call.path["session_id"])
    done = await verbs.finalize(caller, call.body)
    return Reply(
        Finalized(
            session=await _body(caller.memory, done.session),
            dry_run=done.is_dry_run,
            summaries_made=len(done.summaries),
            summaries=[Summary(**one.to_dict()) for one in done.summaries[-_SHOWN_SUMMARIES:]],
            sleep=None if done.sleep is None else Sleep(**done.sleep.to_dict()),
            promoted=None if done.promotion is None else Promoted(**done.promotion.to_dict()),
            snapshot=None if done.snapshot is None else done.snapshot.name,
        )
    )


async def _body(memory: "Memory", session: Session) -> SessionBody:
    titles = await memory.conversations.titles([session.id])
    return SessionBody(**session.to_dict(titles.get(session.id)), model=session.model)


SESSIONS: Final = (
    reads("/sessions", "Conversations, the newest message first", list_sessions, SessionPage, Sessions, tag="sessions"),
    reads("/sessions/{session_id}", "One conversation", read_session, SessionBody, tag="sessions"),
    reads(
        "/sessions/{session_id}/messages", "The messages of a conversation", list_messages, MessagePage, Messages,
        tag="sessions",
    ),
    serves(
        verbs.RECORD, "POST", "/sessions/{session_id}/messages", record_messages, RecordedMessages, status=201,
        tag="sessions", takes_key=True,
    ),
    reads("/sessions/{session_id}/stats", "A conversation in numbers", session_stats, MemoryStatsBody, tag="sessions"),
    reads(
        "/sessions/{session_id}/graph", "The overview of a conversation's graph", session_graph, GraphBody,
        tag="sessions",
    ),
    serves(
        verbs.FINALIZE, "POST", "/sessions/{session_id}/finalize", finalize_session, Finalized, tag="sessions",
        is_idempotent=True,
    ),
)  # fmt: skip
