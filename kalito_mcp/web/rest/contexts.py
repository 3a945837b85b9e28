"""The endpoint that builds a context for a model, or shows what it would be."""

from typing import Annotated, Final, Literal

from pydantic import Field

from kalito_mcp.domain.access import Permission
from kalito_mcp.domain.context import MOST_TOKENS, Include, MemoryContext
from kalito_mcp.shapes import Hit, Output, Pin, Summary
from kalito_mcp.web.rest.endpoint import Call, Endpoint, InProject, Input, Reply
from kalito_mcp.web.rest.shapes import AgentName, Known, Message, SessionName, message_body


class BuildContext(Input):
    """What a context is built for."""

    session_id: SessionName | None = None
    max_tokens: Annotated[
        int | None, Field(description="Budget of the text. Default: as configured.", ge=1, le=MOST_TOKENS)
    ] = None
    query: Annotated[str | None, Field(description="What the user asks now.", min_length=1)] = None
    also: Annotated[list[str], Field(default_factory=list, description="Other wordings of it; the first four count.")]
    agent_id: AgentName = None
    seen_messages: Annotated[int, Field(description="How many of the newest to leave out.", ge=0, le=1_000_000)] = 0
    pending_input: Annotated[bool, Field(description="Leave out the newest message if it is the user's.")] = False
    include: Annotated[list[Literal["internal", "untrusted"]], Field(default_factory=list, max_length=2)]
    preview: Annotated[bool, Field(description="Only to look at: nothing in it counts as used.")] = False


class MemoryContextBody(Output):
    """The specification's MemoryContext. `text` is the whole as a model gets it, and `totalTokens` counts it."""

    sessionId: str | None = None  # noqa: N815 - as above
    recentMessages: list[Message]  # noqa: N815 - as above
    semanticPins: list[Pin]  # noqa: N815 - as above
    summaries: list[Summary]
    known: list[Known]
    relevantMessages: list[Hit]  # noqa: N815 - as above
    latestMessages: list[Hit]  # noqa: N815 - as above
    totalTokens: int  # noqa: N815 - as above
    maxTokens: int  # noqa: N815 - as above
    leftOut: dict[str, int]  # noqa: N815 - as above
    note: str | None = None
    text: str


async def build_context(call: Call[BuildContext, InProject]) -> Reply:
    """A context for a model."""
    body = call.body
    is_placed = call.query.project is not None
    memory = call.memory if is_placed else await call.memory.for_question(body.session_id)
    build = memory.manager.build_context if body.preview else memory.build_context
    context: MemoryContext = await build(
        body.session_id,
        body.max_tokens,
        agent_id=body.agent_id,
        query=body.query,
        also=body.also,
        pending_input=body.pending_input,
        seen_messages=body.seen_messages,
        include=[Include(one) for one in body.include],
    )
    return Reply(
        MemoryContextBody(
            sessionId=context.session_id,
            recentMessages=[message_body(one) for one in context.recent_messages],
            semanticPins=[Pin(**one.to_dict()) for one in context.semantic_pins],
            summaries=[Summary(**one.to_dict()) for one in context.summaries],
            known=[Known(**one.to_dict()) for one in context.known],
            relevantMessages=[Hit(**one.to_dict()) for one in context.relevant_messages],
            latestMessages=[Hit(**one.to_dict()) for one in context.latest_messages],
            totalTokens=context.total_tokens,
            maxTokens=context.max_tokens,
            leftOut=dict(context.left_out),
            note=context.note,
            text=context.text,
        )
    )


CONTEXTS: Final = (
    Endpoint(
        "POST", "/context", Permission.READ, "Build the context of a conversation for a model", build_context,
        MemoryContextBody, BuildContext, InProject, tag="sessions", is_idempotent=True,
    ),
)  # fmt: skip
