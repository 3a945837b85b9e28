"""Blocks of sparse vectors, each with an inverted index of its own. Pure; made once, then only rows die.

A row is kept as whole numbers over its length wherever its values are exactly that, as those of the hashing embedder
are: a byte an entry, and inner products without rounding, so that they are the same in any order. A feature of
weight w is in its posting w times, which then needs no weights.

Most of a vector's mass lies in few features that are everywhere. Those are the block's *common* features: a query
walks the postings of the others, and bounds what the common ones can add by Cauchy and Schwarz, row by row, because
the length of a row's common part is known. Source: Anastasiu and Karypis, ICDE 2014 (l2-norm filtering).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.domain.vectors import SparseVector

MAX_ROWS: Final = 1 << 14
"""Of a segment: making one takes some 100 ms then, which is the longest that an `add` may wait."""

DECIMALS: Final = 6
"""Of a cosine."""

_ROW_BITS: Final = 14
_MAX_WEIGHT: Final = 255
_COMMON_SHARE: Final = 0.6
_TYPICAL_TAIL: Final = 0.9
# So many rows at once stay in the processor's cache.
_BLOCK_ROWS: Final = 256
_SAMPLED_ROWS: Final = 4_096

Floats = NDArray[np.float64]
Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Rows:
    """Vectors end to end: row i has `indices` and `weights` from `starts[i]` to `starts[i + 1]`, both (entries,).

    Its values are its weights over `lengths[i]`. `weights` are uint8 counts, or float32 values over a length of 1.
    """

    keys: list[str]
    starts: Places
    indices: NDArray[Any]
    weights: NDArray[Any]
    lengths: Floats

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def is_counted(self) -> bool:
        """Whether the weights are counts."""
        return self.weights.dtype == np.uint8

    def vector(self, row: int) -> SparseVector:
        """The row as it came in, bit for bit."""
        span = slice(self.starts[row], self.starts[row + 1])
        return SparseVector(self.indices[span], self.weights[span], float(self.lengths[row]))

    def blocks(self) -> Iterator[tuple[slice, Places, slice]]:
        """A few rows at a time: which rows, where each begins in the block, (rows + 1,), and the block's entries."""
        for first in range(0, len(self), _BLOCK_ROWS):
            starts = self.starts[first : first + _BLOCK_ROWS + 1]
            yield slice(first, first + len(starts) - 1), starts - starts[0], slice(starts[0], starts[-1])

    def only(self, is_kept: NDArray[np.bool_]) -> "Rows":
        """The rows that are kept, in order."""
        if is_kept.all():
            return self
        sizes = np.diff(self.starts)
        entries = np.repeat(is_kept, sizes)
        return Rows(
            [key for key, kept in zip(self.keys, is_kept.tolist(), strict=True) if kept],
            _edges(sizes[is_kept]),
            self.indices[entries],
            self.weights[entries],
            self.lengths[is_kept],
        )


def joined(parts: Sequence[Rows]) -> Rows:
    """All rows of the parts, in order; the parts are all counted or all not."""
    return Rows(
        [key for part in parts for key in part.keys],
        _edges(np.concatenate([np.diff(part.starts) for part in parts])),
        np.concatenate([part.indices for part in parts]),
        np.concatenate([part.weights for part in parts]),
        np.concatenate([part.lengths for part in parts]),
    )


def rows_of(keys: list[str], vectors: Sequence[SparseVector]) -> tuple[Rows, Rows]:
    """The vectors, none of them zero, as the rows that can be counted and those that cannot."""
    blocks = range(0, len(keys), _BLOCK_ROWS)
    found = [_rows_of(keys[at : at + _BLOCK_ROWS], vectors[at : at + _BLOCK_ROWS]) for at in blocks]
    return joined([as_counts for as_counts, _ in found]), joined([as_values for _, as_values in found])


_NO_ROWS: Final = Rows([], np.zeros(1, np.intp), np.zeros(0, np.uint16), np.zeros(0, np.float32), np.zeros(0))


def _rows_of(keys: list[str], vectors: Sequence[SparseVector]) -> tuple[Rows, Rows]:
    starts = _edges(np.fromiter((vector.indices.size for vector in vectors), dtype=np.intp, count=len(vectors)))
    indices = np.concatenate([vector.indices for vector in vectors])
    if indices.max() <= np.iinfo(np.uint16).max:
        indices = indices.astype(np.uint16)
    if all(vector.is_counted for vector in vectors):
        lengths = np.fromiter((vector.length for vector in vectors), dtype=np.float64, count=len(vectors))
        as_counts = Rows(keys, starts, indices, np.concatenate([vector.weights for vector in vectors]), lengths)
        return as_counts, _NO_ROWS
    values = np.concatenate([vector.values for vector in vectors])
    counts, lengths, is_counted = counted(values, starts)
    as_counts = Rows(keys, starts, indices, counts, lengths)
    as_values = Rows(keys, starts, indices, values, np.ones(len(keys)))
    return as_counts.only(is_counted), as_values.only(~is_counted)


