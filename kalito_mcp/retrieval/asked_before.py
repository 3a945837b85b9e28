"""Finds messages of users that ask the same as a text. Reads the index; otherwise pure.

Two questions are alike if they share most of their content terms (`text.questions.likeness`). So the index gives the
messages that have enough of them, and only those are read.
"""

from functools import partial
from typing import Final

import numpy as np

from kalito_mcp.domain.records import RecordType, Role
from kalito_mcp.domain.search import Candidate, SearchFilters
from kalito_mcp.ports.search import SearchIndex
from kalito_mcp.retrieval.filtering import in_scope, is_admitted
from kalito_mcp.text.questions import may_be_alike, most_alike, questions_in, terms_of_wordings, wordings

_ASKING: Final = SearchFilters(types=frozenset({RecordType.MESSAGE}), roles=frozenset({Role.USER}))
_MOST_READ: Final = 16
_ROUNDING: Final = np.float32(1e-6)


def asked_before(index: SearchIndex, text: str, *, least: float) -> list[tuple[float, Candidate]]:
    """The messages with a question that is at least this alike, and how alike it is: the most alike first, then the
    newest.

    Read are the 16 that have most of the terms; of equal ones the shortest (by halves), because a long text has the
    terms of a question more often without asking it; then the newest.
    """
    records, own = index.records, wordings(text, questions_in(text))
    all_terms = terms_of_wordings(own)
    found = index.places(frozenset().union(*all_terms))
    shares = np.zeros(records.count, np.float32)
    for terms in filter(None, all_terms):
        counts = np.zeros(records.count, np.float32)
        for term in terms:
            counts[found[term]] += 1
        np.maximum(shares, counts / np.float32(len(terms)), out=shares)
    # |both| / |either| >= least, and |either| >= |terms|.
    has_enough = (shares > 0) & (shares >= np.float32(least) - _ROUNDING)
    places = np.flatnonzero(has_enough & in_scope(index, _ASKING))
    places = places[is_admitted(index, places, _ASKING)]
    halvings = np.log2(np.maximum(1, records.word_counts[places])).astype(np.int8)
    places = places[np.lexsort((places, -halvings, shares[places]))][-_MOST_READ:]
    if not len(places):
        return []
    # A question without content terms is compared word by word.
    may_be = partial(may_be_alike, all_terms, least=least) if all(all_terms) else None
    alike: list[tuple[float, int, Candidate]] = []
    for place, one in index.candidates(places).items():
        questions = questions_in(one.text)
        theirs = list(filter(may_be, wordings(one.text, questions))) if questions else []
        if theirs and (how_alike := most_alike(own, theirs)) >= least:
            alike.append((-how_alike, -place, one))
    return [(-similarity, one) for similarity, _, one in sorted(alike, key=lambda found: found[:2])]
