"""`Memory`: one verb per tool. It hands each call to the service that does it."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from kalito_mcp.contexts.manager import MemoryManager
from kalito_mcp.domain.context import Include, MemoryContext
from kalito_mcp.domain.erasing import PurgeReport
from kalito_mcp.domain.finalizing import Finalized, FinalizeOptions, Progress
from kalito_mcp.domain.graph import FeedbackLabel, KeptFeedback, PastAnswer
from kalito_mcp.domain.memory_records import Editor, EditorType, MemoryRecord
from kalito_mcp.domain.records import (
    ConversationSummary,
    CreatePinRequest,
    CreateSummaryRequest,
    NewMessage,
    RecordType,
    SemanticPin,
)
from kalito_mcp.domain.scope import LOCAL_OWNER, Scope
from kalito_mcp.domain.search import SearchPage, SearchRequest
from kalito_mcp.domain.sessions import MemoryStats, Session
from kalito_mcp.editing.editor import RecordEditor
from kalito_mcp.editing.eraser import Eraser
from kalito_mcp.editing.kinds import NOTE, as_record
from kalito_mcp.errors import InvalidInput
from kalito_mcp.orchestrator.agent_graphs import AgentGraphs
from kalito_mcp.orchestrator.orchestrator import MemoryOrchestrator
from kalito_mcp.orchestrator.orchestrators import Orchestrators
from kalito_mcp.pins.automatic import is_found_pin
from kalito_mcp.ports.clock import Clock, IdSource
from kalito_mcp.ports.store import Store
from kalito_mcp.records.historian import Historian
from kalito_mcp.records.recorder import Recorded, Recorder
from kalito_mcp.retrieval.search import Searcher
from kalito_mcp.summaries.keeper import SummaryKeeper
from kalito_mcp.upkeep.finalizer import Finalizer
from kalito_mcp.upkeep.owed_worker import OwedWorker
from kalito_mcp.upkeep.usage_counter import UsageCounter
from kalito_mcp.upkeep.vector_worker import VectorWorker

PROGRAM: Final = Editor(EditorType.AGENT, "python")
"""The editor unless the caller names one: a program, whose words are not the user's."""


