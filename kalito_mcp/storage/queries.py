"""Runs the named statements of a store. A port that is written once for all stores in SQL builds on it.

Statements that are the same in every store stand beside the port. The others are constants of the store's module of the
same name: `self._sql.graphs.SELECT_NODES`. Parameters that a statement does not name are left out, so that a call may
pass what only one of the stores needs.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from kalito_mcp.domain.scope import Scope

T = TypeVar("T")


class SqlTransaction(Protocol):
    """An open transaction of a store in SQL."""

    sql: Any
    """The modules with the statements of the store."""

    async def all(self, statement: str, **parameters: Any) -> list[Any]:
        """All rows of the statement. `owner` is a name, and a list is what the store takes as one."""

    async def count_changed(self, statement: str, **parameters: Any) -> int:
        """Run the statement; how many rows it changed or removed."""

    async def many(self, statement: str, rows: Iterable[Mapping[str, Any]], *, owner: str) -> None:
        """Run the statement for each row of parameters, all of one owner."""

    async def of(self, owner: str) -> object:
        """Go on as this owner: until the transaction ends, nobody else changes what is the owner's."""

    def stored_once(self) -> AbstractContextManager[None]:
        """Raises AlreadyStored for a constraint that says what is stored once."""


class Queries:
    """Statements within one transaction."""

    def __init__(self, transaction: SqlTransaction) -> None:
        self._transaction = transaction
        self._sql = transaction.sql
        self._all = transaction.all
        self._count_changed = transaction.count_changed
        self._many = transaction.many

    async def _first(self, read: Callable[[Any], T], statement: str, **parameters: Any) -> T | None:
        """The first row of the statement as a value; None without a row."""
        return next(map(read, await self._all(statement, **parameters)), None)


def limits_of(scope: "Scope") -> dict[str, str | None]:
    """The parameters that name the limits."""
    return {"limit_agent": scope.limits.agent, "limit_project": scope.limits.project}


def places_of(scope: "Scope") -> dict[str, str | None]:
    """The parameters that name the owner, the agent, the session, the project and the limits."""
    names = {"owner": scope.owner, "agent": scope.agent, "session": scope.session, "project": scope.project}
    return {**names, **limits_of(scope)}
