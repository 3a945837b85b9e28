"""The sessions of a store in memory. Implements `ports.sessions`."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kalito_mcp.domain.records import Origin, Reach, RecordType, Role
from kalito_mcp.domain.scope import DEFAULT_AGENT, Scope
from kalito_mcp.domain.sessions import Session, SessionCursor, SessionState
from kalito_mcp.domain.sizes import PartSize
from kalito_mcp.storage.memory.state import Tables, is_within, reads
from kalito_mcp.text.titles import FIRST_MESSAGES, READ_CHARS


class Sessions(Tables):
    """`ports.sessions.SessionWriter`."""

    async def get(self, scope: Scope) -> Session | None:
        return self._state.session(scope)

    async def list_recent(
        self, scope: Scope, *, prefix: str = "", limit: int, before: SessionCursor | None = None
    ) -> Sequence[Session]:
        # Of those in which something was said at one moment, the newest session comes first.
        numbers = self._numbers(scope)
        end = None if before is None else (before.said_at, numbers.get(before.session_id, -1))
        found = {(one.said_at, numbers[one.id]): one for one in self._in_scope(scope) if one.id.startswith(prefix)}
        return [found[place] for place in sorted(found, reverse=True) if end is None or place < end][:limit]

    async def list_begun(self, scope: Scope, *, before: Session | None, limit: int) -> Sequence[Session]:
        numbers = self._numbers(scope)
        found = [one for one in self._in_scope(scope) if before is None or numbers[one.id] < numbers[before.id]]
        return found[::-1][:limit]

    async def first_texts(self, scope: Scope, session_ids: Sequence[str]) -> Mapping[str, Sequence[str]]:
        found: dict[str, list[str]] = {}
        for session in self._in_scope(replace(scope, agent=None)):
            messages = self._state.of_session(session, RecordType.MESSAGE) if session.id in session_ids else []
            for one in messages[:FIRST_MESSAGES]:
                if (one.role, one.origin) == (Role.USER, Origin.USER) and not (one.is_deleted or one.is_internal):
                    found.setdefault(session.id, []).append(one.text[:READ_CHARS])
        return found

    async def census(self, scope: Scope) -> tuple[float, ...]:
        numbers = self._numbers(scope)
        found = [numbers[one.id] for one in self._in_scope(scope)]
        return len(found), *found

    async def agents(self, scope: Scope, *, limit: int) -> Sequence[str]:
        newest = [agent for owner, agent in reversed(self._state.agents) if owner == scope.owner]
        reached = [agent for agent in newest if scope.limits.agent in (None, agent)]
        if scope.limits.project is None:
            return reached[:limit]
        # An agent may be older than what is of it within the limits, and its place among others would show that.
        with_records = {one.agent_id for one in self._state.records.values() if is_within(scope, one)}
        return sorted(with_records.intersection(reached))[:limit]

    async def projects(self, scope: Scope, *, limit: int) -> Sequence[tuple[str, int]]:
        theirs = {project: key for (owner, project), key in self._state.projects.items() if owner == scope.owner}
        reached = {project: key for project, key in theirs.items() if scope.limits.project in (None, project)}
        if scope.limits.agent is not None:
            of_agent = {one.project for one in self._state.of_agent(scope.owner, scope.limits.agent)}
            reached = {project: key for project, key in reached.items() if project in of_agent}
        newest = sorted(reached, key=lambda project: -reached[project])[:limit]
        within = [one.project for one in self._in_scope(scope.anywhere())]
        return [(project, within.count(project)) for project in newest]

    async def sizes(self, scope: Scope) -> Sequence[PartSize]:
        sessions = self._in_scope(scope.anywhere())
        kept = [one for one in self._state.records.values() if is_within(scope, one)]
        own = [(one.agent_id, one.project) for one in kept if one.session_id is None and not one.is_deleted]
        found: list[PartSize] = []
        for place in dict.fromkeys([*((one.agent, one.project) for one in sessions), *own]):
            among = [one for one in sessions if (one.agent, one.project) == place]
            messages = sum(one.message_count - one.hidden_count for one in among)
            newest_at = max((one.updated_at for one in among), default=None)
            found.append(PartSize(*place, len(among), messages, own.count(place), newest_at))
        return found

    async def totals(self, scope: Scope) -> dict[str, int]:
        sessions = self._in_scope(scope.anywhere())
        shown = [one for one in self._state.records.values() if is_within(scope, one) and not one.is_deleted]
        documents = [one.content.get("source") for one in shown if one.type is RecordType.DOCUMENT]
        sources = {source for source in documents if source is not None}
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

    async def list_owing(
        self,
        *,
        threshold: int,
        max_summaries: int,
        after: Session | None,
        limit: int,
        owners: Collection[str] | None = None,
    ) -> Sequence[Session]:
        places = list(self._state.sessions)
        later = places if after is None else places[places.index((after.owner, after.id)) + 1 :]
        meant = [self._state.sessions[place] for place in later if owners is None or place[0] in owners]
        open_ones = [one for one in meant if one.state is SessionState.OPEN]
        return [one for one in open_ones if self._owes(one, threshold, max_summaries)][:limit]

    def _owes(self, session: Session, threshold: int, max_summaries: int) -> bool:
        summaries = self._state.of_session(session, RecordType.SUMMARY)
        levels = [one.content["level"] for one in summaries if not one.is_covered]
        is_unpinned = session.message_count > session.pinned_seq
        is_unsummarized = session.message_count - session.summarized_seq >= max(threshold, 1)
        return is_unpinned or is_unsummarized or max(map(levels.count, levels), default=0) > max_summaries

    def _numbers(self, scope: Scope) -> Mapping[str, int]:
        """The places of the owner's sessions among all."""
        return {place[1]: at for at, place in enumerate(self._state.sessions) if place[0] == scope.owner}

    def _in_scope(self, scope: Scope) -> list[Session]:
        """The sessions of the scope within its limits, oldest first."""
        theirs = [
            one for one in self._state.sessions.values() if one.owner == scope.owner and reads(scope, one.project)
        ]
        reached = [one for one in theirs if scope.limits.reaches(one.agent, one.project)]
        return [one for one in reached if scope.agent in (None, one.agent)]

    async def create(self, scope: Scope, *, now_ms: int) -> Session:
        agent = scope.agent or DEFAULT_AGENT
        self._state.add_agent(scope.owner, agent)
        project = self._state.add_project(scope.owner, scope.project)
        made = Session(scope.owner, scope.session or "", agent, SessionState.OPEN, now_ms, now_ms, project=project)
        self._state.sessions[made.owner, made.id] = made
        return made

    async def move(self, session: Session, project: str | None) -> None:
        project = self._state.add_project(session.owner, project)
        for one in list(self._state.records.values()):
            is_of_session = one.owner == session.owner and one.session_id == session.id
            if is_of_session and one.reach is not Reach.PERSON:
                self._state.put(replace(one, project=project))
        self._state.update_session(session.owner, session.id, project=project, is_placed=True)

    async def set_state(self, session: Session, state: SessionState, *, now_ms: int) -> None:
        self._state.update_session(session.owner, session.id, state=state, updated_at=now_ms)

    async def set_pinned_seq(self, session: Session, seq: int) -> None:
        self._mark(session, pinned_seq=seq)

    async def set_observed_seq(self, session: Session, seq: int) -> None:
        self._mark(session, observed_seq=seq)

    async def set_stage(self, session: Session, stage: str | None) -> None:
        stored = self._state.sessions[session.owner, session.id]
        self._state.sessions[session.owner, session.id] = replace(stored, stage=stage and str(stage))

    def _mark(self, session: Session, **seqs: int) -> None:
        """Move marks of a session on. That is no change of it."""
        stored = self._state.sessions[session.owner, session.id]
        later: dict[str, Any] = {name: max(seq, getattr(stored, name)) for name, seq in seqs.items()}
        self._state.sessions[session.owner, session.id] = replace(stored, **later)
