"""Which messages of users ask for what a text asks for. Pure, but for what it reads of the index.

Two questions are alike if they share most of their content terms (`text.questions.likeness`). So the index says which
messages have enough of them, and only those are read: a tenth of what a search costs.
"""

import math
from typing import Final

import numpy as np

from kalito_mcp.domain.records import RecordType, Role
from kalito_mcp.domain.search import Candidate, SearchFilters
from kalito_mcp.ports.search import SearchIndex
from kalito_mcp.retrieval.filtering import in_scope, is_admitted
from kalito_mcp.text.questions import asked_terms, likeness, questions_in

_ASKING: Final = SearchFilters(types=frozenset({RecordType.MESSAGE}), roles=frozenset({Role.USER}))
_MOST_READ: Final = 64


def asked_before(index: SearchIndex, text: str, *, least: float) -> list[Candidate]:
    """The messages with a question that is at least so alike, the most alike first, then the newest. Of those that have
    enough of the terms, the newest 64 are read."""
    records = index.records
    has_enough = np.zeros(records.count, np.bool_)
    for terms in asked_terms(text):
        counts = np.zeros(records.count, np.int32)
        for term in terms:
            counts[index.places(term)] += 1
        # |both| / |either| >= least, and |either| >= |terms|.
        has_enough |= counts >= max(1, math.ceil(least * len(terms)))
    places = np.flatnonzero(has_enough & in_scope(index, _ASKING))
    places = places[is_admitted(records, places, _ASKING)][-_MOST_READ:]
    if not len(places):
        return []
    read = [one for one in index.candidates(records.keys[places].tolist()) if questions_in(one.text)]
    alike = [(likeness(text, one.text), one.key, one) for one in read]
    return [one for how_alike, _, one in sorted(alike, key=lambda pair: (-pair[0], -pair[1])) if how_alike >= least]
