"""Finds the stored vectors near to another: one product of a sparse matrix and a vector. Exact. Pure, in memory.

Each vector is a row of the matrix. New rows are appended, and multiplied entry by entry. Once they are a sixteenth of
all rows, the entries are sorted by column, and removed rows dropped: then a product reads only the query's columns.

Counts over a length, such as the vectors of the hashing embedder, take a byte an entry, and their sums are exact: they
are the same in any order.
Measured with 50,000 questions of 177 entries each, one core: `near` at 0.75 takes 0.7 ms, `nearest` of 40 takes 3.2 ms,
`add_all` of all of them 0.9 s.
"""

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.domain.sparse_vectors import SparseVector
from kalito_mcp.errors import InvalidInput

DECIMALS: Final = 6
"""Cosines are rounded to this many."""

_MAX_WIDTH: Final = 1 << 20
_MAX_NARROW: Final = np.iinfo(np.uint16).max
_FEW_ROWS: Final = 256
_SORTED_SHARE: Final = 16
# Columns are read until what the others may add is this much below the threshold.
_MARGIN: Final = 0.1
# Cosines are rounded: a bound may be too low by this much.
_SLACK: Final = 1e-6

Scored = list[tuple[str, float]]
Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
"""Numbers of rows, or of columns."""


class SimilarityIndex:
    """Maps keys to vectors of unit length. Cosines are rounded to 6 decimals; a zero vector is near nothing."""

    def __init__(self) -> None:
        self._matrix = _Matrix()
        self._keys: list[str] = []
        self._rows: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: str) -> bool:
        return key in self._rows

    def add_all(self, items: Iterable[tuple[str, SparseVector]]) -> None:
        """Store the vectors under their keys, replacing earlier ones; of two under one key, the latter.

        Raises:
            InvalidInput: a vector is too wide; nothing was changed.
        """
        latest = dict(items)
        width = 1 + max((int(vector.indices[-1]) for vector in latest.values() if len(vector)), default=0)
        if width > _MAX_WIDTH:
            raise InvalidInput(f"an embedding has {width} dimensions; the graph takes at most {_MAX_WIDTH}")
        for key in latest.keys() & self._rows.keys():
            self.remove(key)
        self._rows.update(zip(latest, range(len(self._keys), len(self._keys) + len(latest)), strict=True))
        self._keys += latest
        self._matrix.append(list(latest.values()), width)
        if self._matrix.unsorted_count > max(_FEW_ROWS, len(self._keys) // _SORTED_SHARE):
            kept = sorted(self._rows.values())
            self._keys = [self._keys[row] for row in kept]
            self._rows = {key: row for row, key in enumerate(self._keys)}
            self._matrix.sort(np.array(kept, np.intp))

    def remove(self, key: str) -> None:
        """Remove the key; an unknown one is fine."""
        row = self._rows.pop(key, None)
        if row is not None:
            self._matrix.lengths.filled[row] = np.inf

    def vector(self, key: str) -> SparseVector:
        """The key's vector, bit for bit as it was added. Raises KeyError for an unknown key."""
        return self._matrix.row(self._rows[key])

    def near(self, vector: SparseVector, at_least: float) -> Scored:
        """All keys with a cosine of at least `at_least`, which is above 0; best first, ties by key."""
        return self._best(*self._matrix.cosines(vector, at_least), at_least)

    def nearest(self, vector: SparseVector, k: int) -> Scored:
        """The k keys with the highest cosines above 0, best first, ties by key; fewer if there are no more."""
        rows, cosines = self._matrix.cosines(vector)
        kth = np.partition(cosines, -k)[-k] if k < len(cosines) else 0.0
        return self._best(rows, cosines, max(float(kth), 10.0**-DECIMALS))[:k]

    def _best(self, rows: Rows, cosines: Floats, at_least: float) -> Scored:
        is_near = cosines >= at_least
        scored = zip((self._keys[row] for row in rows[is_near].tolist()), cosines[is_near].tolist(), strict=True)
        return sorted(scored, key=lambda pair: (-pair[1], pair[0]))


class _Growing:
    """An array that grows at its end. Its type widens with what is added."""

    def __init__(self, dtype: Any) -> None:
        self._room: NDArray[Any] = np.zeros(0, dtype)
        self._size = 0

    @property
    def filled(self) -> NDArray[Any]:
        """A view of the entries, (n,)."""
        return self._room[: self._size]

    def extend(self, more: NDArray[Any]) -> None:
        """Append the entries. Earlier views no longer show later changes."""
        end, dtype = self._size + len(more), np.promote_types(self._room.dtype, more.dtype)
        if end > len(self._room) or dtype != self._room.dtype:
            room = np.zeros(max(end, len(self._room) * 5 // 4), dtype)
            room[: self._size] = self.filled
            self._room = room
        self._room[self._size : end] = more
        self._size = end


class _Matrix:
    """Rows one after another: row i has its `indices` and `weights` from `starts[i]` to `starts[i + 1]`.

    The values of row i are its weights divided by `lengths[i]`, which is infinite for an empty row. The entries of the
    first rows are there twice: once more in order of column, where column j goes from `edges[j]` to `edges[j + 1]`.
    """

    def __init__(self) -> None:
        self.lengths = _Growing(np.float64)
        self._starts = _Growing(np.intp)
        self._starts.extend(np.zeros(1, np.intp))
        self._indices = _Growing(np.uint16)
        self._weights = _Growing(np.uint8)
        self._width = 1
        self.sort(np.zeros(0, np.intp))

    @property
    def unsorted_count(self) -> int:
        """How many rows were appended since the last `sort`."""
        return len(self.lengths.filled) - self._sorted_rows

    def append(self, vectors: list[SparseVector], width: int) -> None:
        """Add the vectors as rows. Their indices are below `width`."""
        if not vectors:
            return
        indices = np.concatenate([vector.indices for vector in vectors])
        self._starts.extend(self._starts.filled[-1] + np.cumsum([len(vector) for vector in vectors]))
        self._indices.extend(indices.astype(np.uint16) if width <= _MAX_NARROW else indices)
        self._weights.extend(np.concatenate([vector.weights for vector in vectors]))
        self.lengths.extend(np.array([vector.length if len(vector) else np.inf for vector in vectors]))
        self._width = max(self._width, width)

    def sort(self, kept: Rows) -> None:
        """Drop all rows but the kept ones, which are ascending, and sort the entries by column."""
        starts = self._starts.filled
        sizes = np.diff(starts)[kept]
        if len(kept) < len(starts) - 1:
            is_kept = np.zeros(len(starts) - 1, np.bool_)
            is_kept[kept] = True
            entries = np.repeat(is_kept, np.diff(starts))
            self._starts, self._indices, self._weights, self.lengths = (
                _of(_edges(sizes)),
                _of(self._indices.filled[entries]),
                _of(self._weights.filled[entries]),
                _of(self.lengths.filled[kept]),
            )
        # A stable sort of numbers of 16 bits is a radix sort.
        order = np.argsort(self._indices.filled, kind="stable")
        row_type = np.uint16 if len(kept) <= _MAX_NARROW else np.uint32
        self._column_rows = np.repeat(np.arange(len(kept), dtype=row_type), sizes)[order]
        self._column_weights = self._weights.filled[order]
        self._edges = _edges(np.bincount(self._indices.filled, minlength=self._width))
        self._sorted_rows = len(kept)

    def row(self, row: int) -> SparseVector:
        """A row, as it was appended."""
        span, length = slice(*self._starts.filled[row : row + 2]), float(self.lengths.filled[row])
        indices, weights = self._indices.filled[span], self._weights.filled[span]
        if length in (1, np.inf):
            return SparseVector(indices, weights)
        # Counts among other values are stored as numbers of their type.
        return SparseVector(indices, weights.astype(np.uint8, copy=False), length)

    def cosines(self, vector: SparseVector, at_least: float = 0.0) -> tuple[Rows, Floats]:
        """Rows, ascending, and the rounded cosine of each with the vector. Some that are below `at_least` are left
        out."""
        query = np.zeros(self._width)
        is_known = vector.indices < self._width
        query[vector.indices[is_known]] = vector.weights[is_known]
        columns = vector.indices[vector.indices < len(self._edges) - 1].astype(np.intp)
        if at_least:
            rows = self._candidates(query, columns, at_least * vector.length)
            sums = self._sums(query, rows)
        else:
            rows = np.arange(self._sorted_rows)
            sums = self._column_sums(query, columns)
        lengths = self.lengths.filled
        rows = np.concatenate((rows, np.arange(self._sorted_rows, len(lengths))))
        sums = np.concatenate((sums, self._sums(query)))
        return rows, np.round(sums / (lengths[rows] * vector.length), DECIMALS)

    def _candidates(self, query: Floats, columns: Rows, at_least: float) -> Rows:
        """The sorted rows whose sum may reach `at_least` times their length. Reads only the shortest columns.

        By Cauchy and Schwarz, the others add at most the length of the query's part there, times the row's length.
        """
        sizes = self._edges[columns + 1] - self._edges[columns]
        columns = columns[np.argsort(sizes)][np.count_nonzero(sizes == 0) :]
        rest = np.sqrt(_edges(query[columns[::-1]] ** 2)[::-1])
        read = int(np.searchsorted(-rest, -(1 - _MARGIN) * at_least))
        sums = self._column_sums(query, columns[:read])
        return np.flatnonzero(sums >= (at_least - rest[read] - _SLACK) * self.lengths.filled[: self._sorted_rows])

    def _column_sums(self, query: Floats, columns: Rows) -> Floats:
        """The product of the sorted rows and the query in these columns, (sorted rows,)."""
        begins, ends = self._edges[columns], self._edges[columns + 1]
        spans = [slice(*span) for span in zip(begins.tolist(), ends.tolist(), strict=True)]
        if not spans:
            return np.zeros(self._sorted_rows)
        products = np.concatenate([self._column_weights[span] for span in spans])
        sums: Any = np.bincount(
            np.concatenate([self._column_rows[span] for span in spans]),
            weights=products * np.repeat(query[columns], ends - begins),
            minlength=self._sorted_rows,
        )
        found: Floats = sums
        return found

    def _sums(self, query: Floats, rows: Rows | None = None) -> Floats:
        """The product of some rows and the query, (rows,); by default of all unsorted rows."""
        starts, indices, weights = self._starts.filled, self._indices.filled, self._weights.filled
        if rows is None:
            starts = starts[self._sorted_rows :]
            indices, weights = indices[starts[0] :], weights[starts[0] :]
        elif len(rows):
            spans = [slice(*span) for span in zip(starts[rows].tolist(), starts[rows + 1].tolist(), strict=True)]
            starts = _edges(starts[rows + 1] - starts[rows])
            indices, weights = (np.concatenate([entries[span] for span in spans]) for entries in (indices, weights))
        else:
            return np.zeros(0)
        # A zero at the end, because a sum may begin there. `take` is twice as fast as an index.
        products = np.zeros(len(indices) + 1)
        np.multiply(query.take(indices), weights, out=products[:-1])
        return np.add.reduceat(products, starts[:-1] - starts[0])


def _edges(sizes: NDArray[Any]) -> NDArray[Any]:
    """Where each part of these sizes begins, and where the last ends."""
    edges = np.zeros(len(sizes) + 1, sizes.dtype)
    np.cumsum(sizes, out=edges[1:])
    return edges


def _of(values: NDArray[Any]) -> _Growing:
    growing = _Growing(values.dtype)
    growing.extend(values)
    return growing
