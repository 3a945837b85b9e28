"""The sessions of a store in memory. Implements `ports.sessions`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from kalito_mcp.domain.records import Origin, Reach, RecordType, Role
from kalito_mcp.domain.scope import DEFAULT_AGENT, NO_LIMITS, Scope
from kalito_mcp.domain.sessions import Session, SessionCursor, SessionState
from kalito_mcp.errors import AccessDenied, InvalidInput
from kalito_mcp.storage.memory.state import State, is_within, reads
from kalito_mcp.text.titles import FIRST_MESSAGES, READ_CHARS


class SessionsRead:
    """`ports.sessions.SessionReader`."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def get(self, scope: Scope) -> Session | None:
        return self._state.session(scope)

    async def list_recent(
        self, scope: Scope, *, prefix: str = "", limit: int, before: SessionCursor | None = None
    ) -> Sequence[Session]:
        found = [
            one
            for one in self._in_scope(scope)
            if one.id.startswith(prefix) and (before is None or one.cursor < before)
        ]
        return sorted(found, key=lambda one: one.cursor, reverse=True)[:limit]

    async def list_begun(self, scope: Scope, *, before: Session | None, limit: int) -> Sequence[Session]:
        found = [one for one in self._in_scope(scope) if before is None or one.key < before.key]
        return sorted(found, key=lambda one: -one.key)[:limit]

    async def first_texts(self, scope: Scope, session_ids: Sequence[str]) -> Mapping[str, Sequence[str]]:
        named = [one for one in self._in_scope(replace(scope, agent=None)) if one.id in session_ids]
        found = {session.id: self._first_texts(session) for session in named}
        return {session_id: texts for session_id, texts in found.items() if texts}

    def _first_texts(self, session: Session) -> list[str]:
        messages = self._state.of_session(session, RecordType.MESSAGE)[:FIRST_MESSAGES]
        return [
            one.record.text[:READ_CHARS]
            for one in messages
            if one.record.role is Role.USER
            and one.record.origin is Origin.USER
            and not (one.record.is_deleted or one.is_internal)
        ]

    async def census(self, scope: Scope) -> tuple[float, ...]:
        keys = [one.key for one in self._in_scope(scope)]
        return len(keys), sum(keys), sum(key * key for key in keys)

    async def agents(self, scope: Scope, *, limit: int) -> Sequence[str]:
        theirs = {agent: key for (owner, agent), key in self._state.agents.items() if owner == scope.owner}
        reached = {agent: key for agent, key in theirs.items() if scope.limits.agent in (None, agent)}
        if scope.limits.project is None:
            return sorted(reached, key=lambda agent: -reached[agent])[:limit]
        # An agent may be older than what is of it within the limits, and its place among others would show that.
        with_records = {one.record.agent_id for one in self._state.records.values() if is_within(scope, one)}
        return sorted(reached.keys() & with_records)[:limit]

    async def projects(self, scope: Scope, *, limit: int) -> Sequence[tuple[str, int]]:
        limits = scope.limits
        theirs = {project: key for (owner, project), key in self._state.projects.items() if owner == scope.owner}
        reached = {project: key for project, key in theirs.items() if limits.project in (None, project)}
        if limits.agent is not None:
            of_agent = {one.record.project for one in self._state.of_agent(scope.owner, limits.agent)}
            reached = {project: key for project, key in reached.items() if project in of_agent}
        newest = sorted(reached, key=lambda project: -reached[project])[:limit]
        within = [one.project for one in self._in_scope(scope.anywhere())]
        return [(project, within.count(project)) for project in newest]

    async def totals(self, scope: Scope) -> dict[str, int]:
        sessions = list(self._in_scope(scope.anywhere()))
        shown = [
            one.record for one in self._state.records.values() if is_within(scope, one) and not one.record.is_deleted
        ]
        sources = {
            str(one.content["source"]) for one in shown if one.type is RecordType.DOCUMENT and "source" in one.content
        }
        notes = sum(source.startswith("note:") for source in sources)
        return {
            "sessions": len(sessions),
            "messages": sum(one.message_count - one.hidden_count for one in sessions),
            "pins": sum(one.pin_count for one in sessions),
            "summaries": sum(one.summary_count for one in sessions),
            "notes": notes,
            "tasks": sum(one.type is RecordType.TASK for one in shown),
            "documents": len(sources) - notes,
        }

    async def list_owing(self, *, threshold: int, max_summaries: int, after_key: int, limit: int) -> Sequence[Session]:
        found = [
            one
            for one in self._state.sessions.values()
            if one.state is SessionState.OPEN
            and one.key > after_key
            and (
                one.message_count - one.summarized_seq >= max(threshold, 1)
                or one.message_count > one.pinned_seq
                or self._most_of_a_level(one) > max_summaries
            )
        ]
        return sorted(found, key=lambda one: one.key)[:limit]

    def _most_of_a_level(self, session: Session) -> int:
        """The most summaries of one level that no higher one covers."""
        summaries = self._state.of_session(session, RecordType.SUMMARY)
        levels = [one.content["level"] for one in summaries if not one.is_covered]
        return max(map(levels.count, levels), default=0)

    def _in_scope(self, scope: Scope) -> Iterator[Session]:
        return (
            one
            for one in self._state.sessions.values()
            if one.owner == scope.owner
            and scope.agent in (None, one.agent)
            and reads(scope, one.project)
            and scope.limits.reaches(one.agent, one.project)
        )