def counted(values: NDArray[np.float32], starts: Places) -> tuple[NDArray[np.uint8], Floats, NDArray[np.bool_]]:
    """The counts (entries,) whose share of their row's length (rows,) the values are; and which rows are that exactly.

    Exactly means that counts over length give the same float32 numbers again. No row is empty.
    """
    sizes = np.diff(starts)
    smallest = np.minimum.reduceat(values, starts[:-1])
    smallest[~(smallest > 0)] = np.inf
    ratios = np.rint(values.astype(np.float64) / np.repeat(smallest, sizes))
    counts = np.clip(ratios, 0, _MAX_WEIGHT).astype(np.uint8)
    lengths = np.sqrt(np.add.reduceat(counts.astype(np.float64) ** 2, starts[:-1]))
    lengths[lengths == 0] = 1.0
    same = (counts / np.repeat(lengths, sizes)).astype(np.float32) == values
    return counts, lengths, np.logical_and.reduceat(same, starts[:-1])


class Query:
    """A vector that is looked for, as counts where it is that, and its weights by feature."""

    def __init__(self, vector: SparseVector, width: int) -> None:
        """No index of `width` or more is stored anywhere; the vector is not zero."""
        counts, lengths, is_counted = counted(vector.values, np.array([0, len(vector)]))
        weights: Floats = (counts if is_counted[0] else vector.values).astype(np.float64)
        self.length: Final = float(lengths[0]) if is_counted[0] else 1.0
        is_stored = vector.indices < width
        self.features: Final = vector.indices[is_stored].astype(np.intp)
        self.weights: Final = weights[is_stored]
        self.by_feature: Final = np.zeros(width)
        self.by_feature[self.features] = self.weights


