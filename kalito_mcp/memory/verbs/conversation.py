"""What belongs to a conversation: recording it, its context, its summaries, and closing it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from kalito_mcp.domain.access import Permission
from kalito_mcp.domain.context import MOST_TOKENS, Include, MemoryContext
from kalito_mcp.domain.digest import LISTS, Digest, KeptDigest
from kalito_mcp.domain.finalizing import Finalized, FinalizeOptions
from kalito_mcp.domain.records import (
    ConversationSummary,
    CreateSummaryRequest,
    NewMessage,
    Origin,
    RecordType,
    Role,
    SummaryMethod,
)
from kalito_mcp.domain.request_keys import part_key
from kalito_mcp.domain.sessions import MemoryStats
from kalito_mcp.domain.time import from_iso
from kalito_mcp.domain.zone import Zone
from kalito_mcp.errors import Conflict, InvalidInput, RevisionConflict
from kalito_mcp.memory.verbs.json_schemas import fields_given
from kalito_mcp.memory.verbs.shapes import (
    AgentName,
    Also,
    Input,
    MessageName,
    MomentText,
    OriginName,
    Repeatable,
    RoleName,
    SessionName,
)
from kalito_mcp.memory.verbs.verb import Caller, Verb
from kalito_mcp.records.recorder import Recorded
from kalito_mcp.text.host_blocks import heard
from kalito_mcp.text.times.expressions import moment_in_words

NOTHING_YET: Final = "Nothing is remembered yet"
_MOST_COMPARED: Final = 20
"""Summaries of a session, the newest: those of higher levels are made with the last of messages."""
_ISO_DATE: Final = re.compile(r"\s*\d{4,}-")


class MessageInput(Repeatable):
    """One message. Without `created_at` it was said now."""

    role: Annotated[RoleName, Field(description="Who sent it.")]
    text: Annotated[str, Field(description="What was said, word for word.", min_length=1)]
    name: Annotated[
        str | None, Field(description="The speaker's name, if more than two take part.", min_length=1, max_length=200)
    ] = None
    created_at: Annotated[MomentText | None, Field(description="When it was sent, ISO 8601; default: now.")] = None
    model_id: Annotated[str | None, Field(description="The model that wrote it.", min_length=1, max_length=200)] = None
    token_usage: Annotated[
        int | None, Field(description="Tokens used, as the model reported.", ge=0, le=1_000_000_000)
    ] = None
    origin: Annotated[
        OriginName | None,
        Field(description="Whose words: `tool` or `document` if they are not the sender's own."),
    ] = None
    details: Annotated[
        dict[str, Any] | None,
        Field(
            description="tags, attachments, message_type, critical, visibility (`internal`: not for chat), "
            "supersedes (ids of records that it makes outdated).",
            json_schema_extra=fields_given(RecordType.MESSAGE),
        ),
    ] = None


class RecordMessages(Input):
    """Messages of a conversation."""

    messages: Annotated[
        Sequence[MessageInput],
        Field(description="In the order they were said. Either all are stored or none.", min_length=1),
    ]
    agent_id: AgentName = None


class BuildContext(Input):
    """What a context is built for."""

    session_id: SessionName | None = None
    max_tokens: Annotated[
        int | None,
        Field(description="Budget of the whole text, in tokens; default: as configured.", ge=1, le=MOST_TOKENS),
    ] = None
    query: Annotated[
        str | None,
        Field(description="What the user asks now. What matches it in any conversation comes first.", min_length=1),
    ] = None
    also: Also = None
    agent_id: AgentName = None
    seen_messages: Annotated[
        int,
        Field(
            description="How many of the newest recorded messages you still see: they are left out.",
            ge=0,
            le=1_000_000,
        ),
    ] = 0
    pending_input: Annotated[
        bool, Field(description="The newest recorded message is the user's current input: leave it out.")
    ] = False
    include: Annotated[
        list[Literal["internal", "untrusted"]] | None,
        Field(
            description="Also return `internal` thoughts, or `untrusted` text of tools and documents that reads "
            "like an instruction.",
            max_length=2,
        ),
    ] = None


def _sentences(description: str, **more: Any) -> Any:
    return Field(description=description, json_schema_extra=more or None)


class Summarize(Input):
    """Which messages of a conversation to summarise: those without a summary, or a range. `summary` and the lists, of
    at most twelve short whole sentences each, are the caller's own words."""

    summary: Annotated[
        str | None,
        Field(description="Your own summary of them, under 200 words.", min_length=1, pattern=r"\S"),
    ] = None
    decided: Annotated[list[str] | None, _sentences("What was decided, and why.")] = None
    learned: Annotated[list[str] | None, _sentences("Lasting facts.")] = None
    done: Annotated[list[str] | None, _sentences("What is finished.")] = None
    # An empty list closes what was open; a missing one does not.
    open: Annotated[list[str] | None, _sentences("All that is open now; `[]`: nothing.", minItems=0)] = None
    start_message_id: MessageName | None = None
    end_message_id: MessageName | None = None


