"""Runs named statements, and says which rows the limits of a caller reach. The implementations of the ports build on
it."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from kalito_mcp.domain.scope import DEFAULT_AGENT
from kalito_mcp.ports.records import AlreadyStored
from kalito_mcp.storage import queries

if TYPE_CHECKING:
    import aiosqlite

sqlite3.register_adapter(list, json.dumps)  # a parameter that is a list, for json_each


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


AGENT_KEY: Final = f"""(
    SELECT key FROM agents WHERE owner = :owner AND id = coalesce(
        :agent, (
            SELECT b.id FROM sessions s JOIN agents b ON b.key = s.agent_key
            WHERE s.owner = :owner AND s.id = :session AND {within("s")}
        ), :limit_agent, '{DEFAULT_AGENT}'
    ) AND (:limit_agent IS NULL OR id = :limit_agent)
)"""
"""The key of the agent that a scope names, else of its session's agent, else of the default one. Its parameters:
`places_of`."""

SELECT_CHANGES: Final = "SELECT changes()"


class Transaction:
    """The transaction that a connection has open. Implements `storage.queries.SqlTransaction`."""

    def __init__(self, connection: "aiosqlite.Connection", sql: Any = None) -> None:
        self.connection = connection
        self.sql = sql

    async def all(self, statement: str, **parameters: Any) -> list[Any]:
        return list(await self.connection.execute_fetchall(statement, parameters))

    async def count_changed(self, statement: str, **parameters: Any) -> int:
        await self.all(statement, **parameters)
        [[changed]] = await self.all(SELECT_CHANGES)
        return int(changed)

    async def many(self, statement: str, rows: Iterable[Mapping[str, Any]], *, owner: str) -> None:
        if parameters := [{**row, "owner": owner} for row in rows]:
            await self.connection.executemany(statement, parameters)

    async def of(self, owner: str) -> None:
        """Nothing to do: there is one writer at a time."""

    @contextmanager
    def stored_once(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.IntegrityError as error:
            raise AlreadyStored from error


class Queries(queries.Queries):
    """Statements that only this store has."""

    def __init__(self, connection: "aiosqlite.Connection") -> None:
        super().__init__(Transaction(connection))
        self._connection = connection