class SessionsWritten(SessionsRead):
    """`ports.sessions.SessionWriter`."""

    async def ensure(self, scope: Scope, *, now_ms: int) -> Session:
        return ensure_session(self._state, scope, now_ms=now_ms)

    async def move(self, session: Session, project: str | None) -> None:
        project = self._state.add_project(session.owner, project)
        self._state.update_session(session.owner, session.id, project=project, is_placed=True)
        for one in list(self._state.records.values()):
            is_of_session = one.owner == session.owner and one.record.session_id == session.id
            if is_of_session and one.reach is not Reach.PERSON:
                self._state.put(replace(one, record=replace(one.record, project=project)))

    async def set_state(self, session: Session, state: SessionState, *, now_ms: int) -> None:
        self._state.update_session(session.owner, session.id, state=state, updated_at=now_ms)

    async def set_pinned_seq(self, session: Session, seq: int) -> None:
        self._mark(session, pinned_seq=max(seq, self._stored(session).pinned_seq))

    async def set_observed_seq(self, session: Session, seq: int) -> None:
        self._mark(session, observed_seq=max(seq, self._stored(session).observed_seq))

    async def set_stage(self, session: Session, stage: str | None) -> None:
        self._mark(session, stage=None if stage is None else str(stage))

    def _stored(self, session: Session) -> Session:
        return self._state.sessions[session.owner, session.id]

    def _mark(self, session: Session, **marks: int | str | None) -> None:
        """Change fields that do not count as a change of the session."""
        revision = self._stored(session).revision
        self._state.update_session(session.owner, session.id, revision=revision, **marks)


def ensure_session(state: State, scope: Scope, *, now_ms: int) -> Session:
    """See `SessionWriter.ensure`."""
    scope = scope.landing()
    agent, session_id = scope.agent or DEFAULT_AGENT, scope.session or ""
    known = state.session(scope)
    if known is None:
        if (taken := state.session(Scope(scope.owner, session=session_id))) is not None:
            raise _refusal(taken, scope, agent)
        state.add_agent(scope.owner, agent)
        project = state.add_project(scope.owner, scope.project)
        key = state.next_key("sessions")
        known = Session(key, scope.owner, session_id, agent, SessionState.OPEN, now_ms, now_ms, project=project)
        state.sessions[scope.owner, session_id] = known
    scope.admit(known)
    return known


def _refusal(taken: Session, scope: Scope, agent: str) -> InvalidInput | AccessDenied:
    if scope.limits != NO_LIMITS:
        return AccessDenied(f"session_id {taken.id!r} cannot be used here; use another one")
    return InvalidInput(
        f"session {taken.id!r} belongs to agent {taken.agent!r}, not {agent!r}; "
        "leave agent_id out, or use another session_id"
    )
