"""Finds a session by its id, and tells a mistyped agent or session from a new one."""

import re
from collections.abc import Iterable
from typing import Final

from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import Session
from kalito_mcp.errors import InvalidInput, SessionNotFound
from kalito_mcp.ports.store import ReadView, WriteTransaction
from kalito_mcp.text.spelling import distance

_SHORTEST: Final = 4
_TWO_MISTAKES: Final = 8
_COMPARED: Final = 1_000
_NOT_DIGITS: Final = re.compile(r"\D+")


async def find_session(view: ReadView | WriteTransaction, scope: Scope) -> Session:
    """Return the session of the scope. Raises SessionNotFound if there is none; it names a similar one."""
    session = await view.sessions.get(scope)
    if session is None:
        await refuse_mistaken(view, scope)
        raise SessionNotFound(scope.session or "")
    return session


async def refuse_mistaken(view: ReadView | WriteTransaction, scope: Scope) -> None:
    """Refuse a scope whose agent or session does not exist, but one with a similar name does. Without such a name it is
    a new one, and fine.

    Raises:
        InvalidInput: the agent is mistyped.
        SessionNotFound: the session is mistyped.
    """
    if scope.agent is not None:
        agents = await view.sessions.agents(scope.owner, limit=_COMPARED)
        near = nearest(scope.agent, agents)
        if near is not None:
            raise InvalidInput(f"no agent {scope.agent!r}; did you mean {near!r}?")
    if scope.session is not None:
        known = await view.sessions.list_recent(Scope(scope.owner, scope.agent), limit=_COMPARED)
        near = nearest(scope.session, [session.id for session in known])
        if near is not None:
            raise SessionNotFound(scope.session, near)


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
