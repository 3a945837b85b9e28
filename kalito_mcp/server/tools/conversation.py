"""Tools of the conversation: record_messages, build_context, summarize_session, finalize_session."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final, Literal

from mcp.server.apps import client_supports_apps
from mcp.types import CallToolResult
from pydantic import Field

from kalito_mcp.capture.conversations import MOST_CONTINUED, continued
from kalito_mcp.domain.digest import KeptDigest
from kalito_mcp.domain.finalizing import Finalized
from kalito_mcp.domain.records import ConversationSummary, Repetition
from kalito_mcp.domain.sessions import SessionState
from kalito_mcp.errors import SessionFinalized
from kalito_mcp.memory.verbs import conversation as verbs
from kalito_mcp.memory.verbs.shapes import ClientKey, Summary
from kalito_mcp.memory.verbs.verb import Caller
from kalito_mcp.safety.escaping import json_text
from kalito_mcp.server.app.used import of_context, with_records
from kalito_mcp.server.tools.answers import answer, redaction_lines, text_answer
from kalito_mcp.server.tools.serving import ToolContext, caller_of, serving
from kalito_mcp.server.tools.shapes import (
    FinalizedSession,
    Project,
    ReadProject,
    RecordedMessages,
    SessionId,
    SummarizedSession,
)
from kalito_mcp.text.plurals import plural

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory

_SHOWN_SUMMARIES: Final = 10
"""A backlog can yield hundreds; hosts truncate answers that long."""
_WITHOUT_SUMMARY: Final = "Every message has a summary already, so yours was not stored; your lists count"


_REWORDED: Final = "Every message has a summary already. {}, which was made automatically, has your words now"


class MessageInput(verbs.MessageInput):
    """One message. camelCase is accepted as well."""

    client_key: ClientKey = None

    @property
    def own_key(self) -> str | None:
        return self.client_key


class RecordMessages(verbs.RecordMessages):
    """The arguments of record_messages."""

    messages: Annotated[
        Sequence[MessageInput],
        Field(description="In the order they were said. Either all are stored or none.", min_length=1),
    ]
    session_id: SessionId = None
    project: Project = None


class BuildContext(verbs.BuildContext):
    """The arguments of build_context."""

    session_id: SessionId = None
    project: ReadProject = None
    format: Annotated[
        Literal["text", "structured"], Field(description="`structured` returns the parts as JSON instead of text.")
    ] = "text"


class Summarize(verbs.Summarize):
    """The arguments of summarize_session."""

    session_id: SessionId = None


class Finalize(verbs.Finalize):
    """The arguments of finalize_session."""

    session_id: SessionId = None


async def record_messages(context: ToolContext, sent: RecordMessages) -> Annotated[CallToolResult, RecordedMessages]:
    """Store messages of the conversation. Returns their ids, and the session_id, which is new if none was sent.
    The messages are on disk by then. Summaries and pins are made automatically. Not needed where hooks of the host
    record the conversation. Does not answer or search; to keep one fact in every context, use create_pin."""
    opened = serving(context).opened
    memory = await opened.memory_for(sent.project)
    session = sent.session_id or opened.host_session
    if not session and not sent.agent_id:
        # A host that does not name its conversation may have hooks that do.
        session = await memory.hooks.conversation_of(
            verbs.new_messages(sent.messages, memory.zone, memory.place.clock.now_ms())
        )
    session, continues = session or memory.conversations.new_id(), None
    try:
        recorded = await verbs.record_messages(caller_of(context, memory, session), sent)
    except SessionFinalized:
        continues, session = session, await _session_after(memory, session)
        recorded = await verbs.record_messages(caller_of(context, memory, session), sent)
    hidden, brought_back = recorded.ids_of(Repetition.HIDDEN), recorded.ids_of(Repetition.BROUGHT_BACK)
    is_new = not recorded.session.message_count and sent.session_id is not None
    near = await memory.conversations.similar_name(recorded.session.id) if is_new else None
    stored = RecordedMessages(
        session_id=recorded.session.id,
        project=recorded.session.project,
        recorded=recorded.new_count,
        duplicates=len(recorded.message_ids) - recorded.new_count - recorded.erased_count,
        message_ids=recorded.message_ids,
        total_messages=recorded.total_messages,
        erased_before=recorded.erased_count or None,
        left_out=recorded.left_out_count or None,
        hidden=hidden or None,
        brought_back=brought_back or None,
        redacted=list(recorded.redacted) or None,
        continues=continues,
        note=None if near is None else f"This session is new. Did you mean {near!r}? Its name is almost the same",
    )
    return answer(". ".join([*_recorded_lines(stored), *redaction_lines(recorded.redacted)]), stored)


def _recorded_lines(stored: RecordedMessages) -> Iterator[str]:
    place = f" of project {stored.project}" if stored.project else ""
    yield (
        f"Recorded {plural(stored.recorded, 'message')} in session {stored.session_id}{place} "
        f"({plural(stored.duplicates, 'duplicate')}, {stored.total_messages} in all): {', '.join(stored.message_ids)}"
    )
    if stored.erased_before:
        yield f"Not stored, because erased before: {stored.erased_before}"
    if stored.left_out:
        yield f"Not stored, because they repeat what was forgotten: {stored.left_out}"
    if stored.hidden:
        yield f"Hidden, because they repeat what was forgotten: {', '.join(stored.hidden)}"
    if stored.brought_back:
        yield f"Had been forgotten, and is remembered again, as the user said it: {', '.join(stored.brought_back)}"
    if stored.note:
        yield stored.note
    if stored.continues:
        yield f"Session {stored.continues} was closed, so go on with {stored.session_id}"


async def build_context(context: ToolContext, sent: BuildContext) -> CallToolResult:
    """Return what is remembered as text, within a token budget: what is known, messages of any conversation that
    match the query, and the summaries, pins and newest messages of this one. Stores nothing. For single records
    with their ids, use search_memory."""
    server = serving(context)
    chosen = sent.session_id or server.opened.host_session
    memory = await server.opened.memory_asked(sent.project, chosen)
    caller = replace(
        caller_of(context, memory),
        seen=await server.own.seen(sent.session_id) if sent.query or sent.also else frozenset(),
    )
    # The first turn of a conversation has no session.
    session = server.opened.session(chosen) if chosen else None
    is_json = sent.format == "structured"
    built = await verbs.build_context(caller, sent.model_copy(update={"session_id": session}), as_json=is_json)
    said = text_answer(json_text(built.to_dict()), built.to_dict()) if is_json else text_answer(built.text)
    return await with_records(caller.memory, said, of_context(built)) if client_supports_apps(context) else said


async def summarize_session(context: ToolContext, sent: Summarize) -> Annotated[CallToolResult, SummarizedSession]:
    """Summarise the messages that have no summary yet, in your words or automatically. Happens by itself: call this
    at the end of work, or when you know what was decided and what is still open. The next conversation begins with
    these lists of short whole sentences. start_message_id and end_message_id name a range that begins after the
    last summary."""
    done = await verbs.summarize(await _in_session(context, sent.session_id), sent)
    made, stats, redacted = done.made, done.stats, done.redacted
    note = _WITHOUT_SUMMARY if done.is_late else _REWORDED.format(done.reworded) if done.reworded else None
    counts = f"{stats.summarized_messages} of {plural(stats.total_messages, 'message')} of session {stats.session_id}"
    return answer(
        "\n".join(
            [
                f"Made {plural(len(made), 'summary')}; summarised so far: {counts}.{_last(made)}",
                *_lines(made),
                *_digest_lines(done.digest),
                *([note] if note else []),
                *redaction_lines(redacted),
            ]
        ),
        SummarizedSession(
            session_id=stats.session_id,
            summaries_made=len(made),
            summaries=_shown(made),
            summarized_messages=stats.summarized_messages,
            total_messages=stats.total_messages,
            pinned=list(done.digest.pins) or None,
            closed=list(done.digest.closed) or None,
            note=note,
            redacted=redacted or None,
        ),
    )


async def finalize_session(context: ToolContext, sent: Finalize) -> Annotated[CallToolResult, FinalizedSession]:
    """Close a conversation that is finished: the rest is summarised, and its best questions and answers are kept
    for others. Not for a goodbye or the end of a day: an open conversation loses nothing, and a message to a closed
    one begins another. Everything stays searchable. Calling it again resumes what was interrupted."""
    caller = replace(await _in_session(context, sent.session_id), progress=context.report_progress)
    finalized = await verbs.finalize(caller, sent)
    closed, made = finalized.session, finalized.summaries
    total = closed.message_count - closed.hidden_count
    text = (
        f"Session {closed.id} is {closed.state}: {plural(total, 'message')}, "
        f"{plural(closed.pin_count, 'pin')}, {plural(closed.summary_count, 'summary')}; "
        f"{plural(len(made), 'summary')} made now.{_last(made)}"
    )
    return answer(
        "\n".join([text, *_lines(made), *_graph_lines(finalized)]),
        FinalizedSession(
            session_id=closed.id,
            state=closed.state.value,
            dry_run=finalized.is_dry_run,
            questions_merged=finalized.sleep.freed_capacity if finalized.sleep else None,
            questions_kept=len(finalized.promotion.query_ids) if finalized.promotion else None,
            answers_kept=finalized.promotion.answers if finalized.promotion else None,
            snapshot=finalized.snapshot.name if finalized.snapshot else None,
            summaries_made=len(made),
            summaries=_shown(made),
            total_messages=total,
            total_summaries=closed.summary_count,
            total_pins=closed.pin_count,
        ),
    )


async def _in_session(context: ToolContext, session_id: str | None) -> Caller:
    """The caller, in the session that the call or else the host names."""
    opened = serving(context).opened
    session = opened.session(session_id)
    return caller_of(context, await opened.memory_of(session), session)


def _shown(made: Sequence[ConversationSummary]) -> list[Summary]:
    return [Summary(**one.to_dict()) for one in made[-_SHOWN_SUMMARIES:]]


def _digest_lines(kept: KeptDigest) -> Iterator[str]:
    if kept.pins:
        yield f"Pinned of your lists: {', '.join(kept.pins)}."
    if kept.closed:
        yield f"No longer open, and forgotten: {', '.join(kept.closed)}."


async def _session_after(memory: "Memory", closed: str) -> str:
    """The session that goes on after this one was closed, as it does where hooks record."""
    for number in range(2, MOST_CONTINUED):
        found = await memory.conversations.get(continued(closed, number))
        if found is None or found.state is SessionState.OPEN:
            return continued(closed, number)
    return continued(closed, MOST_CONTINUED)


def _graph_lines(finalized: Finalized) -> Iterator[str]:
    """What happened to its questions and answers, or would happen after a dry run."""
    would = "would be" if finalized.is_dry_run else "were"
    if finalized.is_dry_run:
        yield "Dry run: nothing was changed."
    if finalized.sleep is not None:
        yield f"{plural(finalized.sleep.freed_capacity, 'question')} {would} merged with similar ones."
    if finalized.promotion is not None:
        questions, answers = len(finalized.promotion.query_ids), finalized.promotion.answers
        yield f"{plural(questions, 'question')} and {plural(answers, 'answer')} {would} kept for other conversations."
    if finalized.snapshot is not None:
        yield f"Snapshot {finalized.snapshot.name} written."


def _last(made: Sequence[ConversationSummary]) -> str:
    return f" The last {_SHOWN_SUMMARIES}:" if len(made) > _SHOWN_SUMMARIES else ""


def _lines(made: Sequence[ConversationSummary]) -> list[str]:
    return [_line(summary) for summary in made[-_SHOWN_SUMMARIES:]]


def _line(summary: ConversationSummary) -> str:
    fields = summary.to_dict()
    note = f", {summary.note}" if summary.note else ""
    author = f"{fields['method']} {summary.model_id}" if summary.model_id else fields["method"]
    return (
        f"{summary.id} (level {summary.level}, {plural(summary.message_count, 'message')}, "
        f"{summary.start_seq} to {summary.end_seq}: {summary.start_message_id} to {summary.end_message_id}, "
        f"by {author}, importance {summary.importance_score}, {fields['created_at']}{note}): {summary.summary}"
    )
