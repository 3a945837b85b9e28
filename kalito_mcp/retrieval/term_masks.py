"""Which terms of a query each record contains, as bitmasks. Pure."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from kalito_mcp.domain.search import Posting


class TermMasks:
    """A bitmask of query terms for each record: bit i is `postings[i]`, weighted `weights[i]`."""

    def __init__(self, postings: Sequence[Posting], weights: Sequence[float]) -> None:
        self.weights: Final = weights
        self.masks: Final[dict[int, int]] = {}
        self._total: Final[dict[int, float]] = {}
        masks = self.masks
        mask_of = masks.get
        for bit, posting in enumerate(postings):
            flag = 1 << bit
            for key in posting.keys:
                masks[key] = mask_of(key, 0) | flag

    def weight(self, mask: int) -> float:
        """The sum of the weights of the terms in a mask."""
        known = self._total.get(mask)
        if known is None:
            known = sum(self.weights[bit] for bit in bits(mask))
            self._total[mask] = known
        return known

    def by_weight(self) -> Iterator[int]:
        """The keys of all records, the greatest weight of distinct terms first; ties newest first."""
        by_mask: defaultdict[int, list[int]] = defaultdict(list)
        for key, mask in self.masks.items():
            by_mask[mask].append(key)
        groups: defaultdict[float, list[int]] = defaultdict(list)
        for mask, keys in by_mask.items():
            groups[self.weight(mask)] += keys
        for total in sorted(groups, reverse=True):
            yield from sorted(groups[total], reverse=True)


def bits(mask: int) -> Iterator[int]:
    """The numbers of the bits that are set, lowest first."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
