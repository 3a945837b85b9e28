"""Reads which indexes of vectors there are, without a vector; `vectors` does the rest."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from kalito_mcp.ports.vectors import VectorIndex
from kalito_mcp.storage.sqlite.queries import Queries

_COLUMNS: Final = "key, fingerprint, dimension, state = 'active', first_key, done_key"
SELECT_INDEXES: Final = f"SELECT {_COLUMNS} FROM vector_indexes WHERE state <> 'dropped' ORDER BY state"
SELECT_INDEX: Final = f"SELECT {_COLUMNS} FROM vector_indexes WHERE key = :index_key AND state <> 'dropped'"
SELECT_ACTIVE_INDEX: Final = """
SELECT i.key, i.dimension, i.centre, m.moved_key FROM vector_indexes i LEFT JOIN vector_moves m ON m.index_key = i.key
WHERE i.state = 'active' AND i.fingerprint = :fingerprint
"""
SELECT_VECTOR_COUNT: Final = "SELECT count(*) FROM record_vectors WHERE index_key = :index_key"


class ActiveIndex(NamedTuple):
    """The index that searches use. Its rows up to `moved_key` have their vectors outside; None: all are in the file.
    With a `centre` (half floats) it has too many to compare each."""

    key: int
    dimension: int
    centre: bytes | None
    moved_key: int | None


class VectorIndexQueries(Queries):
    """The part of `ports.vectors.VectorReader` that is about indexes."""

    async def indexes(self) -> Sequence[VectorIndex]:
        return [_index(row) for row in await self._all(SELECT_INDEXES)]

    async def count(self, index: VectorIndex) -> int:
        [[count]] = await self._all(SELECT_VECTOR_COUNT, index_key=index.key)
        return int(count)

    async def _index(self, index_key: int) -> VectorIndex | None:
        return next((_index(row) for row in await self._all(SELECT_INDEX, index_key=index_key)), None)


def _index(row: Sequence[Any]) -> VectorIndex:
    key, fingerprint, dimension, is_active, first_key, done_key = row
    return VectorIndex(key, fingerprint, dimension, is_active == 1, first_key, done_key)
