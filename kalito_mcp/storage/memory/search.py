"""Searches of a store in memory. Implements `ports.search.SearchReader`."""

from collections.abc import Callable
from typing import TypeVar

from kalito_mcp.domain.scope import Scope
from kalito_mcp.ports.search import SearchIndex
from kalito_mcp.storage.memory.state import State

T = TypeVar("T")


class SearchRead:
    """`ports.search.SearchReader`. A search runs at once, on the thread of the caller."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def in_index(self, scope: Scope, work: Callable[[SearchIndex], T]) -> T | None:
        from kalito_mcp.storage.memory.search_index import SearchIndexOfScope  # noqa: PLC0415 - numpy loads when needed

        place = self._state.place(scope)
        index = None if place is None else SearchIndexOfScope(self._state, scope, *place)
        # An agent of which nothing is within the limits does not exist there.
        return work(index) if index is not None and index.reaches_any else None
