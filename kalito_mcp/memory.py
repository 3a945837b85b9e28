"""`Memory`: one verb per tool. It hands each call to the service that does it."""

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from kalito_mcp.access.sign_in import SignIn
from kalito_mcp.access.tokens import Tokens
from kalito_mcp.access_verbs import AccessVerbs
from kalito_mcp.archive_verbs import ArchiveVerbs
from kalito_mcp.contexts.injector import Injection, Injector
from kalito_mcp.contexts.manager import MemoryManager
from kalito_mcp.domain.arguments import checks_arguments
from kalito_mcp.domain.context import Include, MemoryContext
from kalito_mcp.domain.counts import Counts
from kalito_mcp.domain.finalizing import Finalized, FinalizeOptions, Progress
from kalito_mcp.domain.graph import FeedbackLabel, KeptFeedback
from kalito_mcp.domain.known import Profile
from kalito_mcp.domain.past_answers import PastAnswer
from kalito_mcp.domain.records import (
    ConversationSummary,
    CreateSummaryRequest,
    NewMessage,
)
from kalito_mcp.domain.scope import LOCAL_OWNER, NO_LIMITS
from kalito_mcp.domain.search import SearchPage, SearchRequest, SeenPart
from kalito_mcp.domain.sessions import MemoryStats, Place, Session
from kalito_mcp.domain.zone import UTC_ZONE, Zone
from kalito_mcp.editing.editor import RecordEditor
from kalito_mcp.editing.eraser import Eraser
from kalito_mcp.editing.files import FileEditor
from kalito_mcp.editing.forgetter import Forgetter
from kalito_mcp.file_verbs import FileVerbs
from kalito_mcp.import_verbs import ImportVerbs
from kalito_mcp.kinds.judge import SentenceJudge
from kalito_mcp.orchestrator.agent_graphs import AgentGraphs
from kalito_mcp.orchestrator.orchestrator import MemoryOrchestrator
from kalito_mcp.orchestrator.orchestrators import Orchestrators
from kalito_mcp.pins.digest_pins import DigestPinner
from kalito_mcp.pins.profile import read_profile
from kalito_mcp.ports.clock import Clock, IdSource
from kalito_mcp.ports.store import Store
from kalito_mcp.projects import ProjectPolicy
from kalito_mcp.records.historian import Historian
from kalito_mcp.records.recorder import Recorded, Recorder
from kalito_mcp.retrieval.past_answers import past_answers
from kalito_mcp.retrieval.search import Searcher
from kalito_mcp.seen_verbs import SeenVerbs
from kalito_mcp.summaries.keeper import SummaryKeeper
from kalito_mcp.switch import Switch
from kalito_mcp.upkeep.finalizer import Finalizer
from kalito_mcp.upkeep.owed_worker import OwedWorker
from kalito_mcp.upkeep.store_layers import no_new_words
from kalito_mcp.upkeep.usage_counter import UsageCounter
from kalito_mcp.upkeep.vector_worker import VectorWorker
from kalito_mcp.watch_verbs import WatchVerbs


