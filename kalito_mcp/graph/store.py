"""`GraphStore`: the specification's personal graph, method by method. In memory; only file methods are async.

Queries are matched by their words: equal folded texts are one node, near ones are linked. Ids are made of canonical
keys, and similarity edges run from the lesser id to the greater, so the same texts make the same graph in any order.
"""

import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import anyio

from kalito_mcp.domain.graph import (
    EdgeType,
    EmbeddingProvider,
    FeedbackLabel,
    GraphChanges,
    GraphConfig,
    GraphContents,
    GraphEdge,
    GraphNode,
    GraphStats,
    NodeType,
    SimilarQuery,
)
from kalito_mcp.domain.sleep import (
    SleepCycleConfig,
    SleepCycleOptions,
    SleepCycleReport,
    SleepCycleTrigger,
    checked_trigger,
)
from kalito_mcp.domain.validation import checked_moment
from kalito_mcp.errors import InvalidInput
from kalito_mcp.graph import detaching, feedback, sleep
from kalito_mcp.graph.files import read_json, write_json
from kalito_mcp.graph.hashing import HashingEmbedder
from kalito_mcp.graph.indexed_graph import IndexedGraph, check_text, edges_full, node_text
from kalito_mcp.graph.ranking import search_score
from kalito_mcp.graph.snapshot import dump, parse
from kalito_mcp.graph.sparse_embedder import SparseEmbedder

MAX_K: Final = 1_000
_SEARCH_DEPTH: Final = 4


