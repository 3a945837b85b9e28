"""Reads which indexes of vectors there are, without a vector; `vectors` does the rest."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from kalito_mcp.ports.vectors import VectorIndex
from kalito_mcp.storage.sqlite.queries import Queries

_COLUMNS: Final = "key, fingerprint, dimension, state = 'active', first_key, done_key"
SELECT_INDEXES: Final = f"SELECT {_COLUMNS} FROM vector_indexes WHERE state <> 'dropped' ORDER BY state"
SELECT_INDEX: Final = f"SELECT {_COLUMNS} FROM vector_indexes WHERE fingerprint = :fingerprint AND state <> 'dropped'"
SELECT_ACTIVE_INDEX: Final = """
SELECT i.key, i.dimension, i.centre, m.moved_key FROM vector_indexes i LEFT JOIN vector_moves m ON m.index_key = i.key
WHERE i.state = 'active' AND i.fingerprint = :fingerprint
"""
SELECT_VECTOR_COUNT: Final = "SELECT count(*) FROM record_vectors WHERE index_key = :index_key"


SELECT_OWN_VECTOR_COUNT: Final = """
SELECT count(*) FROM agents a JOIN records r ON r.agent_key = a.key
JOIN record_vectors v ON v.index_key = :index_key AND v.record_key = r.key WHERE a.owner = :owner
"""


class IndexRow(NamedTuple):
    """An index that is active or being built. Of the records from `first_key` to `done_key`, each has a vector or a row
    in `vector_debts`; all others are owed one."""

    key: int
    fingerprint: str
    dimension: int
    is_active: int
    first_key: int
    done_key: int


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
        rows = [IndexRow(*row) for row in await self._all(SELECT_INDEXES)]
        return [VectorIndex(row.fingerprint, row.dimension, row.is_active == 1) for row in rows]

    async def count(self, fingerprint: str, owner: str | None = None) -> int:
        index = await self._index(fingerprint)
        index_key = None if index is None else index.key
        if owner is None:
            [[count]] = await self._all(SELECT_VECTOR_COUNT, index_key=index_key)
        else:
            [[count]] = await self._all(SELECT_OWN_VECTOR_COUNT, index_key=index_key, owner=owner)
        return int(count)

    async def _index(self, fingerprint: str) -> IndexRow | None:
        return next((IndexRow(*row) for row in await self._all(SELECT_INDEX, fingerprint=fingerprint)), None)
