"""Nodes and edges with their invariants. In memory.

An edge has both its ends, there is at most one edge of a type between two ends, and a node's degree is the number of
its edges. Changes are collected until they are drained, so that only the difference has to be stored.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from kalito_mcp.domain.graph import EdgeKey, EdgeType, GraphChanges, GraphEdge, GraphNode, GraphStats
from kalito_mcp.errors import InvalidInput, RecordNotFound

MAX_SIMILAR: Final = 32
"""Two near queries are linked if either is among this many nearest of the other: a thousand variants of one question
need no clique."""


class Network:
    """Nodes by id, edges by their ends and type."""

    def __init__(self) -> None:
        self._nodes: dict[str, GraphNode] = {}
        self._edges: dict[EdgeKey, GraphEdge] = {}
        self._edges_of: dict[str, dict[EdgeKey, None]] = {}
        self._farthest: dict[str, tuple[float, str] | None] = {}
        # The dicts are ordered sets: changes are stored in the order in which they happened.
        self._changed_nodes: dict[str, None] = {}
        self._changed_edges: dict[EdgeKey, None] = {}
        self._removed_nodes: dict[str, None] = {}
        self._removed_edges: dict[EdgeKey, None] = {}
        self.version = 0
        """Increases with every change."""

    @property
    def nodes(self) -> Mapping[str, GraphNode]:
        """All nodes by id."""
        return self._nodes

    @property
    def edges(self) -> Collection[GraphEdge]:
        """All edges."""
        return self._edges.values()

    def stats(self) -> GraphStats:
        """How many nodes and edges there are."""
        return GraphStats(len(self._nodes), len(self._edges))

    def node(self, node_id: str) -> GraphNode:
        """The node. Raises RecordNotFound if it does not exist."""
        found = self._nodes.get(node_id)
        if found is None:
            raise RecordNotFound(f"no node {node_id!r} in this graph; search for it, or upsert it first")
        return found

    def edge(self, key: EdgeKey) -> GraphEdge | None:
        """The edge between two ends, if there is one."""
        return self._edges.get(key)

    def edges_of(self, node_id: str) -> Iterator[GraphEdge]:
        """The node's edges, in and out, in insertion order."""
        return (self._edges[key] for key in tuple(self._edges_of.get(node_id, ())))

    def similar_to(self, node_id: str) -> list[tuple[float, str]]:
        """Weight and other end of each similarity edge of a node, heaviest first, equal ones by id."""
        return [(-weight, other_id) for weight, other_id in self._similar(node_id)]

    def farthest_similar(self, node_id: str) -> tuple[float, str] | None:
        """The last of the `MAX_SIMILAR` nodes most similar to a node, as (-weight, id); None if there are fewer."""
        if self._nodes[node_id].degree < MAX_SIMILAR:
            return None
        if node_id not in self._farthest:
            similar = self._similar(node_id)
            self._farthest[node_id] = similar[MAX_SIMILAR - 1] if len(similar) >= MAX_SIMILAR else None
        return self._farthest[node_id]

    def put_node(self, node: GraphNode) -> None:
        """Add a node without edges, or note that a known one changed."""
        known = self._nodes.get(node.id)
        if known is None:
            self._nodes[node.id] = node
            self._edges_of[node.id] = {}
            node.degree = 0
        elif known is not node:
            raise InvalidInput(f"node {node.id!r} exists already; give another id")
        self._removed_nodes.pop(node.id, None)
        self._changed_nodes[node.id] = None
        self.version += 1

    def fill(self, nodes: Iterable[GraphNode], edges: Iterable[GraphEdge]) -> None:
        """Fill this empty network: the same as adding one by one, in a quarter of the time.

        Raises:
            RecordNotFound: an edge has no node at an end; nothing was added.
        """
        filled = {node.id: node for node in nodes}
        edges_of: dict[str, dict[EdgeKey, None]] = {node_id: {} for node_id in filled}
        linked = {edge.key: edge for edge in edges}
        try:
            for key in linked:
                edges_of[key[0]][key] = edges_of[key[2]][key] = None
        except KeyError as error:
            raise RecordNotFound(f"an edge leads to the missing node {error}; add the node first") from error
        for node_id, node in filled.items():
            node.degree = len(edges_of[node_id])
        self._nodes, self._edges, self._edges_of = filled, linked, edges_of
        self._changed_nodes, self._changed_edges = dict.fromkeys(filled), dict.fromkeys(linked)
        self.version += 1

    def swap(self, node: GraphNode) -> None:
        """Replace the node of the same id; the edges stay."""
        node.degree = self.node(node.id).degree
        self._nodes[node.id] = node

    def mark_replaced(self, before: "Network") -> None:
        """Note that this network replaces another: nodes and edges that only the other had count as removed."""
        self._removed_nodes |= dict.fromkeys(node_id for node_id in before._nodes if node_id not in self._nodes)
        self._removed_edges |= dict.fromkeys(key for key in before._edges if key not in self._edges)
        self.version += before.version + 1

    def put_edge(self, edge: GraphEdge) -> None:
        """Add an edge, or replace the one of its type between its ends.

        Raises:
            RecordNotFound: an end is not a node. InvalidInput: both ends are the same.
        """
        source, target = self.node(edge.from_id), self.node(edge.to_id)
        if source is target:
            raise InvalidInput(f"{edge.id} would link a node to itself; link two nodes")
        key = edge.key
        if key not in self._edges:
            for end in (source, target):
                self._edges_of[end.id][key] = None
                end.degree += 1
        self._edges[key] = edge
        self._forget_farthest(edge)
        self._removed_edges.pop(key, None)
        self._changed_edges[key] = None
        self.version += 1

    def remove_edge(self, key: EdgeKey) -> None:
        """Remove an edge; an unknown one is fine."""
        edge = self._edges.pop(key, None)
        if edge is None:
            return
        for end in (edge.from_id, edge.to_id):
            del self._edges_of[end][key]
            self._nodes[end].degree -= 1
        self._forget_farthest(edge)
        self._changed_edges.pop(key, None)
        self._removed_edges[key] = None
        self.version += 1

    def remove_node(self, node_id: str) -> None:
        """Remove a node with its edges; an unknown one is fine."""
        if node_id not in self._nodes:
            return
        for key in tuple(self._edges_of[node_id]):
            self.remove_edge(key)
        del self._nodes[node_id], self._edges_of[node_id]
        self._changed_nodes.pop(node_id, None)
        self._removed_nodes[node_id] = None
        self.version += 1

    def drain(self) -> GraphChanges:
        """The changes since the last call, as copies; from now on they count as stored."""
        changes = GraphChanges(
            nodes=[_copy(self._nodes[node_id]) for node_id in self._changed_nodes],
            edges=[replace(self._edges[key]) for key in self._changed_edges],
            removed_nodes=list(self._removed_nodes),
            removed_edges=list(self._removed_edges),
        )
        self.mark_stored()
        return changes

    def mark_stored(self) -> None:
        """Treat all changes as stored."""
        self._changed_nodes, self._changed_edges = {}, {}
        self._removed_nodes, self._removed_edges = {}, {}

    def _similar(self, node_id: str) -> list[tuple[float, str]]:
        edges = self._edges
        similar = [
            (-edges[key].weight, key[2] if key[0] == node_id else key[0])
            for key in self._edges_of[node_id]
            if key[1] is EdgeType.SIMILAR_TO
        ]
        similar.sort()
        return similar

    def _forget_farthest(self, edge: GraphEdge) -> None:
        if edge.type is EdgeType.SIMILAR_TO:
            self._farthest.pop(edge.from_id, None)
            self._farthest.pop(edge.to_id, None)


def _copy(node: GraphNode) -> GraphNode:
    return replace(node, weights=replace(node.weights))
