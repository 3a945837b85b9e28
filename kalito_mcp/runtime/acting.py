"""On whose behalf this task works. The entrances of calls set it; the memory and its audit log read it."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Final

from kalito_mcp.domain.access import HOST, Principal


@dataclass(frozen=True, slots=True)
class Acting:
    """A principal and what they do: the name of a tool or of a route, such as `forget` or `PATCH /api/records/{id}`."""

    principal: Principal
    action: str


_ACTING: Final[ContextVar[Acting | None]] = ContextVar("acting", default=None)


@contextmanager
def acting_as(principal: Principal, action: str) -> Iterator[None]:
    """Within the block, this task acts for the principal."""
    before = _ACTING.set(Acting(principal, action))
    try:
        yield
    finally:
        _ACTING.reset(before)


@contextmanager
def acting_as_host(action: str, owner: str = HOST.owner) -> Iterator[None]:
    """The same for the program that started this process, on what is this owner's, unless the task works for a
    principal already."""
    if acting() is not None:
        yield
        return
    with acting_as(replace(HOST, owner=owner), action):
        yield


def acting() -> Acting | None:
    """For whom this task works; None on stdio, on the command line and in background work."""
    return _ACTING.get()
