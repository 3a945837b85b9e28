"""Finds a session by its id, and tells a mistyped agent or session from a new one."""

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import PurePath
from typing import Final

from kalito_mcp.domain.scope import NO_LIMITS, Scope
from kalito_mcp.domain.sessions import Session
from kalito_mcp.domain.spaces import seen_in_spaces
from kalito_mcp.errors import InvalidInput, SessionNotFound
from kalito_mcp.ports.sessions import HasSessions
from kalito_mcp.ports.store import ReadView, Store
from kalito_mcp.safety.redaction import checked_handle
from kalito_mcp.text.spelling import distance
from kalito_mcp.text.titles import is_short_id, short_id

_SHORTEST: Final = 4
_TWO_MISTAKES: Final = 8
_COMPARED: Final = 1_000
_MOST_NAMED: Final = 5
_NOT_DIGITS: Final = re.compile(r"\D+")


async def find_session(view: HasSessions, scope: Scope) -> Session:
    """Return the session of the scope, which may be named by the beginning of its UUID (see `titles.short_id`).

    Raises:
        SessionNotFound: it does not exist; the error names a similar one.
        InvalidInput: it is of another project, the agent is mistyped, or several ids begin like this.
    """
    session = await view.sessions.get(scope) or await _by_short_id(view, scope)
    if session is None:
        await refuse_mistaken(view, scope)
        raise SessionNotFound(scope.session or "")
    scope.admit(session)
    return session


async def _by_short_id(view: HasSessions, scope: Scope) -> Session | None:
    """The session whose UUID begins like this, if any. Raises InvalidInput if there are several."""
    if scope.session is None or not is_short_id(scope.session):
        return None
    within = replace(scope.anywhere(), agent=scope.agent)
    begun = await view.sessions.list_recent(within, prefix=scope.session, limit=_COMPARED)
    found = [session for session in begun if short_id(session.id) != session.id]
    if len(found) > 1:
        ids = ", ".join(session.id for session in found[:_MOST_NAMED])
        raise InvalidInput(f"the ids of several sessions begin with {scope.session}: {ids}; send a whole one")
    return found[0] if found else None


async def refuse_mistaken(view: HasSessions, scope: Scope) -> None:
    """Refuse a scope whose agent or session does not exist, but one with a similar name does. Without a similar name it
    is new, and accepted.

    Raises:
        InvalidInput: the agent is mistyped.
        SessionNotFound: the session is mistyped.
    """
    if scope.agent is not None:
        agents = await view.sessions.agents(scope, limit=_COMPARED)
        near = nearest(scope.agent, agents)
        if near is not None:
            raise InvalidInput(f"no agent {scope.agent!r}; did you mean {near!r}?")
    if scope.session is not None:
        known = await view.sessions.list_recent(replace(scope.anywhere(), agent=scope.agent), limit=_COMPARED)
        near = nearest(scope.session, [session.id for session in known])
        if near is not None:
            raise SessionNotFound(scope.session, near)


async def session_reached(store: Store, scope: Scope, *, may_be_new: bool = False) -> Scope:
    """The scope with the id of the session that is meant within its limits: the one of this id, or else the one that
    was begun there under it (see `Limits.own_session`). If neither exists, the latter if it `may_be_new`, or else the
    one whose UUID begins like this."""
    is_short = scope.session is not None and not may_be_new and is_short_id(scope.session)
    if scope.session is None or (scope.limits == NO_LIMITS and not is_short):
        return scope
    own = scope.of_session(scope.limits.own_session(scope.session))

    async def look(view: ReadView) -> Scope | None:
        for one in (scope, own):
            if await view.sessions.get(one) is not None:
                return one
        named = await _by_short_id(view, scope) if is_short else None
        return None if named is None else scope.of_session(named.id)

    found = await store.read(look)
    if found is None and may_be_new:
        checked_handle(scope.session, "session_id")
        return own
    return found or scope


async def find_project(view: HasSessions, scope: Scope, name: str) -> str:
    """The project whose id, or the last part of whose path, is this name; the name itself if it is new.

    Raises:
        InvalidInput: several projects have it as their last part, or it is mistyped.
    """
    known = [project for project, _ in await view.sessions.projects(scope, limit=_COMPARED)]
    if name in known:
        return name
    named = [project for project in known if PurePath(project).name == name]
    if len(named) > 1:
        raise InvalidInput(f"several projects are named {name!r}: {', '.join(sorted(named))}; send the whole path")
    near = None if named else nearest(name, {*known, *(PurePath(project).name for project in known)})
    if near is not None:
        raise InvalidInput(f"no project {name!r}; did you mean {near!r}?")
    return named[0] if named else name


async def unknown_project(view: ReadView, scope: Scope) -> str | None:
    """That nothing is of the scope's project, and which others are within the limits; None if something is, also in a
    space, or if there are no others. Others are named by the last parts of their paths, unless it has the same."""
    known = [project for project, _ in await view.sessions.projects(scope, limit=_COMPARED)]
    if not known or scope.project in known or scope.limits.project is not None or len(known) == _COMPARED:
        return None
    for one, _ in seen_in_spaces(scope, await view.spaces.memberships(scope.owner)):
        shared = await view.sessions.projects(Scope(one.space.owner), limit=_COMPARED)
        if scope.project in (one.space.project, *(project for project, _ in shared)):
            return None
    last_parts = {project: PurePath(project).name for project in known}
    own = PurePath(scope.project or "").name
    names = list(dict.fromkeys(repr(project if name == own else name) for project, name in last_parts.items()))
    *first, last = [*names[:_MOST_NAMED], *([f"{len(names) - _MOST_NAMED} more"] if len(names) > _MOST_NAMED else [])]
    listed = f"{', '.join(first)} and {last}" if first else last
    return f"there is no project {scope.project!r} yet, only {listed}"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that this one is a mistyped form of; None if it is known itself, or like none of them.

    Names with other digits are other names: ids count, and have dates.
    """
    names = list(known)
    if name in names or len(name) < _SHORTEST:
        return None
    most, digits = 2 if len(name) >= _TWO_MISTAKES else 1, _NOT_DIGITS.sub("", name)
    close = [
        (apart, one)
        for one in names
        if (apart := distance(name.casefold(), one.casefold(), most)) <= most and _NOT_DIGITS.sub("", one) == digits
    ]
    return min(close)[1] if close else None
