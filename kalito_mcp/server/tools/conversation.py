"""Tools of the conversation: record_messages, build_context, summarize_session, finalize_session."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult
from pydantic import Field

from kalito_mcp.capture.conversations import MOST_CONTINUED, continued
from kalito_mcp.domain.context import MOST_TOKENS, Include
from kalito_mcp.domain.digest import LISTS, Digest, KeptDigest
from kalito_mcp.domain.finalizing import Finalized, FinalizeOptions
from kalito_mcp.domain.records import ConversationSummary, CreateSummaryRequest, NewMessage, Origin, Repetition, Role
from kalito_mcp.domain.sessions import SessionState
from kalito_mcp.domain.time import from_iso
from kalito_mcp.domain.zone import Zone
from kalito_mcp.errors import Conflict, InvalidInput, SessionFinalized
from kalito_mcp.safety.escaping import json_text
from kalito_mcp.server.memory_handle import MemoryHandle
from kalito_mcp.server.own_conversation import OwnConversation
from kalito_mcp.server.tools.answers import answer, redaction_lines, text_answer
from kalito_mcp.server.tools.records import editor_of
from kalito_mcp.server.tools.shapes import (
    AgentId,
    Also,
    Decided,
    Done,
    FinalizedSession,
    Learned,
    MessageInput,
    MessageRef,
    Open,
    Project,
    ReadProject,
    RecordedMessages,
    SessionId,
    SummarizedSession,
)
from kalito_mcp.shapes import Summary
from kalito_mcp.text.plurals import plural

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory

_SHOWN_SUMMARIES: Final = 10
"""A backlog can yield hundreds; hosts truncate answers that long."""
_WITHOUT_SUMMARY: Final = "Every message has a summary already, so yours was not stored; your lists count"


class ConversationTools:
    """The tools that record, recall, summarise and close a conversation."""

    def __init__(self, opened: MemoryHandle, own: OwnConversation) -> None:
        self._opened = opened
        self._own = own

    async def record_messages(
        self,
        context: Context[None, Any],
        messages: Annotated[
            list[MessageInput],
            Field(description="In the order they were said. Either all are stored or none.", min_length=1),
        ],
        session_id: SessionId = None,
        agent_id: AgentId = None,
        project: Project = None,
    ) -> Annotated[CallToolResult, RecordedMessages]:
        """Store messages of the conversation. Returns their ids, and the session_id, which is new if none was sent.
        The messages are on disk by then. Summaries and pins are made automatically. Not needed where hooks of the host
        record the conversation. Does not answer or search; to keep one fact in every context, use create_pin."""
        memory = await self._opened.memory_for(project)
        new = [new_message(message, place, memory.zone) for place, message in enumerate(messages)]
        session = session_id or self._opened.host_session
        if not session and not agent_id:
            # A host that does not name its conversation may have hooks that do.
            session = await memory.hooks.conversation_of(new)
        session = session or memory.conversations.new_id()
        editor, continues = editor_of(context), None
        try:
            recorded = await memory.record_messages(session, new, agent_id=agent_id, client=editor.id)
        except SessionFinalized:
            continues, session = session, await _session_after(memory, session)
            recorded = await memory.record_messages(session, new, agent_id=agent_id, client=editor.id)
        session = recorded.session.id
        ids = recorded.message_ids
        duplicates = len(ids) - recorded.new_count - recorded.erased_count
        hidden, brought_back = recorded.ids_of(Repetition.HIDDEN), recorded.ids_of(Repetition.BROUGHT_BACK)
        project_id = recorded.session.project
        place = f" of project {project_id}" if project_id else ""
        text = (
            f"Recorded {plural(recorded.new_count, 'message')} in session {session}{place} "
            f"({plural(duplicates, 'duplicate')}, {recorded.total_messages} in all): {', '.join(ids)}"
        )
        if recorded.erased_count:
            text += f". Not stored, because erased before: {recorded.erased_count}"
        if recorded.left_out_count:
            text += f". Not stored, because they repeat what was forgotten: {recorded.left_out_count}"
        if hidden:
            text += f". Hidden, because they repeat what was forgotten: {', '.join(hidden)}"
        if brought_back:
            text += f". Had been forgotten, and is remembered again, as the user said it: {', '.join(brought_back)}"
        if continues:
            text += f". Session {continues} was closed, so go on with {session}"
        return answer(
            ". ".join([text, *redaction_lines(recorded.redacted)]),
            RecordedMessages(
                session_id=session,
                project=project_id,
                recorded=recorded.new_count,
                duplicates=duplicates,
                message_ids=ids,
                total_messages=recorded.total_messages,
                erased_before=recorded.erased_count or None,
                left_out=recorded.left_out_count or None,
                hidden=hidden or None,
                brought_back=brought_back or None,
                redacted=list(recorded.redacted) or None,
                continues=continues,
            ),
        )

    async def build_context(
        self,
        session_id: SessionId = None,
        max_tokens: Annotated[
            int | None,
            Field(description="Budget of the whole text, in tokens; default: as configured.", ge=1, le=MOST_TOKENS),
        ] = None,
        query: Annotated[
            str | None,
            Field(
                description="What the user asks now. What matches it in any conversation comes first.",
            ),
        ] = None,
        also: Also = None,
        agent_id: AgentId = None,
        project: ReadProject = None,
        seen_messages: Annotated[
            int,
            Field(
                description="How many of the newest recorded messages you still see: they are left out.",
                ge=0,
                le=1_000_000,
            ),
        ] = 0,
        pending_input: Annotated[
            bool,
            Field(description="The newest recorded message is the user's current input: leave it out."),
        ] = False,
        include: Annotated[
            list[Literal["internal", "untrusted"]] | None,
            Field(
                description="Also return `internal` thoughts, or `untrusted` text of tools and documents that reads "
                "like an instruction.",
                max_length=2,
            ),
        ] = None,
        format: Annotated[  # noqa: A002 - the name that callers expect
            Literal["text", "structured"],
            Field(description="`structured` returns the parts as JSON instead of text."),
        ] = "text",
    ) -> CallToolResult:
        """Return what is remembered as text, within a token budget: what is known, messages of any conversation that
        match the query, and the summaries, pins and newest messages of this one. Stores nothing. For single records
        with their ids, use search_memory."""
        chosen = session_id or self._opened.host_session
        memory = await self._opened.memory_asked(project, chosen)
        context = await memory.build_context(
            self._opened.session(chosen) if chosen else None,  # the first turn of a conversation has no session
            max_tokens,
            agent_id=agent_id or None,
            query=query,
            pending_input=pending_input,
            seen_messages=seen_messages,
            include=[Include(one) for one in include or ()],
            as_json=format == "structured",
            seen=await self._own.seen(session_id) if query or also else frozenset(),
            also=also or (),
        )
        if format == "text":
            return text_answer(context.text)
        return text_answer(json_text(context.to_dict()), context.to_dict())

    async def summarize_session(
        self,
        context: Context[None, Any],
        session_id: SessionId = None,
        summary: Annotated[
            str | None,
            Field(
                description="Your own summary of them, under 200 words.",
                min_length=1,
                pattern=r"\S",
            ),
        ] = None,
        decided: Decided = None,
        learned: Learned = None,
        done: Done = None,
        open: Open = None,  # noqa: A002 - the heading of a digest
        start_message_id: MessageRef = None,
        end_message_id: MessageRef = None,
    ) -> Annotated[CallToolResult, SummarizedSession]:
        """Summarise the messages that have no summary yet, in your words or automatically. Happens by itself: call this
        at the end of work, or when you know what was decided and what is still open. The next conversation begins with
        these lists of short whole sentences. start_message_id and end_message_id name a range that begins after the
        last summary."""
        session = self._opened.session(session_id)
        memory = await self._opened.memory_of(session)
        lists = zip(LISTS, (decided, learned, done, open), strict=True)
        given = {name: tuple(one) for name, one in lists if one is not None}
        digest = Digest(**given)
        words, note = digest.text(summary), None
        made: Sequence[ConversationSummary]
        if start_message_id is not None or end_message_id is not None:
            if start_message_id is None or end_message_id is None:
                raise InvalidInput("send start_message_id and end_message_id together, or neither")
            request = CreateSummaryRequest(session, start_message_id, end_message_id, summary=words)
            made = [await memory.create_summary(request)]
        elif words is not None:
            adopted = await memory.conversations.adopt_summary(session, words)
            if adopted is None and not given:
                raise Conflict(
                    f"every message of session {session!r} has a summary already, so yours was not stored; "
                    "keep it with create_pin, or send it after the next messages"
                )
            made = [adopted] if adopted else []
            note = _WITHOUT_SUMMARY if summary and not adopted else None
        else:
            made = await memory.conversations.summarize(session)
        kept = await memory.keep_digest(session, digest, editor=editor_of(context)) if given else KeptDigest()
        stats = await memory.conversations.stats(session)
        session = stats.session_id
        counts = f"{stats.summarized_messages} of {plural(stats.total_messages, 'message')} of session {session}"
        redacted = [one for summary in made for one in summary.redacted] or list(kept.redacted)
        return answer(
            "\n".join(
                [
                    f"Made {plural(len(made), 'summary')}; summarised so far: {counts}.{_last(made)}",
                    *_lines(made),
                    *_digest_lines(kept),
                    *([note] if note else []),
                    *redaction_lines(redacted),
                ]
            ),
            SummarizedSession(
                session_id=session,
                summaries_made=len(made),
                summaries=[Summary(**one.to_dict()) for one in made[-_SHOWN_SUMMARIES:]],
                summarized_messages=stats.summarized_messages,
                total_messages=stats.total_messages,
                pinned=list(kept.pins) or None,
                closed=list(kept.closed) or None,
                note=note,
                redacted=redacted or None,
            ),
        )

    async def finalize_session(
        self,
        context: Context[None, Any],
        session_id: SessionId = None,
        promote: Annotated[
            bool, Field(description="Copy the best questions and answers into the agent's long-term graph.")
        ] = True,
        checkpoint: Annotated[bool, Field(description="Write the agent's graph to a snapshot file.")] = True,
        checkpoint_name: Annotated[
            str | None,
            Field(description="Name of the snapshot; default: the agent's own, which is replaced.", max_length=100),
        ] = None,
        dry_run: Annotated[
            bool, Field(description="Change nothing; return what would be merged and promoted.")
        ] = False,
    ) -> Annotated[CallToolResult, FinalizedSession]:
        """Close a conversation that is finished: the rest is summarised, and its best questions and answers are kept
        for others. Not for a goodbye or the end of a day: an open conversation loses nothing, and a message to a closed
        one begins another. Everything stays searchable. Calling it again resumes what was interrupted."""
        session = self._opened.session(session_id)
        memory = await self._opened.memory_of(session)
        options = FinalizeOptions(promote, checkpoint, checkpoint_name or None, dry_run)
        finalized = await memory.finalize_session(session, options, context.report_progress)
        session = finalized.session.id
        closed, made = finalized.session, finalized.summaries
        total = closed.message_count - closed.hidden_count
        text = (
            f"Session {session} is {closed.state}: {plural(total, 'message')}, "
            f"{plural(closed.pin_count, 'pin')}, {plural(closed.summary_count, 'summary')}; "
            f"{plural(len(made), 'summary')} made now.{_last(made)}"
        )
        return answer(
            "\n".join([text, *_lines(made), *_graph_lines(finalized)]),
            FinalizedSession(
                session_id=session,
                state=closed.state.value,
                dry_run=finalized.is_dry_run,
                questions_merged=finalized.sleep.freed_capacity if finalized.sleep else None,
                questions_kept=len(finalized.promotion.query_ids) if finalized.promotion else None,
                answers_kept=finalized.promotion.answers if finalized.promotion else None,
                snapshot=finalized.snapshot.name if finalized.snapshot else None,
                summaries_made=len(made),
                summaries=[Summary(**one.to_dict()) for one in made[-_SHOWN_SUMMARIES:]],
                total_messages=total,
                total_summaries=closed.summary_count,
                total_pins=closed.pin_count,
            ),
        )


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


def new_message(message: MessageInput, place: int, zone: Zone) -> NewMessage:
    """The message that a caller sent at this place of its call. Raises InvalidInput if its time cannot be read."""
    moment = message.created_at
    return NewMessage(
        role=Role(message.role),
        text=message.text,
        name=message.name,
        created_at=None if moment is None else from_iso(moment, f"messages[{place}].created_at", zone),
        model_id=message.model_id,
        token_usage=message.token_usage,
        client_key=message.client_key,
        origin=None if message.origin is None else Origin(message.origin),
        details=message.details,
    )


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
