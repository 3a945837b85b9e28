"""Segments of sparse vectors, each with its own inverted index. Pure; after creation, rows can only be removed.

If the values of a row are exactly whole numbers over its length, it is stored as counts: the rows of the hashing
embedder are. That takes a byte an entry, and inner products need no rounding, so they are the same in any order. A
feature of weight w is in its posting w times, so a posting needs no weights.

Most of a vector's mass is in a few features that occur everywhere, the segment's *common* features. A query walks only
the postings of the others. What the common ones can add is bounded by Cauchy and Schwarz, row by row, because the
length of a row's common part is known. Source: Anastasiu and Karypis, ICDE 2014 (l2-norm filtering).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.domain.sparse_vectors import SparseVector

MAX_ROWS: Final = 1 << 14
"""Rows of a segment at most: building such a segment takes some 100 ms, the longest that an `add` may wait."""

DECIMALS: Final = 6
"""Cosines are rounded to this many."""

_ROW_BITS: Final = 14
_MAX_WEIGHT: Final = 255
_COMMON_SHARE: Final = 0.6
_TYPICAL_TAIL: Final = 0.9
# This many rows at once stay in the processor's cache.
_BLOCK_ROWS: Final = 256
_SAMPLED_ROWS: Final = 4_096

Floats = NDArray[np.float64]
Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Rows:
    """Vectors end to end: row i has `indices` and `weights` from `starts[i]` to `starts[i + 1]`, both (entries,).

    The values of row i are its weights divided by `lengths[i]`. `weights` are uint8 counts, or float32 values with
    lengths of 1.
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
        """The row as it was added, bit for bit."""
        span = slice(self.starts[row], self.starts[row + 1])
        return SparseVector(self.indices[span], self.weights[span], float(self.lengths[row]))

    def blocks(self) -> Iterator[tuple[slice, Places, slice]]:
        """A few rows at a time: the rows, where each begins in the block, (rows + 1,), and the block's entries."""
        for first in range(0, len(self), _BLOCK_ROWS):
            starts = self.starts[first : first + _BLOCK_ROWS + 1]
            yield slice(first, first + len(starts) - 1), starts - starts[0], slice(starts[0], starts[-1])

    def select(self, is_kept: NDArray[np.bool_]) -> "Rows":
        """The rows marked in `is_kept`, in order."""
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


def join_rows(parts: Sequence[Rows]) -> Rows:
    """All rows of the parts, in order. Either all parts are counted or none is."""
    return Rows(
        [key for part in parts for key in part.keys],
        _edges(np.concatenate([np.diff(part.starts) for part in parts])),
        np.concatenate([part.indices for part in parts]),
        np.concatenate([part.weights for part in parts]),
        np.concatenate([part.lengths for part in parts]),
    )


def build_rows(keys: list[str], vectors: Sequence[SparseVector]) -> tuple[Rows, Rows]:
    """Split the vectors, none of them zero, into rows that can be counts and rows that cannot."""
    blocks = range(0, len(keys), _BLOCK_ROWS)
    found = [_build_block(keys[at : at + _BLOCK_ROWS], vectors[at : at + _BLOCK_ROWS]) for at in blocks]
    return join_rows([as_counts for as_counts, _ in found]), join_rows([as_values for _, as_values in found])


_NO_ROWS: Final = Rows([], np.zeros(1, np.intp), np.zeros(0, np.uint16), np.zeros(0, np.float32), np.zeros(0))


def _build_block(keys: list[str], vectors: Sequence[SparseVector]) -> tuple[Rows, Rows]:
    starts = _edges(np.fromiter((vector.indices.size for vector in vectors), dtype=np.intp, count=len(vectors)))
    indices = np.concatenate([vector.indices for vector in vectors])
    if indices.max() <= np.iinfo(np.uint16).max:
        indices = indices.astype(np.uint16)
    if all(vector.is_counted for vector in vectors):
        lengths = np.fromiter((vector.length for vector in vectors), dtype=np.float64, count=len(vectors))
        as_counts = Rows(keys, starts, indices, np.concatenate([vector.weights for vector in vectors]), lengths)
        return as_counts, _NO_ROWS
    values = np.concatenate([vector.values for vector in vectors])
    counts, lengths, is_counted = to_counts(values, starts)
    as_counts = Rows(keys, starts, indices, counts, lengths)
    as_values = Rows(keys, starts, indices, values, np.ones(len(keys)))
    return as_counts.select(is_counted), as_values.select(~is_counted)


