"""Searches of a store in memory. Implements `ports.search.SearchReader`."""

from collections.abc import Callable
from typing import TypeVar

from kalito_mcp.domain.scope import Scope
from kalito_mcp.ports.search import SearchIndex
from kalito_mcp.storage.memory.state import Tables

T = TypeVar("T")


class SearchRead(Tables):
    """`ports.search.SearchReader`. A search runs at once, on the thread of the caller."""

    async def in_index(self, scope: Scope, work: Callable[[SearchIndex], T]) -> T | None:
        from kalito_mcp.storage.memory.search_index import SearchIndexOfScope  # noqa: PLC0415 - numpy loads when needed

        agent = self._state.agent_searched(scope)
        index = None if agent is None else SearchIndexOfScope(self._state, scope, agent)
        # An agent of which nothing is within the limits does not exist there.
        return work(index) if index is not None and index.reaches_any else None
