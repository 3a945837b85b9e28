"""A graph's overview as JSON-ready values: its size, its parts, and the queries of the highest rank. Pure."""

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from kalito_mcp.domain.graph import NodeType
from kalito_mcp.domain.time import to_iso

if TYPE_CHECKING:
    from kalito_mcp.graph.store import GraphStore

_SHOWN: Final = 20
_SHOWN_CHARS: Final = 200
_DECIMALS: Final = 4


def overview(graph: "GraphStore") -> dict[str, Any]:
    """Counts by type, and the 20 queries and 20 entities of the highest rank."""
    stats = graph.stats()
    return {
        "nodes": stats.nodes,
        "edges": stats.edges,
        "nodes_by_type": dict(sorted(Counter(str(node.type) for node in graph.nodes()).items())),
        "edges_by_type": dict(sorted(Counter(str(edge.type) for edge in graph.edges()).items())),
        "slept_at": None if graph.slept_at is None else to_iso(graph.slept_at),
        "top_queries": _top(graph, NodeType.QUERY),
        "top_entities": _top(graph, NodeType.ENTITY),
    }


def _top(graph: "GraphStore", node_type: NodeType) -> list[dict[str, Any]]:
    return [
        {
            "id": node.id,
            "text": (node.summary or node.text or "")[:_SHOWN_CHARS],
            "rank": round(rank, _DECIMALS),
            "repeat": node.weights.repeat,
            "feedback": round(node.weights.feedback, _DECIMALS),
            "degree": node.degree,
            "pinned": node.pinned,
        }
        for rank, node in graph.ranked(node_type)[:_SHOWN]
    ]