def to_counts(values: NDArray[np.float32], starts: Places) -> tuple[NDArray[np.uint8], Floats, NDArray[np.bool_]]:
    """Write the values as counts over row lengths: counts (entries,), lengths (rows,), is_exact (rows,).

    A row is exact if its counts over its length give the same float32 values again. No row is empty.
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


def exact_weights(vector: SparseVector) -> tuple[Floats, float]:
    """The weights of a vector that is not zero, (n,), and their length: counts if they are exact, else its values."""
    if vector.is_counted:
        return vector.weights.astype(np.float64), vector.length
    counts, lengths, is_exact = to_counts(vector.values, np.array([0, len(vector)]))
    if is_exact[0]:
        return counts.astype(np.float64), float(lengths[0])
    return vector.values.astype(np.float64), 1.0


class Query:
    """The vector of a search, as counts if they are exact, and its weights by feature."""

    def __init__(self, vector: SparseVector, width: int) -> None:
        """Features of `width` or more are dropped: no stored vector has them. The vector is not zero."""
        weights, self.length = exact_weights(vector)
        is_stored = vector.indices < width
        self.features: Final = vector.indices[is_stored].astype(np.intp)
        self.weights: Final = weights[is_stored]
        self.by_feature: Final = np.zeros(width)
        self.by_feature[self.features] = self.weights


class CommonFeatures:
    """The most frequent features, which together have three fifths of the mass of the given rows."""

    def __init__(self, rows: Rows | None = None) -> None:
        self.row_count: Final = len(rows) if rows else 0
        self.sample_size = 0
        # The last entry is False, and stands for all features beyond the known ones.
        self.is_common: NDArray[np.bool_] = np.zeros(1, dtype=np.bool_)
        self.frequency: Places = np.zeros(1, dtype=np.intp)
        self.typical_tail = 1.0
        if rows is None:
            return
        sample = rows.select(np.arange(len(rows)) % -(-len(rows) // _SAMPLED_ROWS) == 0)
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
    """The order in which a query's features are walked: first all that are not common; by weight per posting."""

    def __init__(self, query: Query, common: CommonFeatures) -> None:
        is_common = common.is_common.take(query.features, mode="clip")
        self.frequency: Final = common.frequency.take(query.features, mode="clip") + 1
        self.order: Final = np.lexsort((-(query.weights**2) / self.frequency, is_common))
        masses = (query.weights[self.order] / query.length) ** 2
        # The length in [0, 1] of the part not walked after 0, 1, ... features, (features + 1,).
        self.rest: Final = np.sqrt(np.append(np.cumsum(masses[::-1])[::-1], 0.0))
        self.rare_count: Final = int(len(is_common) - np.count_nonzero(is_common))

    def steps_until(self, rest: float) -> int:
        """How many features to walk until at most `rest` is left; all that are not common, at least."""
        return max(self.rare_count, int(np.searchsorted(-self.rest, -max(rest, 0.0))))

    def steps_within(self, posting_count: float) -> int:
        """How many features have about `posting_count` postings; all that are not common, at least."""
        return max(self.rare_count, int(np.searchsorted(np.cumsum(self.frequency[self.order]), posting_count)))


class Segment:
    """Up to `MAX_ROWS` rows, searched by a scan."""

    def __init__(self, rows: Rows) -> None:
        self.rows: Final = rows
        self.is_alive: Final = np.ones(len(rows), dtype=np.bool_)
        self.dead_count = 0

    @property
    def live_count(self) -> int:
        """How many rows were not removed."""
        return len(self.rows) - self.dead_count

    def remove(self, row: int) -> None:
        """Mark a row as removed; it was not removed before."""
        self.is_alive[row] = False
        self.dead_count += 1

    def remaining(self) -> Rows:
        """The rows that were not removed."""
        return self.rows.select(self.is_alive) if self.dead_count else self.rows

    def cosines(self, query: Query, picked: Places) -> Floats:
        """The rounded cosines, (picked,), of the picked rows; `picked` is ascending."""
        if not len(picked):
            return np.zeros(0)
        begins, ends = self.rows.starts[picked], self.rows.starts[picked + 1]
        spans = list(zip(begins.tolist(), ends.tolist(), strict=True))
        indices = np.concatenate([self.rows.indices[begin:end] for begin, end in spans])
        weights = np.concatenate([self.rows.weights[begin:end] for begin, end in spans])
        return rounded_cosines(query, indices, weights, _edges(ends - begins), self.rows.lengths[picked])

    def all_cosines(self, query: Query) -> Floats:
        """The rounded cosines of all rows, (rows,)."""
        found = np.empty(len(self.rows))
        for block, starts, span in self.rows.blocks():
            indices, weights = self.rows.indices[span], self.rows.weights[span]
            found[block] = rounded_cosines(query, indices, weights, starts, self.rows.lengths[block])
        return found


class IndexedSegment(Segment):
    """A segment of counted rows, with postings."""

    def __init__(self, rows: Rows, common: CommonFeatures) -> None:
        super().__init__(rows)
        self.common: Final = common
        self.tails: Final = common.tails(rows)
        self._edges, self._postings = _postings(rows)

    def partial_cosines(self, query: Query, features: Places) -> Floats:
        """What some of the query's features, given by position, add to the cosine of each row, (rows,)."""
        found = np.minimum(query.features[features], len(self._edges) - 2)
        begins, ends = self._edges[found].astype(np.intp), self._edges[found + 1].astype(np.intp)
        sizes = ends - begins
        places = np.arange(sizes.sum()) + np.repeat(begins - (np.cumsum(sizes) - sizes), sizes)
        repeated = np.repeat(query.weights[features], sizes)
        sums: Any = np.bincount(self._postings[places], weights=repeated, minlength=len(self.rows))
        cosines: Floats = sums / (self.rows.lengths * query.length)
        return cosines


def rounded_cosines(
    query: Query, indices: NDArray[Any], weights: NDArray[Any], starts: Places, lengths: Floats
) -> Floats:
    """The rounded cosines, (rows,), of rows laid end to end; no row is empty."""
    # `take` is twice as fast as an index here.
    sums: Floats = np.add.reduceat(query.by_feature.take(indices) * weights, starts[:-1])
    return np.round(sums / (lengths * query.length), DECIMALS)


def _postings(rows: Rows) -> tuple[NDArray[np.uint32], NDArray[np.uint16]]:
    """Where each feature's posting begins, (features + 2,), with an empty last one; and the rows of all postings."""
    feature_count = int(rows.indices.max(initial=0)) + 1
    wide: Any = np.uint32 if feature_count << _ROW_BITS < 1 << 32 else np.uint64
    entry_count, extra = len(rows.indices), np.flatnonzero(rows.weights > 1)
    repeats = rows.weights[extra] - np.uint8(1)
    # Feature and row sorted as one number take a tenth of an argsort; in place, because new memory costs most here.
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
    """Where each part of these sizes begins, and where the last ends."""
    return np.concatenate((np.zeros(1, dtype=np.intp), np.cumsum(sizes, dtype=np.intp)))
