"""Stores the vectors of records, and finds the nearest ones: the database chooses candidates, and their stored bytes
give the scores, as in the SQLite store.

Triggers keep `record_vectors` and `vector_debts` in step with the records (see the migrations).
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pgvector import HalfVector

from kalito_mcp.domain.scope import DEFAULT_AGENT, Scope
from kalito_mcp.ports.vectors import OwedVector
from kalito_mcp.storage.postgres.queries import within
from kalito_mcp.storage.postgres.vector_graphs import EXACT_UP_TO
from kalito_mcp.storage.postgres.vector_indexes import (
    EMBEDDABLE,
    EMBEDDED,
    HAS_VECTORS,
    INSERT_OLDER_DEBTS,
    SELECT_INDEX_TO_ACTIVATE,
    SELECT_INDEX_TO_FILL,
    IndexRow,
    VectorIndexQueries,
)
from kalito_mcp.storage.queries import limits_of
from kalito_mcp.storage.vector_checks import check_dimension, check_query, check_vectors, dropped

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SELECT_DEBTORS: Final = """
SELECT d.kind, o.name FROM vector_debtors d JOIN owners o ON o.key = d.owner
WHERE d.index_key = :index_key AND (:holder IS NULL OR d.holder = :holder AND d.leased_until > now())
ORDER BY d.kind, d.newest DESC, d.owner LIMIT :limit
"""
SELECT_DEBTS: Final = f"""
SELECT r.key, {EMBEDDED}
FROM vector_debts d JOIN records r ON r.owner_key = :owner AND r.key = d.record_key AND {EMBEDDABLE}
WHERE d.owner_key = :owner AND d.index_key = :index_key AND d.kind = :kind ORDER BY d.record_key DESC LIMIT :limit
"""
SELECT_OWNERS: Final = "SELECT name FROM owners ORDER BY key DESC"
SELECT_EMBEDDABLE: Final = f"""
SELECT r.key, {EMBEDDED} FROM records r WHERE r.owner_key = :owner AND {EMBEDDABLE} ORDER BY r.key DESC LIMIT :limit
"""
_ACTIVE_AT: Final = """
SELECT i.key, i.dimension, EXISTS (
    SELECT 1 FROM pg_index x WHERE x.indexrelid = to_regclass('record_vectors_near_' || i.key) AND x.indisvalid
), p.agent_key, p.session_key, p.records
FROM vector_indexes i LEFT JOIN ({place}) p ON true
WHERE i.state = 'active' AND i.fingerprint = :fingerprint
"""
SELECT_ACTIVE_AT_AGENT: Final = _ACTIVE_AT.format(
    place="""
    SELECT key AS agent_key, NULL::bigint AS session_key, record_count AS records FROM agents
    WHERE owner_key = :owner AND id = coalesce(:agent, :limit_agent, :default)
        AND (:limit_agent IS NULL OR id = :limit_agent)
    """
)
SELECT_ACTIVE_AT_SESSION: Final = _ACTIVE_AT.format(
    place=f"""
    SELECT s.agent_key, s.key AS session_key, NULL::bigint AS records
    FROM sessions s JOIN agents a ON a.owner_key = :owner AND a.key = s.agent_key
    WHERE s.owner_key = :owner AND s.id = :session AND (:agent IS NULL OR a.id = :agent) AND {within("s")}
    """
)
_WITHIN: Final = f"""(:limit_project IS NULL OR EXISTS (
        SELECT 1 FROM records r WHERE r.owner_key = :owner AND r.key = v.record_key AND {within("r")}
    ))"""
_OF_AGENT: Final = f"""
SELECT v.record_key, v.code FROM record_vectors v
WHERE v.owner_key = :owner AND v.index_key = :index_key AND v.agent_key = :agent_key AND {_WITHIN}
"""
# Those with equal vectors come in the order of the ranking, so that it has the newest of them.
_NEAREST_FIRST: Final = "ORDER BY v.near <#> :near::halfvec, v.record_key DESC LIMIT :limit"
SELECT_NEAREST_OF_AGENT: Final = f"{_OF_AGENT} {_NEAREST_FIRST}"
SELECT_NEAREST_OF_SESSION: Final = f"{_OF_AGENT} AND v.session_key = :session_key {_NEAREST_FIRST}"
SELECT_ALL_AMONG: Final = f"""
{_OF_AGENT} AND (:session_key IS NULL OR v.session_key = :session_key) AND v.record_key = ANY(:keys)
"""
SELECT_NEAREST_AMONG: Final = f"{SELECT_ALL_AMONG} {_NEAREST_FIRST}"
# The graph belongs to an expression and a condition, and is used only by a statement with the same ones.
_NEAREST_BY_GRAPH: Final = """
SELECT v.record_key, v.code FROM record_vectors v
WHERE v.owner_key = :owner AND v.index_key = {index_key:d} AND v.agent_key = :agent_key AND {within}
ORDER BY (v.near::halfvec({dimension:d})) <#> :near::halfvec LIMIT :limit
"""
# Relaxed order: the candidates are ranked by their bytes in any case.
SET_GRAPH: Final = """
SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', '100', true)
"""
SELECT_CODES: Final = """
SELECT i.dimension, v.record_key, v.code FROM vector_indexes i
LEFT JOIN record_vectors v ON v.owner_key = :owner AND v.index_key = i.key AND v.record_key = ANY(:keys)
WHERE i.state = 'active' AND i.fingerprint = :fingerprint
"""
# In the order of a put, which locks its index and then its owners.
LOCK_FOR_INDEX: Final = "LOCK TABLE vector_indexes, owners IN EXCLUSIVE MODE"
INSERT_INDEX: Final = """
INSERT INTO vector_indexes (fingerprint, dimension, state)
SELECT :fingerprint, :dimension,
    CASE WHEN EXISTS (SELECT 1 FROM vector_indexes WHERE state = 'active') THEN 'building' ELSE 'active' END