class Memory:
    """An opened memory of one owner. Get one from `open_memory`.

    Every method that changes something is durable when it returns. Methods that take ids of sessions, agents or records
    raise `InvalidInput` for an id that is empty, too long or looks like a secret. Without `agent_id` the agent is
    `default`, or the one that the session belongs to.
    """

    def __init__(
        self,
        *,
        store: Store,
        manager: MemoryManager,
        recorder: Recorder,
        summaries: SummaryKeeper,
        searcher: Searcher,
        finalizer: Finalizer,
        orchestrators: Orchestrators,
        graphs: AgentGraphs,
        owed: OwedWorker,
        editor: RecordEditor,
        eraser: Eraser,
        historian: Historian,
        usage: UsageCounter,
        clock: Clock,
        ids: IdSource,
        vectors: VectorWorker | None = None,
        owner: str = LOCAL_OWNER,
    ) -> None:
        self.manager = manager
        """The specification's memory manager, with all its methods."""
        self.clock = clock
        self._store = store
        self._recorder = recorder
        self._summaries = summaries
        self._searcher = searcher
        self._finalizer = finalizer
        self._orchestrators = orchestrators
        self._graphs = graphs
        self._owed = owed
        self._editor = editor
        self._eraser = eraser
        self._historian = historian
        self._usage = usage
        self._vectors = vectors
        self._ids = ids
        self._owner = owner

    def new_session_id(self) -> str:
        """An unguessable handle for a conversation that has none."""
        return self._ids.session_id()

    async def record_messages(
        self,
        session_id: str,
        messages: Sequence[NewMessage],
        *,
        agent_id: str | None = None,
        client: str | None = None,
    ) -> Recorded:
        """Append messages to a session, all of them or none; a new session is created.

        They are on disk when this returns. Pins, summaries and the graph follow in the background. A message whose
        `client_key` was recorded before is not stored again. Secrets are removed first; `Recorded.redacted` says which.

        Raises:
            InvalidInput: no message, too many, or one that cannot be stored; nothing was recorded.
            SessionFinalized: the session is closed.
            ClientKeyReused: a known `client_key` with another role or text.
        """
        recorded = await self._recorder.record(self._scope(session_id, agent_id), messages, client=client)
        self._owed.nudge(self._scope(session_id))
        return recorded

    async def build_context(
        self,
        session_id: str | None = None,
        max_tokens: int | None = None,
        *,
        agent_id: str | None = None,
        query: str | None = None,
        pending_input: bool = False,
        seen_messages: int = 0,
        include: Collection[Include] = (),
        as_json: bool = False,
    ) -> MemoryContext:
        """What a session remembers, as text of at most `max_tokens` tokens (`context.token_limit` if absent).

        It has the newest messages, what matches `query` in any of the agent's sessions (without a session only that),
        the most important pins and the summaries; all count as used. `pending_input` leaves out the newest message if
        it is the user's, `seen_messages` so many of the newest: the model has them. `include` asks for what is left out
        otherwise. `as_json` counts what `MemoryContext.to_dict` gives.

        Raises:
            InvalidInput, BudgetTooSmall: `max_tokens` is out of range or too small, or the agent is mistyped.
            SessionNotFound: the agent has no such session, and there is no query, or a similar session.
        """
        context = await self.manager.build_context(
            session_id,
            max_tokens,
            agent_id=agent_id,
            query=query,
            pending_input=pending_input,
            seen_messages=seen_messages,
            include=include,
            as_json=as_json,
        )
        self._usage.used(context.used_ids)
        return context

    async def create_pin(self, request: CreatePinRequest) -> SemanticPin:
        """Pin a text in a session; a new session is created. A known `client_key` returns its pin.

        Raises:
            InvalidInput: the text, an id or the importance is not acceptable.
            ClientKeyReused: a known `client_key` with another text.
            RecordNotFound: `source_message_id` is not a message of the session.
            Conflict: the source message is not in the user's or the assistant's own words, and `is_confirmed` is not
                set; or the same pin was erased.
            SessionFinalized: the session is closed.
        """
        return await self.manager.create_semantic_pin(request)

    async def summarize_session(self, session_id: str) -> Sequence[ConversationSummary]:
        """Summarise all messages without a summary, including the newest, and fold what is due; the new summaries.
        Raises SessionNotFound."""
        return await self._summaries.summarize_all(self._scope(session_id))

    async def create_summary(self, request: CreateSummaryRequest) -> ConversationSummary:
        """Summarise a range of messages: with the caller's text, or else with the session's model or without one.

        Raises:
            InvalidInput: the text is blank or too long, the range is reversed, or `message_count` is wrong.
            RecordNotFound: an end of the range is not a message of the session.
            SummaryRangeConflict: the range does not begin right after the last summary; says where that is.
            SessionNotFound: no such session.
            SessionFinalized: the session is closed.
        """
        return await self.manager.create_summary(request)

    async def adopt_summary(self, session_id: str, summary: str) -> ConversationSummary | None:
        """Store the caller's summary of all messages without one; None if every message has a summary.

        Raises:
            InvalidInput: the text is empty or too long.
            SessionNotFound: no such session.
            SessionFinalized: the session is closed.
        """
        return await self._summaries.adopt(self._scope(session_id), summary)

    async def search_memory(
        self, request: SearchRequest, *, session_id: str | None = None, agent_id: str | None = None
    ) -> SearchPage:
        """Find records that match a query, best first: in one session, or in all of an agent's. The hits count as used.

        Raises:
            InvalidInput: the query is empty or too long, `k` is out of range, or the cursor is from another search.
        """
        page = await self._searcher.search(Scope(self._owner, agent_id, session_id), request)
        self._usage.used(hit.record_id for hit in page.hits)
        return page

    async def past_answers(
        self,
        query: str,
        *,
        session_id: str | None = None,
        agent_id: str | None = None,
        current_session_id: str | None = None,
    ) -> Sequence[PastAnswer]:
        """Similar questions that were asked before, with their answers and the feedback on them.

        With `session_id`, those of that session; an unknown session has none. Else those of the agent's long-term graph
        and of `current_session_id`.
        """
        scope = self._scope(session_id, agent_id)
        return await self._graphs.past_answers(scope, query, current_session_id=current_session_id)

    async def record_feedback(
        self,
        target_id: str,
        label: FeedbackLabel | str,
        note: str | None = None,
        *,
        session_id: str | None = None,
        agent_id: str | None = None,
    ) -> KeptFeedback:
        """Remember what the user thought of a question or an answer, named by its message or its node.

        Raises:
            RecordNotFound: no graph has it.
            InvalidInput: the label is not up, down or retry, or the session belongs to another agent.
            Conflict: the graph is switched off.
            SessionNotFound: no such session.
        """
        return await self._graphs.record_feedback(self._scope(session_id, agent_id), target_id, label, note)

    def orchestrator(self, agent_id: str | None = None) -> MemoryOrchestrator:
        """The specification's `MemoryOrchestrator` of an agent: its long-term graph and those of its sessions."""
        return self._orchestrators.of(self._scope(None, agent_id), finalize=self._finalizer.finalize)

    async def graph_overview(self, *, session_id: str | None = None, agent_id: str | None = None) -> dict[str, Any]:
        """Counts and top nodes of a session's graph, or of an agent's, JSON-ready. Raises SessionNotFound."""
        return await self._graphs.overview(self._scope(session_id, agent_id))

    async def remember(
        self,
        record_type: RecordType | str,
        fields: Mapping[str, Any],
        *,
        session_id: str | None = None,
        agent_id: str | None = None,
        editor: Editor = PROGRAM,
    ) -> Sequence[MemoryRecord]:
        """Store a note, a thought, a document or a task, in a session or for an agent as a whole.

        A document is stored in parts, one record each. One with a known `source` replaces the former: parts that read
        the same stay, parts that are gone are forgotten, and parts that were erased for good are left out. A `note` is
        a short document without a source. With an `editor` of type HUMAN the text counts as the user's own words.

        Raises:
            InvalidInput: an unknown type, or a field that is unknown, missing or wrong; nothing was written.
            Conflict: the session is closed, the document is forgotten, or the same text was erased for good; nothing
                was written.
            RecordNotFound: `caused_by` names no record; nothing was written.
        """
        kind, given, origin = as_record(
            str(record_type),
            fields,
            editor,
            new_source=lambda: f"{NOTE}:{self._ids.record_id(NOTE, self.clock.now_ms())}",
        )
        return await self._editor.remember(self._scope(session_id, agent_id), kind, given, editor=editor, origin=origin)

    async def record(self, record_id: str) -> MemoryRecord:
        """One record as it is, forgotten or not.

        Raises:
            RecordNotFound: no such record, or it was erased.
            StorageDamaged: its row is not as it was written.
        """
        return await self._historian.record(self._scope(None), record_id)

    async def records(self, record_id: str) -> Sequence[MemoryRecord]:
        """The record of this id, or all parts of the document of this id. Raises RecordNotFound."""
        return await self._historian.records(self._scope(None), record_id)

    async def derived_from(self, record_id: str) -> tuple[Sequence[MemoryRecord], Sequence[MemoryRecord]]:
        """Pins made from a message, except automatic ones, and the summaries over it. Raises RecordNotFound."""
        pins, summaries = await self._historian.derived_from(self._scope(None), record_id)
        # Automatic pins follow their message by themselves.
        return [pin for pin in pins if not is_found_pin(pin)], summaries

    async def update_memory(
        self, record_id: str, changes: Mapping[str, Any], *, expected_revision: int, editor: Editor = PROGRAM
    ) -> MemoryRecord:
        """Change fields of a record; a field set to None is removed. What was derived from it follows. If nothing
        changes, no edit is made.

        Raises:
            RevisionConflict: the record is no longer at `expected_revision`; nothing was written.
            RecordNotFound: no such record, or it was erased.
            InvalidInput: a field that is unknown, fixed or wrong.
            Conflict: the record is forgotten, or its state does not allow the change.
        """
        return await self._editor.update(
            self._scope(None), record_id, changes, expected_revision=expected_revision, editor=editor
        )

    async def forget(self, record_id: str, *, editor: Editor = PROGRAM) -> Sequence[MemoryRecord]:
        """Hide a record, or all parts of a document, from every context and search. Raises RecordNotFound."""
        return await self._editor.forget(self._scope(None), record_id, editor=editor)

    async def restore(self, record_id: str, *, editor: Editor = PROGRAM) -> Sequence[MemoryRecord]:
        """Undo `forget`. Raises RecordNotFound."""
        return await self._editor.restore(self._scope(None), record_id, editor=editor)

    async def revert(self, record_id: str, version: int, *, editor: Editor = PROGRAM) -> MemoryRecord:
        """Give a record the content of an earlier version, as a new version.

        Raises:
            RecordNotFound: no such record, or it was erased.
            InvalidInput: no such version.
            Conflict: the state of the record does not allow it.
        """
        return await self._editor.revert(self._scope(None), record_id, version, editor=editor)

    async def history(self, record_id: str) -> list[dict[str, Any]]:
        """Every edit of a record, oldest first, JSON-ready. Raises RecordNotFound."""
        return await self._historian.history(self._scope(None), record_id)

    async def version(self, record_id: str, number: int) -> MemoryRecord:
        """A record as it was in one version. Raises RecordNotFound, InvalidInput."""
        return await self._historian.version(self._scope(None), record_id, number)

    async def record_as_of(self, record_id: str, moment_ms: int) -> MemoryRecord:
        """A record as it was at a moment. Raises RecordNotFound, also if it did not exist yet."""
        return await self._historian.as_of(self._scope(None), record_id, moment_ms)

    async def diff(self, record_id: str, old: int, new: int) -> list[str]:
        """The differences between two versions, one line each. Raises RecordNotFound, InvalidInput."""
        return await self._historian.diff(self._scope(None), record_id, old, new)

    async def tasks(self, *, agent_id: str | None = None, is_done: bool | None = None) -> list[MemoryRecord]:
        """The agent's tasks, those due first at the top. `is_done` narrows them to finished or open ones."""
        return await self._historian.tasks(self._scope(None, agent_id or None), is_done=is_done)

    async def purge(self, record_ids: Sequence[str]) -> PurgeReport:
        """Erase records and everything made from them, from every file. Ids that were erased before are accepted.

        Without ids it only finishes what an earlier purge could not. `PurgeReport.remaining` names the places that may
        still hold the words, and `is_owed` says that the memory itself will try again.

        Raises:
            RecordNotFound: an id is unknown; nothing was erased.
            InvalidInput: `record_ids` is a string, not a list.
        """
        if isinstance(record_ids, str):
            raise InvalidInput("record_ids is a string; send a list of ids")
        return await self._eraser.purge(self._scope(None), record_ids)

    async def finalize_session(
        self, session_id: str, options: FinalizeOptions | None = None, progress: Progress | None = None
    ) -> Finalized:
        """Close a session: summarise the rest, promote the best of its graph into the agent's, write a snapshot.

        Calling again continues an interrupted call, and changes nothing after a finished one, except that a named
        snapshot is written each time. `progress` is called with the stages done, their number, and the stage's name.

        Raises:
            SessionNotFound: no such session.
            InvalidInput: `checkpoint_name` cannot be a name; nothing was changed.
        """
        return await self._finalizer.finalize(self._scope(session_id), options, progress)

    async def session_stats(self, session_id: str) -> MemoryStats:
        """Counts, dates and mean importance of a session. Raises SessionNotFound."""
        return await self.manager.memory_stats(session_id)

    async def list_sessions(
        self, *, prefix: str = "", agent_id: str | None = None, limit: int = 100
    ) -> Sequence[Session]:
        """Sessions whose id starts with the prefix, last written first."""
        async with self._store.read() as view:
            return await view.sessions.list_recent(self._scope(None, agent_id), prefix=prefix, limit=limit)

    async def settled(self) -> None:
        """Wait until the background work for this memory's own calls is done: pins, summaries, graph, uses, vectors."""
        await self._owed.settled()
        await self._usage.flush()
        if self._vectors is not None:
            await self._vectors.settled()

    def _scope(self, session_id: str | None, agent_id: str | None = None) -> Scope:
        return Scope(owner=self._owner, agent=agent_id, session=session_id)
