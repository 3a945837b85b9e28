"""Stores the vectors of records, and finds the nearest ones in memory. `moved_vectors` finds those that are elsewhere.

Triggers keep `record_vectors` in step with the records (see the migrations).
"""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import aiosqlite

from kalito_mcp.domain.scope import DEFAULT_AGENT, Scope
from kalito_mcp.ports.vector_points import VectorPoints
from kalito_mcp.ports.vectors import OwedVector
from kalito_mcp.storage.queries import limits_of
from kalito_mcp.storage.sqlite.moved_vectors import MovedVectors
from kalito_mcp.storage.sqlite.queries import owned, within
from kalito_mcp.storage.sqlite.vector_caches import VectorCaches
from kalito_mcp.storage.sqlite.vector_indexes import SELECT_ACTIVE_INDEX, ActiveIndex, IndexRow, VectorIndexQueries
from kalito_mcp.storage.vector_checks import check_dimension, check_query, check_vectors, dropped

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EMBEDDED: Final = "CASE WHEN coalesce(r.name, '') = '' THEN r.text ELSE r.name || ': ' || r.text END"
_OWED: Final = f"r.key, (SELECT a.owner FROM agents a WHERE a.key = r.agent_key), {EMBEDDED}"
EMBEDDABLE: Final = "r.deleted_at IS NULL AND r.text <> ''"

