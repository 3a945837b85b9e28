"""Stores sessions and their counters."""

from typing import Final

from kalito_mcp.domain.scope import PERSONAL, Scope
from kalito_mcp.domain.sessions import Session, SessionState
from kalito_mcp.storage.numbered import key_of
from kalito_mcp.storage.postgres.sessions import SessionQueries

INSERT_AGENT: Final = "INSERT INTO agents (owner_key, id) VALUES (:owner, :agent) ON CONFLICT DO NOTHING"
INSERT_PROJECT: Final = "INSERT INTO projects (owner_key, id) VALUES (:owner, :project) ON CONFLICT DO NOTHING"
PROJECT_KEY: Final = "(SELECT key FROM projects WHERE owner_key = :owner AND id = :project)"
INSERT_SESSION: Final = f"""
INSERT INTO sessions (owner_key, id, agent_key, project_key, is_placed, created_at, updated_at)
SELECT :owner, :session, key, {PROJECT_KEY}, 1, :now_ms, :now_ms FROM agents
WHERE owner_key = :owner AND id = :agent
"""
UPDATE_PROJECT_OF_SESSION: Final = f"""
UPDATE sessions SET project_key = {PROJECT_KEY}, is_placed = 1, revision = revision + 1
WHERE owner_key = :owner AND key = :key
"""
# What is the person's stays in every project.
UPDATE_PROJECT_OF_RECORDS: Final = f"""
UPDATE records SET project_key = {PROJECT_KEY}
WHERE owner_key = :owner AND session_key = :key AND reach IS DISTINCT FROM 'person'
"""
UPDATE_STATE: Final = """
UPDATE sessions SET state = :state, updated_at = :now_ms, revision = revision + 1
WHERE owner_key = :owner AND key = :key
"""
UPDATE_PINNED_SEQ: Final = """
UPDATE sessions SET pinned_seq = greatest(pinned_seq, :seq) WHERE owner_key = :owner AND key = :key
"""
UPDATE_OBSERVED_SEQ: Final = """
UPDATE sessions SET observed_seq = greatest(observed_seq, :seq) WHERE owner_key = :owner AND key = :key
"""
UPDATE_STAGE: Final = "UPDATE sessions SET stage = :stage WHERE owner_key = :owner AND key = :key"


class SessionStatements(SessionQueries):
    """`ports.sessions.SessionWriter`."""

    async def create(self, scope: Scope, *, now_ms: int) -> Session:
        names = {"owner": scope.owner, "agent": scope.agent, "session": scope.session, "project": scope.project}
        await self._all(INSERT_AGENT, owner=scope.owner, agent=scope.agent)
        await self._add_project(scope.owner, scope.project)
        await self._all(INSERT_SESSION, **names, now_ms=now_ms)
        created = await self.get(scope)
        assert created is not None  # noqa: S101 - it was written in this transaction
        return created

    async def move(self, session: Session, project: str | None) -> None:
        await self._add_project(session.owner, project)
        parameters = {"owner": session.owner, "project": project, "key": key_of(session)}
        await self._all(UPDATE_PROJECT_OF_SESSION, **parameters)
        await self._all(UPDATE_PROJECT_OF_RECORDS, **parameters)

    async def set_state(self, session: Session, state: SessionState, *, now_ms: int) -> None:
        await self._all(UPDATE_STATE, owner=session.owner, state=str(state), now_ms=now_ms, key=key_of(session))

    async def set_pinned_seq(self, session: Session, seq: int) -> None:
        await self._all(UPDATE_PINNED_SEQ, owner=session.owner, seq=seq, key=key_of(session))

    async def set_observed_seq(self, session: Session, seq: int) -> None:
        await self._all(UPDATE_OBSERVED_SEQ, owner=session.owner, seq=seq, key=key_of(session))

    async def set_stage(self, session: Session, stage: str | None) -> None:
        await self._all(UPDATE_STAGE, owner=session.owner, stage=stage, key=key_of(session))

    async def _add_project(self, owner: str, project: str | None) -> None:
        if project not in (None, PERSONAL):
            await self._all(INSERT_PROJECT, owner=owner, project=project)
