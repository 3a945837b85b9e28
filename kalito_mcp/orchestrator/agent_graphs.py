"""The graphs that a call means: it names a session, a message or an agent, or nothing."""

from dataclasses import replace
from typing import Any

from kalito_mcp.domain.graph import FeedbackLabel, GraphPolicy, KeptFeedback
from kalito_mcp.domain.scope import Limits, Scope
from kalito_mcp.domain.sessions import Session
from kalito_mcp.domain.validation import MESSAGE_ID_PREFIX, message_number
from kalito_mcp.errors import Conflict, InvalidInput, SessionNotFound
from kalito_mcp.orchestrator.orchestrators import Orchestrators
from kalito_mcp.ports.store import Store
from kalito_mcp.records.repetitions import repetition_refused, scope_of_session
from kalito_mcp.runtime.long_texts import read_aside
from kalito_mcp.safety.redaction import cleaned
from kalito_mcp.text.repetition import keys_of


class AgentGraphs:
    """Answers calls from the graphs that they mean. In a scope, a session wins over the agent."""

    def __init__(self, store: Store, orchestrators: Orchestrators, policy: GraphPolicy) -> None:
        self._store = store
        self._orchestrators = orchestrators
        self._policy = policy

    async def record_feedback(
        self, scope: Scope, target_id: str, label: FeedbackLabel | str, note: str | None
    ) -> KeptFeedback:
        """See `Memory.record_feedback`."""
        given = note
        note, redacted = await read_aside(len(given or ""), lambda: cleaned(given))
        self._check_enabled()
        session = await self._session_of_feedback(scope, target_id)
        place = scope if session is None else scope_of_session(session, scope.limits)
        if note is not None:
            keys = keys_of(note)
            if await self._store.read(lambda view: view.records.forgotten_values(place, keys)):
                raise repetition_refused()
        agent = self._orchestrators.of(scope if session is None else _of_agent(scope, session))
        node_id = await agent.record_feedback(None if session is None else session.id, target_id, label, note)
        return KeptFeedback(node_id, redacted)

    async def withdraw_feedback(self, scope: Scope, target_id: str, label: FeedbackLabel | str) -> None:
        """See `Conversations.withdraw_feedback`."""
        self._check_enabled()
        session = await self._session_of_feedback(scope, target_id)
        agent = self._orchestrators.of(scope if session is None else _of_agent(scope, session))
        await agent.withdraw_feedback(None if session is None else session.id, target_id, label)

    def _check_enabled(self) -> None:
        if not self._policy.enabled:
            raise Conflict("feedback is kept in the graph, which is switched off; set memory.graph to have it")

    async def overview(self, scope: Scope) -> dict[str, Any]:
        """See `Memory.graph_overview`."""
        if scope.session is None:
            Limits(project=scope.limits.project).check_none("the graph of an agent")
            return await self._orchestrators.of(scope).graph_overview()
        session = await self._known_session(scope)
        return await self._orchestrators.of(_of_agent(scope, session)).graph_overview(session.id)

    async def _session_of_feedback(self, scope: Scope, target_id: str) -> Session | None:
        """The named session, or the message's session; None if feedback goes to the agent's graph alone."""
        if scope.session is None and target_id.startswith(MESSAGE_ID_PREFIX):
            number = message_number(target_id, "target_id")
            message = await self._store.read(lambda view: view.conversations.message(scope.anywhere(), number))
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
        return await self._store.read(lambda view: view.sessions.get(named))

    async def _known_session(self, scope: Scope) -> Session:
        session = await self._session(scope)
        if session is None:
            raise SessionNotFound(scope.session or "")
        return session


def _of_agent(scope: Scope, session: Session) -> Scope:
    """The agent of a session, as far as the caller reaches it."""
    return replace(scope.anywhere(), agent=session.agent)
