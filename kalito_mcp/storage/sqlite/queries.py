"""Runs named statements, and says which rows the limits of a caller reach. The implementations of the ports build on
it."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import aiosqlite

    from kalito_mcp.domain.scope import Scope


def within(alias: str) -> str:
    """The condition that a row with the keys of an agent and a project is within the limits. Rows without a project are
    personal, and within the limits of every project. Its parameters: `limits_of`, and `owner`."""
    return f"""
        (:limit_agent IS NULL OR {alias}.agent_key = (
            SELECT key FROM agents WHERE owner = :owner AND id = :limit_agent
        )) AND (:limit_project IS NULL OR {alias}.project_key IS NULL OR {alias}.project_key = (
            SELECT key FROM projects WHERE owner = :owner AND id = :limit_project
        ))
    """


def owned(row: str) -> str:
    """The condition that the agent of a row is the owner's. It is checked for each row that the rest of a statement
    finds, and never makes SQLite read all rows of an agent. Its parameter: `owner`."""
    return f"(SELECT owner FROM agents WHERE key = {row}.agent_key) = :owner"


def limits_of(scope: "Scope") -> dict[str, str | None]:
    """The parameters of `within`, without the owner."""
    return {"limit_agent": scope.limits.agent, "limit_project": scope.limits.project}


SELECT_CHANGES = "SELECT changes()"


class Queries:
    """Statements over one connection, inside the transaction that it has open."""

    def __init__(self, connection: "aiosqlite.Connection") -> None:
        self._connection = connection

    async def _all(self, statement: str, **parameters: Any) -> list[Any]:
        """All rows of the statement."""
        return list(await self._connection.execute_fetchall(statement, parameters))

    async def _count_changed(self, statement: str, **parameters: Any) -> int:
        """Run the statement; how many rows it changed or removed."""
        await self._all(statement, **parameters)
        [[changed]] = await self._all(SELECT_CHANGES)
        return int(changed)
