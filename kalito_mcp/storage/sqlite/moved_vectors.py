"""Reads vectors that are kept outside the database, in one view of it.

A point found there counts only if this view has the same row with the same point. So neither a point whose row is gone,
nor one of an earlier state or another copy of the database, is ever a hit.
"""

import json
import math
from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from kalito_mcp.domain.records import RecordType
from kalito_mcp.errors import VectorsUnreachable
from kalito_mcp.ports.vector_points import VectorPoints, VectorTenant
from kalito_mcp.storage.sqlite.queries import Queries, owned
from kalito_mcp.storage.sqlite.vector_indexes import ActiveIndex
from kalito_mcp.storage.tombstones import SELECT_IDENTITY

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
SELECT_POINTS_OF_RECORDS: Final = f"""
SELECT v.key, v.record_key, v.vector, r.type FROM record_vectors v JOIN records r ON r.key = v.record_key
WHERE v.index_key = :index_key AND v.record_key IN (SELECT value FROM json_each(:record_keys)) AND {owned("v")}
"""
_SUGGESTED_FACTOR: Final = 4
_LEAST_SUGGESTED: Final = 64


class PointHashes:
    """How the database identifies itself and its rows elsewhere: by keyed hashes, which reveal nothing without its
    secret."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self.database = self._hash("database", b"").hex()

    def tenant(self, index_key: int, dimension: int, owner: str, agent: str, session_key: int | None) -> VectorTenant:
        """Of the vectors of one agent, or of one session of it, in an index."""
        of_owner, of_agent = self._hash("owner", owner.encode()), self._hash("agent", agent.encode())
        return VectorTenant(self.database, index_key, dimension, of_owner.hex(), of_agent.hex(), session_key)

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
        """The k nearest records that were moved, and others, in any order. None, and `outage` is set, if they cannot be
        asked."""
        parameters = {
            "index_key": active.key,
            "moved_key": active.moved_key,
            "agent_key": agent_key,
            "session_key": session_key,
        }
        [[owner, agent]] = await self._all(SELECT_OWNER_OF_AGENT, agent_key=agent_key)
        if among is not None:
            rows = await self._all(SELECT_ADMISSIBLE, **parameters, record_keys=json.dumps(among.tolist()))
            compared = await self.similarities(active, owner, query, [row[0] for row in rows])
            return None if self.outage else list(compared.items())
        hashes = await self._hashes()
        tenant = hashes.tenant(active.key, active.dimension, owner, agent, session_key)
        count = max(_SUGGESTED_FACTOR * k, _LEAST_SUGGESTED)  # some may have no row here
        try:
            found = await self._reachable().nearest(tenant, query, count)
        except VectorsUnreachable as error:
            self.outage = str(error)
            return None
        rows = await self._all(SELECT_ROWS_OF_POINTS, **parameters, keys=json.dumps([one.row_key for one in found]))
        records = {(row_key, point): record_key for row_key, record_key, point in rows}
        length = _length(query)
        known = [one for one in found if (one.row_key, one.id) in records]
        return [(records[one.row_key, one.id], one.cosine * length) for one in known]

    async def similarities(
        self, active: ActiveIndex, owner: str, query: "NDArray[np.float32]", record_keys: Sequence[int]
    ) -> dict[int, float]:
        """The inner products with the vectors of these records of the owner, here or there. Empty, and `outage` is set,
        if the moved vectors cannot be reached."""
        from kalito_mcp.storage.vector_rows import ranked  # noqa: PLC0415 - numpy loads when needed

        parameters = {"index_key": active.key, "owner": owner, "record_keys": json.dumps(list(record_keys))}
        rows = await self._all(SELECT_POINTS_OF_RECORDS, **parameters)
        moved_key = active.moved_key or 0
        there = {point: record_key for key, record_key, point, _ in rows if key <= moved_key}
        here = [(record_key, vector) for key, record_key, vector, _ in rows if key > moved_key]
        ids: dict[RecordType, list[bytes]] = {}
        for key, _, point, kind in rows:
            if key <= moved_key:
                ids.setdefault(RecordType(kind), []).append(point)
        try:
            hashes = await self._hashes()
            found = await self._reachable().similarities(hashes.database, query, ids) if there or self.outage else {}
        except VectorsUnreachable as error:
            self.outage = str(error)
            return {}
        length = _length(query)
        moved = {there[point]: cosine * length for point, cosine in found.items()}
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