@dataclass(frozen=True, slots=True)
class Summarized:
    """The summaries that were made, what was pinned, and the session's numbers. Every message may have a summary
    already: then `reworded` is the id of the automatic one that has the caller's words now, or `is_late`, and the
    caller's own was not stored."""

    made: Sequence[ConversationSummary]
    digest: KeptDigest
    stats: MemoryStats
    is_late: bool
    reworded: str | None = None

    @property
    def redacted(self) -> list[str]:
        """What was removed and not stored. A summary has the words of the lists, too."""
        return [one for summary in self.made for one in summary.redacted] or list(self.digest.redacted)


class Finalize(Input):
    """How a conversation is closed."""

    promote: Annotated[
        bool, Field(description="Copy the best questions and answers into the agent's long-term graph.")
    ] = True
    checkpoint: Annotated[bool, Field(description="Write the agent's graph to a snapshot file.")] = True
    checkpoint_name: Annotated[
        str | None,
        Field(
            description="Name of the snapshot; default: the agent's own, which is replaced.",
            min_length=1,
            max_length=100,
        ),
    ] = None
    dry_run: Annotated[bool, Field(description="Change nothing; return what would be merged and promoted.")] = False


def new_messages(
    sent: Sequence[MessageInput], zone: Zone, now_ms: int, request_key: str | None = None
) -> list[NewMessage]:
    """The messages. Words for times count from `now_ms`. The key of a request stands for all of them, and each has a
    part of it as its own. What a host put into a user's message is not the user's. Raises InvalidInput for a time that
    cannot be read."""
    return [part for parts in _parts(sent, zone, now_ms, request_key) for part in parts]


def _parts(
    sent: Sequence[MessageInput], zone: Zone, now_ms: int, request_key: str | None = None
) -> list[list[NewMessage]]:
    """The messages to store for each that was sent; its own is the last."""

    def moment(words: str, place: int) -> int:
        field = f"messages[{place}].created_at"
        # As a name, February 30 would be February.
        if _ISO_DATE.match(words) is not None:
            return from_iso(words, field, zone)
        return moment_in_words(words, field, now_ms, is_last=False, zone=zone)

    given = [
        NewMessage(
            role=Role(one.role),
            text=one.text,
            name=one.name,
            created_at=moment(one.created_at, place) if one.created_at else None,
            model_id=one.model_id,
            token_usage=one.token_usage,
            client_key=part_key(request_key, place) if request_key else one.own_key,
            origin=one.origin and Origin(one.origin),
            details=one.details,
        )
        for place, one in enumerate(sent)
    ]
    return [_ascribed(one) for one in given]


def _ascribed(message: NewMessage) -> list[NewMessage]:
    """The message. Of a user's, what may be a host's comes first as a message of nobody. One without words of the user
    stays as it is, but has the origin `tool`."""
    if message.role is not Role.USER or message.origin not in (None, Origin.USER):
        return [message]
    words, unascribed = heard(message.text)
    if not words:
        return [replace(message, origin=Origin.TOOL)]
    said = message if words == message.text else replace(message, text=words)
    if not unascribed:
        return [said]
    key = message.client_key and f"{message.client_key}:unascribed"
    return [NewMessage(Role.SYSTEM, unascribed, created_at=message.created_at, client_key=key), said]


async def record_messages(caller: Caller, sent: RecordMessages) -> Recorded:
    """Append messages to a session; a new one is created. The result has one message for each that was sent."""
    memory = caller.memory
    parts = _parts(sent.messages, memory.zone, memory.place.clock.now_ms(), caller.request_key)
    new = [part for one in parts for part in one]
    recorded = await memory.record_messages(caller.session, new, agent_id=sent.agent_id, client=caller.editor.id)
    stored = iter(recorded.messages)
    each = [[next(stored) for _ in one] for one in parts]
    return replace(
        recorded,
        messages=tuple(one[-1] for one in each),
        added=tuple(added for one in each for added in one[:-1]),
    )


