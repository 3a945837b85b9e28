"""A network with its lookups. It matches, links and evicts nodes, and keeps both consistent. In memory.

The lookups are the similarity index of the queries, the node that took over a merged id, and the node of a record.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from types import MappingProxyType
from typing import Final

from kalito_mcp.domain.graph import (
    EdgeType,
    GraphConfig,
    GraphContents,
    GraphEdge,
    GraphNode,
    NodeType,
    SimilarQuery,
)
from kalito_mcp.domain.sparse_vectors import SparseVector
from kalito_mcp.domain.validation import checked_moment, checked_text
from kalito_mcp.errors import GraphFull, InvalidInput
from kalito_mcp.graph.canonical import canonical_key
from kalito_mcp.graph.eviction import edges_to_evict, may_evict_edge, nodes_to_evict
from kalito_mcp.graph.network import MAX_SIMILAR, Network
from kalito_mcp.graph.ranking import rank
from kalito_mcp.graph.similarity import SimilarityIndex
from kalito_mcp.graph.sparse_embedder import SparseEmbedder
from kalito_mcp.runtime.gc_pause import gc_paused

MAX_TEXT_BYTES: Final = 524_288
KEPT_TEXT_CHARS: Final = 1_000
"""A node keeps the beginning of its text, to be recognised and embedded; the records keep the whole text."""
MAX_SOURCES: Final = 64
"""The most source records, and the most merged nodes, that a node remembers: the first and the newest ones."""
_CROWDED: Final = 0.9
_RECORDED: Final = (NodeType.QUERY, NodeType.ANSWER)


class IndexedGraph:
    """A network with its lookups."""

    def __init__(self, config: GraphConfig, embedder: SparseEmbedder, now_ms: Callable[[], int]) -> None:
        self.network = Network()
        self.index = SimilarityIndex()
        self.before_eviction: Callable[[], object] | None = None
        """Called when the graph is full, before anything is evicted."""
        self._config = config
        self._embedder = embedder
        self._now_ms = now_ms
        self._merged_into: dict[str, str] = {}
        self._node_of_record: dict[str, str] = {}

    def find(self, node_id: str) -> GraphNode | None:
        """The node, or the one it was merged into; None if there is neither."""
        nodes = self.network.nodes
        return nodes.get(node_id) or nodes.get(self._merged_into.get(node_id, ""))

    def get(self, node_id: str) -> GraphNode:
        """The node, or the one it was merged into. Raises RecordNotFound if there is neither."""
        return self.find(node_id) or self.network.node(node_id)

    def node_of_record(self, record_id: str) -> str | None:
        """The id of the query or answer made from a record, if any."""
        return self._node_of_record.get(record_id)

    def rank(self, node: GraphNode, at_ms: int | None = None) -> float:
        """The node's rank at a moment, by default now."""
        at_ms = self._now_ms() if at_ms is None else at_ms
        return rank(node, now_ms=at_ms, half_life_min=self._config.half_life_min)

    def copy(self, node: GraphNode) -> GraphNode:
        """A copy for callers, with its embedding."""
        return replace(node, weights=replace(node.weights), embedding=self.vector(node.id))

    def vector(self, node_id: str) -> SparseVector | None:
        """The node's embedding; only queries have one."""
        return self.index.vector(node_id) if node_id in self.index else None

    def diffuse_feedback(self, target: GraphNode, delta: float) -> None:
        """Give the similar queries of a node their share of its feedback."""
        if not self._config.diffusion:
            return
        for weight, other_id in self.network.similar_to(target.id)[:MAX_SIMILAR]:
            other = self.network.nodes[other_id]
            # An edge linked by a caller may weigh more than 1.
            other.weights.gain(feedback=delta * self._config.diffusion * min(weight, 1.0))
            self.network.put_node(other)

    def collapse_duplicates(self, candidates: Iterable[SimilarQuery]) -> list[SimilarQuery]:
        """The candidates, best first; of near-duplicates only the best, with the ids of the others."""
        found: dict[str, SimilarQuery] = {}
        for one in candidates:
            similar = self.network.similar_to(one.id)
            near = {other_id for weight, other_id in similar if weight >= self._config.tau_dup}
            shown = next((found[other_id] for other_id in found if other_id in near), None)
            if shown is None:
                found[one.id] = one
            else:
                found[shown.id] = replace(shown, collapsed_ids=(*shown.collapsed_ids, one.id))
        return list(found.values())

    def upsert(
        self,
        type: NodeType,  # noqa: A002 - the field's name
        text: str,
        *,
        record_id: str | None = None,
        at_ms: int | None = None,
        keep: Collection[str] = (),
        key: str | None = None,
        linked_from: Mapping[str, EdgeType] = MappingProxyType({}),
    ) -> GraphNode:
        """Add the node of this text, or count a repeat of the known one. Link the other nodes to it.

        Nodes in `keep` and in `linked_from` are not evicted for it. `key` replaces the text's canonical key.

        Raises:
            InvalidInput: a text or a moment that no node can have, or a link of the node to itself.
            GraphFull: no room for the node or its links, and nothing may be evicted.
            In both cases nothing was changed, except that a sleep cycle may have run.
        """
        check_text(text)
        key = key or canonical_key(text)
        at_ms = self._now_ms() if at_ms is None else checked_moment(at_ms, "at_ms")
        known = self.find(f"{type}_{key}")
        self._check_links(known, linked_from)
        node = self._meet_again(known, at_ms) if known else self._create(type, text, key, at_ms, {*keep, *linked_from})
        if record_id:
            node = self.add_sources(node, records=(record_id,))
        for from_id, edge_type in linked_from.items():
            # Looked up again: making room may have merged it into another.
            self.link(self.get(from_id).id, node.id, edge_type, 1.0, at_ms=at_ms)
        return node

    def merge(self, node: GraphNode, *, carry_weights: bool, keep: Collection[str]) -> GraphNode:
        """Add a node of another graph, or count a repeat of the known one. Raises as `upsert` does."""
        known = self.find(node.id)
        if known is not None:
            known = self._meet_again(known, node.last_access)
        else:
            text = node.text or node.id
            known = self.upsert(node.type, text, at_ms=node.created_at, keep=keep, key=node.canonical_key)
        if carry_weights:
            # One repeat was already counted above.
            known.weights.gain(repeat=node.weights.repeat - 1, feedback=node.weights.feedback)
        known.summary = node.summary or known.summary
        known.pinned = known.pinned or node.pinned
        known.last_access = max(known.last_access, node.last_access)
        return self.add_sources(known, nodes=(node.id, *node.source_node_ids), records=node.source_record_ids)

    def link(
        self,
        from_id: str,
        to_id: str,
        type: EdgeType,  # noqa: A002 - the field's name
        weight: float,
        *,
        at_ms: int | None = None,
    ) -> bool:
        """Link two nodes of the network, or renew their edge; False if the graph is full and no edge may be evicted."""
        if type is EdgeType.SIMILAR_TO and to_id < from_id:
            from_id, to_id = to_id, from_id
        at_ms = self._now_ms() if at_ms is None else at_ms
        known = self.network.edge((from_id, type, to_id))
        if known is not None:
            renewed = replace(known, weight=weight, last_access=max(known.last_access, at_ms))
            self.network.put_edge(renewed)
            return True
        for key in edges_to_evict(self.network, self._config, now_ms=self._now_ms()):
            self.network.remove_edge(key)
        if len(self.network.edges) >= self._config.max_edges:
            return False
        self.network.put_edge(GraphEdge(from_id, to_id, type, weight, created_at=at_ms, last_access=at_ms))
        return True

    def put(self, node: GraphNode) -> None:
        """Add a node to the network and the lookups. A known node of its id is replaced; its edges stay."""
        known = self.network.nodes.get(node.id)
        if known is not None:
            self._remove_lookups(known)
            self.network.swap(node)
        self.network.put_node(node)
        self._add_lookups(node)

    def add_sources(self, node: GraphNode, *, nodes: Iterable[str] = (), records: Iterable[str] = ()) -> GraphNode:
        """Add sources to a node. Returns the node as it now is in the network.

        A record belongs to one query or answer: if its text was amended, the node of the earlier text loses it. A
        merged id that already stands for a node is not reassigned.
        """
        records = tuple(records)
        if node.type in _RECORDED:
            for record_id in records:
                self._unassign_record(record_id, except_id=node.id)
        merged = join_sources(node.source_node_ids, (one for one in nodes if self.find(one) is None))
        sourced = replace(node, source_node_ids=merged, source_record_ids=join_sources(node.source_record_ids, records))
        self.put(sourced)
        return sourced

    def relink_similar(self, node: GraphNode) -> None:
        """Recompute the embedding and the similarity edges of a query whose text has changed."""
        for edge in tuple(self.network.edges_of(node.id)):
            if edge.type is EdgeType.SIMILAR_TO:
                self.network.remove_edge(edge.key)
        vector = self._embedder.embed(node_text(node.text or ""))
        self.index.add_all([(node.id, vector)])
        near = self.index.near(vector, self._config.tau_sim)
        self._link_similar(node.id, [one for one in near if one[0] != node.id], node.last_access)

    def drop(self, node_id: str) -> None:
        """Remove a node with its edges and its lookups."""
        node = self.network.nodes[node_id]
        self.network.remove_node(node_id)
        self.index.remove(node_id)
        self._remove_lookups(node)

    def load(self, contents: GraphContents) -> None:
        """Fill this empty graph. The objects are taken, not copied: there may be 50,000.

        Vectors of another embedder are computed again.
        """
        queries = [node for node in contents.nodes if node.type is NodeType.QUERY]
        self.index.add_all(zip((node.id for node in queries), self._vectors(queries, contents), strict=True))
        with gc_paused():
            for node in contents.nodes:
                node.embedding = None  # the index has it
            self.network.fill(contents.nodes, contents.edges)
            for node in contents.nodes:
                self._add_lookups(node)

    def _add_lookups(self, node: GraphNode) -> None:
        for merged_id in node.source_node_ids:
            self._merged_into[merged_id] = node.id
        if node.type in _RECORDED:
            for record_id in node.source_record_ids:
                self._node_of_record[record_id] = node.id

    def _remove_lookups(self, node: GraphNode) -> None:
        for merged_id in node.source_node_ids:
            if self._merged_into.get(merged_id) == node.id:
                del self._merged_into[merged_id]
        for record_id in node.source_record_ids:
            if self._node_of_record.get(record_id) == node.id:
                del self._node_of_record[record_id]

    def _unassign_record(self, record_id: str, *, except_id: str) -> None:
        owner = self.network.nodes.get(self._node_of_record.get(record_id, ""))
        if owner is not None and owner.id != except_id:
            others = tuple(one for one in owner.source_record_ids if one != record_id)
            self.put(replace(owner, source_record_ids=others))

    def _meet_again(self, known: GraphNode, at_ms: int) -> GraphNode:
        known.weights.gain(repeat=1)
        known.last_access = max(known.last_access, at_ms)
        self.network.put_node(known)
        return known

    def _create(
        self,
        type: NodeType,  # noqa: A002 - the field's name
        text: str,
        key: str,
        at_ms: int,
        keep: Collection[str],
    ) -> GraphNode:
        """Add a node with its similarity edges, or merge it into the nearest one if the settings say so."""
        node_id = f"{type}_{key}"
        vector = self._embedder.embed(node_text(text)) if type is NodeType.QUERY else None
        near = self.index.near(vector, self._config.tau_sim) if vector is not None else []
        if near and self._config.merge_near_duplicates and near[0][1] >= self._config.tau_dup:
            return self.add_sources(self._meet_again(self.network.node(near[0][0]), at_ms), nodes=(node_id,))
        self._make_room(keep)
        node = GraphNode(
            id=node_id,
            type=type,
            created_at=at_ms,
            last_access=at_ms,
            text=node_text(text),
            canonical_key=key,
        )
        self.put(node)
        if vector is not None:
            self.index.add_all([(node_id, vector)])
            # Making room may have removed some.
            self._link_similar(node_id, [one for one in near if one[0] in self.network.nodes], at_ms)
        return node

    def _link_similar(self, node_id: str, near: Sequence[tuple[str, float]], at_ms: int) -> None:
        """Link a new query to those near it, nearest first, so that the edges do not depend on the order of arrival.

        In a graph nearly full of edges only the nearest are linked: the others would be evicted anyway.
        """
        if len(self.network.edges) >= _CROWDED * self._config.max_edges:
            near = near[:MAX_SIMILAR]
        for place, (other_id, similarity) in enumerate(near):
            farthest = self.network.farthest_similar(other_id)
            is_among = farthest is None or (-similarity, node_id) < farthest
            if place >= MAX_SIMILAR and not is_among:
                continue
            is_linked = self.link(node_id, other_id, EdgeType.SIMILAR_TO, similarity, at_ms=at_ms)
            if is_linked and is_among and farthest is not None:
                self._unlink_displaced(other_id, farthest[1])

    def _unlink_displaced(self, node_id: str, displaced_id: str) -> None:
        """Unlink a displaced query from this one, unless this one is among the nearest of the displaced one."""
        first, second = sorted((node_id, displaced_id))
        edge = self.network.edge((first, EdgeType.SIMILAR_TO, second))
        farthest = self.network.farthest_similar(displaced_id)
        if edge is not None and farthest is not None and (-edge.weight, node_id) > farthest:
            self.network.remove_edge((first, EdgeType.SIMILAR_TO, second))

    def _check_links(self, node: GraphNode | None, linked_from: Mapping[str, EdgeType]) -> None:
        """Refuse impossible links before anything is changed. Raises InvalidInput and GraphFull as `upsert` does."""
        needed = 0
        for from_id, edge_type in linked_from.items():
            if node is not None and node.id == from_id:
                raise InvalidInput(f"{from_id!r} cannot be linked to itself; name two nodes")
            needed += node is None or self.network.edge((from_id, edge_type, node.id)) is None
        excess = len(self.network.edges) + needed - self._config.max_edges
        if needed and excess > 0:
            evictable = (edge for edge in self.network.edges if may_evict_edge(edge, self.network))
            if sum(1 for _ in islice(evictable, excess)) < excess:
                raise edges_full(self._config)

    def _vectors(self, queries: Sequence[GraphNode], contents: GraphContents) -> Iterable[SparseVector]:
        if contents.state.embedder == self._embedder.fingerprint and all(
            node.embedding is not None for node in queries
        ):
            return [node.embedding for node in queries if node.embedding is not None]
        return self._embedder.embed_all([node_text(node.text or "") for node in queries])

    def _make_room(self, keep: Collection[str]) -> None:
        if len(self.network.nodes) < self._config.max_nodes:
            return
        if self.before_eviction is not None:
            self.before_eviction()
        kept_ids = {node.id for node in map(self.find, keep) if node is not None}
        victims = nodes_to_evict(self.network, self._config, now_ms=self._now_ms(), keep=kept_ids)
        if len(self.network.nodes) - len(victims) >= self._config.max_nodes:
            raise GraphFull(
                f"the graph is full: all its {self._config.max_nodes:,} nodes are protected; "
                "raise max_nodes or unpin some"
            )
        for node_id in victims:
            self.drop(node_id)


def edges_full(config: GraphConfig) -> GraphFull:
    """The error for an edge that has no room."""
    return GraphFull(
        f"the graph is full: all its {config.max_edges:,} edges are protected; raise max_edges or unpin some nodes"
    )


def check_text(text: str) -> None:
    """Check a node's text. Raises InvalidInput if it is blank, too long, or not Unicode."""
    if not checked_text(text, "text", max_bytes=MAX_TEXT_BYTES).strip():
        raise InvalidInput("text is blank; send words")


def node_text(text: str) -> str:
    """The beginning of a text that a node keeps, at most 1,000 characters. Idempotent."""
    return text if len(text) <= KEPT_TEXT_CHARS else f"{text[: KEPT_TEXT_CHARS - 1]}…"


def join_sources(before: tuple[str, ...], more: Iterable[str]) -> tuple[str, ...]:
    """Both lists without repeats, oldest first; if more than `MAX_SOURCES`, the first and the newest."""
    sources = tuple(dict.fromkeys((*before, *more)))
    return sources if len(sources) <= MAX_SOURCES else (sources[0], *sources[1 - MAX_SOURCES :])