@checks_arguments
class Memory(ImportVerbs, ArchiveVerbs, FileVerbs, AccessVerbs, WatchVerbs, SeenVerbs):
    """An opened memory of one owner. Get one from `open_memory`.

    Whatever brings new words raises `Conflict` while the memory is paused, and where nothing is remembered.

    Every method that changes something is durable when it returns. Methods that take ids of sessions, agents or records
    raise `InvalidInput` for an id that is empty, too long or looks like a secret. Without `agent_id` the agent is
    `default`, or the one that the session belongs to. `in_project` narrows it to a project.
    """

    def __init__(
        self,
        *,
        store: Store,
        manager: MemoryManager,
        recorder: Recorder,
        summaries: SummaryKeeper,
        searcher: Searcher,
        injector: Injector,
        finalizer: Finalizer,
        orchestrators: Orchestrators,
        graphs: AgentGraphs,
        owed: OwedWorker,
        editor: RecordEditor,
        eraser: Eraser,
        files: FileEditor,
        historian: Historian,
        usage: UsageCounter,
        judge: SentenceJudge,
        digests: DigestPinner,
        clock: Clock,
        ids: IdSource,
        sign_in: SignIn,
        vectors: VectorWorker | None = None,
        projects: ProjectPolicy | None = None,
        switch: Callable[[], Switch] = Switch,
        zone: Zone = UTC_ZONE,
        owner: str = LOCAL_OWNER,
    ) -> None:
        self.manager = manager
        """The specification's memory manager, with all its methods."""
        self.clock = clock
        self.zone = zone
        """The user's time zone, by which days are counted and named."""
        self.counts = Counts()
        """What it gave since it was opened, to all owners."""
        self._store = store
        self._recorder = recorder
        self._summaries = summaries
        self._searcher = searcher
        self._injector = injector
        self._finalizer = finalizer
        self._orchestrators = orchestrators
        self._graphs = graphs
        self._owed = owed
        self._editor = editor
        self._eraser = eraser
        self._files = files
        self._forgetter = Forgetter(store, editor, eraser, clock)
        self._historian = historian
        self.sign_in = sign_in
        self._tokens = Tokens(store, clock)
        self._usage = usage
        self._judge = judge
        self._digests = digests
        self._vectors = vectors
        self._ids = ids
        self._projects = projects or ProjectPolicy()
        self._switch = switch
        self.injection = injector.policy
        self.max_text_bytes = recorder.limits.max_text_bytes
        """What hooks may put into prompts."""
        self._owner = owner
        self._limits = NO_LIMITS
        self._project: str | None = None

    @property
    def is_read_only(self) -> bool:
        """Whether the database is open for reading only, because it could not be written when it was opened."""
        return self._store.is_read_only

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
        self.check_remembered()
        scope = await self._of_session(session_id, agent_id, may_be_new=True)
        recorded = await self._recorder.record(scope, messages, client=client)
        self._owed.nudge(self._scope(scope.session))
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
        seen: frozenset[SeenPart] = frozenset(),
        also: Sequence[str] = (),
    ) -> MemoryContext:
        """What a session remembers, as text of at most `max_tokens` tokens (`context.token_limit` if absent).

        It has what is known of the person and the project, the newest messages, what matches `query` in any of the
        agent's sessions, the most important pins and the summaries (without a session only what is known and what
        matches); all count as used. `pending_input` leaves out the newest message if it is the user's, `seen_messages`
        so many of the newest: the model has them. What is `seen` comes as no match. `include` asks for what is left out
        otherwise. `as_json` counts what `MemoryContext.to_dict` gives. `also` are other wordings of the query, as in a
        `SearchRequest`; without a query, the first is the query.

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
            seen=seen,
            also=also,
        )
        self._usage.used(context.used_ids)
        self.counts.built(context.total_tokens)
        return context

    async def warm_up(self) -> None:
        """Load the embedder's model, if there is one, so that no prompt waits for it."""
        await self._searcher.warm_up(self._scope(None))

    async def inject(
        self,
        session_id: str,
        prompt: str,
        *,
        seen_after: Mapping[str, int] | None = None,
        shown: Set[str] = frozenset(),
    ) -> Injection:
        """What a hook puts into a prompt of the session: what is remembered of what the prompt is about, or nothing.
        What is in it counts as used.

        `shown` are the records that were put into it before. Nor is anything in it that the assistant still sees: by
        session, what was said after the message of this number; without it, all of this session.

        Raises:
            InvalidInput: the id of the session is not acceptable.
        """
        meant = (await self._of_session(session_id)).session or session_id
        seen = await self.seen_parts({session_id: 0} if seen_after is None else seen_after)
        found = await self._injector.inject(self._scope(None), prompt, session_id=meant, seen=seen, shown=shown)
        self._usage.used(found.record_ids)
        self.counts.injected(self._injector.tokens(found))
        return found

    async def inject_known(self) -> Injection:
        """What a hook puts into the first prompt of a session: how the latest conversations ended, and what is known of
        the person and of the project. Nothing, if nothing is, or if it is switched off. What is known counts as used.
        """
        if not self.injection.enabled or not self.injection.known_tokens:
            return Injection()
        context = await self.build_context(None, self.injection.known_tokens)
        found = self._injector.of_start(self._scope(None), context)
        self.counts.injected(self._injector.tokens(found))
        return found

    async def summarize_session(self, session_id: str) -> Sequence[ConversationSummary]:
        """Summarise all messages without a summary, including the newest, and fold what is due; the new summaries.
        Raises SessionNotFound."""
        self.check_remembered()
        return await self._summaries.summarize_all(await self._of_session(session_id))

    async def create_summary(self, request: CreateSummaryRequest) -> ConversationSummary:
        """Summarise a range of messages: with the caller's text, or else with the session's model or without one.

        Raises:
            InvalidInput: the text is blank or too long, the range is reversed, or `message_count` is wrong.
            RecordNotFound: an end of the range is not a message of the session.
            SummaryRangeConflict: the range does not begin right after the last summary; says where that is.
            SessionNotFound: no such session.
            SessionFinalized: the session is closed.
        """
        self.check_remembered()
        return await self.manager.create_summary(request)

    async def adopt_summary(self, session_id: str, summary: str) -> ConversationSummary | None:
        """Store the caller's summary of all messages without one; None if every message has a summary.

        Raises:
            InvalidInput: the text is empty or too long.
            SessionNotFound: no such session.
            SessionFinalized: the session is closed.
        """
        self.check_remembered()
        return await self._summaries.adopt(await self._of_session(session_id), summary)

    async def search_memory(
        self, request: SearchRequest | str, *, session_id: str | None = None, agent_id: str | None = None
    ) -> SearchPage:
        """Find records that match a query, best first: in one session, or in all of an agent's. The hits count as used.
        A text is a request for it, with the defaults.

        Raises:
            InvalidInput: the query is empty or too long, `k` is out of range, or the cursor is from another search.
        """
        asked = SearchRequest(request) if isinstance(request, str) else request
        scope = await self._of_session(session_id, agent_id)
        page = await self._searcher.search(scope, asked)
        if page.note is None and self._vectors is not None:
            page = replace(page, note=await self._vectors.absence())
        self._usage.used(hit.record_id for hit in page.hits)
        self.counts.searched(len(page.hits))
        return replace(page, hits=await self._titled(scope, page.hits))

    async def past_answers(
        self,
        query: str,
        *,
        session_id: str | None = None,
        agent_id: str | None = None,
    ) -> Sequence[PastAnswer]:
        """Questions that ask the same and were asked before, with their answers and the feedback on them.

        With `session_id`, those of that session; an unknown session has none.
        """
        scope = await self._of_session(session_id, agent_id)
        return await past_answers(self._store, scope, query)

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
            RecordNotFound: it is neither a question nor an answer.
            InvalidInput: the label is not up, down or retry, or the session belongs to another agent.
            Conflict: the graph is switched off, or the note repeats what was forgotten.
            SessionNotFound: no such session.
        """
        self.check_remembered()
        scope = await self._of_session(session_id, agent_id)
        return await self._graphs.record_feedback(scope, target_id, label, note)

    def orchestrator(self, agent_id: str | None = None) -> MemoryOrchestrator:
        """The specification's `MemoryOrchestrator` of an agent: its long-term graph and those of its sessions. Raises
        AccessDenied within limits: its snapshots are of all agents, and its graph is of all projects."""
        self._limits.check_none("what an agent keeps for the long term")
        return self._orchestrators.of(self._scope(None, agent_id), finalize=self._finalizer.finalize)

    async def graph_overview(self, *, session_id: str | None = None, agent_id: str | None = None) -> dict[str, Any]:
        """Counts and top nodes of a session's graph, or of an agent's, JSON-ready. Raises SessionNotFound."""
        return await self._graphs.overview(await self._of_session(session_id, agent_id))

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
        self.check_remembered()
        return await self._finalizer.finalize(await self._of_session(session_id), options, progress)

    async def profile(self, *, agent_id: str | None = None, include_untrusted: bool = False) -> Profile:
        """What every conversation knows of the person, and those of a project of it, by subject.

        Words of tools, documents and imports that read like an instruction need `include_untrusted`.
        """
        return await self._store.read(
            lambda view: read_profile(view, self._scope(None, agent_id), include_untrusted=include_untrusted)
        )

    async def session_stats(self, session_id: str) -> MemoryStats:
        """Counts, dates and mean importance of a session. Raises SessionNotFound."""
        return await self.manager.memory_stats(session_id)

    async def score_messages(self, session_id: str) -> int:
        """Score all visible messages of a session again, by their words and roles; how many scores changed. Raises
        SessionNotFound."""
        with no_new_words():
            return await self.manager.score_session_messages(session_id)

    async def list_sessions(
        self, *, prefix: str = "", agent_id: str | None = None, limit: int = 100, before: Place | None = None
    ) -> Sequence[Session]:
        """Sessions whose id starts with the prefix, those with the newest message first, that follow the place
        `before`."""
        scope = self._scope(None, agent_id)
        return await self._store.read(
            lambda view: view.sessions.list_recent(scope, prefix=prefix, limit=limit, before=before)
        )

    def owed_age_s(self) -> float:
        """For how many seconds background work of this process has been owed; 0 if none is."""
        return self._owed.age_s

    async def settled(self, *, with_vectors: bool = True) -> None:
        """Wait until the background work for this memory's own calls is done: pins, summaries, graph, uses, vectors."""
        await self._owed.settled()
        await self._usage.flush()
        if with_vectors and self._vectors is not None:
            await self._vectors.settled()
