"""Runs named statements, and says which rows the limits of a caller reach. The implementations of the ports build on
it."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from kalito_mcp.domain.scope import DEFAULT_AGENT
from kalito_mcp.storage.postgres.transactions import Transaction

if TYPE_CHECKING:
    from kalito_mcp.domain.scope import Scope


def within(alias: str) -> str:
    """The condition that a row with the keys of an agent and a project is within the limits. Rows without a project are
    personal, and within the limits of every project. Its parameters: `limits_of`, and `owner`."""
    return f"""
        (:limit_agent IS NULL OR {alias}.agent_key = (
            SELECT key FROM agents WHERE owner_key = :owner AND id = :limit_agent
        )) AND (:limit_project IS NULL OR {alias}.project_key IS NULL OR {alias}.project_key = (
            SELECT key FROM projects WHERE owner_key = :owner AND id = :limit_project
        ))
    """


AGENT_KEY: Final = f"""(
    SELECT key FROM agents WHERE owner_key = :owner AND id = coalesce(
        :agent, (
            SELECT b.id FROM sessions s JOIN agents b ON b.owner_key = :owner AND b.key = s.agent_key
            WHERE s.owner_key = :owner AND s.id = :session AND {within("s")}
        ), :limit_agent, '{DEFAULT_AGENT}'
    ) AND (:limit_agent IS NULL OR id = :limit_agent)
)"""
"""The key of the agent that a scope names, else of its session's agent, else of the default one. Its parameters:
`places_of`."""


def places_of(scope: "Scope") -> dict[str, str | None]:
    """The parameters that name the owner, the agent, the session, the project and the limits."""
    names = {"owner": scope.owner, "agent": scope.agent, "session": scope.session, "project": scope.project}
    return {**names, **limits_of(scope)}


def limits_of(scope: "Scope") -> dict[str, str | None]:
    """The parameters of `within`, without the owner."""
    return {"limit_agent": scope.limits.agent, "limit_project": scope.limits.project}


class Queries:
    """Statements within one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    async def _all(self, statement: str, **parameters: Any) -> list[Any]:
        """All rows of the statement. `owner` is a name."""
        return await self._transaction.all(statement, **parameters)

    async def _count_changed(self, statement: str, **parameters: Any) -> int:
        """Run the statement; how many rows it changed or removed."""
        return await self._transaction.count_changed(statement, **parameters)

    async def _many(self, statement: str, rows: Iterable[Mapping[str, Any]], *, owner: str | None) -> None:
        """Run the statement for each row of parameters of one owner, or of none."""
        await self._transaction.many(statement, rows, owner=owner)