async def build_context(
    caller: Caller, sent: BuildContext, *, as_json: bool = False, is_preview: bool = False
) -> MemoryContext:
    """A context for a model, or a preview, in which nothing counts as used. `as_json`: its budget is of the JSON."""
    memory = caller.memory
    build = memory.manager.build_context if is_preview else partial(memory.build_context, client=caller.editor.id)
    built = await build(
        sent.session_id,
        sent.max_tokens,
        agent_id=sent.agent_id,
        query=sent.query,
        pending_input=sent.pending_input,
        seen_messages=sent.seen_messages,
        include=[Include(one) for one in sent.include or ()],
        as_json=as_json,
        seen=caller.seen,
        also=sent.also or (),
    )
    has_room = built.total_tokens + len(NOTHING_YET) <= built.max_tokens
    if has_room and not built.made_of and await memory.conversations.is_empty():
        return replace(built, note=NOTHING_YET, text=f"{built.text}\n{NOTHING_YET}")
    return built


async def summarize(caller: Caller, sent: Summarize, *, message_count: int | None = None) -> Summarized:
    """Summarise a range, or what has no summary yet, with the caller's words if there are any; keep the lists. A range
    must have `message_count` messages, if that is given.

    Raises:
        InvalidInput: only one end of the range is named. Conflict: all has a summary already, the last one in a
            caller's words, so this one is late.
    """
    session, conversations = caller.session, caller.memory.conversations
    lists = {name: tuple(one) for name in LISTS if (one := getattr(sent, name)) is not None}
    digest = Digest(**lists)
    words = digest.text(sent.summary)
    made: Sequence[ConversationSummary]
    reworded: str | None = None
    if sent.start_message_id is not None or sent.end_message_id is not None:
        made = [await _of_range(caller, sent, words, message_count)]
    elif words is not None:
        adopted = await conversations.adopt_summary(session, words)
        if adopted is None and sent.summary is not None:
            reworded = await _reworded(caller, words)
        if adopted is None and reworded is None and not lists:
            raise Conflict(
                f"every message of session {session!r} has a summary already, so yours was not stored; "
                "keep it with create_pin, or send it after the next messages"
            )
        made = [adopted] if adopted else []
    else:
        made = await conversations.summarize(session)
    kept = await caller.memory.keep_digest(session, digest, editor=caller.editor) if lists else KeptDigest()
    is_late = sent.summary is not None and not made and reworded is None
    return Summarized(made, kept, await conversations.stats(session), is_late, reworded)


async def _reworded(caller: Caller, words: str) -> str | None:
    """Give the last summary of the session these words, if it was made automatically and nobody edits it meanwhile.
    Returns its id."""
    records = caller.memory.records
    newest = await records.page(frozenset({RecordType.SUMMARY}), session_id=caller.session, limit=_MOST_COMPARED)
    of_messages = [one for one in newest if one.content.get("level") == 0]
    last = max(of_messages, key=lambda one: one.content["end_seq"], default=None)
    if last is None or last.content.get("method") == SummaryMethod.CALLER or last.revision > 1:
        return None
    edited = {"text": words}
    try:
        await caller.memory.update_memory(last.id, edited, expected_revision=last.revision, editor=caller.editor)
    except RevisionConflict:
        return None
    return last.id


async def _of_range(
    caller: Caller, sent: Summarize, words: str | None, message_count: int | None
) -> ConversationSummary:
    if sent.start_message_id is None or sent.end_message_id is None:
        raise InvalidInput("send start_message_id and end_message_id together, or neither")
    return await caller.memory.create_summary(
        CreateSummaryRequest(
            caller.session,
            sent.start_message_id,
            sent.end_message_id,
            message_count=message_count,
            summary=words,
            client_key=caller.request_key,
        )
    )


async def finalize(caller: Caller, sent: Finalize) -> Finalized:
    """Close a session."""
    options = FinalizeOptions(sent.promote, sent.checkpoint, sent.checkpoint_name, sent.dry_run)
    return await caller.memory.finalize_session(caller.session, options, caller.progress)


RECORD: Final = Verb("record_messages", Permission.WRITE, "Record messages, all or none", RecordMessages)
CONTEXT: Final = Verb("build_context", Permission.READ, "Build the context of a conversation for a model", BuildContext)
SUMMARIZE: Final = Verb("summarize_session", Permission.WRITE, "Summarise a range of messages", Summarize)
FINALIZE: Final = Verb("finalize_session", Permission.WRITE, "Close a conversation", Finalize)
