"""`Memory`: one verb per tool, and the parts. It hands each call to the service that does it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from kalito_mcp.domain.arguments import checks_arguments
from kalito_mcp.domain.context import Include, MemoryContext
from kalito_mcp.domain.digest import Digest, KeptDigest
from kalito_mcp.domain.erasing import PurgeReport
from kalito_mcp.domain.finalizing import Finalized, FinalizeOptions, Progress
from kalito_mcp.domain.graph import FeedbackLabel, KeptFeedback
from kalito_mcp.domain.memory_records import PROGRAM, Editor, MemoryRecord
from kalito_mcp.domain.past_answers import PastAnswer
from kalito_mcp.domain.records import (
    ConversationSummary,
    CreatePinRequest,
    CreateSummaryRequest,
    NewMessage,
    RecordType,
    SemanticPin,
)
from kalito_mcp.domain.scope import NO_LIMITS, Limits
from kalito_mcp.domain.search import SearchPage, SearchRequest, SeenPart
from kalito_mcp.memory.access import Access
from kalito_mcp.memory.answers import Answers
from kalito_mcp.memory.archive import Archive
from kalito_mcp.memory.changes import Changes
from kalito_mcp.memory.conversations import Conversations, with_titles
from kalito_mcp.memory.files import Files
from kalito_mcp.memory.given import Given
from kalito_mcp.memory.hooks import Hooks
from kalito_mcp.memory.imports import Imports
from kalito_mcp.memory.noting import Noting
from kalito_mcp.memory.part import Part, Services
from kalito_mcp.memory.people import People
from kalito_mcp.memory.place import Place
from kalito_mcp.memory.projects import Projects
from kalito_mcp.memory.records import Records
from kalito_mcp.memory.sharing import Sharing, labelled
from kalito_mcp.memory.spaces import Spaces
from kalito_mcp.orchestrator.orchestrator import MemoryOrchestrator
from kalito_mcp.records.historian import with_whole_ids
from kalito_mcp.records.recorder import Recorded
from kalito_mcp.retrieval.past_answers import past_answers
from kalito_mcp.upkeep.store_layers import no_new_words


@checks_arguments
class Memory(Part):
    """An opened memory of one owner. Get one from `open_memory`.

    Whatever brings new words raises `Conflict` while the memory is paused, and where nothing is remembered.

    Every method that changes something is durable when it returns. Methods that take ids of sessions, agents or records
    raise `InvalidInput` for an id that is empty, too long or looks like a secret. Without `agent_id` the agent is
    `default`, or the one that the session belongs to. `in_project` narrows it to a project.
    """

    def __init__(self, place: Place, services: Services) -> None:
        super().__init__(place, services)
        self.manager = self._manager
        """The specification's memory manager, with all its methods."""
        self.counts = services.counts
        """What it gave since it was opened, to all owners."""
        self.zone = services.zone
        """The user's time zone, by which days are counted and named."""
        self.max_text_bytes = services.recorder.limits.max_text_bytes
        self.records = Records(place, services)
        self.conversations = Conversations(place, services)
        self.projects = Projects(place, services)
        self.files = Files(place, services)
        self.imports = Imports(place, services)
        self.archive = Archive(place, services)
        self.access = Access(place, services)
        self.changes = Changes(place, services)
        self.hooks = Hooks(place, services)
        self.given = Given(place, services)
        self.people = People(place, services)
        self.spaces = Spaces(place, services)
        self._sharing = Sharing(place, services)
        self._noting = Noting(place, services)
        self._answers = Answers(place, services)

    @property
    def is_read_only(self) -> bool:
        """Whether the database is open for reading only, because it could not be written when it was opened."""
        return self.place.store.is_read_only

    def of_owner(self, owner: str, limits: Limits = NO_LIMITS) -> Self:
        """The memory of another owner of the same database, or the part of it within the limits. It is narrowed to the
        limits' project if they name one, else as this one is."""
        return self._at(self.place.of_owner(owner, limits))

    async def in_project(self, project: str | None) -> Self:
        """The same memory for one project: it reads what is of the project and what is personal, and writes into it.

        `project` is the path of a repository or a folder, the last part of a known one's path, or any other name;
        `"personal"` means none, and None all: then it writes into the project of the session, or personal records.

        Raises:
            InvalidInput: the name is not acceptable, mistyped, or shared by several projects.
            AccessDenied: this memory is limited to another project, or the whole memory is named.
        """
        return self._at(await self.place.in_project(project))

    async def in_project_of(self, session_id: str) -> Self:
        """The same memory for the project of a session, or as it is if there is no such session."""
        return self._at(await self.place.in_project_of(session_id))

    async def for_question(self, session_id: str | None = None) -> Self:
        """The same memory for what somebody asks on purpose. Outside any project that is all of it that the caller
        reaches; in a session of a project, that project."""
        return self._at(await self.place.for_question(session_id))

    def _at(self, place: Place) -> Self:
        return type(self)(place, self._services)

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
        self.place.check_remembered()
        scope = await self.place.of_session(session_id, agent_id, may_be_new=True)
        recorded = await self._services.recorder.record(scope, messages, client=client)
        self._services.owed.nudge(self.place.scope(scope.session))
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
        client: str | None = None,
    ) -> MemoryContext:
        """What a session remembers, as text of at most `max_tokens` tokens (`context.token_limit` if absent).

        It has what is known of the person and the project, the newest messages, what matches `query` in any of the
        agent's sessions, the most important pins and the summaries (without a session only what is known and what
        matches); all count as used. `pending_input` leaves out the newest message if it is the user's, `seen_messages`
        is how many of the newest it leaves out because the model has them. Parts that are `seen` are not matches.
        `include` asks for records that are left out otherwise. `as_json` counts what `MemoryContext.to_dict` gives.
        `also` are other wordings of the query, as in a `SearchRequest`; without a query, the first is the query. It is
        noted among what was `given`, to the program `client`.

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
        self._answers.context(context, agent_id=agent_id, client=client)
        return context

    async def search_memory(
        self,
        request: SearchRequest | str,
        *,
        session_id: str | None = None,
        agent_id: str | None = None,
        client: str | None = None,
        is_preview: bool = False,
    ) -> SearchPage:
        """Find records that match a query, best first: in one session, or in all of an agent's. Except in a preview,
        the hits count as used, and are noted as `given` to the program `client`. A text is a request for it.

        Raises:
            InvalidInput: the query is empty or too long, `k` is out of range, or the cursor is from another search.
        """
        search = SearchRequest(request) if isinstance(request, str) else request
        scope = await self.place.of_session(session_id, agent_id)
        page = await self._services.searcher.search(scope, search)
        if page.note is None and self._services.vectors is not None:
            page = replace(page, note=await self._services.vectors.absence())
        if not is_preview:
            self._answers.search(page.hits, session_id=scope.session, agent_id=agent_id, client=client)
        return replace(page, hits=await with_titles(self.place.store, scope, page.hits))

    async def past_answers(
        self, query: str, *, session_id: str | None = None, agent_id: str | None = None
    ) -> Sequence[PastAnswer]:
        """Questions that ask the same and were asked before, with their answers and the feedback on them: of a session
        if it is named; an unknown session has no past answers."""
        scope = await self.place.of_session(session_id, agent_id)
        return await past_answers(self.place.store, scope, query)

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
        self.place.check_remembered()
        scope = await self.place.of_session(session_id, agent_id)
        return await self._services.graphs.record_feedback(scope, target_id, label, note)

    async def create_pin(self, request: CreatePinRequest) -> SemanticPin:
        """Pin a text in a session; a new session is created. Without a session it is kept as a note of the project or
        the person. A known `client_key`, and exactly the same words, return what has them already.

        Its `scope` says which contexts show it: contexts of the session, of its project, or all of the person's.

        Raises:
            InvalidInput: the text, an id, the scope or the importance is not acceptable, there is no project, there is
                no session and only that would know it, or nothing says what it `replaces`.
            ClientKeyReused: a known `client_key` with another text.
            RecordNotFound: `source_message_id` is not a message of the session, or what it replaces is no record here.
            Conflict: the words, or the source message's words, are a tool's, a document's or an import's, and
                `is_confirmed` does not say that the user wants that; or the same pin was erased.
            SessionFinalized: the session is closed.
        """
        self.place.check_remembered()
        return await self._noting.pin(request)

    async def keep_digest(self, session_id: str, digest: Digest, *, editor: Editor = PROGRAM) -> KeptDigest:
        """Pin the sentences of a session's digest: what was decided or learned where `create_pin` would, what was done
        or is open in the session, where the next conversation begins. What is pinned in these words is not pinned
        again. If the digest says what is `open`, the open points that were found before are forgotten, unless it has
        them, too.

        Raises:
            InvalidInput: a list or a sentence is too long, or a sentence is blank.
            SessionNotFound, SessionFinalized: the session does not exist, or is closed.
            Conflict: a sentence repeats what was forgotten. Nothing was written.
        """
        self.place.check_remembered()
        return await self._noting.keep(session_id, digest, editor)

    async def create_summary(self, request: CreateSummaryRequest) -> ConversationSummary:
        """Summarise a range of messages: with the caller's text, or else with the session's model or without one.

        Raises:
            InvalidInput: the text is blank or too long, the range is reversed, or `message_count` is wrong.
            RecordNotFound: an end of the range is not a message of the session.
            SummaryRangeConflict: the range does not begin right after the last summary; says where that is.
            SessionNotFound, SessionFinalized: the session does not exist, or is closed.
        """
        self.place.check_remembered()
        return await self.manager.create_summary(request)

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
        self.place.check_remembered()
        return await self._services.finalizer.finalize(await self.place.of_session(session_id), options, progress)

    async def remember(
        self,
        record_type: RecordType | str,
        fields: Mapping[str, Any],
        *,
        session_id: str | None = None,
        agent_id: str | None = None,
        editor: Editor = PROGRAM,
        client_key: str | None = None,
        is_confirmed: bool = False,
    ) -> Sequence[MemoryRecord]:
        """Store a note, a thought, a document or a task, in a session or for an agent as a whole.

        A document is stored in parts, one record each. One with a known `source` replaces the former: parts that read
        the same stay, parts that are gone are forgotten, and parts that were erased for good are left out. A `note` is
        a short document without a source. With an `editor` of type HUMAN the text counts as the user's own words.
        A note that repeats the words of a tool, a document or an import has their origin, and no other conversation
        knows it as a fact unless it `is_confirmed`. Without a source, a known `client_key`, and exactly the same words
        of the same type, session and project, return what was stored: `MemoryRecord.is_known` says so.

        Raises:
            InvalidInput: an unknown type, or a field that is unknown, missing or wrong; nothing was written.
            Conflict: the session is closed, the document is forgotten, or the same text was erased for good; nothing
                was written. Or nothing is remembered in this project. Or a note with a `scope` repeats the words of a
                tool, a document or an import, and `is_confirmed` does not say that the user wants that.
            RecordNotFound: `caused_by` names no record; nothing was written.
            ClientKeyReused: a known `client_key` with another text; nothing was written.
        """
        self.place.check_remembered()
        scope = await self.place.of_session(session_id, agent_id, may_be_new=True)
        return await self._noting.remember(
            scope, str(record_type), fields, editor=editor, client_key=client_key, is_confirmed=is_confirmed
        )

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
        self.place.check_remembered()
        if isinstance(changes.get("project"), str):
            changes = {**changes, "project": await self.place.target(changes["project"])}
        changes = await with_whole_ids(self.place.store, self.place.scope().anywhere(), changes)
        async with self._sharing.changing(record_id, editor) as (scope, who):
            updated = await self._services.editor.update(
                scope, record_id, changes, expected_revision=expected_revision, editor=who
            )
        return labelled(scope.owner, (await self.place.reached([updated]))[0])

    async def forget(
        self, record_id: str, *, editor: Editor = PROGRAM, expected_revision: int | None = None
    ) -> Sequence[MemoryRecord]:
        """Hide a record, or all parts of a document, from every context and search.

        Raises:
            RecordNotFound: no such record, or it was erased.
            RevisionConflict: it, or the first part, is no longer at `expected_revision`; nothing was written.
        """
        return await self._sharing.changed(self._services.editor.forget, record_id, editor, expected_revision)

    async def restore(
        self, record_id: str, *, editor: Editor = PROGRAM, expected_revision: int | None = None
    ) -> Sequence[MemoryRecord]:
        """Undo `forget`. Raises as `forget`."""
        return await self._sharing.changed(self._services.editor.restore, record_id, editor, expected_revision)

    async def purge(self, record_ids: Sequence[str]) -> PurgeReport:
        """Erase records, everything made from them, and copies in spaces, from every file. Ids that were erased before
        are accepted.

        Without ids it only finishes what an earlier purge could not. `PurgeReport.remaining` names the places that may
        still hold the words, and `is_owed` says that the memory itself will try again.

        Raises:
            RecordNotFound: an id is unknown; nothing was erased.
            AccessDenied: a record is in a space, and the owner may not erase it; nothing was erased.
            InvalidInput: `record_ids` is a string, not a list.
        """
        with no_new_words():
            return await self._sharing.purge(record_ids)

    def orchestrator(self, agent_id: str | None = None) -> MemoryOrchestrator:
        """The specification's `MemoryOrchestrator` of an agent: its long-term graph and its session graphs. Raises
        AccessDenied within limits: its snapshots are of all agents, and its graph is of all projects."""
        self.place.limits.check_none("what an agent keeps for the long term")
        return self._services.orchestrators.of(
            self.place.scope(None, agent_id), finalize=self._services.finalizer.finalize
        )

    async def settled(self, *, with_vectors: bool = True) -> None:
        """Wait until the background work for this memory's own calls is done: pins, summaries, graph, uses, vectors."""
        await self._services.owed.settled()
        await self._services.answers.flush()
        if with_vectors and self._services.vectors is not None:
            await self._services.vectors.settled()
