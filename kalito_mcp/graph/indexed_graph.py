"""How nodes and edges get into a graph and out of it: matched, linked, and making room. In memory.

Keeps together what has to move together: the network, the similarity index of its queries, where merged nodes went,
and which node a record is.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from types import MappingProxyType
from typing import Final

from kalito_mcp.domain.collecting import uncollected
from kalito_mcp.domain.graph import (
    EdgeType,
    EmbeddingProvider,
    GraphConfig,
    GraphContents,
    GraphEdge,
    GraphNode,
    NodeType,
    SimilarQuery,
)
from kalito_mcp.domain.validation import checked_moment, checked_text
from kalito_mcp.domain.vectors import SparseVector
from kalito_mcp.errors import GraphFull, InvalidInput, RecordNotFound
from kalito_mcp.graph.canonical import canonical_key
from kalito_mcp.graph.eviction import edges_to_evict, may_evict_edge, nodes_to_evict
from kalito_mcp.graph.network import MAX_SIMILAR, Network
from kalito_mcp.graph.ranking import rank
from kalito_mcp.graph.similarity import SimilarityIndex

MAX_TEXT_BYTES: Final = 524_288
KEPT_TEXT_CHARS: Final = 1_000
"""A node keeps the beginning of its text, for people to recognise and to be embedded; the records keep it whole."""
MAX_SOURCES: Final = 64
"""Records, and merged nodes, that a node remembers as its sources: the first, and the newest."""
_CROWDED: Final = 0.9
_RECORDED: Final = (NodeType.QUERY, NodeType.ANSWER)


class Keeper:
    """A network with its indexes."""

    def __init__(self, config: GraphConfig, embedder: EmbeddingProvider, now_ms: Callable[[], int]) -> None:
        self.network = Network()
        self.index = SimilarityIndex(use_inverted_index=config.enable_inverted_index)
        self.before_eviction: Callable[[], object] | None = None
        """Called when the graph is full, before anything is evicted."""
        self._config = config
        self._embedder = embedder
        self._now_ms = now_ms
        self._anchors: dict[str, str] = {}
        self._of_record: dict[str, str] = {}

    def found(self, node_id: str) -> GraphNode | None:
        """The node, or what it was merged into."""
        nodes = self.network.nodes
        return nodes.get(node_id) or nodes.get(self._anchors.get(node_id, ""))

    def known(self, node_id: str) -> GraphNode:
        """The same. Raises RecordNotFound."""
        node = self.found(node_id)
        if node is None:
            raise RecordNotFound(f"no node {node_id!r} in this graph; search for it, or upsert it first")
        return node

    def of_record(self, record_id: str) -> str | None:
        """The id of the query or answer that a record is."""
        return self._of_record.get(record_id)

    def rank(self, node: GraphNode, at_ms: int | None = None) -> float:
        """The node's rank at a moment, now unless given."""
        at_ms = self._now_ms() if at_ms is None else at_ms
        return rank(node, now_ms=at_ms, half_life_min=self._config.half_life_min)

    def copy(self, node: GraphNode) -> GraphNode:
        """A copy for the outside, with its embedding."""
        return replace(node, weights=replace(node.weights), embedding=self.vector(node.id))

    def vector(self, node_id: str) -> SparseVector | None:
        """The node's embedding; only queries have one."""
        return self.index.vector(node_id) if node_id in self.index else None

    def diffuse(self, target: GraphNode, delta: float) -> None:
        """Give the queries that are similar to one their share of its feedback."""
        if not self._config.diffusion:
            return
        for weight, other_id in self.network.similar_to(target.id)[:MAX_SIMILAR]:
            other = self.network.nodes[other_id]
            # An edge that somebody linked may weigh more than a similarity can.
            other.weights.gain(feedback=delta * self._config.diffusion * min(weight, 1.0))
            self.network.put_node(other)

    def collapsed(self, candidates: Iterable[SimilarQuery]) -> list[SimilarQuery]:
        """What was found, best first, with near-duplicates as the best of them."""
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
        """The node that says this, made or met once more, and linked from others.

        `keep`, and what it is linked from, is not evicted for it. `key` is its canonical key where that is not the
        text's.

        Raises:
            InvalidInput: a text or a moment that no node can have, or a link of the node to itself.
            GraphFull: no room for it, or for its links, and nothing that may go. Either way nothing was changed, but
            that the graph may have slept.
        """
        check_text(text)
        key = key or canonical_key(text)
        at_ms = self._now_ms() if at_ms is None else checked_moment(at_ms, "at_ms")
        known = self.found(f"{type}_{key}")
        self._check_links(known, linked_from)
        node = self._met(known, at_ms) if known else self._made(type, text, key, at_ms, {*keep, *linked_from})
        if record_id:
            node = self.sourced(node, records=(record_id,))
        for from_id, edge_type in linked_from.items():
            # Known anew: making room may have merged it into another.
            self.linked(self.known(from_id).id, node.id, edge_type, 1.0, at_ms=at_ms)
        return node

    def merge(self, node: GraphNode, *, carry_weights: bool, keep: Collection[str]) -> GraphNode:
        """Take over a node of another graph, new or met once more. Raises as `upsert`."""
        known = self.found(node.id)
        if known is not None:
            known = self._met(known, node.last_access)
        else:
            text = node.text or node.id
            known = self.upsert(node.type, text, at_ms=node.created_at, keep=keep, key=node.canonical_key)
        if carry_weights:
            # It has been counted as met once already.
            known.weights.gain(repeat=node.weights.repeat - 1, feedback=node.weights.feedback)
        known.summary = node.summary or known.summary
        known.pinned = known.pinned or node.pinned
        known.last_access = max(known.last_access, node.last_access)
        return self.sourced(known, nodes=(node.id, *node.source_node_ids), records=node.source_record_ids)

    def linked(
        self,
        from_id: str,
        to_id: str,
        type: EdgeType,  # noqa: A002 - the field's name
        weight: float,
        *,
        at_ms: int | None = None,
    ) -> bool:
        """Link two nodes of the network, or renew their edge; False where there is no room and nothing that may go."""
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
        """Take a node into the network and what is looked up by it: a new one, or one in the place of that of its id,
        whose edges stay."""
        known = self.network.nodes.get(node.id)
        if known is not None:
            self._forget(known)
            self.network.swap(node)
        self.network.put_node(node)
        self._note(node)

    def sourced(self, node: GraphNode, *, nodes: Iterable[str] = (), records: Iterable[str] = ()) -> GraphNode:
        """The node with more sources, as it is in the network now.

        A record is one query or answer: where its words were amended, the node of those before loses it. An id that
        already means a node goes on meaning that.
        """
        records = tuple(records)
        if node.type in _RECORDED:
            for record_id in records:
                self._disown(record_id, but=node.id)
        merged = joined(node.source_node_ids, (one for one in nodes if self.found(one) is None))
        sourced = replace(node, source_node_ids=merged, source_record_ids=joined(node.source_record_ids, records))
        self.put(sourced)
        return sourced

    def relate(self, node: GraphNode) -> None:
        """Find anew what a query of the network is similar to, because its words are others."""
        for edge in tuple(self.network.edges_of(node.id)):
            if edge.type is EdgeType.SIMILAR_TO:
                self.network.remove_edge((edge.from_id, edge.type, edge.to_id))
        vector = self._embedder.embed(kept(node.text or ""))
        self.index.add(node.id, vector)
        near = self.index.near(vector, self._config.tau_sim)
        self._link_similar(node.id, [one for one in near if one[0] != node.id], node.last_access)

    def drop(self, node_id: str) -> None:
        """Remove a node with its edges, and what was looked up by it."""
        node = self.network.nodes[node_id]
        self.network.remove_node(node_id)
        self.index.remove(node_id)
        self._forget(node)

    def take(self, contents: GraphContents) -> None:
        """Add stored nodes and edges, or bring them up to date: the objects themselves, of which there may be 50,000.
        Vectors of another embedder are made anew."""
        queries = [node for node in contents.nodes if node.type is NodeType.QUERY]
        self.index.add_all(zip((node.id for node in queries), self._vectors(queries, contents), strict=True))
        with uncollected():
            for node in contents.nodes:
                node.embedding = None  # the index has it
            if not self.network.nodes:
                self.network.fill(contents.nodes, contents.edges)
                for node in contents.nodes:
                    self._note(node)
                return
            for node in contents.nodes:
                self.put(node)
            for edge in contents.edges:
                self.network.put_edge(edge)

    def _note(self, node: GraphNode) -> None:
        for merged_id in node.source_node_ids:
            self._anchors[merged_id] = node.id
        if node.type in _RECORDED:
            for record_id in node.source_record_ids:
                self._of_record[record_id] = node.id

    def _forget(self, node: GraphNode) -> None:
        for merged_id in node.source_node_ids:
            if self._anchors.get(merged_id) == node.id:
                del self._anchors[merged_id]
        for record_id in node.source_record_ids:
            if self._of_record.get(record_id) == node.id:
                del self._of_record[record_id]

    def _disown(self, record_id: str, *, but: str) -> None:
        owner = self.network.nodes.get(self._of_record.get(record_id, ""))
        if owner is not None and owner.id != but:
            others = tuple(one for one in owner.source_record_ids if one != record_id)
            self.put(replace(owner, source_record_ids=others))

    def _met(self, known: GraphNode, at_ms: int) -> GraphNode:
        known.weights.gain(repeat=1)
        known.last_access = max(known.last_access, at_ms)
        self.network.put_node(known)
        return known

    def _made(
        self,
        type: NodeType,  # noqa: A002 - the field's name
        text: str,
        key: str,
        at_ms: int,
        keep: Collection[str],
    ) -> GraphNode:
        """A new node with its similarity edges, or the near one that the settings have it merged into."""
        node_id = f"{type}_{key}"
        vector = self._embedder.embed(kept(text)) if type is NodeType.QUERY else None
        near = self.index.near(vector, self._config.tau_sim) if vector is not None else []
        if near and self._config.merge_near_duplicates and near[0][1] >= self._config.tau_dup:
            return self.sourced(self._met(self.network.node(near[0][0]), at_ms), nodes=(node_id,))
        self._make_room(keep)
        node = GraphNode(
            id=node_id,
            type=type,
            created_at=at_ms,
            last_access=at_ms,
            text=kept(text),
            canonical_key=key,
        )
        self.put(node)
        if vector is not None:
            self.index.add(node_id, vector)
            # Making room may have removed some.
            self._link_similar(node_id, [one for one in near if one[0] in self.network.nodes], at_ms)
        return node

    def _link_similar(self, node_id: str, near: Sequence[tuple[str, float]], at_ms: int) -> None:
        """Link a new query to those near it, nearest first, so that the edges of the same queries are the same in
        whatever order they came. In a graph that is nearly full of edges, where those go anyway, to the nearest alone.
        """
        if len(self.network.edges) >= _CROWDED * self._config.max_edges:
            near = near[:MAX_SIMILAR]
        for place, (other_id, similarity) in enumerate(near):
            farthest = self.network.farthest_similar(other_id)
            is_among = farthest is None or (-similarity, node_id) < farthest
            if place >= MAX_SIMILAR and not is_among:
                continue
            is_linked = self.linked(node_id, other_id, EdgeType.SIMILAR_TO, similarity, at_ms=at_ms)
            if is_linked and is_among and farthest is not None:
                self._part(other_id, farthest[1])

    def _part(self, node_id: str, displaced_id: str) -> None:
        """Unlink two queries, of which the first has nearer ones now, unless it is among the nearest of the second."""
        first, second = sorted((node_id, displaced_id))
        edge = self.network.edge((first, EdgeType.SIMILAR_TO, second))
        farthest = self.network.farthest_similar(displaced_id)
        if edge is not None and farthest is not None and (-edge.weight, node_id) > farthest:
            self.network.remove_edge((first, EdgeType.SIMILAR_TO, second))

    def _check_links(self, node: GraphNode | None, linked_from: Mapping[str, EdgeType]) -> None:
        """Raises, before anything is made, where the links that a node is to get could not be."""
        needed = 0
        for from_id, edge_type in linked_from.items():
            if node is not None and node.id == from_id:
                raise InvalidInput(f"{from_id!r} cannot be linked to itself")
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
        return self._embedder.embed_all([kept(node.text or "") for node in queries])

    def _make_room(self, keep: Collection[str]) -> None:
        if len(self.network.nodes) < self._config.max_nodes:
            return
        if self.before_eviction is not None:
            self.before_eviction()
        kept = {node.id for node in map(self.found, keep) if node is not None}
        victims = nodes_to_evict(self.network, self._config, now_ms=self._now_ms(), keep=kept)
        if len(self.network.nodes) - len(victims) >= self._config.max_nodes:
            raise GraphFull(
                f"the graph has its {self._config.max_nodes:,} nodes and all are protected; "
                "raise max_nodes or unpin some"
            )
        for node_id in victims:
            self.drop(node_id)


def edges_full(config: GraphConfig) -> GraphFull:
    """The refusal of an edge that there is no room for."""
    return GraphFull(
        f"the graph has its {config.max_edges:,} edges and all are protected; raise max_edges or unpin some nodes"
    )


def check_text(text: str) -> None:
    """Raises InvalidInput for a text that no node can have: blank, too long, or not Unicode."""
    if not checked_text(text, "text", max_bytes=MAX_TEXT_BYTES).strip():
        raise InvalidInput("text is blank; send words")


def kept(text: str) -> str:
    """What a node keeps of a text; of that again, all of it."""
    return text if len(text) <= KEPT_TEXT_CHARS else f"{text[: KEPT_TEXT_CHARS - 1]}…"


def joined(before: tuple[str, ...], more: Iterable[str]) -> tuple[str, ...]:
    """The sources, each once, oldest first: of more than `MAX_SOURCES` the first and the newest."""
    sources = tuple(dict.fromkeys((*before, *more)))
    return sources if len(sources) <= MAX_SOURCES else (sources[0], *sources[1 - MAX_SOURCES :])