class CommonFeatures:
    """The most frequent features, which together hold three fifths of the mass of some rows."""

    def __init__(self, rows: Rows | None = None) -> None:
        self.row_count: Final = len(rows) if rows else 0
        self.sample_size = 0
        # One more than there are features, and False: whatever lies beyond is not common.
        self.is_common: NDArray[np.bool_] = np.zeros(1, dtype=np.bool_)
        self.frequency: Places = np.zeros(1, dtype=np.intp)
        self.typical_tail = 1.0
        if rows is None:
            return
        sample = rows.only(np.arange(len(rows)) % -(-len(rows) // _SAMPLED_ROWS) == 0)
        self.sample_size = len(sample)
        self.frequency = np.append(np.bincount(sample.indices), 0)
        masses = (sample.weights / np.repeat(sample.lengths, np.diff(sample.starts))) ** 2
        masses_by_feature = np.bincount(sample.indices, weights=masses, minlength=len(self.frequency))
        order = np.argsort(-self.frequency, kind="stable")
        share = np.cumsum(masses_by_feature[order]) / len(sample)
        self.is_common = np.zeros(len(self.frequency), dtype=np.bool_)
        self.is_common[order[: int(np.searchsorted(share, _COMMON_SHARE))]] = True
        self.is_common[-1] = False
        self.typical_tail = max(float(np.quantile(self.tails(sample), _TYPICAL_TAIL)), 0.1)

    def tails(self, rows: Rows) -> NDArray[np.float32]:
        """The length of each row's common part, (rows,), in [0, 1]."""
        found = np.empty(len(rows), dtype=np.float32)
        for block, starts, span in rows.blocks():
            weights = rows.weights[span].astype(np.float64)
            weights *= self.is_common.take(rows.indices[span], mode="clip")
            weights *= weights
            found[block] = np.sqrt(np.add.reduceat(weights, starts[:-1])) / rows.lengths[block]
        return found


class Plan:
    """In which order a query's features are walked: all that are not common, then what tells most per posting."""

    def __init__(self, query: Query, common: CommonFeatures) -> None:
        is_common = common.is_common.take(query.features, mode="clip")
        self.frequency: Final = common.frequency.take(query.features, mode="clip") + 1
        self.order: Final = np.lexsort((-(query.weights**2) / self.frequency, is_common))
        masses = (query.weights[self.order] / query.length) ** 2
        # What is not walked after so many features, (features + 1,): a length in [0, 1].
        self.rest: Final = np.sqrt(np.append(np.cumsum(masses[::-1])[::-1], 0.0))
        self.rare_count: Final = int(len(is_common) - np.count_nonzero(is_common))

    def enough_for(self, rest: float) -> int:
        """How many features leave at most so much; never fewer than those that are not common."""
        return max(self.rare_count, int(np.searchsorted(-self.rest, -max(rest, 0.0))))

    def within(self, posting_count: float) -> int:
        """How many features have about so many postings; never fewer than those that are not common."""
        return max(self.rare_count, int(np.searchsorted(np.cumsum(self.frequency[self.order]), posting_count)))


class Segment:
    """Up to `MAX_ROWS` rows, to be scanned."""

    def __init__(self, rows: Rows) -> None:
        self.rows: Final = rows
        self.is_alive: Final = np.ones(len(rows), dtype=np.bool_)
        self.dead_count = 0

    @property
    def live_count(self) -> int:
        """Rows that are not removed."""
        return len(self.rows) - self.dead_count

    def kill(self, row: int) -> None:
        """Remove a row that is alive."""
        self.is_alive[row] = False
        self.dead_count += 1

    def living(self) -> Rows:
        """The rows that are not removed."""
        return self.rows.only(self.is_alive) if self.dead_count else self.rows

    def cosines(self, query: Query, picked: Places) -> Floats:
        """The cosines of the picked rows, ascending, (picked,), rounded."""
        if not len(picked):
            return np.zeros(0)
        begins, ends = self.rows.starts[picked], self.rows.starts[picked + 1]
        spans = list(zip(begins.tolist(), ends.tolist(), strict=True))
        indices = np.concatenate([self.rows.indices[begin:end] for begin, end in spans])
        weights = np.concatenate([self.rows.weights[begin:end] for begin, end in spans])
        return rounded_cosines(query, indices, weights, _edges(ends - begins), self.rows.lengths[picked])

    def all_cosines(self, query: Query) -> Floats:
        """The cosines of all rows, (rows,), rounded."""
        found = np.empty(len(self.rows))
        for block, starts, span in self.rows.blocks():
            indices, weights = self.rows.indices[span], self.rows.weights[span]
            found[block] = rounded_cosines(query, indices, weights, starts, self.rows.lengths[block])
        return found


class IndexedSegment(Segment):
    """One of counted rows, with postings."""

    def __init__(self, rows: Rows, common: CommonFeatures) -> None:
        super().__init__(rows)
        self.common: Final = common
        self.tails: Final = common.tails(rows)
        self._edges, self._postings = _postings(rows)

    def partial_cosines(self, query: Query, features: Places) -> Floats:
        """What these features of the query, by their place in it, add to the cosine of each row, (rows,)."""
        found = np.minimum(query.features[features], len(self._edges) - 2)
        begins, ends = self._edges[found], self._edges[found + 1]
        sizes = ends - begins
        spans = zip(begins.tolist(), ends.tolist(), strict=True)
        slices = [self._postings[begin:end] for begin, end in spans]
        if not slices:
            return np.zeros(len(self.rows))
        repeated = np.repeat(query.weights[features], sizes)
        sums: Any = np.bincount(np.concatenate(slices), weights=repeated, minlength=len(self.rows))
        cosines: Floats = sums / (self.rows.lengths * query.length)
        return cosines


def rounded_cosines(
    query: Query, indices: NDArray[Any], weights: NDArray[Any], starts: Places, lengths: Floats
) -> Floats:
    """The cosines of rows laid end to end, none of them empty, (rows,)."""
    sums: Floats = np.add.reduceat(query.by_feature[indices] * weights, starts[:-1])
    return np.round(sums / (lengths * query.length), DECIMALS)


def _postings(rows: Rows) -> tuple[NDArray[np.uint32], NDArray[np.uint16]]:
    """Where each feature's posting begins, (features + 2,), the last being empty; and the rows in it."""
    feature_count = int(rows.indices.max(initial=0)) + 1
    wide: Any = np.uint32 if feature_count << _ROW_BITS < 1 << 32 else np.uint64
    entry_count, extra = len(rows.indices), np.flatnonzero(rows.weights > 1)
    repeats = rows.weights[extra] - np.uint8(1)
    # Sorted as one number, a tenth of an argsort's time; in place, because fresh memory is what costs most here.
    pairs: NDArray[Any] = np.empty(entry_count + int(repeats.sum(dtype=np.intp)), dtype=wide)
    pairs[:entry_count] = rows.indices
    pairs[:entry_count] <<= wide(_ROW_BITS)
    pairs[:entry_count] |= np.repeat(np.arange(len(rows), dtype=wide), np.diff(rows.starts))
    pairs[entry_count:] = np.repeat(pairs[extra], repeats)
    pairs.sort()
    edges = np.searchsorted(pairs, np.arange(feature_count + 1, dtype=wide) << wide(_ROW_BITS))
    pairs &= wide(MAX_ROWS - 1)
    return np.append(edges, edges[-1]).astype(np.uint32), pairs.astype(np.uint16)


def _edges(sizes: Places) -> Places:
    """Where each of the parts of these sizes begins, and where the last ends."""
    return np.concatenate((np.zeros(1, dtype=np.intp), np.cumsum(sizes, dtype=np.intp)))
