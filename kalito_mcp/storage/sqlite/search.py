"""Runs a search on the thread of its connection, and keeps what a process remembers of each agent's records."""

import sqlite3
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeVar

import aiosqlite

from kalito_mcp.domain.scope import DEFAULT_AGENT, Scope
from kalito_mcp.errors import QueryTooLong
from kalito_mcp.ports.search import SearchIndex
from kalito_mcp.storage.queries import limits_of
from kalito_mcp.storage.sqlite.queries import within

if TYPE_CHECKING:
    from kalito_mcp.storage.sqlite.record_columns import AgentColumns
    from kalito_mcp.storage.sqlite.search_index import SqliteSearchIndex

SELECT_AGENT: Final = """
SELECT key FROM agents WHERE owner = :owner AND id = :agent AND (:limit_agent IS NULL OR id = :limit_agent)
"""
SELECT_SESSION_AGENT: Final = f"""
SELECT s.agent_key FROM sessions s JOIN agents a ON a.key = s.agent_key
WHERE s.owner = :owner AND s.id = :session AND (:agent IS NULL OR a.id = :agent) AND {within("s")}
"""
SELECT_PROJECT: Final = "SELECT key FROM projects WHERE owner = :owner AND id = :project"

_MOST_AGENTS: Final = 32
_STEPS: Final = 20_000
"""Of SQLite's virtual machine between two looks at the clock: below a millisecond."""

T = TypeVar("T")


class ColumnCaches:
    """The columns of the agents that were searched last."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._agents: OrderedDict[int, AgentColumns] = OrderedDict()

    def of(self, agent_key: int) -> "AgentColumns":
        """The columns of an agent."""
        from kalito_mcp.storage.sqlite.record_columns import AgentColumns  # noqa: PLC0415 - numpy loads when first needed

        with self._lock:
            found = self._agents.setdefault(agent_key, AgentColumns(agent_key))
            self._agents.move_to_end(agent_key)
            if len(self._agents) > _MOST_AGENTS:
                self._agents.popitem(last=False)
            return found


class SearchQueries:
    """`ports.search.SearchReader`."""

    def __init__(self, connection: aiosqlite.Connection, caches: ColumnCaches, most_s: float = 0.0) -> None:
        self._connection = connection
        self._caches = caches
        self._most_s = most_s
        self._opened: dict[Scope, SqliteSearchIndex | None] = {}
        """The index of each scope, as long as the view is open."""

    async def in_index(self, scope: Scope, work: Callable[[SearchIndex], T]) -> T | None:
        """The result of `work` on the index of the scope; see the port."""
        run: Any = self._connection._execute  # the driver's own way to run a function on its thread
        found: T | None = await run(self._run, scope, work)
        return found

    def _run(self, scope: Scope, work: Callable[[SearchIndex], T]) -> T | None:
        if scope not in self._opened:
            self._opened[scope] = self._open(scope)
        index = self._opened[scope]
        if index is None:
            return None
        with _time_limit(self._connection._conn, self._most_s):
            return work(index)

    def _open(self, scope: Scope) -> "SqliteSearchIndex | None":
        from kalito_mcp.storage.sqlite.search_index import SqliteSearchIndex  # noqa: PLC0415 - numpy loads when first needed

        connection: sqlite3.Connection = self._connection._conn
        is_agent = scope.session is None
        found = connection.execute(
            SELECT_AGENT if is_agent else SELECT_SESSION_AGENT,
            {
                "owner": scope.owner,
                "agent": (scope.agent or scope.limits.agent or DEFAULT_AGENT) if is_agent else scope.agent,
                "session": scope.session,
                **limits_of(scope),
            },
        ).fetchone()
        if found is None:
            return None
        [agent_key] = found
        parameters = {"owner": scope.owner, "project": scope.project}
        projects = (
            [key for [key] in connection.execute(SELECT_PROJECT, parameters)] if scope.project is not None else None
        )
        columns = self._caches.of(agent_key)
        index = SqliteSearchIndex(connection, columns, scope, agent_key=agent_key, project_keys=projects)
        # An agent of which nothing is within the limits does not exist there.
        return index if index.reaches_any else None


@contextmanager
def _time_limit(connection: sqlite3.Connection, most_s: float) -> Iterator[None]:
    """Within the block, statements on this connection are ended once its thread has used this much processor time. 0:
    no limit.

    Raises:
        QueryTooLong: a statement was ended.
    """
    if not most_s:
        yield
        return
    ends_s = time.thread_time() + most_s
    connection.set_progress_handler(lambda: time.thread_time() > ends_s, _STEPS)
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
        raise QueryTooLong(most_s) from None
    finally:
        connection.set_progress_handler(None, 0)