RETURNING key
"""
# A row that is there already has the vector of this text: with another text, it would be gone.
INSERT_VECTORS: Final = f"""
WITH stored AS (
    INSERT INTO record_vectors (owner_key, index_key, record_key, agent_key, session_key, code, near)
    SELECT :owner, :index_key, r.key, r.agent_key, r.session_key, o.code, o.near
    FROM unnest(:keys, :texts::text[], :codes::bytea[], :nears::halfvec[]) AS o (key, text, code, near)
    JOIN records r ON r.owner_key = :owner AND r.key = o.key AND {EMBEDDABLE} AND {EMBEDDED} = o.text
    ON CONFLICT (owner_key, record_key, index_key) DO NOTHING
    RETURNING record_key
)
DELETE FROM vector_debts WHERE owner_key = :owner AND index_key = :index_key
    AND record_key IN (SELECT record_key FROM stored)
"""
DELETE_PAID_DEBTORS: Final = """
DELETE FROM vector_debtors o WHERE owner = :owner AND index_key = :index_key AND NOT EXISTS (
    SELECT 1 FROM vector_debts d WHERE d.owner_key = :owner AND d.index_key = :index_key AND d.kind = o.kind
)
"""
UPDATE_ACTIVE: Final = "UPDATE vector_indexes SET state = 'active' WHERE key = :index_key"
UPDATE_DROPPED: Final = "UPDATE vector_indexes SET state = 'dropped' WHERE fingerprint = :fingerprint"
UPDATE_OTHERS_DROPPED: Final = """
UPDATE vector_indexes SET state = 'dropped' WHERE state = :state AND key <> :index_key
"""
SELECT_DROPPED: Final = "SELECT key FROM vector_indexes WHERE state = 'dropped' ORDER BY key"
SELECT_OWNER_NAME: Final = "SELECT name FROM owners WHERE key = :key"
DELETE_VECTORS: Final = """
DELETE FROM record_vectors WHERE owner_key = :owner AND index_key = :index_key AND record_key IN (
    SELECT record_key FROM record_vectors WHERE owner_key = :owner AND index_key = :index_key LIMIT :limit
)
"""
# Of each owner:
DELETE_ALL_DEBTS: Final = """
WITH gone AS (DELETE FROM vector_debts WHERE owner_key = :owner AND index_key = :index_key RETURNING 1)
SELECT count(*) FROM gone
"""
DELETE_DEBTORS: Final = "DELETE FROM vector_debtors WHERE index_key = :index_key"
DELETE_INDEX: Final = "DELETE FROM vector_indexes WHERE key = :index_key"

_CANDIDATES: Final = 200
_SPARE: Final = 100
"""Candidates beyond k: halves of floats order neighbours a little differently from bytes."""

_FEW: Final = 1_000
"""This many records are all scored by their bytes."""


class _Active(NamedTuple):
    """The index that searches use, and where a scope looks in it: at one agent, perhaps at one session. `records` says
    about how many there are."""

    key: int
    dimension: int
    has_graph: bool
    agent_key: int | None
    session_key: int | None
    records: int | None


class VectorQueries(VectorIndexQueries):
    """`ports.vectors.VectorReader`."""

    outage: str | None = None
    """None: no vector is kept elsewhere."""

    async def owed(self, fingerprint: str, *, limit: int, is_claimed: bool = False) -> Sequence[OwedVector]:
        index, found = await self._index(fingerprint), list[OwedVector]()
        if index is None:
            for [owner] in await self._all(SELECT_OWNERS):
                rows = await self._all(SELECT_EMBEDDABLE, owner=owner, limit=limit - len(found))
                found += [OwedVector(key, owner, text) for key, text in rows]
                if len(found) >= limit:
                    break
            return found
        holder = self._transaction.lease.holder if is_claimed else None
        for kind, owner in await self._all(SELECT_DEBTORS, index_key=index.key, holder=holder, limit=limit):
            parameters = {"index_key": index.key, "kind": kind, "limit": limit - len(found)}
            rows = await self._all(SELECT_DEBTS, owner=owner, **parameters)
            found += [OwedVector(key, owner, text) for key, text in rows]
            if len(found) >= limit:
                break
        return found

    async def nearest(
        self,
        scope: Scope,
        fingerprint: str,
        query: "NDArray[np.float32]",
        *,
        k: int,
        among: "NDArray[np.int64] | None" = None,
    ) -> Sequence[tuple[int, float]]:
        place = {"agent": scope.agent, **limits_of(scope)}
        if scope.session is None:
            statement, place["default"] = SELECT_ACTIVE_AT_AGENT, DEFAULT_AGENT
        else:
            statement, place["session"] = SELECT_ACTIVE_AT_SESSION, scope.session
        for row in await self._all(statement, owner=scope.owner, fingerprint=fingerprint, **place):
            active = _Active(*row)
            check_query(query, active.dimension)
            if active.agent_key is None or k < 1 or (among is not None and not among.size):
                return []
            from kalito_mcp.storage.vector_rows import ranked  # noqa: PLC0415 - numpy loads when needed

            return ranked(await self._candidates(scope, active, query, k, among), active.dimension, query, k)
        return []

    async def _candidates(
        self,
        scope: Scope,
        active: _Active,
        query: "NDArray[np.float32]",
        k: int,
        among: "NDArray[np.int64] | None",
    ) -> list[Any]:
        """Records with the bytes of their vectors, of which the k nearest are the answer."""
        parameters: dict[str, Any] = {
            "owner": scope.owner,
            "index_key": active.key,
            "agent_key": active.agent_key,
            "session_key": active.session_key,
            "keys": None if among is None else among.tolist(),
            **limits_of(scope),
        }
        if among is not None and among.size <= _FEW:
            return await self._all(SELECT_ALL_AMONG, **parameters)
        parameters["near"] = _half(query)
        parameters["limit"] = limit = max(_CANDIDATES, k + _SPARE)
        if among is not None:
            return await self._all(SELECT_NEAREST_AMONG, **parameters)
        if active.session_key is not None:
            return await self._all(SELECT_NEAREST_OF_SESSION, **parameters)
        if active.has_graph and (active.records or 0) > EXACT_UP_TO:
            await self._all(SET_GRAPH)
            found = await self._all(_by_graph(active), **parameters)
            if len(found) == limit:
                return found
        return await self._all(SELECT_NEAREST_OF_AGENT, **parameters)

    async def similarities(
        self, scope: Scope, fingerprint: str, query: "NDArray[np.float32]", record_keys: Sequence[int]
    ) -> Mapping[int, float]:
        rows = await self._all(SELECT_CODES, owner=scope.owner, fingerprint=fingerprint, keys=list(record_keys))
        if not rows:
            return {}
        dimension: int = rows[0][0]
        check_query(query, dimension)
        from kalito_mcp.storage.vector_rows import cosines, unpacked  # noqa: PLC0415 - numpy loads when needed

        codes = {key: code for _, key, code in rows if key is not None}
        if not codes:
            return {}
        return dict(zip(codes, cosines(unpacked(list(codes.values()), dimension), query).tolist(), strict=True))


class VectorStatements(VectorQueries):
    """`ports.vectors.VectorWriter`. The lock of an owner's row keeps texts and debts as they are during a put."""

    async def open_index(self, fingerprint: str, dimension: int) -> None:
        if await self._has_index(fingerprint, dimension):
            return
        # Else a record that is stored meanwhile would not be seen here, nor this index there.
        await self._all(LOCK_FOR_INDEX)
        if await self._has_index(fingerprint, dimension):
            return
        await self._all(UPDATE_OTHERS_DROPPED, state="building", index_key=-1)
        [[key]] = await self._all(INSERT_INDEX, fingerprint=fingerprint, dimension=dimension)
        await self._numbers(INSERT_OLDER_DEBTS, key)

    async def put(self, fingerprint: str, owed: Sequence[OwedVector], vectors: "NDArray[np.float32]") -> None:
        from kalito_mcp.storage.vector_rows import directions, packed, unpacked  # noqa: PLC0415 - numpy loads here

        index = await self._known(fingerprint)
        check_vectors(owed, vectors, index.dimension)
        if not owed:
            return
        codes = packed(vectors)
        # The driver would take an array of numbers for a dimension of the list.
        nears = [HalfVector(near) for near in directions(unpacked(codes, index.dimension))]
        rows = list(zip(owed, codes, nears, strict=True))
        rows.sort(key=lambda row: row[0].owner)
        for owner, of_owner in groupby(rows, key=lambda row: row[0].owner):
            paid, its_codes, its_nears = zip(*of_owner, strict=True)
            parameters = {
                "keys": [one.record_key for one in paid],
                "texts": [one.text for one in paid],
                "codes": its_codes,
                "nears": its_nears,
            }
            await self._all(INSERT_VECTORS, owner=owner, index_key=index.key, **parameters)
            await self._all(DELETE_PAID_DEBTORS, owner=owner, index_key=index.key)

    async def activate(self, fingerprint: str) -> None:
        index = await self._known(fingerprint, SELECT_INDEX_TO_ACTIVATE)
        await self._all(UPDATE_OTHERS_DROPPED, state="active", index_key=index.key)
        await self._all(UPDATE_ACTIVE, index_key=index.key)

    async def drop(self, fingerprint: str) -> None:
        await self._all(UPDATE_DROPPED, fingerprint=fingerprint)

    async def clear(self, *, limit: int) -> int:
        removed = 0
        for [index_key] in await self._all(SELECT_DROPPED):
            for owner_key in await self._numbers(HAS_VECTORS, index_key):
                [[owner]] = await self._all(SELECT_OWNER_NAME, key=owner_key)
                parameters = {"owner": owner, "index_key": index_key}
                removed += await self._count_changed(DELETE_VECTORS, **parameters, limit=limit - removed)
                if removed >= limit:
                    return removed
            await self._numbers(DELETE_ALL_DEBTS, index_key)
            await self._all(DELETE_DEBTORS, index_key=index_key)
            await self._all(DELETE_INDEX, index_key=index_key)
        return removed

    async def _has_index(self, fingerprint: str, dimension: int) -> bool:
        index = await self._index(fingerprint)
        if index is not None:
            check_dimension(fingerprint, index.dimension, dimension)
        return index is not None

    async def _known(self, fingerprint: str, statement: str = SELECT_INDEX_TO_FILL) -> IndexRow:
        """The index, which nobody drops before this transaction ends."""
        index = await self._index(fingerprint, statement)
        if index is None:
            raise dropped()
        return index


def _by_graph(active: _Active) -> str:
    return _NEAREST_BY_GRAPH.format(index_key=active.key, dimension=active.dimension, within=_WITHIN)


def _half(query: "NDArray[np.float32]") -> "NDArray[np.float32]":
    """The query with unit length, so that it fits into half floats. It orders vectors in the same way."""
    import numpy as np  # noqa: PLC0415 - loads when first needed

    length = float(np.sqrt(np.vecdot(query, query)))
    return query / np.float32(length) if length > 0 else query
