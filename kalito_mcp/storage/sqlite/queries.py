"""Runs named statements. The implementations of the ports build on it."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import aiosqlite


class Queries:
    """Statements over one connection, inside the transaction that it has open."""

    def __init__(self, connection: "aiosqlite.Connection") -> None:
        self._connection = connection

    async def _all(self, statement: str, **parameters: Any) -> list[Any]:
        """All rows of the statement."""
        return list(await self._connection.execute_fetchall(statement, parameters))
