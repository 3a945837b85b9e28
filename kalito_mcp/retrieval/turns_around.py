"""The messages around some messages, in their sessions."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.domain.search import Candidate, SearchFilters
from kalito_mcp.ports.search import SearchIndex
from kalito_mcp.retrieval.filtering import in_scope, is_admitted


def turns_around(
    index: SearchIndex,
    message_ids: Sequence[str],
    filters: SearchFilters,
    *,
    before: int = 1,
    after: int = 1,
    with_centres: bool = False,
) -> Sequence[Candidate]:
    """The messages up to `before` places before and `after` places after these messages, in no order.

    A forgotten message takes up a place. `with_centres` includes given messages that are next to another one.
    """
    records, places = index.records, index.places_of_messages(message_ids)
    linked = [*_following(records.previous_turns, places, before), *_following(records.next_turns, places, after)]
    around = np.unique(np.concatenate(linked))
    if not with_centres:
        around = np.setdiff1d(around, places)
    around = around[in_scope(index, filters)[around] & is_admitted(index, around, filters)]
    return list(index.candidates(around).values())


def _following(links: NDArray[np.int32], places: NDArray[np.int64], count: int) -> list[NDArray[np.int64]]:
    """The places that the links lead to, at each distance up to `count`."""
    found = []
    for _ in range(count):
        places = links[places].astype(np.int64)
        places = places[(places >= 0) & (places < len(links))]
        found.append(places)
    return found
