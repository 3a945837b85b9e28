"""Runs a search on a thread, which asks the database through the event loop, and keeps what a process remembers of each
agent's records."""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeVar

import anyio.to_thread
import asyncpg

from kalito_mcp.domain.scope import Scope
from kalito_mcp.errors import QueryTooLong
from kalito_mcp.ports.search import SearchIndex
from kalito_mcp.storage.postgres.column_rows import AgentOfScope, ColumnQueries, ColumnReading
from kalito_mcp.storage.postgres.seen_records import SeenRecords
from kalito_mcp.storage.postgres.transactions import Transaction

if TYPE_CHECKING:
    from kalito_mcp.storage.postgres.record_columns import AgentColumns
    from kalito_mcp.storage.postgres.search_index import PostgresSearchIndex

_LEAST_AGENTS: Final = 32
_MOST_BYTES: Final = 256_000_000
"""The columns of the agents that were searched last are kept: of this many in any case, of more within this memory."""

T = TypeVar("T")


class ColumnCaches:
    """The columns of the agents that were searched last, by the keys of owner and agent."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._agents: OrderedDict[tuple[int, int], AgentColumns] = OrderedDict()
        self._of_owners: dict[int, dict[int, AgentColumns]] = {}
        self._bytes: dict[tuple[int, int], int] = {}
        """What each took when it was last searched."""
        self._all_bytes = 0

    def of(self, owner_key: int, agent_key: int) -> "AgentColumns":
        """The columns of an agent."""
        from kalito_mcp.storage.postgres.record_columns import (  # noqa: PLC0415 - numpy loads when first needed
            AgentColumns,
        )

        place = (owner_key, agent_key)
        with self._lock:
            found = self._agents.get(place)
            if found is None:
                found = self._agents[place] = AgentColumns()
                self._of_owners.setdefault(owner_key, {})[agent_key] = found
            self._agents.move_to_end(place)
            before, self._bytes[place] = self._bytes.get(place, 0), found.nbytes
            self._all_bytes += self._bytes[place] - before
            while len(self._agents) > _LEAST_AGENTS and self._all_bytes > _MOST_BYTES:
                self._drop_oldest()
            return found

    def known(self, owner_key: int) -> dict[int, int]:
        """The revisions of the columns of an owner's agents."""
        with self._lock:
            known = {agent: one.revision for agent, one in self._of_owners.get(owner_key, {}).items()}
        return {agent: revision for agent, revision in known.items() if revision is not None}

    def _drop_oldest(self) -> None:
        place, _ = self._agents.popitem(last=False)
        owner_key, agent_key = place
        self._all_bytes -= self._bytes.pop(place)
        del self._of_owners[owner_key][agent_key]
        if not self._of_owners[owner_key]:
            del self._of_owners[owner_key]


class _NotEnough(Exception):
    """What was read of the columns is not enough."""


class SearchQueries:
    """`ports.search.SearchReader`. After the first search of a view, no statement in it may take longer than `most_s`;
    0 is no limit."""

    def __init__(self, transaction: Transaction, caches: ColumnCaches, seen: SeenRecords, most_s: float = 0.0) -> None:
        self._transaction = transaction
        self._seen = seen
        self._columns = ColumnQueries(transaction)
        self._caches = caches
        self._most_s = most_s
        self._indexes: dict[Scope, PostgresSearchIndex | None] = {}
        """The index of each scope, as long as the view is open."""

    async def in_index(self, scope: Scope, work: Callable[[SearchIndex], T]) -> T | None:
        """The result of `work` on the index of the scope; see the port."""
        try:
            if scope in self._indexes:
                return await anyio.to_thread.run_sync(self._run, scope, work)
            return await self._open(scope, work)
        except asyncpg.QueryCanceledError:
            self._indexes.clear()
            await self._transaction.undo_failed()
            raise QueryTooLong(self._most_s) from None

    async def _open(self, scope: Scope, work: Callable[[SearchIndex], T]) -> T | None:
        owner_key = await self._transaction.of(scope.owner)
        found = await self._columns.changes(scope, self._caches.known(owner_key), most_s=self._most_s)
        if found is None:
            self._indexes[scope] = None
            return None
        agent, reading = found
        columns = self._caches.of(owner_key, agent.key)
        if reading is not None:
            try:
                return await anyio.to_thread.run_sync(self._open_and_run, scope, columns, agent, reading, work)
            except _NotEnough:
                pass
        reading = await self._columns.everything(scope.owner, agent, most_s=self._most_s)
        return await anyio.to_thread.run_sync(self._open_and_run, scope, columns, agent, reading, work)

    def _open_and_run(
        self,
        scope: Scope,
        columns: "AgentColumns",
        agent: AgentOfScope,
        reading: ColumnReading,
        work: Callable[[SearchIndex], T],
    ) -> T | None:
        from kalito_mcp.storage.postgres.search_index import (  # noqa: PLC0415 - numpy loads when first needed
            PostgresSearchIndex,
        )

        state = columns.current(agent, reading)
        if state is None:
            raise _NotEnough
        index = PostgresSearchIndex(self._transaction, columns, state, scope, agent, self._seen)
        # An agent of which nothing is within the limits does not exist there.
        self._indexes[scope] = index if index.reaches_any else None
        return self._run(scope, work)

    def _run(self, scope: Scope, work: Callable[[SearchIndex], T]) -> T | None:
        index = self._indexes[scope]
        return None if index is None else work(index)
