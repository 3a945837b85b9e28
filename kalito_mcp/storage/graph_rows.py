"""Converts rows of graph_nodes and graph_edges to nodes and edges, and back. Runs no SQL."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kalito_mcp.domain.graph import EdgeType, GraphEdge, GraphNode, NodeType, NodeWeights
from kalito_mcp.runtime.gc_pause import gc_paused
from kalito_mcp.storage.intact_rows import intact_rows
from kalito_mcp.storage.row_hash import real, row_hash

NODE_COLUMNS: Final = """
    n.key, n.id, n.type, n.text, n.canonical_key, n.summary, n.source_node_ids, n.source_record_ids, n.repeat,
    n.feedback, n.is_pinned, n.created_at, n.last_access, n.embedding
"""
EDGE_COLUMNS: Final = "e.from_key, e.type, e.to_key, e.weight, e.created_at, e.last_access"
HASHED_NODE_COLUMNS: Final = """
    n.graph_key, n.id, n.type, n.text, n.canonical_key, n.summary, n.source_node_ids, n.source_record_ids, n.repeat,
    n.feedback, n.is_pinned, n.created_at, n.last_access, hex(n.embedding), n.revision
"""
HASHED_EDGE_COLUMNS: Final = "e.graph_key, f.id, e.type, t.id, e.weight, e.created_at, e.last_access, e.revision"
NODE_NAMES: Final = (
    "graph_key id type text canonical_key summary source_node_ids source_record_ids repeat feedback is_pinned "
    "created_at last_access embedding revision hash"
).split()
_NODE_TYPES: Final = {str(node_type): node_type for node_type in NodeType}
_EDGE_TYPES: Final = {str(edge_type): edge_type for edge_type in EdgeType}

Row = Sequence[Any]


def node_rows(graph_key: int, revision: int, nodes: Iterable[GraphNode]) -> list[dict[str, Any]]:
    """The parameters of UPSERT_NODE for each node."""
    from kalito_mcp.storage.sparse_vectors import packed  # noqa: PLC0415 - numpy loads when first needed

    rows: list[dict[str, Any]] = []
    for node in nodes:
        embedding = None if node.embedding is None else packed(node.embedding)
        said = (graph_key, node.id, str(node.type), node.text, node.canonical_key, node.summary)
        sources = (_ids(node.source_node_ids), _ids(node.source_record_ids))
        weights = (real(node.weights.repeat), real(node.weights.feedback), int(node.pinned))
        kept = (*said, *sources, *weights, node.created_at, node.last_access)
        hashed = row_hash(*kept, (embedding or b"").hex().upper(), revision)
        rows.append(dict(zip(NODE_NAMES, (*kept, embedding, revision, hashed), strict=True)))
    return rows


def edge_row(graph_key: int, revision: int, edge: GraphEdge, keys: Mapping[str, int]) -> dict[str, Any]:
    """The parameters of UPSERT_EDGE. `keys`: the keys of nodes by id."""
    row = {
        **edge_names(graph_key, edge.from_id, edge.type, edge.to_id),
        "weight": real(edge.weight),
        "created_at": edge.created_at,
        "last_access": edge.last_access,
        "revision": revision,
    }
    ends = {"from_key": keys[edge.from_id], "to_key": keys[edge.to_id]}
    return {**row, **ends, "hash": row_hash(*row.values())}


def edge_names(graph_key: int, from_id: str, edge_type: EdgeType, to_id: str) -> dict[str, Any]:
    """The parameters of DELETE_EDGE."""
    return {"graph_key": graph_key, "from_id": from_id, "type": str(edge_type), "to_id": to_id}


def nodes(rows: Sequence[Row]) -> dict[int, GraphNode]:
    """Rows of NODE_COLUMNS as nodes by key, in the order of the rows. Degrees are 0."""
    from kalito_mcp.storage.sparse_vectors import unpacked  # noqa: PLC0415 - numpy loads when first needed

    with intact_rows(), gc_paused():
        _check_types((row[1] for row in rows), str)
        _check_types((row[3] for row in rows), str, type(None))
        _check_types((weight for row in rows for weight in row[8:10]), float)
        _check_types((moment for row in rows for moment in row[11:13]), int)
        vectors = iter(unpacked([row[13] for row in rows if row[13] is not None]))
        merged = _id_lists(row[6] for row in rows)
        met = _id_lists(row[7] for row in rows)
        return {
            row[0]: GraphNode(
                id=row[1],
                type=_NODE_TYPES[row[2]],
                text=row[3],
                canonical_key=row[4],
                summary=row[5],
                source_node_ids=merged_ids,
                source_record_ids=record_ids,
                weights=NodeWeights(row[8], row[9]),
                pinned=row[10] == 1,
                created_at=row[11],
                last_access=row[12],
                embedding=None if row[13] is None else next(vectors),
            )
            for row, merged_ids, record_ids in zip(rows, merged, met, strict=True)
        }


def edges(rows: Sequence[Row], ids: Mapping[int, str]) -> list[GraphEdge]:
    """Rows of EDGE_COLUMNS as edges. `ids`: the ids of their ends by key."""
    with intact_rows(), gc_paused():
        _check_types((row[3] for row in rows), float)
        return [
            GraphEdge(ids[from_key], ids[to_key], _EDGE_TYPES[edge_type], weight, created_at, last_access)
            for from_key, edge_type, to_key, weight, created_at, last_access in rows
        ]


def _check_types(values: Iterable[Any], *types: type) -> None:
    if not set(map(type, values)) <= set(types):
        raise TypeError


def _ids(ids: Sequence[str]) -> str | None:
    return json.dumps(ids, ensure_ascii=False, separators=(",", ":")) if ids else None


def _id_lists(texts: Iterable[str | None]) -> list[tuple[str, ...]]:
    # One call for all: a call costs as much as parsing a short list.
    return [tuple(ids) for ids in json.loads(f"[{','.join([text or '[]' for text in texts])}]")]
