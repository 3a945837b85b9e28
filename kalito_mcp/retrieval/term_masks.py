"""Which terms of a query each record contains, as bitmasks in numpy. Pure."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.domain.search import Posting

MOST_TERMS: Final = 64
"""Bits of a mask. Postings beyond them are left out."""


class TermMasks:
    """A bitmask of query terms for each record: bit i is `postings[i]`, weighted `weights[i]`."""

    def __init__(self, postings: Sequence[Posting], weights: Sequence[float]) -> None:
        self.weights: Final = np.array(weights[:MOST_TERMS], float)
        found = [np.array(posting.keys, np.int64) for posting in postings[:MOST_TERMS]]
        flags = [np.full(len(keys), 1 << bit, np.uint64) for bit, keys in enumerate(found)]
        keys = np.concatenate([*found, np.empty(0, np.int64)])
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        self._keys: Final = keys[starts]
        """Ascending."""
        ordered = np.concatenate([*flags, np.empty(0, np.uint64)])[order]
        self._masks: Final = np.bitwise_or.reduceat(ordered, starts) if len(starts) else ordered

    def of(self, keys: NDArray[np.int64]) -> NDArray[np.uint64]:
        """The masks of these records; 0 for one that contains no term."""
        if not len(self._keys):
            return np.zeros(len(keys), np.uint64)
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where(self._keys[at] == keys, self._masks[at], np.uint64(0))

    def weight(self, masks: NDArray[np.uint64]) -> NDArray[np.float64]:
        """The sum of the weights of the terms in each mask."""
        total = np.zeros(len(masks))
        for bit, weight in enumerate(self.weights):
            total += weight * contains(masks, bit)
        return total

    def heaviest(self, count: int) -> Iterator[int]:
        """The keys of the `count` records (at least 1) with the greatest weight of distinct terms, heaviest first;
        ties newest first."""
        weights = self.weight(self._masks)
        chosen = np.arange(len(weights))
        if count < len(weights):
            least = np.partition(weights, -count)[-count]
            above, equal = np.flatnonzero(weights > least), np.flatnonzero(weights == least)
            chosen = np.concatenate([above, equal[len(equal) - (count - len(above)) :]])
        yield from self._keys[chosen[np.lexsort((-self._keys[chosen], -weights[chosen]))]].tolist()


def contains(masks: NDArray[np.uint64], bit: int) -> NDArray[np.float64]:
    """1 for each mask in which the bit is set, else 0."""
    return ((masks >> np.uint64(bit)) & np.uint64(1)).astype(float)
