"""Runs named statements, and says which rows the limits of a caller reach. The implementations of the ports build on
it."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

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

    async def _many(self, statement: str, rows: Iterable[Mapping[str, Any]], *, owner: str) -> None:
        """Run the statement for each row of parameters of one owner."""
        await self._transaction.many(statement, rows, owner=owner)
