"""The best hits of several graphs together."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kalito_mcp.domain.graph import GraphHit, GraphScope

if TYPE_CHECKING:
    from kalito_mcp.graph.store import GraphStore


def best_hits(
    graphs: Sequence[tuple[GraphScope, "GraphStore"]], text: str, k: int, session_bias: float
) -> list[GraphHit]:
    """The k most similar queries, best first. `session_bias` raises the scores of a session's graph: 0.1 by a tenth."""
    hits: dict[str, GraphHit] = {}
    for kind, graph in graphs:
        bias = 1 + session_bias if kind is GraphScope.SESSION else 1.0
        for one in graph.search_similar_queries(text, k):
            hit = GraphHit(one.id, one.score * bias, one.sim, kind, one.text, one.canonical_key)
            if hit.id not in hits or hits[hit.id].score < hit.score:
                hits[hit.id] = hit
    return sorted(hits.values(), key=lambda hit: (-hit.score, hit.id))[:k]
