"""The snapshot format: a graph as JSON, with what its vectors and keys depend on. Pure.

    {
      "version": 1,
      "graph": {
        "nodes": [{id, type, text, canonical_key, summary, source_node_ids, source_record_ids, embedding: [[i, v], ...],
                   created_at, last_access, weights: {repeat, feedback}, degree, pinned}],
        "edges": [{id, from, to, type, weight, created_at, last_access}]
      },
      "embedder": {kind, dim, min_n, max_n, seed, norm_version, hash_algo},
      "canonical_meta": {norm_version, hash_algo, seed}
    }

Empty fields are left out. When a snapshot is read, camelCase is accepted, and a missing version means 1.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from sys import float_info
from typing import Any, Final

import numpy as np

from kalito_mcp.domain.graph import (
    MAX_WEIGHT,
    EdgeType,
    GraphContents,
    GraphEdge,
    GraphNode,
    GraphState,
    NodeType,
    NodeWeights,
)
from kalito_mcp.domain.sparse_vectors import SparseVector
from kalito_mcp.domain.validation import checked_moment
from kalito_mcp.errors import InvalidInput
from kalito_mcp.graph.canonical import canonical_meta
from kalito_mcp.graph.sparse_embedder import SparseEmbedder, snake_keys

VERSION: Final = 1
_MAX_DIM: Final = 2**32
_PAIRS_NDIM: Final = 2
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def dump(nodes: Iterable[GraphNode], edges: Iterable[GraphEdge], embedder: SparseEmbedder) -> dict[str, Any]:
    """The snapshot of these nodes and edges."""
    return {
        "version": VERSION,
        "graph": {"nodes": [_node_out(node) for node in nodes], "edges": [_edge_out(edge) for edge in edges]},
        "embedder": embedder.export_state(),
        "canonical_meta": canonical_meta(),
    }


def parse(data: Mapping[str, Any], embedder: SparseEmbedder) -> GraphContents:
    """The nodes and edges of a snapshot.

    Raises:
        InvalidInput: it is not a snapshot, or has another version, embedder or key settings; an edge has no node at an
        end; or a field is missing, unknown, duplicate or of the wrong type. The message says where.
    """
    if not isinstance(data, Mapping):
        raise InvalidInput("a snapshot must be a JSON object; give a file that kalito wrote")
    version = data.get("version", VERSION)
    if version != VERSION:
        raise InvalidInput(
            f"the snapshot has version {version!r}, but this release reads only {VERSION}; upgrade kalito-mcp"
        )
    embedder.import_state(dict(_object(data, "embedder")))
    meta = snake_keys(_object(data, "canonical_meta"))
    if meta != canonical_meta():
        raise InvalidInput(
            f"the snapshot was written with other key settings: {meta}, this release has {canonical_meta()}; "
            "read it with the release that wrote it"
        )
    try:
        nodes, edges = _graph(data.get("graph"), embedder.export_state().get("dim"))
    except InvalidInput as error:
        raise InvalidInput(f"the snapshot's {error}; give a file that kalito wrote") from error
    return GraphContents(nodes, edges, GraphState(embedder=embedder.fingerprint))


def _graph(data: Any, dim: Any) -> tuple[list[GraphNode], list[GraphEdge]]:
    graph = _Part(data, "graph")
    nodes: dict[str, GraphNode] = {}
    edges: dict[str, GraphEdge] = {}
    for place, one in enumerate(graph.take("nodes", list)):
        node = _node_in(one, f"graph.nodes[{place}]", dim)
        if nodes.setdefault(node.id, node) is not node:
            raise InvalidInput(f"node {node.id!r} is there twice")
    for place, one in enumerate(graph.take("edges", list)):
        edge = _edge_in(one, f"graph.edges[{place}]")
        if edges.setdefault(edge.id, edge) is not edge:
            raise InvalidInput(f"edge {edge.id!r} is there twice")
        for end in (edge.from_id, edge.to_id):
            if end not in nodes:
                raise InvalidInput(f"edge {edge.id!r} leads to the missing node {end!r}")
    graph.done()
    return list(nodes.values()), list(edges.values())


def _node_out(node: GraphNode) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "id": node.id,
        "type": str(node.type),
        "text": node.text,
        "canonical_key": node.canonical_key,
        "summary": node.summary,
        "source_node_ids": list(node.source_node_ids) or None,
        "source_record_ids": list(node.source_record_ids) or None,
        "embedding": None if node.embedding is None else node.embedding.pairs(),
        "created_at": node.created_at,
        "last_access": node.last_access,
        "weights": {"repeat": node.weights.repeat, "feedback": node.weights.feedback},
        "degree": node.degree,
        "pinned": node.pinned or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _edge_out(edge: GraphEdge) -> dict[str, Any]:
    return {
        "id": edge.id,
        "from": edge.from_id,
        "to": edge.to_id,
        "type": str(edge.type),
        "weight": edge.weight,
        "created_at": edge.created_at,
        "last_access": edge.last_access,
    }


def _node_in(data: Any, where: str, dim: Any) -> GraphNode:
    part = _Part(data, where)
    weights = _Part(part.take("weights", dict), f"{part.where}.weights")
    embedding = part.take("embedding", list, None)
    node = GraphNode(
        id=part.take("id", str),
        type=NodeType(part.one_of("type", NodeType)),
        text=part.take("text", str, None),
        canonical_key=part.take("canonical_key", str, None),
        summary=part.take("summary", str, None),
        source_node_ids=part.texts("source_node_ids"),
        source_record_ids=part.texts("source_record_ids"),
        embedding=None if embedding is None else _vector(embedding, where, dim),
        created_at=part.moment("created_at"),
        last_access=part.moment("last_access"),
        weights=NodeWeights(repeat=weights.number("repeat"), feedback=weights.number("feedback")),
        pinned=part.take("pinned", bool, False),
    )
    part.take("degree", int, 0)
    part.done()
    weights.done()
    if not node.id:
        raise InvalidInput(f"{where}.id is empty")
    if not (1 <= node.weights.repeat <= MAX_WEIGHT and abs(node.weights.feedback) <= MAX_WEIGHT):
        raise InvalidInput(f"{where}.weights: repeat must be at least 1, and neither may exceed {MAX_WEIGHT:,.0f}")
    return node


def _edge_in(data: Any, where: str) -> GraphEdge:
    part = _Part(data, where)
    edge = GraphEdge(
        from_id=part.take("from", str),
        to_id=part.take("to", str),
        type=EdgeType(part.one_of("type", EdgeType)),
        weight=part.number("weight"),
        created_at=part.moment("created_at"),
        last_access=part.moment("last_access"),
    )
    stated = part.take("id", str, edge.id)
    part.done()
    if stated != edge.id or edge.from_id == edge.to_id or edge.weight < 0:
        raise InvalidInput(f"{where}: an edge has the id from::type::to, two different ends and a weight of at least 0")
    if edge.type is EdgeType.SIMILAR_TO and edge.to_id < edge.from_id:
        # It has no direction; it is kept as running from the lesser id.
        return replace(edge, from_id=edge.to_id, to_id=edge.from_id)
    return edge


class _Part:
    """One object of a snapshot, read key by key; keys left over are unknown."""

    def __init__(self, data: Any, where: str) -> None:
        if not isinstance(data, Mapping):
            raise InvalidInput(f"{where} is not an object")
        self.where = where
        self._data = snake_keys(data)

    def take(self, name: str, kind: type, *default: Any) -> Any:
        """The value, of that type; the default if it is missing or null."""
        value = self._data.pop(name, None)
        if value is None and default:
            return default[0]
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise InvalidInput(f"{self.where}.{name} should be of type {kind.__name__}")
        return self._unicode(name, value) if isinstance(value, str) else value

    def number(self, name: str) -> float:
        """The value, a finite number."""
        value = self._data.pop(name, None)
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= float_info.max:
            raise InvalidInput(f"{self.where}.{name} should be a finite number")
        return float(value)

    def moment(self, name: str) -> int:
        """The value, milliseconds since 1970."""
        return checked_moment(self.take(name, int), f"{self.where}.{name}")

    def one_of(self, name: str, known: Iterable[str]) -> str:
        """The value, one of those."""
        value: str = self.take(name, str)
        if value not in tuple(known):
            raise InvalidInput(f"{self.where}.{name}={value!r} is not one of {', '.join(known)}")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """The value, a list of strings; empty if it is missing."""
        values = self.take(name, list, [])
        if not all(isinstance(value, str) for value in values):
            raise InvalidInput(f"{self.where}.{name} should be a list of strings")
        return tuple(self._unicode(name, value) for value in values)

    def done(self) -> None:
        """Refuse keys that were not read."""
        if self._data:
            raise InvalidInput(f"{self.where} has an unknown key {next(iter(self._data))!r}")

    def _unicode(self, name: str, value: str) -> str:
        if _SURROGATE.search(value):
            raise InvalidInput(f"{self.where}.{name} has an unpaired surrogate, which is not valid Unicode")
        return value


def _object(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = snake_keys(data).get(name)
    if not isinstance(value, Mapping):
        raise InvalidInput(f"the snapshot has no {name}; give a complete file that kalito wrote")
    return value


def _vector(pairs: list[Any], where: str, dim: Any) -> SparseVector:
    try:
        table = np.array(pairs) if pairs else np.empty((0, 2))
    except ValueError:
        table = np.empty(0)
    if table.ndim != _PAIRS_NDIM or table.shape[1] != 2 or table.dtype.kind not in "iuf":  # noqa: PLR2004 - a pair
        raise InvalidInput(f"{where}.embedding should be [[index, value], ...]")
    limit = dim if isinstance(dim, int) else _MAX_DIM
    indices = table[:, 0]
    if not ((indices >= 0) & (indices < limit) & (indices == np.floor(indices))).all():
        raise InvalidInput(f"{where}.embedding has an index that is not a whole number in 0..{limit - 1:,}")
    try:
        return SparseVector.of(zip(indices.astype(np.int64).tolist(), table[:, 1].tolist(), strict=True))
    except InvalidInput as error:
        raise InvalidInput(f"{where}.embedding: {error}") from error
