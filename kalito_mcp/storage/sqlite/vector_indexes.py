"""Reads which indexes of vectors there are, without a vector; `vectors` does the rest."""

from collections.abc import Sequence
from typing import Any, Final

from kalito_mcp.ports.vectors import VectorIndex
from kalito_mcp.storage.sqlite.queries import Queries

_COLUMNS: Final = "key, fingerprint, dimension, state = 'active', first_key, done_key"
SELECT_INDEXES: Final = f"SELECT {_COLUMNS} FROM vector_indexes WHERE state <> 'dropped' ORDER BY state"
SELECT_INDEX: Final = f"SELECT {_COLUMNS} FROM vector_indexes WHERE key = :index_key AND state <> 'dropped'"
SELECT_VECTOR_COUNT: Final = "SELECT count(*) FROM record_vectors WHERE index_key = :index_key"


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
