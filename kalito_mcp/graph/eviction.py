"""Eviction from a full graph: the lowest ranks go, pinned nodes never. Pure.

A twentieth goes at once, because ranking everything for every new node would make a full graph slow.
"""

import heapq
from collections.abc import Container
from typing import Final

from kalito_mcp.domain.graph import EdgeKey, GraphConfig, GraphEdge, GraphNode
from kalito_mcp.graph.network import Network
from kalito_mcp.graph.ranking import edge_rank, rank

_SHARE: Final = 20


def nodes_to_evict(network: Network, config: GraphConfig, *, now_ms: int, keep: Container[str]) -> list[str]:
    """The nodes to evict so that one more fits: lowest rank first, equal ones by age, then by id.

    Nodes in `keep`, pinned ones, and those of at least `protect_min_degree` edges (0 protects none) are never chosen,
    so there may be fewer than needed.
    """
    excess = len(network.nodes) - config.max_nodes + 1
    if excess <= 0:
        return []
    candidates = (node for node in network.nodes.values() if node.id not in keep and not _is_protected(node, config))
    count = max(excess, config.max_nodes // _SHARE)
    return [node.id for node in heapq.nsmallest(count, candidates, key=lambda node: _order(node, config, now_ms))]


def edges_to_evict(network: Network, config: GraphConfig, *, now_ms: int) -> list[EdgeKey]:
    """The edges to evict so that one more fits: weakest first, by weight and age; never an edge of a pinned node."""
    excess = len(network.edges) - config.max_edges + 1
    if excess <= 0:
        return []
    ranked = (
        (edge_rank(edge, now_ms=now_ms, half_life_min=config.half_life_min), edge.key)
        for edge in network.edges
        if may_evict_edge(edge, network)
    )
    return [key for _, key in heapq.nsmallest(max(excess, config.max_edges // _SHARE), ranked)]


def may_evict_edge(edge: GraphEdge, network: Network) -> bool:
    """Whether neither of its ends is pinned."""
    return not (network.nodes[edge.from_id].pinned or network.nodes[edge.to_id].pinned)


def _is_protected(node: GraphNode, config: GraphConfig) -> bool:
    return node.pinned or 0 < config.protect_min_degree <= node.degree


def _order(node: GraphNode, config: GraphConfig, now_ms: int) -> tuple[float, int, str]:
    return rank(node, now_ms=now_ms, half_life_min=config.half_life_min), node.last_access, node.id
