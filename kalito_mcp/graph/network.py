"""Nodes and edges, and what always holds of them. In memory.

No edge without its ends, at most one edge of a type between two ends, and a node's degree is the number of its edges.
What changed is remembered until it is drained, so that the difference alone can be stored.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from kalito_mcp.domain.graph import EdgeKey, EdgeType, GraphChanges, GraphEdge, GraphNode, GraphStats
from kalito_mcp.errors import InvalidInput, RecordNotFound

MAX_SIMILAR: Final = 32
"""Two near queries are linked where either is among so many nearest of the other: a thousand variants of one question
need no clique."""


class Network:
    """Nodes by id, edges by their ends and type."""

    def __init__(self) -> None:
        self._nodes: dict[str, GraphNode] = {}
        self._edges: dict[EdgeKey, GraphEdge] = {}
        self._edges_of: dict[str, dict[EdgeKey, None]] = {}
        self._farthest: dict[str, tuple[float, str] | None] = {}
        # As ordered sets: what is stored comes in the order in which it happened.
        # What was never stored need not be removed from there: a graph that nobody drains does not remember what went.
        self._new_nodes: set[str] = set()
        self._new_edges: set[EdgeKey] = set()
        self._changed_nodes: dict[str, None] = {}
        self._changed_edges: dict[EdgeKey, None] = {}
        self._removed_nodes: dict[str, None] = {}
        self._removed_edges: dict[EdgeKey, None] = {}
        self.version = 0
        """Moves with every change."""

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
        """The node. Raises RecordNotFound where there is none."""
        found = self._nodes.get(node_id)
        if found is None:
            raise RecordNotFound(f"no node {node_id!r} in this graph; search for it, or upsert it first")
        return found

    def edge(self, key: EdgeKey) -> GraphEdge | None:
        """The edge between two ends, if there is one."""
        return self._edges.get(key)

    def edges_of(self, node_id: str) -> Iterator[GraphEdge]:
        """The node's edges, in and out, oldest first."""
        return (self._edges[key] for key in tuple(self._edges_of.get(node_id, ())))

    def similar_to(self, node_id: str) -> list[tuple[float, str]]:
        """The weight and the other end of each of the node's similarity edges, heaviest first, equal ones by id."""
        return [(-weight, other_id) for weight, other_id in self._similar(node_id)]

    def farthest_similar(self, node_id: str) -> tuple[float, str] | None:
        """The last of the `MAX_SIMILAR` that are most similar to a node, as minus its weight and its id; None where
        there are fewer."""
        if self._nodes[node_id].degree < MAX_SIMILAR:
            return None
        if node_id not in self._farthest:
            similar = self._similar(node_id)
            self._farthest[node_id] = similar[MAX_SIMILAR - 1] if len(similar) >= MAX_SIMILAR else None
        return self._farthest[node_id]

    def put_node(self, node: GraphNode) -> None:
        """Add a node without edges, or take note that a known one changed."""
        known = self._nodes.get(node.id)
        if known is None:
            self._nodes[node.id] = node
            self._edges_of[node.id] = {}
            node.degree = 0
            if node.id not in self._removed_nodes:
                self._new_nodes.add(node.id)
        elif known is not node:
            raise InvalidInput(f"node {node.id!r} exists already")
        self._removed_nodes.pop(node.id, None)
        self._changed_nodes[node.id] = None
        self.version += 1

    def fill(self, nodes: Iterable[GraphNode], edges: Iterable[GraphEdge]) -> None:
        """Add all of another network to this empty one: as one by one, in a quarter of the time.

        Raises:
            RecordNotFound: an edge has no node at an end; nothing was added.
        """
        filled = {node.id: node for node in nodes}
        edges_of: dict[str, dict[EdgeKey, None]] = {node_id: {} for node_id in filled}
        linked = {(edge.from_id, edge.type, edge.to_id): edge for edge in edges}
        try:
            for key in linked:
                edges_of[key[0]][key] = edges_of[key[2]][key] = None
        except KeyError as error:
            raise RecordNotFound(f"an edge has no node {error} at an end") from error
        for node_id, node in filled.items():
            node.degree = len(edges_of[node_id])
        self._nodes, self._edges, self._edges_of = filled, linked, edges_of
        self._changed_nodes, self._changed_edges = dict.fromkeys(filled), dict.fromkeys(linked)
        self.version += 1

    def swap(self, node: GraphNode) -> None:
        """Put a node in the place of the one with its id; the edges stay."""
        node.degree = self.node(node.id).degree
        self._nodes[node.id] = node

    def replaced(self, before: "Network") -> None:
        """Take note that this network stands where another stood: what only that one had counts as removed."""
        self._removed_nodes |= dict.fromkeys(node_id for node_id in before._nodes if node_id not in self._nodes)
        self._removed_edges |= dict.fromkeys(key for key in before._edges if key not in self._edges)
        self.version += before.version + 1

    def put_edge(self, edge: GraphEdge) -> None:
        """Add an edge, or replace the one of its type between its ends.

        Raises:
            RecordNotFound: an end is no node. InvalidInput: both ends are the same.
        """
        source, target = self.node(edge.from_id), self.node(edge.to_id)
        if source is target:
            raise InvalidInput(f"{edge.id} would link a node to itself")
        key = (edge.from_id, edge.type, edge.to_id)
        if key not in self._edges:
            for end in (source, target):
                self._edges_of[end.id][key] = None
                end.degree += 1
            if key not in self._removed_edges:
                self._new_edges.add(key)
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
        if key in self._new_edges:
            self._new_edges.remove(key)
        else:
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
        if node_id in self._new_nodes:
            self._new_nodes.remove(node_id)
        else:
            self._removed_nodes[node_id] = None
        self.version += 1

    def drain(self) -> GraphChanges:
        """What changed since the last call, as copies; from now on that counts as stored."""
        changes = GraphChanges(
            nodes=[_copy(self._nodes[node_id]) for node_id in self._changed_nodes],
            edges=[replace(self._edges[key]) for key in self._changed_edges],
            removed_nodes=list(self._removed_nodes),
            removed_edges=list(self._removed_edges),
        )
        self.settle()
        return changes

    def settle(self) -> None:
        """Count everything as stored."""
        self._changed_nodes, self._changed_edges = {}, {}
        self._removed_nodes, self._removed_edges = {}, {}
        self._new_nodes, self._new_edges = set(), set()

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
