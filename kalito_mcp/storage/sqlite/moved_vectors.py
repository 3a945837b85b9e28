"""Reads vectors that are kept outside the database, in one view of it.

What is found there counts only if this view has the same row with the same point. So neither a point whose row is gone,
nor one of an earlier state or another copy of the database, is ever a hit.
"""

import json
import math
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from kalito_mcp.domain.records import RecordType
from kalito_mcp.errors import VectorsUnreachable
from kalito_mcp.ports.vector_points import VectorPoints, VectorTenant
from kalito_mcp.storage.sqlite.queries import Queries
from kalito_mcp.storage.sqlite.tombstones import SELECT_IDENTITY
from kalito_mcp.storage.sqlite.vector_caches import SELECT_LAST_ROW
from kalito_mcp.storage.sqlite.vector_indexes import ActiveIndex

if TYPE_CHECKING:
    import aiosqlite
    import numpy as np
    from numpy.typing import NDArray

SELECT_OWNER_OF_AGENT: Final = "SELECT owner, id FROM agents WHERE key = :agent_key"
SELECT_ROWS_OF_POINTS: Final = """
SELECT key, record_key, vector FROM record_vectors
WHERE key IN (SELECT value FROM json_each(:keys)) AND key <= :moved_key AND +index_key = :index_key
    AND +agent_key = :agent_key AND (:session_key IS NULL OR +session_key = :session_key)
"""
SELECT_ADMISSIBLE: Final = """
SELECT record_key FROM record_vectors
WHERE index_key = :index_key AND key <= :moved_key AND record_key IN (SELECT value FROM json_each(:record_keys))
    AND agent_key = :agent_key AND (:session_key IS NULL OR session_key = :session_key)
"""
SELECT_POINTS_OF_RECORDS: Final = """
SELECT v.key, v.record_key, v.vector, r.type FROM record_vectors v JOIN records r ON r.key = v.record_key
WHERE v.index_key = :index_key AND v.record_key IN (SELECT value FROM json_each(:record_keys))
"""
_EXACT_UP_TO: Final = 100_000
_SUGGESTED_FACTOR: Final = 4
_LEAST_SUGGESTED: Final = 64
_MOST_SUGGESTED: Final = 20_000


class PointHashes:
    """What the database says of itself and its rows elsewhere: keyed hashes, which tell nothing without its secret."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self.database = self._hash("database", b"").hex()

    def name(self, kind: str, name: str) -> str:
        """Of an owner or an agent."""
        return self._hash(kind, name.encode()).hex()

    def point(self, row_key: int, vector: bytes) -> bytes:
        """The id of the point of a row: 16 bytes."""
        return self._hash("point", row_key.to_bytes(8) + vector)

    def _hash(self, kind: str, value: bytes) -> bytes:
        return blake2b(value, key=self._secret, digest_size=16, person=kind.encode()).digest()


class MovedVectors(Queries):
    """The vectors of one view that are elsewhere."""

    def __init__(self, connection: "aiosqlite.Connection", points: VectorPoints | None) -> None:
        super().__init__(connection)
        self._points = points
        self.outage: str | None = None

    async def nearest(
        self,
        active: ActiveIndex,
        agent_key: int,
        session_key: int | None,
        query: "NDArray[np.float32]",
        *,
        k: int,
        among: "NDArray[np.int64] | None" = None,
    ) -> list[tuple[int, float]] | None:
        """At least the k nearest records that were moved, in any order. None, and `outage` is set, if they cannot be
        asked.

        With more than 20,000 records `among`, those of them that are among the 20,000 nearest.
        """
        place = {"agent_key": agent_key, "session_key": session_key}
        asked = {"index_key": active.key, "moved_key": active.moved_key, **place}
        admissible = None if among is None else frozenset(among.tolist())
        if admissible is not None and len(admissible) <= _MOST_SUGGESTED:
            rows = await self._all(SELECT_ADMISSIBLE, **asked, record_keys=json.dumps(list(admissible)))
            compared = await self.similarities(active, query, [row[0] for row in rows])
            return None if self.outage else list(compared.items())
        [[owner, agent]] = await self._all(SELECT_OWNER_OF_AGENT, agent_key=agent_key)
        [[last_key]] = await self._all(SELECT_LAST_ROW)
        hashes = await self._hashes()
        tenant = VectorTenant(
            database=hashes.database,
            index_key=active.key,
            dimension=active.dimension,
            owner=hashes.name("owner", owner),
            agent=hashes.name("agent", agent),
            session_key=session_key,
        )
        length = _length(query)
        count = max(_SUGGESTED_FACTOR * k, _LEAST_SUGGESTED)
        while True:
            try:
                found = await self._reachable().nearest(tenant, query, count=count, is_exact=last_key <= _EXACT_UP_TO)
            except VectorsUnreachable as error:
                self.outage = str(error)
                return None
            keys = json.dumps([one.row_key for one in found])
            rows = await self._all(SELECT_ROWS_OF_POINTS, **asked, keys=keys)
            records = {(row[0], row[2]): row[1] for row in rows if admissible is None or row[1] in admissible}
            known = [
                (record_key, one.cosine * length)
                for one in found
                if (record_key := records.get((one.row_key, one.id))) is not None
            ]
            if len(known) >= k or len(found) < count or count >= _MOST_SUGGESTED:
                return known
            count = min(count * _SUGGESTED_FACTOR, _MOST_SUGGESTED)

    async def similarities(
        self, active: ActiveIndex, query: "NDArray[np.float32]", record_keys: Sequence[int]
    ) -> dict[int, float]:
        """The inner products with those of the records that have a vector, here or there. Empty, and `outage` is set,
        if those that were moved cannot be asked."""
        from kalito_mcp.storage.sqlite.vector_rows import ranked  # noqa: PLC0415 - numpy loads when needed

        asked = json.dumps(list(record_keys))
        rows = await self._all(SELECT_POINTS_OF_RECORDS, index_key=active.key, record_keys=asked)
        here = [(record_key, vector) for key, record_key, vector, _ in rows if key > (active.moved_key or 0)]
        there: dict[RecordType, dict[bytes, int]] = {}
        for key, record_key, vector, kind in rows:
            if key <= (active.moved_key or 0):
                there.setdefault(RecordType(kind), {})[vector] = record_key
        found: Mapping[bytes, float] = {}
        if there or self.outage:
            try:
                hashes = await self._hashes()
                ids = {kind: list(of_kind) for kind, of_kind in there.items()}
                found = await self._reachable().similarities(hashes.database, query, ids)
            except VectorsUnreachable as error:
                self.outage = str(error)
                return {}
        length = _length(query)
        moved = {
            record_key: found[point] * length
            for of_kind in there.values()
            for point, record_key in of_kind.items()
            if point in found
        }
        return {**moved, **dict(ranked(here, active.dimension, query, len(here)))}

    async def _hashes(self) -> PointHashes:
        [[secret]] = await self._all(SELECT_IDENTITY)
        return PointHashes(bytes(secret))

    def _reachable(self) -> VectorPoints:
        if self.outage:
            raise VectorsUnreachable(self.outage)
        if self._points is None:
            raise VectorsUnreachable(
                "the vectors are kept outside the database, but models.qdrant is not set; set it, or run "
                "`kalito-mcp reindex --vectors` to keep them in the database again"
            )
        return self._points


def _length(query: "NDArray[np.float32]") -> float:
    """The length of the query. A place of points gives cosines; times this, they are inner products."""
    return math.sqrt(float(query @ query))