SELECT_NEW: Final = f"""
SELECT {_OWED} FROM records r WHERE r.key > :done_key AND {EMBEDDABLE} ORDER BY r.key DESC LIMIT :limit
"""
SELECT_DEBTS: Final = f"""
SELECT {_OWED} FROM vector_debts d JOIN records r ON r.key = d.record_key
WHERE d.index_key = :index_key AND {EMBEDDABLE} ORDER BY d.record_key DESC LIMIT :limit
"""
SELECT_OLDER: Final = f"""
SELECT {_OWED} FROM records r WHERE r.key < :first_key AND {EMBEDDABLE} ORDER BY r.key DESC LIMIT :limit
"""
SELECT_OWED_COUNT: Final = f"""
SELECT (SELECT count(*) FROM records r WHERE r.key > :done_key AND {EMBEDDABLE})
    + (SELECT count(*) FROM records r WHERE r.key < :first_key AND {EMBEDDABLE})
    + (SELECT count(*) FROM vector_debts d JOIN records r ON r.key = d.record_key
       WHERE d.index_key = :index_key AND {EMBEDDABLE})
"""
# Joined by hand, not by `owned`: it is asked for hundreds of records at once.
SELECT_VECTORS_OF_RECORDS: Final = """
SELECT v.record_key, v.vector FROM record_vectors v CROSS JOIN agents a ON a.key = v.agent_key
WHERE v.index_key = :index_key AND v.record_key IN (SELECT value FROM json_each(:record_keys)) AND a.owner = :owner
"""
SELECT_VECTORS_OF_ROWS: Final = """
SELECT record_key, vector FROM record_vectors WHERE key IN (SELECT value FROM json_each(:keys))
"""
SELECT_PLACE_OF_AGENT: Final = """
SELECT key, NULL FROM agents
WHERE owner = :owner AND id = coalesce(:agent, :limit_agent, :default) AND (:limit_agent IS NULL OR id = :limit_agent)
"""
SELECT_PLACE_OF_SESSION: Final = f"""
SELECT a.key, s.key FROM sessions s JOIN agents a ON a.key = s.agent_key
WHERE s.owner = :owner AND s.id = :session AND (:agent IS NULL OR a.id = :agent) AND {within("s")}
"""
SELECT_WITHIN: Final = f"""
SELECT r.key FROM records r WHERE r.key IN (SELECT value FROM json_each(:keys)) AND {within("r")}
"""
INSERT_INDEX: Final = """
INSERT INTO vector_indexes (fingerprint, dimension, state, first_key, done_key)
SELECT :fingerprint, :dimension,
    CASE WHEN EXISTS (SELECT 1 FROM vector_indexes WHERE state = 'active') THEN 'building' ELSE 'active' END,
    coalesce(max(r.key), 0) + 1, coalesce(max(r.key), 0)
FROM records r
"""
# A row that is there already has the vector of this text: with another text, it would be gone.
INSERT_VECTOR: Final = f"""
INSERT INTO record_vectors (index_key, record_key, agent_key, session_key, vector)
SELECT :index_key, r.key, r.agent_key, r.session_key, :vector FROM records r
WHERE r.key = :record_key AND {owned("r")} AND {EMBEDDABLE} AND {EMBEDDED} = :text
ON CONFLICT (index_key, record_key) DO NOTHING
"""
DELETE_PAID_DEBTS: Final = """
DELETE FROM vector_debts
WHERE index_key = :index_key AND record_key IN (SELECT value FROM json_each(:record_keys)) AND EXISTS (
    SELECT 1 FROM record_vectors v WHERE v.index_key = :index_key AND v.record_key = vector_debts.record_key
)
"""
# Records of the range that have no vector: newer ones went first, or their text changed meanwhile.
INSERT_DEBTS: Final = f"""
INSERT OR IGNORE INTO vector_debts (index_key, record_key)
SELECT :index_key, r.key FROM records r
WHERE r.key BETWEEN :from_key AND :to_key AND {EMBEDDABLE}
    AND NOT EXISTS (SELECT 1 FROM record_vectors v WHERE v.index_key = :index_key AND v.record_key = r.key)
"""
# If no older record is left, the index begins with 0. Else forgotten records there would be skipped again each time.
UPDATE_REACH: Final = f"""
UPDATE vector_indexes SET done_key = :done_key, first_key = coalesce(
    (SELECT :first_key FROM records r WHERE r.key < :first_key AND {EMBEDDABLE} ORDER BY r.key DESC LIMIT 1), 0
) WHERE key = :index_key
"""
# Vectors kept elsewhere have no centre: they are not searched here.
SELECT_TOO_MANY: Final = """
SELECT 1 FROM record_vectors WHERE index_key = (
    SELECT key FROM vector_indexes
    WHERE key = :index_key AND centre IS NULL AND key NOT IN (SELECT index_key FROM vector_moves)
) LIMIT 1 OFFSET :most
"""
SELECT_LATEST_VECTORS: Final = """
SELECT vector FROM record_vectors WHERE +index_key = :index_key ORDER BY key DESC LIMIT :limit
"""
UPDATE_CENTRE: Final = "UPDATE vector_indexes SET centre = :centre WHERE key = :index_key"
UPDATE_ACTIVE: Final = "UPDATE vector_indexes SET state = 'active' WHERE key = :index_key"
UPDATE_DROPPED: Final = "UPDATE vector_indexes SET state = 'dropped' WHERE fingerprint = :fingerprint"
UPDATE_OTHERS_DROPPED: Final = """
UPDATE vector_indexes SET state = 'dropped' WHERE state = :state AND key <> :index_key
"""
DELETE_DEBTS_OF_DROPPED: Final = """
DELETE FROM vector_debts WHERE index_key IN (SELECT key FROM vector_indexes WHERE state = 'dropped')
"""
SELECT_DROPPED: Final = "SELECT key FROM vector_indexes WHERE state = 'dropped' ORDER BY key LIMIT 1"
DELETE_VECTORS: Final = """
DELETE FROM record_vectors WHERE key IN (
    SELECT key FROM record_vectors WHERE index_key = :index_key ORDER BY record_key LIMIT :limit
)
"""
DELETE_INDEX: Final = "DELETE FROM vector_indexes WHERE key = :index_key"
EXACT_UP_TO: Final = 20_000
"""With more vectors an index gets a centre, and searches compare the codes first."""

_CENTRE_OF: Final = 5_000
_NOTHING_YET: Final = {"index_key": None, "first_key": 1 << 62, "done_key": 1 << 62}


_Place = tuple[int, int | None]
"""Keys of an agent and of one session of it, None for all sessions."""


