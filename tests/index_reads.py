"""What the index of a search says, for tests: which records contain a term, which may be shown, and how many there are.

A scope that does not exist has nothing.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.search import Candidate, SearchFilters
from kalito_mcp.ports.search import SearchIndex
from kalito_mcp.ports.store import ReadView
from kalito_mcp.retrieval.filtering import in_scope, is_admitted
from kalito_mcp.text.analysis import MANY, SEVERAL

NO_FILTERS = SearchFilters()


async def keys_with(view: ReadView, scope: Scope, *terms: str) -> list[int]:
    """The keys of the records of the scope's agent that contain any of the terms, newest first."""
    found = await view.search.in_index(
        scope, lambda index: {key for term in terms for key in index.records.keys[index.places(term)].tolist()}
    )
    return sorted(found or (), reverse=True)


async def counts_of(view: ReadView, scope: Scope, term: str) -> list[tuple[int, int]]:
    """The keys of the records that contain the term, oldest first, each with how often the index says it does."""

    def read(index: SearchIndex) -> list[tuple[int, int]]:
        keys = index.records.keys
        counts = {key: times for times in (1, SEVERAL, MANY) for key in keys[index.places(term, times=times)].tolist()}
        return sorted(counts.items())

    return await view.search.in_index(scope, read) or []


async def shown(view: ReadView, scope: Scope, *terms: str, filters: SearchFilters = NO_FILTERS) -> Sequence[Candidate]:
    """The records that a search of the scope may show, oldest first; only those with any of the terms, if given."""

    def read(index: SearchIndex) -> Sequence[Candidate]:
        records = index.records
        found = [index.places(term).astype(np.int64) for term in terms] or [np.arange(records.count)]
        places = np.unique(np.concatenate(found))
        places = places[in_scope(index, filters)[places]]
        places = places[is_admitted(records, places, filters)]
        return sorted(index.candidates(records.keys[places].tolist()), key=lambda one: one.key)

    return await view.search.in_index(scope, read) or ()


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
