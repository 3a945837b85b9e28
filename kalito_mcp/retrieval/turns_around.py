"""The messages next to some messages."""

from collections.abc import Sequence

import numpy as np

from kalito_mcp.domain.search import Candidate, SearchFilters
from kalito_mcp.ports.search import SearchIndex
from kalito_mcp.retrieval.filtering import in_scope, is_admitted


def turns_around(index: SearchIndex, keys: Sequence[int], filters: SearchFilters) -> Sequence[Candidate]:
    """The messages directly before and after those with these keys, without these. A forgotten one counts as one."""
    records = index.records
    places = np.searchsorted(records.keys, keys)
    # A record may have been erased since its key was found.
    places = places[np.append(records.keys, -1)[places] == keys]
    links = np.concatenate([records.previous_turns[places], records.next_turns[places]])
    around = np.setdiff1d(links[(links >= 0) & (links < records.count)], places)
    around = around[in_scope(index, filters)[around] & is_admitted(records, around, filters)]
    return index.candidates(records.keys[around].tolist())
