"""What the index of a search says, for tests: which records contain a term, which may be shown, and how many there are.

A scope that does not exist has nothing.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import Candidate, SearchFilters
from kalito_mcp.ports.search import SearchIndex
from kalito_mcp.ports.store import ReadView
from kalito_mcp.retrieval.filtering import in_scope, is_admitted
from kalito_mcp.text.analysis import MANY, SEVERAL

NO_FILTERS = SearchFilters()


def all_keys(index: SearchIndex) -> NDArray[np.int64]:
    """The key of every record, by place."""
    return index.keys(np.arange(index.records.count))


async def keys_with(view: ReadView, scope: Scope, *terms: str) -> list[int]:
    """The keys of the records of the scope's agent that contain any of the terms, newest first."""
    found = await view.search.in_index(
        scope, lambda index: {key for places in index.places(terms).values() for key in all_keys(index)[places]}
    )
    return sorted(map(int, found or ()), reverse=True)


async def counts_of(view: ReadView, scope: Scope, term: str) -> list[tuple[int, int]]:
    """The keys of the records that contain the term, oldest first, each with how often the index says it does."""

    def read(index: SearchIndex) -> list[tuple[int, int]]:
        places = {times: index.places([term], times=times)[term] for times in (1, SEVERAL, MANY)}
        counts = {key: times for times, found in places.items() for key in all_keys(index)[found].tolist()}
        return sorted(counts.items())

    return await view.search.in_index(scope, read) or []


async def shown(view: ReadView, scope: Scope, *terms: str, filters: SearchFilters = NO_FILTERS) -> Sequence[Candidate]:
    """The records that a search of the scope may show, oldest first; only those with any of the terms, if given."""

    def read(index: SearchIndex) -> Sequence[Candidate]:
        found = index.candidates(_places_shown(index, terms, filters))
        return [one for _, one in sorted(found.items())]

    return await view.search.in_index(scope, read) or ()


async def keys_shown(view: ReadView, scope: Scope, *terms: str, filters: SearchFilters = NO_FILTERS) -> list[int]:
    """Their keys, newest first."""

    def read(index: SearchIndex) -> list[int]:
        return [int(key) for key in index.keys(_places_shown(index, terms, filters))[::-1]]

    return await view.search.in_index(scope, read) or []


def _places_shown(index: SearchIndex, terms: Sequence[str], filters: SearchFilters) -> NDArray[np.int64]:
    found = list(index.places(terms).values()) or [np.arange(index.records.count)]
    places = np.unique(np.concatenate(found)).astype(np.int64)
    places = places[in_scope(index, filters)[places]]
    return places[is_admitted(index, places, filters)]


async def record_count(view: ReadView, scope: Scope) -> int:
    """How many records the scope's agent has that are not forgotten."""
    return await view.search.in_index(scope, lambda index: int(index.records.is_shown.sum())) or 0


async def similar_terms(
    view: ReadView, scope: Scope, *words: str, limit: int = 3
) -> Mapping[str, Sequence[tuple[str, int]]]:
    """The terms that each word may be a mistyped form of."""
    return await view.search.in_index(scope, lambda index: index.similar_terms(words, limit=limit)) or {}


async def terms_with_prefixes(view: ReadView, scope: Scope, *prefixes: str) -> Mapping[str, Sequence[str]]:
    """The terms that begin with each prefix."""
    return await view.search.in_index(scope, lambda index: index.terms_with_prefixes(prefixes)) or {}