class VectorQueries(VectorIndexQueries):
    """`ports.vectors.VectorReader`."""

    def __init__(
        self, connection: aiosqlite.Connection, caches: VectorCaches, points: VectorPoints | None = None
    ) -> None:
        super().__init__(connection)
        self._caches = caches
        self._moved = MovedVectors(connection, points)

    @property
    def outage(self) -> str | None:
        return self._moved.outage

    async def owed(self, fingerprint: str, *, limit: int, is_claimed: bool = False) -> Sequence[OwedVector]:
        del is_claimed  # no other process makes any
        parameters = await self._reach(fingerprint)
        found: list[OwedVector] = []
        for statement in (SELECT_NEW, SELECT_DEBTS, SELECT_OLDER):
            if len(found) < limit:
                rows = await self._all(statement, **parameters, limit=limit - len(found))
                found += [OwedVector(*row) for row in rows]
        return found

    async def owed_count(self, fingerprint: str) -> int:
        [[count]] = await self._all(SELECT_OWED_COUNT, **await self._reach(fingerprint))
        return int(count)

    async def _reach(self, fingerprint: str) -> dict[str, int | None]:
        index = await self._index(fingerprint)
        if index is None:
            return {**_NOTHING_YET}
        return {"index_key": index.key, "first_key": index.first_key, "done_key": index.done_key}

    async def nearest(
        self,
        scope: Scope,
        fingerprint: str,
        query: "NDArray[np.float32]",
        *,
        k: int,
        among: "NDArray[np.int64] | None" = None,
    ) -> Sequence[tuple[int, float]]:
        active = await self._active(fingerprint, query)
        place = await self._place(scope)
        if active is None or place is None or k < 1:
            return []
        scan: Any = self._connection._execute  # the driver's own way to run a function on its thread
        found: list[tuple[int, float]] = await scan(self._scanned, active, place, query, k, among)
        if active.moved_key:
            from kalito_mcp.storage.vector_rows import best  # noqa: PLC0415 - numpy loads when needed

            moved = await self._moved.nearest(active, *place, query, k=k, among=among)
            found = [] if moved is None else best([*moved, *found], k)
        if scope.limits.project is None:
            return found
        parameters = {"keys": json.dumps([key for key, _ in found]), "owner": scope.owner, **limits_of(scope)}
        reached = {key for [key] in await self._all(SELECT_WITHIN, **parameters)}
        return [one for one in found if one[0] in reached]

    async def similarities(
        self, scope: Scope, fingerprint: str, query: "NDArray[np.float32]", record_keys: Sequence[int]
    ) -> Mapping[int, float]:
        active = await self._active(fingerprint, query)
        if active is None or not record_keys:
            return {}
        if active.moved_key is not None:
            return await self._moved.similarities(active, scope.owner, query, record_keys)
        parameters = {"index_key": active.key, "owner": scope.owner, "record_keys": json.dumps(list(record_keys))}
        rows = await self._all(SELECT_VECTORS_OF_RECORDS, **parameters)
        from kalito_mcp.storage.vector_rows import cosines, unpacked  # noqa: PLC0415 - numpy loads when needed

        if not rows:
            return {}
        keys, blobs = zip(*rows, strict=True)
        return dict(zip(keys, cosines(unpacked(blobs, active.dimension), query).tolist(), strict=True))

    def _scanned(
        self,
        active: ActiveIndex,
        place: _Place,
        query: "NDArray[np.float32]",
        k: int,
        among: "NDArray[np.int64] | None",
    ) -> list[tuple[int, float]]:
        """The k nearest of the vectors that are in the database. On the thread of the connection."""
        from kalito_mcp.storage.sqlite.vector_cache import Admissible  # noqa: PLC0415 - numpy loads when needed
        from kalito_mcp.storage.vector_rows import ranked  # noqa: PLC0415 - as above

        connection = self._connection._conn
        cache, last_key = self._caches.current(connection, active)
        scope = Admissible(*place, last_key, among)
        if active.centre is None:
            return cache.nearest(query, scope, k=k)
        keys = json.dumps(cache.suggested(query, scope, k=k))
        return ranked(connection.execute(SELECT_VECTORS_OF_ROWS, {"keys": keys}).fetchall(), active.dimension, query, k)

    async def _active(self, fingerprint: str, query: "NDArray[np.float32]") -> ActiveIndex | None:
        """The active index, if this embedder made it."""
        for row in await self._all(SELECT_ACTIVE_INDEX, fingerprint=fingerprint):
            active = ActiveIndex(*row)
            check_query(query, active.dimension)
            return active
        return None

    async def _place(self, scope: Scope) -> _Place | None:
        """Keys of the scope's agent and session."""
        parameters = {"owner": scope.owner, "agent": scope.agent, **limits_of(scope)}
        if scope.session is None:
            rows = await self._all(SELECT_PLACE_OF_AGENT, **parameters, default=DEFAULT_AGENT)
        else:
            rows = await self._all(SELECT_PLACE_OF_SESSION, **parameters, session=scope.session)
        return next(((row[0], row[1]) for row in rows), None)


