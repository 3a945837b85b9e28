"""The vectors of one index in memory, and the scan over them.

They are loaded by the first search. After that only new rows are loaded, because a row never changes, and removed ones
are emptied. An index without a centre has few vectors: they are compared exactly. Of one with a centre only the codes
are kept (see `sign_codes`), and the rows with the nearest codes are suggested.

The answer depends only on the rows that are stored, never on when or in which order they were loaded. The scan uses
one thread: on a busy machine several would wait for each other.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.storage.intact_rows import intact_rows
from kalito_mcp.storage.sqlite.sign_codes import bits, codes, distances
from kalito_mcp.storage.sqlite.vector_indexes import ActiveIndex
from kalito_mcp.storage.vector_rows import directions, inverse_lengths, products, unpacked

_BLOCK_ROWS: Final = 32_768
_NOBODY: Final = -1
# Below this share it is cheaper to pick the rows of the scope than to scan all.
_PICKED_SHARE: Final = 0.25
# Of 10^5 vectors this suggests 88 to 98 % of the 100 nearest, depending on the model, and nearly all of the first ten.
_LEAST_NEAR: Final = 1_000
_NEAR_SHARE: Final = 0.05
_MOST_NEAR: Final = 10_000
_LEAST_SUGGESTED: Final = 500
_SUGGESTED_FACTOR: Final = 5

_SIGN_COSINE: Final = 0.8
"""The cosine of a random vector and its signs, on average."""

Rows = NDArray[np.intp] | slice
Chosen = NDArray[np.intp] | None
"""Rows of a block. None: all that the view has."""


class Admissible(NamedTuple):
    """Which rows may be found: of one agent (and session) with keys up to `up_to`, of records `among` these, ascending
    (None: of all)."""

    agent: int
    session: int | None
    up_to: int
    among: NDArray[np.int64] | None = None


class _Block:
    """Room for some thousand rows, of which the first `count` are used. Other threads may scan them meanwhile."""

    def __init__(self, dimension: int, centre: NDArray[np.float32]) -> None:
        self.count = 0
        self.keys = np.empty(_BLOCK_ROWS, np.int64)
        self.record_keys = np.empty(_BLOCK_ROWS, np.int64)
        self.agents = np.empty(_BLOCK_ROWS, np.int64)
        self.sessions = np.empty(_BLOCK_ROWS, np.int64)
        self.vectors = np.empty((0 if centre.size else _BLOCK_ROWS, dimension), np.int8)
        self.inverse_lengths = np.empty(len(self.vectors), np.float32)
        self.codes = np.empty((-(-dimension // 64), _BLOCK_ROWS if centre.size else 0), np.uint64)
        self.lengths = np.empty(self.codes.shape[1], np.float32)
        self._centre = centre

    def add(self, rows: Sequence[Sequence[Any]], vectors: NDArray[np.int8]) -> int:
        """Add as many of the rows as there is room for. Returns how many."""
        start, rows = self.count, rows[: _BLOCK_ROWS - self.count]
        end, vectors = start + len(rows), vectors[: len(rows)]
        self.keys[start:end] = [row[0] for row in rows]
        self.record_keys[start:end] = [row[1] for row in rows]
        self.agents[start:end] = [row[2] for row in rows]
        self.sessions[start:end] = [_NOBODY if row[3] is None else row[3] for row in rows]
        if self._centre.size:
            from_centre = directions(vectors) - self._centre
            self.codes[:, start:end] = codes(from_centre)
            self.lengths[start:end] = np.sqrt(np.vecdot(from_centre, from_centre))
        else:
            self.vectors[start:end] = vectors
            self.inverse_lengths[start:end] = inverse_lengths(vectors)
        self.count = end
        return len(rows)

    def empty(self, keys: Sequence[int]) -> None:
        """Overwrite what these rows say, so that nothing finds them."""
        at = np.flatnonzero(np.isin(self.keys[: self.count], keys))
        self.agents[at] = _NOBODY
        if self._centre.size:
            self.codes[:, at] = 0
            self.lengths[at] = 0
        else:
            self.vectors[at] = 0

    def cosines(self, query: NDArray[np.float32], rows: Rows) -> NDArray[np.float32]:
        """The inner product of the direction of each of these rows with the query."""
        return products(self.vectors[rows], query) * self.inverse_lengths[rows]

    def distances(self, code: NDArray[np.uint64], rows: Rows) -> NDArray[np.uint16]:
        """In how many bits each of these rows differs from the code."""
        return distances(self.codes[:, rows], code)

    def estimates(self, direction: NDArray[np.float32], rows: Rows) -> NDArray[np.float32]:
        """Estimates of these rows' inner products with a query from their codes, up to a constant. `direction` leads
        from the centre to the query's direction.

        Source: Gao, Long, SIGMOD 2024 (RaBitQ). Because a vector has unit length, its length from the centre says how
        far it goes along the centre.
        """
        lengths = self.lengths[rows]
        signed = 2 * products(bits(self.codes[:, rows], len(direction)), direction) - direction.sum()
        return np.asarray(lengths * (signed / (_SIGN_COSINE * len(direction) ** 0.5) - lengths / 2), np.float32)

    def admissible(self, scope: Admissible) -> tuple[Chosen, int]:
        """The rows that may be found, and how many rows the view has."""
        count = int(np.searchsorted(self.keys[: self.count], scope.up_to, "right"))
        is_asked = self.agents[:count] == scope.agent
        if scope.session is not None:
            is_asked &= self.sessions[:count] == scope.session
        if scope.among is None and is_asked.all():
            return None, count
        rows = np.flatnonzero(is_asked)
        if scope.among is not None and rows.size:
            keys = self.record_keys[rows]
            first, end = np.searchsorted(scope.among, (keys.min(), keys.max() + 1))
            rows = rows[np.isin(keys, scope.among[first:end])]
        return rows, count


class VectorCache:
    """The rows of an index that are in the database, up to `last_key`, without the removals up to `last_removal`."""

    def __init__(self, index: ActiveIndex, *, last_removal: int = 0) -> None:
        self.index = index
        self.last_key = index.moved_key or 0
        self.last_removal = last_removal
        with intact_rows():
            halves = np.frombuffer(index.centre or b"", "<f2").reshape(index.dimension if index.centre else 0)
        self._centre = halves.astype(np.float32)
        self._blocks: list[_Block] = []

    def add(self, rows: Sequence[Sequence[Any]]) -> None:
        """Add at least one row (key, record, agent, session or None, bytes). Keys are in order, after `last_key`."""
        vectors, added = unpacked([row[4] for row in rows], self.index.dimension), 0
        while added < len(rows):
            if not self._blocks or self._blocks[-1].count == _BLOCK_ROWS:
                self._blocks.append(_Block(self.index.dimension, self._centre))
            added += self._blocks[-1].add(rows[added:], vectors[added:])
        # Set here, not by the caller: one that is cancelled while this thread runs must not add the rows twice.
        self.last_key = rows[-1][0]

    def remove(self, keys: Sequence[int]) -> None:
        """Remove these rows from all later searches, and from memory."""
        for block in self._blocks:
            block.empty(keys)

    def nearest(self, query: NDArray[np.float32], scope: Admissible, *, k: int) -> list[tuple[int, float]]:
        """The records of the k admissible rows with the largest cosines, and these, best first; ties: newest first.
        Only without a centre."""
        parts: list[tuple[NDArray[np.int64], NDArray[np.float32]]] = []
        for block, rows, count in self._admissible(scope):
            scores = _of_each(rows, count, partial(block.cosines, query))
            # Keep all ties: the newest of them are chosen over all blocks.
            best = scores >= np.partition(scores, -min(k, scores.size))[-min(k, scores.size)]
            parts.append((block.record_keys[_those(rows, best)], scores[best]))
        if not parts:
            return []
        record_keys, scores = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.lexsort((-record_keys, -scores))[:k]
        return list(zip(record_keys[order].tolist(), scores[order].tolist(), strict=True))

    def suggested(self, query: NDArray[np.float32], scope: Admissible, *, k: int) -> list[int]:
        """Keys of some hundred admissible rows, nearly always with the k nearest. Only with a centre.

        Of the rows with the fewest different bits, those that `estimates` puts nearest. Equal ones are all taken or all
        left.
        """
        length = float(np.sqrt(np.vecdot(query, query)))
        direction = query / (length or 1.0) - self._centre
        code = codes(direction[np.newaxis])[:, 0]
        parts: list[tuple[_Block, Chosen, NDArray[np.uint16]]] = []
        counts = np.zeros(self.index.dimension + 1, np.int64)
        for block, rows, count in self._admissible(scope):
            differing = _of_each(rows, count, partial(block.distances, code))
            counts += np.bincount(differing, minlength=counts.size)
            parts.append((block, rows, differing))
        if not parts:
            return []
        total = int(counts.sum())
        suggested = max(_LEAST_SUGGESTED, _SUGGESTED_FACTOR * k)
        near = max(_LEAST_NEAR, min(round(_NEAR_SHARE * total), _MOST_NEAR), suggested)
        farthest = np.searchsorted(np.cumsum(counts), min(near, total))
        nearest = [(block, _those(rows, differing <= farthest)) for block, rows, differing in parts]
        keys = np.concatenate([block.keys[rows] for block, rows in nearest])
        scores = np.concatenate([block.estimates(direction, rows) for block, rows in nearest])
        if suggested < keys.size:
            keys = keys[scores >= np.partition(scores, -suggested)[-suggested]]
        return [int(key) for key in keys]

    def _admissible(self, scope: Admissible) -> Iterator[tuple[_Block, Chosen, int]]:
        """Each block that has admissible rows, these, and how many rows the view has of it."""
        for block in self._blocks:
            rows, count = block.admissible(scope)
            if count and (rows is None or rows.size):
                yield block, rows, count


def _of_each(rows: Chosen, count: int, measure: Callable[[Rows], NDArray[Any]]) -> NDArray[Any]:
    """The result of `measure` for each of the rows: measured alone, or with all `count`, whichever is cheaper."""
    if rows is not None and rows.size < _PICKED_SHARE * count:
        return measure(rows)
    measured = measure(slice(0, count))
    return measured if rows is None else measured[rows]


def _those(rows: Chosen, are_wanted: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The rows that are wanted."""
    wanted = np.flatnonzero(are_wanted)
    return wanted if rows is None else rows[wanted]
