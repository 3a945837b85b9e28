"""The three endpoints that the specification names: summaries, pins, and scoring messages."""

from typing import Annotated, Final

from pydantic import Field, WithJsonSchema

from kalito_mcp.domain.access import Permission
from kalito_mcp.memory.verbs import conversation, records
from kalito_mcp.memory.verbs.shapes import MessageName, Output, Pin, SessionName, Summary
from kalito_mcp.web.rest.endpoint import Call, Endpoint, InProject, Nothing, Reply, place_of, serves

MessageRef = Annotated[MessageName, WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "integer"}]})]


class CreateSummary(conversation.Summarize):
    """The specification's CreateSummaryRequest. The range begins right after the last summary. `summary` and the lists,
    of at most twelve short whole sentences each, are the caller's own words."""

    session_id: SessionName
    start_message_id: MessageRef
    end_message_id: MessageRef
    message_count: Annotated[int | None, Field(description="Checked, if it is there.", ge=1, le=1_000_000_000)] = None


class CreatePin(records.CreatePin):
    """The specification's CreatePinRequest. Without a session it is known in its project, or to the person."""

    source_message_id: MessageRef | None = None


class CreatedPin(Pin):
    """The pin, and the id of its copy in a space, if it was shared."""

    space: str | None = None
    shared_as: str | None = None


class Scored(Output):
    """How many scores changed."""

    session_id: str
    total_messages: int
    changed: int


async def create_summary(call: Call[CreateSummary, InProject]) -> Reply:
    """Summarise a range of messages."""
    caller, body = await call.caller(call.body.session_id), call.body
    [made] = (await conversation.summarize(caller, body, message_count=body.message_count)).made
    summary = Summary(**made.to_dict(), redacted=list(made.redacted) or None)
    return Reply(summary, location=place_of("/records", made.id))


async def create_pin(call: Call[CreatePin, InProject]) -> Reply:
    """Pin a text."""
    made, shared = await records.create_pin(await call.caller(call.body.session_id), call.body)
    pin = CreatedPin(
        **made.to_dict(),
        known_already=made.is_known or None,
        redacted=list(made.redacted) or None,
        space=None if shared is None else shared.space,
        shared_as=None if shared is None else shared.record_id,
    )
    return Reply(pin, location=place_of("/records", made.id))


async def score_messages(call: Call[Nothing, InProject]) -> Reply:
    """Score all messages of a session again."""
    session_id = call.path["session_id"]
    memory = await call.memory_of(session_id)
    changed = await memory.conversations.score(session_id)
    stats = await memory.conversations.stats(session_id)
    return Reply(Scored(session_id=stats.session_id, total_messages=stats.total_messages, changed=changed))


SPECIFIED: Final = (
    serves(
        conversation.SUMMARIZE, "POST", "/memory/summaries", create_summary, Summary, body=CreateSummary, status=201,
        tag="specification", takes_key=True,
    ),
    serves(
        records.PIN, "POST", "/memory/pins", create_pin, CreatedPin, body=CreatePin, status=201, tag="specification",
        takes_key=True,
    ),
    Endpoint(
        "POST",
        "/memory/{session_id}/score-messages",
        Permission.WRITE,
        "Score the messages of a session again, by their words and roles",
        score_messages,
        Scored,
        Nothing,
        InProject,
        tag="specification",
        is_idempotent=True,
    ),
)  # fmt: skip
