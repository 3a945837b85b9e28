"""The collections of vectors in one Qdrant: one for each type of record and each dimension, for all databases.

`kalito_messages_512` has the messages' vectors of 512 numbers. A point's payload says whose it is: keyed hashes and
numbers, no text and no name. Every question names the database. Synchronous; may be used by several threads.
"""

import math
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from kalito_mcp.domain.records import RecordType
from kalito_mcp.ports.vector_points import FoundPoint, VectorPoint, VectorTenant

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MODULE: Final = "qdrant_client"
_OURS: Final = re.compile(r"kalito_[a-z]+_[0-9]+")
_INDEXED: Final = {"owner": "keyword", "agent": "keyword", "index": "integer", "session": "integer"}
_SCROLLED_AT_ONCE: Final = 10_000
_EQUAL_WITHIN: Final = 5e-7


class QdrantCollections:
    """The collections of the server that `connect` makes a client of, with the first question."""

    def __init__(self, connect: Callable[[], Any]) -> None:
        self._connect = connect
        self._client: Any = None
        self._ready: frozenset[str] = frozenset()
        """Collections that are there, as far as this process knows."""
        self._connecting = threading.Lock()

    def put(self, points: Sequence[VectorPoint]) -> None:
        """Keep these points, all of one dimension; return once they are found."""
        dimension = points[0].tenant.dimension
        with self._asking() as (client, models):
            for kind in RecordType:  # all, so that a search can ask each
                self._make_ready(client, models, _name(kind, dimension), dimension)
            for kind in {one.type for one in points}:
                chosen = [_struct(models, one) for one in points if one.type is kind]
                client.upsert(_name(kind, dimension), points=chosen, wait=True)

    def remove(self, database: str, ids: Sequence[bytes]) -> None:
        """Remove these points of the database from every collection; return once they are gone."""
        with self._asking() as (client, models):
            chosen = models.Filter(must=[_is(models, "database", database), _has_id(models, ids)])
            for name in _ours(client):
                client.delete(name, points_selector=models.FilterSelector(filter=chosen), wait=True)

    def nearest(self, tenant: VectorTenant, query: "NDArray[np.float32]", count: int) -> list[FoundPoint]:
        """The tenant's points of all types that are nearest to the query, best first."""
        found: list[FoundPoint] = []
        with self._asking() as (client, models):
            must = [_is(models, key, value) for key, value in _payload(tenant).items() if value is not None]
            for kind in RecordType:
                found += _found(client, models, _name(kind, tenant.dimension), must, query, count)
        return best_first(found)[:count]

    def similarities(
        self, database: str, query: "NDArray[np.float32]", ids: Mapping[RecordType, Sequence[bytes]]
    ) -> dict[bytes, float]:
        """The cosines of these points, as far as they are there. Qdrant compares them, so no vector is sent here."""
        found: list[FoundPoint] = []
        with self._asking() as (client, models):
            for kind, of_kind in ids.items():
                must = [_is(models, "database", database), _has_id(models, of_kind)]
                found += _found(client, models, _name(kind, len(query)), must, query, len(of_kind))
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
                parameters = {"scroll_filter": chosen, "limit": _SCROLLED_AT_ONCE, "with_payload": False}
                page, offset = client.scroll(name, **parameters)
                found.update(UUID(one.id).bytes for one in page)
                while offset is not None:
                    page, offset = client.scroll(name, **parameters, offset=offset)
                    found.update(UUID(one.id).bytes for one in page)
        return frozenset(found)

    def close(self) -> None:
        """End the client."""
        with self._connecting:
            client, self._client = self._client, None
            if client is not None:
                client.close()

    @contextmanager
    def _asking(self) -> Iterator[tuple[Any, Any]]:
        """The client and its models, for one block."""
        with self._connecting:
            self._client = client = self._client or self._connect()
        try:
            yield client, import_module(f"{MODULE}.models")
        except BaseException:
            self._ready = frozenset()  # perhaps a collection has gone
            raise

    def _make_ready(self, client: Any, models: Any, name: str, dimension: int) -> None:
        """Make the collection and its indexes if they are missing."""
        if name in self._ready:
            return
        if not client.collection_exists(name):
            params = models.VectorParams(size=dimension, distance=models.Distance.COSINE)
            client.create_collection(name, vectors_config=params)
        of_database = models.KeywordIndexParams(type="keyword", is_tenant=True)
        for key, schema in {"database": of_database, **_INDEXED}.items():
            client.create_payload_index(name, key, field_schema=schema)
        self._ready |= {name}


def best_first(found: Sequence[FoundPoint]) -> list[FoundPoint]:
    """Best first, ties newest first. The last digits of equal cosines differ, and from one question to the next."""
    levelled: list[FoundPoint] = []
    cosine = math.inf
    for one in sorted(found, key=lambda one: -one.cosine):
        if cosine - one.cosine > _EQUAL_WITHIN:
            cosine = one.cosine
        levelled.append(FoundPoint(one.id, one.row_key, cosine))
    return sorted(levelled, key=lambda one: (-one.cosine, -one.row_key))


def _found(
    client: Any, models: Any, name: str, must: list[Any], query: "NDArray[np.float32]", count: int
) -> list[FoundPoint]:
    answer = client.query_points(
        name,
        query=query.tolist(),
        query_filter=models.Filter(must=must),
        limit=count,
        search_params=models.SearchParams(exact=True),
        with_payload=["row"],
    )
    return [FoundPoint(UUID(one.id).bytes, one.payload["row"], one.score) for one in answer.points]


def _name(kind: RecordType, dimension: int) -> str:
    noun = "summaries" if kind is RecordType.SUMMARY else f"{kind}s"
    return f"kalito_{noun}_{dimension}"


def _ours(client: Any) -> list[str]:
    """The names of the collections of all types and dimensions."""
    return [one.name for one in client.get_collections().collections if _OURS.fullmatch(one.name)]


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
    return models.PointStruct(id=str(UUID(bytes=point.id)), vector=point.vector.astype(float).tolist(), payload=payload)


def _is(models: Any, key: str, value: str | int) -> Any:
    return models.FieldCondition(key=key, match=models.MatchValue(value=value))


def _has_id(models: Any, ids: Sequence[bytes]) -> Any:
    return models.HasIdCondition(has_id=[str(UUID(bytes=one)) for one in ids])
