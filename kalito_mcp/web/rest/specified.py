"""The three endpoints that the specification names: summaries, pins, and scoring messages."""

from typing import Annotated, Final

from pydantic import Field

from kalito_mcp.domain.access import Permission
from kalito_mcp.domain.digest import LISTS, MOST_SENTENCES, Digest
from kalito_mcp.domain.records import CreatePinRequest, CreateSummaryRequest, PinType
from kalito_mcp.shapes import Output, Pin, PinTypeName, ReachName, Summary
from kalito_mcp.web.rest.endpoint import REST, Call, Endpoint, InProject, Input, Nothing, Reply, place_of
from kalito_mcp.web.rest.shapes import SessionName

MessageRef = Annotated[
    str | int,
    Field(description="A message's number, or its id such as `msg_45`.", union_mode="left_to_right"),
]


Sentences = Annotated[
    list[str] | None, Field(description=f"Short whole sentences, at most {MOST_SENTENCES}. Part of your own summary.")
]


class CreateSummary(Input):
    """The specification's CreateSummaryRequest. The range begins right after the last summary."""

    session_id: SessionName
    start_message_id: MessageRef
    end_message_id: MessageRef
    message_count: Annotated[int | None, Field(description="Checked, if it is there.", ge=1, le=1_000_000_000)] = None
    summary: Annotated[
        str | None, Field(description="Your own summary. Default: it is made here.", min_length=1, pattern=r"\S")
    ] = None
    decided: Sentences = None
    learned: Sentences = None
    done: Sentences = None
    open: Annotated[list[str] | None, Field(description="All that is open now. Empty: nothing.", min_length=0)] = None


class CreatePin(Input):
    """The specification's CreatePinRequest. Without a session it is known in its project, or to the person."""

    session_id: SessionName | None = None
    content: Annotated[str, Field(description="The fact, in words that make sense alone.", min_length=1, pattern=r"\S")]
    source_message_id: MessageRef | None = None
    importance_score: Annotated[float | None, Field(description="0 to 1. Default: 0.8.")] = None
    pin_type: PinTypeName = "manual"
    scope: Annotated[ReachName | None, Field(description="Which contexts show it. Default: by what it says.")] = None
    replaces: Annotated[
        list[str] | None, Field(description="What no longer holds: ids, or words as they were stored.", max_length=20)
    ] = None
    confirmed: Annotated[
        bool, Field(description="The user has confirmed it: needed for the words of a tool or a document.")
    ] = False


class Scored(Output):
    """How many scores changed."""

    session_id: str
    total_messages: int
    changed: int


async def create_summary(call: Call[CreateSummary, InProject]) -> Reply:
    """Summarise a range of messages."""
    body = call.body
    given = {name: tuple(one) for name in LISTS if (one := getattr(body, name)) is not None}
    digest = Digest(**given)
    memory = await call.memory_of(body.session_id)
    made = await memory.create_summary(
        CreateSummaryRequest(
            body.session_id,
            str(body.start_message_id),
            str(body.end_message_id),
            message_count=body.message_count,
            summary=digest.text(body.summary),
            client_key=call.request_key,
        )
    )
    if given:
        await memory.keep_digest(body.session_id, digest, editor=REST)
    summary = Summary(**made.to_dict(), redacted=list(made.redacted) or None)
    return Reply(summary, location=place_of("/records", made.id))


async def create_pin(call: Call[CreatePin, InProject]) -> Reply:
    """Pin a text."""
    body = call.body
    source = body.source_message_id
    memory = call.memory if body.session_id is None else await call.memory_of(body.session_id)
    made = await memory.create_pin(
        CreatePinRequest(
            session_id=body.session_id,
            content=body.content,
            source_message_id=None if source is None else str(source),
            importance_score=body.importance_score,
            pin_type=PinType(body.pin_type),
            client_key=call.request_key,
            client=REST.id,
            is_confirmed=body.confirmed,
            scope=body.scope,
            replaces=tuple(body.replaces or ()),
        )
    )
    pin = Pin(**made.to_dict(), known_already=made.is_known or None, redacted=list(made.redacted) or None)
    return Reply(pin, location=place_of("/records", made.id))


async def score_messages(call: Call[Nothing, InProject]) -> Reply:
    """Score all messages of a session again."""
    session_id = call.path["session_id"]
    memory = await call.memory_of(session_id)
    changed = await memory.conversations.score(session_id)
    stats = await memory.conversations.stats(session_id)
    return Reply(Scored(session_id=stats.session_id, total_messages=stats.total_messages, changed=changed))


SPECIFIED: Final = (
    Endpoint(
        "POST",
        "/memory/summaries",
        Permission.WRITE,
        "Summarise a range of messages",
        create_summary,
        Summary,
        CreateSummary,
        InProject,
        status=201,
        tag="specification",
        takes_key=True,
    ),
    Endpoint(
        "POST",
        "/memory/pins",
        Permission.WRITE,
        "Pin a fact",
        create_pin,
        Pin,
        CreatePin,
        InProject,
        status=201,
        tag="specification",
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
)
