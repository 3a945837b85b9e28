"""Opens sessions, and says whose they are."""

from dataclasses import replace

from kalito_mcp.domain.scope import DEFAULT_AGENT, NO_LIMITS, PERSONAL, Scope
from kalito_mcp.domain.sessions import Session
from kalito_mcp.errors import AccessDenied, InvalidInput
from kalito_mcp.ports.sessions import SessionReader, SessionWriter


async def ensure_session(sessions: SessionWriter, scope: Scope, *, now_ms: int) -> Session:
    """Return the session of the scope. A new one is created under the scope's agent, in its project. One that no
    release with projects has placed moves into the scope's.

    Raises:
        InvalidInput: it exists and belongs to another agent, or to another project.
        AccessDenied: it exists beyond the limits (see `Limits.own_session`), or the agent or project is beyond them.
    """
    scope = scope.landing()
    session = await sessions.get(scope)
    if session is None:
        agent = scope.agent or DEFAULT_AGENT
        await _refuse_taken(sessions, scope, agent)
        session = await sessions.create(replace(scope, agent=agent), now_ms=now_ms)
    if scope.project not in (None, PERSONAL) and not session.is_placed:
        await sessions.move(session, scope.project)
        return replace(session, project=scope.project, is_placed=True)
    scope.admit(session)
    return session


async def _refuse_taken(sessions: SessionReader, scope: Scope, agent: str) -> None:
    """Refuse the id of a session of another agent, or beyond the limits."""
    taken = await sessions.get(Scope(scope.owner, session=scope.session))
    if taken is None:
        return
    if scope.limits != NO_LIMITS:
        raise AccessDenied(f"session_id {scope.session!r} cannot be used here; use another one")
    raise InvalidInput(
        f"session {scope.session!r} belongs to agent {taken.agent!r}, not {agent!r}; "
        "leave agent_id out, or use another session_id"
    )
