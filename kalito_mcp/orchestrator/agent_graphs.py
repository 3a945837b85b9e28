"""The graphs that a call means: it names a session, a message or an agent, or nothing."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from kalito_mcp.call_keys import before_the_write
from kalito_mcp.domain.graph import FeedbackLabel, KeptFeedback, PastAnswer
from kalito_mcp.domain.scope import Limits, Scope
from kalito_mcp.domain.sessions import Session
from kalito_mcp.domain.validation import MESSAGE_ID_PREFIX, message_number
from kalito_mcp.errors import Conflict, InvalidInput, SessionNotFound
from kalito_mcp.long_texts import read_aside
from kalito_mcp.orchestrator.observer import Observer
from kalito_mcp.orchestrator.orchestrator import MemoryOrchestrator
from kalito_mcp.orchestrator.orchestrators import Orchestrators
from kalito_mcp.orchestrator.past_answers import with_others
from kalito_mcp.ports.search import SearchIndex
from kalito_mcp.ports.store import ReadView, Store
from kalito_mcp.records.repetitions import repetition_refused, scope_of_session
from kalito_mcp.safety.redaction import cleaned
from kalito_mcp.text.repetition import keys_of

_MOST_SESSIONS: Final = 8
"""In how many sessions that asked the same their answers are looked up: each has a graph to load."""


class AgentGraphs:
    """Answers calls from the graphs that they mean. In a scope, a session wins over the agent."""

    def __init__(self, store: Store, orchestrators: Orchestrators, observer: Observer) -> None:
        self._store = store
        self._orchestrators = orchestrators
        self._observer = observer

    async def past_answers(
        self, scope: Scope, query: str, *, current_session_id: str | None = None
    ) -> Sequence[PastAnswer]:
        """See `Memory.past_answers`."""
        named = scope.session or current_session_id
        session = await self._session(scope.of_session(named)) if named else None
        if session is not None and scope.agent is not None and session.agent != scope.agent:
            session = None
        if scope.session is not None:
            if session is None:
                return ()
            agent = self._orchestrators.of(_of_agent(scope, session))
            return await self._of_project(scope, await agent.past_answers(session.id, query, is_session_only=True))
        agent = self._orchestrators.of(scope if session is None else _of_agent(scope, session))
        found = await agent.past_answers(session.id if session is not None else None, query)
        others = await self._elsewhere(agent, scope, query, None if session is None else session.id)
        most = self._observer.policy.past_answers
        return with_others(await self._of_project(scope, found), await self._of_project(scope, others), most)

    async def _elsewhere(
        self, agent: MemoryOrchestrator, scope: Scope, query: str, current_session_id: str | None
    ) -> Sequence[PastAnswer]:
        """The past answers of the agent's other sessions, finalized or not, in which the question was asked."""
        policy = self._observer.policy
        if not policy.enabled or not policy.past_answers:
            return ()
        of_agent = replace(scope.anywhere(), agent=agent.agent_id, project=scope.project)

        def alike(index: SearchIndex) -> list[str | None]:
            from kalito_mcp.retrieval.asked_before import asked_before  # noqa: PLC0415 - numpy loads when first needed

            return [one.session_id for one in asked_before(index, query, least=policy.min_similarity)]

        async def look(view: ReadView) -> list[str | None] | None:
            return await view.search.in_index(of_agent, alike)

        sessions = dict.fromkeys(await self._store.trip(look) or ())
        asking = [one for one in sessions if one is not None and one != current_session_id][:_MOST_SESSIONS]
        return [
            one for session_id in asking for one in await agent.past_answers(session_id, query, is_session_only=True)
        ]

    async def _of_project(self, scope: Scope, answers: Sequence[PastAnswer]) -> Sequence[PastAnswer]:
        """Those of the answers whose records are personal or of the scope's project."""
        if scope.project is None or not answers:
            return answers
        async with self._store.read() as view:

            async def is_ours(one: PastAnswer) -> bool:
                ids = {*one.record_ids, *(record_id for answer in one.answers for record_id in answer.record_ids)}
                records = [await view.records.record(scope.anywhere(), record_id) for record_id in sorted(ids)]
                return all(record is None or record.project in (None, scope.project) for record in records)

            return [one for one in answers if await is_ours(one)]

    async def record_feedback(
        self, scope: Scope, target_id: str, label: FeedbackLabel | str, note: str | None
    ) -> KeptFeedback:
        """See `Memory.record_feedback`."""
        given = note
        note, redacted = await read_aside(len(given or ""), lambda: cleaned(given))
        if not self._observer.policy.enabled:
            raise Conflict("feedback is kept in the graph, which is switched off; set graph.enabled to have it")
        session = await self._session_of_feedback(scope, target_id)
        if session is not None:
            with before_the_write():
                await self._observer.observe(scope.of_session(session.id))
        place = scope if session is None else scope_of_session(session, scope.limits)
        async with self._store.read() as view:
            if note is not None and await view.records.forgotten_values(place, keys_of(note)):
                raise repetition_refused()
        agent = self._orchestrators.of(scope if session is None else _of_agent(scope, session))
        node_id = await agent.record_feedback(None if session is None else session.id, target_id, label, note)
        return KeptFeedback(node_id, redacted)

    async def overview(self, scope: Scope) -> dict[str, Any]:
        """See `Memory.graph_overview`."""
        if scope.session is None:
            Limits(project=scope.limits.project).check_none("the graph of an agent")
            return await self._orchestrators.of(scope).graph_overview()
        session = await self._known_session(scope)
        return await self._orchestrators.of(_of_agent(scope, session)).graph_overview(session.id)

    async def _session_of_feedback(self, scope: Scope, target_id: str) -> Session | None:
        """The named session, or that of the message; None if feedback goes to the agent's graph alone."""
        if scope.session is None and target_id.startswith(MESSAGE_ID_PREFIX):
            number = message_number(target_id, "target_id")
            async with self._store.read() as view:
                message = await view.conversations.message(scope.anywhere(), number)
            scope = scope.of_session(message.session_id) if message is not None else scope
        if scope.session is None:
            return None
        session = await self._known_session(scope)
        if scope.agent is not None and session.agent != scope.agent:
            raise InvalidInput(
                f"session {session.id!r} belongs to agent {session.agent!r}, not {scope.agent!r}; leave agent_id out"
            )
        return session

    async def _session(self, scope: Scope) -> Session | None:
        named = scope.anywhere().of_session(scope.session or "")
        return await self._store.trip(lambda view: view.sessions.get(named))

    async def _known_session(self, scope: Scope) -> Session:
        session = await self._session(scope)
        if session is None:
            raise SessionNotFound(scope.session or "")
        return session


def _of_agent(scope: Scope, session: Session) -> Scope:
    """The agent of a session, as far as the caller reaches it."""
    return replace(scope.anywhere(), agent=session.agent)
