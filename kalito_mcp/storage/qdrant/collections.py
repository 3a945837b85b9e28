"""The collections of vectors in one Qdrant: one for each type of record and each dimension, for all databases.

`kalito_messages_512` has the messages' vectors of 512 numbers. A point's payload says whose it is: keyed hashes and
numbers, no text and no name. Every question names the database, the index, the owner and the agent. Synchronous.
"""

import math
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from kalito_mcp.domain.records import RecordType
from kalito_mcp.errors import VectorsUnreachable
from kalito_mcp.ports.vector_points import FoundPoint, VectorPoint, VectorTenant
from kalito_mcp.storage.qdrant.place import MODULE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_NAMES: Final = {
    RecordType.MESSAGE: "messages",
    RecordType.THOUGHT: "thoughts",
    RecordType.DOCUMENT: "documents",
    RecordType.TASK: "tasks",
    RecordType.PIN: "pins",
    RecordType.SUMMARY: "summaries",
}
_OURS: Final = re.compile(rf"kalito_(?:{'|'.join(_NAMES.values())})_[0-9]+")
_INDEXED: Final = ("owner", "agent", "index", "session")
_SCROLLED_AT_ONCE: Final = 10_000
_COMPARED_AT_ONCE: Final = 2_000
_EQUAL_WITHIN: Final = 5e-7


class QdrantCollections:
    """The collections that `connect` leads to. May be used by several threads; a local Qdrant by one at a time."""

    def __init__(self, connect: Callable[[], Any], *, is_local: bool) -> None:
        self._connect = connect
        self._is_local = is_local
        self._client: Any = None
        self._models: Any = None
        self._ready: frozenset[str] = frozenset()
        """Collections that this process has made, or found to be as they should."""
        self._seen: frozenset[str] = frozenset()
        """Collections that there were when this process looked."""
        self.losses = 0
        """How often a collection was missed."""
        self._connecting = threading.Lock()
        self._one_by_one = threading.RLock()

    @property
    def is_loaded(self) -> bool:
        """Whether the client is there. Otherwise the first question takes some seconds."""
        return self._client is not None

    def load(self) -> None:
        """Import and make the client, once."""
        if self._client is None:
            with self._connecting:
                if self._client is None:
                    self._models = import_module(f"{MODULE}.models")
                    self._client = self._connect()

    def put(self, points: Sequence[VectorPoint]) -> None:
        """Keep these points, all of one dimension; return once they are found."""
        dimension = points[0].tenant.dimension
        with self._asking() as (client, models):
            for kind in RecordType:
                self._make_ready(client, models, kind, dimension)
            for kind in {one.type for one in points}:
                chosen = [_struct(models, one) for one in points if one.type is kind]
                client.upsert(_name(kind, dimension), points=chosen, wait=True)

    def remove(self, database: str, ids: Sequence[bytes]) -> None:
        """Remove these points of the database from every collection; return once they are gone."""
        with self._asking() as (client, models):
            of_ids = models.HasIdCondition(has_id=[_text(one) for one in ids])
            chosen = models.Filter(must=[_is(models, "database", database), of_ids])
            for name in _ours(client):
                client.delete(name, points_selector=models.FilterSelector(filter=chosen), wait=True)

    def nearest(
        self, tenant: VectorTenant, query: "NDArray[np.float32]", count: int, *, is_exact: bool
    ) -> list[FoundPoint]:
        """The tenant's points of all types that are nearest to the query, best first."""
        found: list[FoundPoint] = []
        with self._asking() as (client, models):
            conditions = [_is(models, key, value) for key, value in _payload(tenant).items() if value is not None]
            asked = {"query": query.tolist(), "query_filter": models.Filter(must=conditions), "limit": count}
            if not self._is_local:
                asked["search_params"] = models.SearchParams(exact=is_exact)
            for name in self._existing(client, tenant.dimension).values():
                answer = client.query_points(name, **asked, with_payload=["row"])
                found += [FoundPoint(_id(one.id), one.payload["row"], one.score) for one in answer.points]
        return best_first(found)[:count]

    def similarities(
        self, database: str, query: "NDArray[np.float32]", ids: Mapping[RecordType, Sequence[bytes]]
    ) -> dict[bytes, float]:
        """The cosines of those of these points that are there. Qdrant compares them, so no vector is sent here."""
        found: list[FoundPoint] = []
        with self._asking() as (client, models):
            for kind, name in self._existing(client, len(query)).items():
                of_kind = [_text(one) for one in ids.get(kind, ())]
                for start in range(0, len(of_kind), _COMPARED_AT_ONCE):
                    chosen = of_kind[start : start + _COMPARED_AT_ONCE]
                    of_ids = models.HasIdCondition(has_id=chosen)
                    asked: dict[str, Any] = {
                        "query": query.tolist(),
                        "query_filter": models.Filter(must=[_is(models, "database", database), of_ids]),
                        "limit": len(chosen),
                    }
                    if not self._is_local:
                        asked["search_params"] = models.SearchParams(exact=True)
                    answer = client.query_points(name, **asked, with_payload=False)
                    found += [FoundPoint(_id(one.id), 0, one.score) for one in answer.points]
        return {one.id: one.cosine for one in best_first(found)}

    def count(self, database: str) -> int:
        """How many points of the database there are."""
        with self._asking() as (client, models):
            chosen = models.Filter(must=[_is(models, "database", database)])
            return sum(client.count(name, count_filter=chosen, exact=True).count for name in _ours(client))

    def ids(self, database: str) -> frozenset[bytes]:
        """The ids of all points of the database."""
        found: set[bytes] = set()
        with self._asking() as (client, models):
            chosen = models.Filter(must=[_is(models, "database", database)])
            for name in _ours(client):
                offset = None
                while True:
                    page, offset = client.scroll(
                        name,
                        scroll_filter=chosen,
                        limit=_SCROLLED_AT_ONCE,
                        offset=offset,
                        with_payload=False,
                        with_vectors=False,
                    )
                    found.update(_id(one.id) for one in page)
                    if offset is None:
                        break
        return frozenset(found)

    def close(self) -> None:
        """End the client."""
        with self._connecting:
            client, self._client = self._client, None
            if client is not None:
                client.close()

    @contextmanager
    def _asking(self) -> Iterator[tuple[Any, Any]]:
        """The client and its models, for one block: alone with them if it is a local one."""
        self.load()
        with self._one_by_one if self._is_local else nullcontext():
            try:
                yield self._client, self._models
            except BaseException:
                # Perhaps a collection has gone.
                self._ready, self._seen = frozenset(), frozenset()
                raise

    def _existing(self, client: Any, dimension: int) -> dict[RecordType, str]:
        """The collections of this dimension that there are."""
        names = {kind: _name(kind, dimension) for kind in RecordType}
        if not self._seen.issuperset(names.values()):
            self._seen = frozenset(_ours(client))
            if not self._seen.issuperset(names.values()):
                # All are made before the first vector is put.
                self.losses += 1
                self._ready = frozenset()
        return {kind: name for kind, name in names.items() if name in self._seen}

    def _make_ready(self, client: Any, models: Any, kind: RecordType, dimension: int) -> None:
        """Make the collection if it is missing.

        Raises:
            VectorsUnreachable: there is one of this name that is not ours.
        """
        name = _name(kind, dimension)
        if name in self._ready:
            return
        if not client.collection_exists(name):
            params = models.VectorParams(size=dimension, distance=models.Distance.COSINE)
            client.create_collection(name, vectors_config=params)
        params = client.get_collection(name).config.params.vectors
        if getattr(params, "size", None) != dimension or params.distance != models.Distance.COSINE:
            raise VectorsUnreachable(
                f"its collection {name} is not one for vectors of {dimension} numbers compared by cosine; rename or "
                "delete it there"
            )
        if not self._is_local:
            of_database = models.KeywordIndexParams(type="keyword", is_tenant=True)
            client.create_payload_index(name, "database", field_schema=of_database)
            for key in _INDEXED:
                schema = "keyword" if key in ("owner", "agent") else "integer"
                client.create_payload_index(name, key, field_schema=schema)
        self._ready |= {name}


