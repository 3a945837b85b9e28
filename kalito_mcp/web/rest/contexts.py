"""The endpoint that builds a context for a model, or shows what it would be."""

from dataclasses import replace
from typing import Annotated, Final

from pydantic import Field

from kalito_mcp.memory.verbs import conversation as verbs
from kalito_mcp.memory.verbs.shapes import Hit, Output, Pin, Summary
from kalito_mcp.web.rest.endpoint import Call, InProject, Reply, serves
from kalito_mcp.web.rest.shapes import Known, Message, message_body


class BuildContext(verbs.BuildContext):
    """What a context is built for."""

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
    caller, body = await call.caller(), call.body
    if call.query.project is None:
        caller = replace(caller, memory=await call.memory.for_question(body.session_id))
    context = await verbs.build_context(caller, body, is_preview=body.preview)
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
    serves(
        verbs.CONTEXT, "POST", "/context", build_context, MemoryContextBody, body=BuildContext, tag="sessions",
        is_idempotent=True,
    ),
)  # fmt: skip