class VectorStatements(VectorQueries):
    """`ports.vectors.VectorWriter`. Its own caches keep uncommitted vectors from other connections."""

    def __init__(self, connection: aiosqlite.Connection, points: VectorPoints | None = None) -> None:
        super().__init__(connection, VectorCaches(), points)

    async def open_index(self, fingerprint: str, dimension: int) -> None:
        if (index := await self._index(fingerprint)) is not None:
            check_dimension(fingerprint, index.dimension, dimension)
            return
        await self._all(UPDATE_OTHERS_DROPPED, state="building", index_key=-1)
        await self._all(DELETE_DEBTS_OF_DROPPED)
        await self._all(INSERT_INDEX, fingerprint=fingerprint, dimension=dimension)

    async def put(self, fingerprint: str, owed: Sequence[OwedVector], vectors: "NDArray[np.float32]") -> None:
        from kalito_mcp.storage.vector_rows import packed  # noqa: PLC0415 - numpy loads when first needed

        index = await self._known(fingerprint)
        check_vectors(owed, vectors, index.dimension)
        if not owed:
            return
        await self._connection.executemany(
            INSERT_VECTOR,
            [
                {
                    "index_key": index.key,
                    "record_key": one.record_key,
                    "owner": one.owner,
                    "text": one.text,
                    "vector": vector,
                }
                for one, vector in zip(owed, packed(vectors), strict=True)
            ],
        )
        keys = [one.record_key for one in owed]
        first_key, done_key = min(index.first_key, *keys), max(index.done_key, *keys)
        await self._all(DELETE_PAID_DEBTS, index_key=index.key, record_keys=json.dumps(keys))
        for from_key, to_key in ((index.done_key + 1, done_key), (first_key, index.first_key - 1)):
            await self._all(INSERT_DEBTS, index_key=index.key, from_key=from_key, to_key=to_key)
        await self._all(UPDATE_REACH, index_key=index.key, first_key=first_key, done_key=done_key)
        if await self._all(SELECT_TOO_MANY, index_key=index.key, most=EXACT_UP_TO):
            await self._set_centre(index)

    async def _known(self, fingerprint: str) -> IndexRow:
        index = await self._index(fingerprint)
        if index is None:
            raise dropped()
        return index

    async def _set_centre(self, index: IndexRow) -> None:
        """Take the mean of the latest vectors. Whose they are matters little: it is the model that leans to a side."""
        import numpy as np  # noqa: PLC0415 - loads when first needed

        from kalito_mcp.storage.vector_rows import directions, unpacked  # noqa: PLC0415 - as above

        rows = await self._all(SELECT_LATEST_VECTORS, index_key=index.key, limit=_CENTRE_OF)
        mean = directions(unpacked([row[0] for row in rows], index.dimension)).mean(axis=0, dtype=np.float64)
        await self._all(UPDATE_CENTRE, index_key=index.key, centre=mean.astype("<f2").tobytes())

    async def activate(self, fingerprint: str) -> None:
        index = await self._known(fingerprint)
        await self._all(UPDATE_OTHERS_DROPPED, state="active", index_key=index.key)
        await self._all(DELETE_DEBTS_OF_DROPPED)
        await self._all(UPDATE_ACTIVE, index_key=index.key)

    async def drop(self, fingerprint: str) -> None:
        await self._all(UPDATE_DROPPED, fingerprint=fingerprint)
        await self._all(DELETE_DEBTS_OF_DROPPED)

    async def clear(self, *, limit: int) -> int:
        for [index_key] in await self._all(SELECT_DROPPED):
            removed = await self._count_changed(DELETE_VECTORS, index_key=index_key, limit=limit)
            if removed < limit:
                await self._all(DELETE_INDEX, index_key=index_key)
            return removed
        return 0