def _name(kind: RecordType, dimension: int) -> str:
    return f"kalito_{_NAMES[kind]}_{dimension}"


def _ours(client: Any) -> Iterator[str]:
    """The names of the collections of all types and dimensions."""
    return (one.name for one in client.get_collections().collections if _OURS.fullmatch(one.name))


def _payload(tenant: VectorTenant) -> dict[str, str | int | None]:
    return {
        "database": tenant.database,
        "owner": tenant.owner,
        "agent": tenant.agent,
        "index": tenant.index_key,
        "session": tenant.session_key,
    }


def _struct(models: Any, point: VectorPoint) -> Any:
    # Qdrant gives a vector unit length itself. Whole numbers are short in JSON.
    payload = {**_payload(point.tenant), "row": point.row_key}
    return models.PointStruct(id=_text(point.id), vector=point.vector.astype(float).tolist(), payload=payload)


def _is(models: Any, key: str, value: str | int) -> Any:
    return models.FieldCondition(key=key, match=models.MatchValue(value=value))


def best_first(found: Sequence[FoundPoint]) -> list[FoundPoint]:
    """Best first, ties newest first. The last digits of equal cosines differ, and from one question to the next."""
    levelled: list[FoundPoint] = []
    cosine = math.inf
    for one in sorted(found, key=lambda one: -one.cosine):
        if cosine - one.cosine > _EQUAL_WITHIN:
            cosine = one.cosine
        levelled.append(FoundPoint(one.id, one.row_key, cosine))
    return sorted(levelled, key=lambda one: (-one.cosine, -one.row_key))


def _text(point_id: bytes) -> str:
    return str(UUID(bytes=point_id))


def _id(text: str) -> bytes:
    return UUID(text).bytes