def wall_clock_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class GraphStore:
    """One graph. Not safe to share between threads."""

    def __init__(
        self, config: GraphConfig | None = None, embedder: EmbeddingProvider | None = None, *,
        now_ms: Callable[[], int] = wall_clock_ms,
    ) -> None:  # fmt: skip
        self.config = config or GraphConfig()
        self.embedder: EmbeddingProvider = embedder or HashingEmbedder()
        self._embedder = SparseEmbedder(self.embedder)
        self.slept_at: int | None = None
        """When it was last consolidated."""
        self._now_ms = now_ms
        self._sleep: SleepCycleConfig | None = None
        self._graph = self._new_graph()
        self._saved: tuple[Path, int] | None = None

    @property
    def version(self) -> int:
        """Increases with every change."""
        return self._graph.network.version

    @property
    def embedder_fingerprint(self) -> str:
        """Identifies the embedder of its vectors; see `GraphState.embedder`."""
        return self._embedder.fingerprint

    # Writing

    def upsert_query(
        self, text: str, *, record_id: str | None = None, at_ms: int | None = None, key: str | None = None
    ) -> str:
        """Add a query, or count the known one as met again; the id of its node.

        `record_id` contains it. `at_ms` is when it was said, by default now. `key` is its canonical key, if known.

        Raises:
            InvalidInput: a blank text, or one of more than 524,288 bytes.
            GraphFull: the graph is full and nothing may be evicted; nothing was changed.
        """
        return self._graph.upsert(NodeType.QUERY, text, record_id=record_id, at_ms=at_ms, key=key).id

    def upsert_answer(
        self, query_id: str, text: str, *, record_id: str | None = None, at_ms: int | None = None,
        key: str | None = None,
    ) -> str:  # fmt: skip
        """Add an answer, or count the known one as met again, and link it from its query; the id of its node.

        Raises as `upsert_query` does; also RecordNotFound for an unknown query, InvalidInput for another node.
        """
        query = self._graph.get(query_id)
        if query.type is not NodeType.QUERY:
            raise InvalidInput(f"{query_id!r} is of type {query.type}; give the id of a query")
        by = {query.id: EdgeType.RESPONDED_WITH}
        return self._graph.upsert(NodeType.ANSWER, text, record_id=record_id, at_ms=at_ms, key=key, linked_from=by).id

    def upsert_entity(
        self, text: str, *, of: Iterable[str] = (), record_id: str | None = None, at_ms: int | None = None
    ) -> str:
        """Add an entity, or count the known one as met again, and link it from the nodes in `of`; the id of its node.

        Raises as `upsert_answer` does.
        """
        links = {self._graph.get(node_id).id: EdgeType.REFERS_TO_ENTITY for node_id in of}
        return self._graph.upsert(NodeType.ENTITY, text, record_id=record_id, at_ms=at_ms, linked_from=links).id

    def record_feedback(self, target_id: str, label: FeedbackLabel | str, note: str | None = None) -> str:
        """Record what the user thought of a query or an answer; the id of the feedback's node.

        `up` adds 1 to the target's feedback, `down` subtracts 1, `retry` 0.5. At most 32 similar queries, one step
        away, get `diffusion` of that, times the similarity. The same feedback again counts once more.

        Raises:
            RecordNotFound: an unknown target. InvalidInput: a target that is neither a query nor an answer, another
            label, or a note that is too long. GraphFull: no room for the node or its edge.
        """
        return feedback.record_feedback(self._graph, target_id, label, note)

    def withdraw_feedback(self, target_id: str, label: FeedbackLabel | str) -> bool:
        """Take back the newest feedback of this label on a query or an answer, with its weight; False without one.
        Raises RecordNotFound for an unknown target, InvalidInput for another type or label."""
        return feedback.withdraw_feedback(self._graph, target_id, label)

    def adjust_weights(self, node_id: str, *, feedback_delta: float = 0.0, repeat_delta: float = 0.0) -> None:
        """Add to a node's weights; `repeat` stays at least 1.

        Raises:
            RecordNotFound: an unknown node. InvalidInput: a delta that is not finite.
        """
        node = self._graph.get(node_id)
        if not (math.isfinite(feedback_delta) and math.isfinite(repeat_delta)):
            raise InvalidInput(f"feedback_delta={feedback_delta} and repeat_delta={repeat_delta} must be finite")
        node.weights.gain(repeat=repeat_delta, feedback=feedback_delta)
        self._graph.network.put_node(node)

    def pin(self, node_id: str, is_pinned: bool = True) -> None:
        """Protect a node from eviction and decay, or stop that. Raises RecordNotFound."""
        node = self._graph.get(node_id)
        node.pinned = is_pinned
        self._graph.network.put_node(node)

    def link(self, from_id: str, to_id: str, type: EdgeType | str, weight: float, *, at_ms: int | None = None) -> None:  # noqa: A002 - the specification's name
        """Link two nodes, or set the weight of their edge of this type. `similar_to` has no direction.

        Raises:
            RecordNotFound: an end is not a node. InvalidInput: both ends are one node, an unknown type, or a weight
            that is negative or not finite. GraphFull: the graph is full of edges and none may be evicted.
        """
        source, target = self._graph.get(from_id), self._graph.get(to_id)
        if type not in tuple(EdgeType):
            raise InvalidInput(f"type={type!r} is not one of {', '.join(EdgeType)}")
        if not (math.isfinite(weight) and weight >= 0):
            raise InvalidInput(f"weight={weight} must be a number of at least 0")
        if source is target:
            raise InvalidInput(f"{from_id!r} cannot be linked to itself; name two nodes")
        if at_ms is not None:
            checked_moment(at_ms, "at_ms")
        if not self._graph.link(source.id, target.id, EdgeType(type), weight, at_ms=at_ms):
            raise edges_full(self.config)

    def merge_node(self, node: GraphNode, *, carry_weights: bool, keep: Collection[str] = ()) -> str:
        """Add a node of another graph, or count the known one as met again; its id here.

        With `carry_weights` its repeats and feedback are added; without, it counts as met once. Nodes in `keep` are
        not evicted for it. Raises as `upsert_query` does.
        """
        return self._graph.merge(node, carry_weights=carry_weights, keep=keep).id

    def other_sources(self, record_ids: Collection[str], *, erased_keys: Collection[str] = ()) -> frozenset[str]:
        """The other records of the nodes that `detach_records` would change: it needs their texts."""
        return detaching.other_sources(self._graph, record_ids, erased_keys)

    def detach_records(
        self, record_ids: Collection[str], *, text_of: Mapping[str, str], erased_keys: Collection[str] = ()
    ) -> int:
        """Remove records; the number of nodes affected. See `graph/detaching.py`."""
        return detaching.detach_records(self._graph, record_ids, text_of, erased_keys)

    def keep_sources(self, text_of: Mapping[str, str]) -> None:
        """Keep of each node's records those whose text is given and supports it. See `graph/detaching.py`."""
        detaching.keep_sources(self._graph, text_of)

    # Reading

    def supported_by(self, text_of: Mapping[str, str]) -> set[str]:
        """The records whose text supports a node that lists them. See `graph/detaching.py`."""
        return detaching.supported_by(self._graph, text_of)

    def search_similar_queries(self, text: str, k: int = 10) -> list[SimilarQuery]:
        """The k queries nearest to the text, best first: by similarity, adjusted by rank and feedback.

        Near-duplicates, linked by an edge of at least `tau_dup`, are shown as the best of them, with the others' ids.
        Raises InvalidInput for a blank text, or k outside 1 to 1,000.
        """
        check_text(text)
        if not 1 <= k <= MAX_K:
            raise InvalidInput(f"k={k} is outside 1 to {MAX_K:,}")
        depth = _SEARCH_DEPTH * k
        while True:
            candidates = self._scored(text, depth)
            found = self._graph.collapse_duplicates(candidates)
            if len(found) >= k or len(candidates) < depth:
                return found[:k]
            # Most of them are near-duplicates of others: look further.
            depth *= _SEARCH_DEPTH

    def node(self, node_id: str) -> GraphNode:
        """A copy of the node, or of the one it was merged into, with its embedding. Raises RecordNotFound."""
        return self._graph.copy(self._graph.get(node_id))

    def nodes(self) -> Iterator[GraphNode]:
        """Copies of all nodes, in insertion order."""
        return (self._graph.copy(node) for node in tuple(self._graph.network.nodes.values()))

    def edges(self) -> Iterator[GraphEdge]:
        """Copies of all edges, in insertion order."""
        return (replace(edge) for edge in tuple(self._graph.network.edges))

    def edges_of(self, node_id: str) -> list[GraphEdge]:
        """Copies of the node's edges, in and out, in insertion order. Raises RecordNotFound."""
        return [replace(edge) for edge in self._graph.network.edges_of(self._graph.get(node_id).id)]

    def has(self, node_id: str) -> bool:
        """Whether the node is here, or one that it was merged into."""
        return self._graph.find(node_id) is not None

    def node_of_record(self, record_id: str) -> str | None:
        """The id of the query or answer made from a record, if any."""
        return self._graph.node_of_record(record_id)

    def rank(self, node_id: str) -> float:
        """The node's rank now, in [0, 1]; see `graph/ranking.py`. Raises RecordNotFound."""
        return self._graph.rank(self._graph.get(node_id))

    def ranked(
        self,
        type: NodeType | None = None,  # noqa: A002 - the field's name
        *,
        at_ms: int | None = None,
    ) -> list[tuple[float, GraphNode]]:
        """All nodes, or all of one type, with their rank now or at a moment, highest first; equal ones by id."""
        nodes = [node for node in self._graph.network.nodes.values() if type in (None, node.type)]
        ranked = [(self._graph.rank(node, at_ms), node) for node in nodes]
        ranked.sort(key=lambda pair: (-pair[0], pair[1].id))
        return [(value, self._graph.copy(node)) for value, node in ranked]

    def stats(self) -> GraphStats:
        """How many nodes and edges there are."""
        return self._graph.network.stats()

    # Sleep cycle

    def configure_sleep_cycle(self, config: SleepCycleConfig) -> None:
        """Set the summarizer, the bounds and the listener of reports. Without this no cycle runs."""
        self._sleep = config

    def plan_sleep_cycle(
        self, trigger: SleepCycleTrigger | str = SleepCycleTrigger.INTERVAL, **options: Any
    ) -> sleep.SleepPlan:
        """Plan what a sleep cycle would merge now. Changes nothing and calls no summarizer.

        `options` override the configured `SleepCycleOptions`. Raises InvalidInput for an unknown trigger or option.
        """
        trigger = checked_trigger(trigger)
        chosen = sleep.override_options(self._sleep_defaults(), options)
        return sleep.plan_cycle(self._graph, self.config, chosen, trigger, now_ms=self._now_ms())

    def apply_sleep_plan(self, plan: sleep.SleepPlan, summaries: Mapping[str, str]) -> SleepCycleReport:
        """Merge as planned. `summaries` are by anchor; a missing one becomes the anchor's own text.

        Raises:
            Conflict: the graph has changed since the plan; nothing was merged.
        """
        report = sleep.apply_plan(self._graph, plan, summaries)
        self.slept_at = plan.timestamp
        if self._sleep is not None:
            sleep.notify(self._sleep, report)
        return report

    def is_rested(self, **options: Any) -> bool:
        """Whether the last cycle was less than `cooldown_ms` ago."""
        cooldown_ms = sleep.override_options(self._sleep_defaults(), options).cooldown_ms
        return self.slept_at is not None and self._now_ms() - self.slept_at < cooldown_ms

    def run_sleep_cycle(
        self, trigger: SleepCycleTrigger | str = SleepCycleTrigger.INTERVAL, *, force: bool = False, **options: Any
    ) -> SleepCycleReport | None:
        """Consolidate now; None if no cycle is configured, or the last one is too recent and `force` is off.

        If the summarizer raises or returns nothing, the anchor keeps its own text; a long summary is cut.
        """
        trigger = checked_trigger(trigger)
        if self._sleep is None or (self.is_rested(**options) and not force):
            return None
        plan = self.plan_sleep_cycle(trigger, **options)
        return self.apply_sleep_plan(plan, sleep.summarize_clusters(plan, self._sleep.summarizer))

    # Storing

    def drain_changes(self) -> GraphChanges:
        """The changes since the last call; from now on they count as stored."""
        changes = self._graph.network.drain()
        for node in changes.nodes:
            node.embedding = self._graph.vector(node.id)
        return changes

    def absorb(self, contents: GraphContents) -> None:
        """Become the stored graph.

        This does not count as a change. The contents belong to this graph from now on: they are not copied.
        """
        self._become(contents)
        self.slept_at = contents.state.slept_at
        self._graph.network.mark_stored()

    def to_snapshot(self) -> dict[str, Any]:
        """The whole graph, JSON-ready: `{graph: {nodes, edges}, embedder, canonical_meta}`."""
        return dump(self.nodes(), self.edges(), self._embedder)

    def from_snapshot(self, data: Mapping[str, Any]) -> None:
        """Become the snapshot's graph.

        Raises:
            InvalidInput: not a snapshot, of another version or embedder, too large for this graph, or an edge has no
            node at an end; the graph is unchanged.
        """
        contents = parse(data, self._embedder)
        if len(contents.nodes) > self.config.max_nodes or len(contents.edges) > self.config.max_edges:
            raise InvalidInput(
                f"the snapshot has {len(contents.nodes):,} nodes and {len(contents.edges):,} edges; this graph takes "
                f"{self.config.max_nodes:,} and {self.config.max_edges:,}: raise max_nodes and max_edges"
            )
        self._become(contents)

    async def save_to_file(self, file: Path | str, *, only_if_dirty: bool = False) -> bool:
        """Write the snapshot, whole or not at all; whether it was written.

        With `only_if_dirty`, nothing is written if this file was the last one written or read and nothing has changed.
        """
        path, version = Path(file), self._graph.network.version
        if only_if_dirty and self._saved == (path, version) and await anyio.Path(path).exists():
            return False
        await write_json(path, self.to_snapshot())
        self._saved = (path, version)
        return True

    @staticmethod
    async def load_from_file(file: Path | str, store: "GraphStore") -> None:
        """Read a file into the store, in place of its graph.

        Raises:
            InvalidInput: as `from_snapshot`, or the file cannot be read or is not JSON.
        """
        store.from_snapshot(await read_json(Path(file)))
        store._saved = (Path(file), store._graph.network.version)

    # Internals

    def _new_graph(self) -> IndexedGraph:
        graph = IndexedGraph(self.config, self._embedder, self._now_ms)
        graph.before_eviction = lambda: self.run_sleep_cycle(SleepCycleTrigger.EVICTION)
        return graph

    def _become(self, contents: GraphContents) -> None:
        graph = self._new_graph()
        graph.load(contents)
        graph.network.mark_replaced(self._graph.network)
        self._graph = graph

    def _sleep_defaults(self) -> SleepCycleOptions:
        return self._sleep.defaults if self._sleep is not None else SleepCycleOptions()

    def _scored(self, text: str, count: int) -> list[SimilarQuery]:
        found: list[SimilarQuery] = []
        for node_id, similarity in self._graph.index.nearest(self._embedder.embed(node_text(text)), count):
            node = self._graph.network.nodes[node_id]
            score = search_score(similarity, rank=self._graph.rank(node), feedback=node.weights.feedback)
            found.append(SimilarQuery(node.id, score, similarity, node.text, node.canonical_key))
        return sorted(found, key=lambda one: (-one.score, one.id))
