"""`GraphStore`: the specification's personal graph, method by method. In memory and synchronous; only its files wait.

Queries are matched by what they say: equal folded texts are one node, near ones are linked. Ids are made of
canonical keys, and similarity edges run from the lesser id to the greater, so the same texts make the same graph in
whatever order they come.
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
from kalito_mcp.domain.sleep import SleepCycleConfig, SleepCycleOptions, SleepCycleReport, SleepCycleTrigger
from kalito_mcp.domain.validation import checked_moment, checked_text
from kalito_mcp.errors import InvalidInput
from kalito_mcp.graph import sleep
from kalito_mcp.graph.canonical import canonical_key
from kalito_mcp.graph.detaching import detached, sources_beside
from kalito_mcp.graph.files import read_json, write_json
from kalito_mcp.graph.hashing import HashingEmbedder
from kalito_mcp.graph.indexed_graph import MAX_TEXT_BYTES, Keeper, check_text, edges_full, kept
from kalito_mcp.graph.ranking import FEEDBACK_DELTA, search_score
from kalito_mcp.graph.snapshot import dumped, parsed

MAX_K: Final = 1_000
_SEARCH_DEPTH: Final = 4


def wall_clock_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class GraphStore:
    """One graph. Not safe to share between threads."""

    def __init__(
        self,
        config: GraphConfig | None = None,
        embedder: EmbeddingProvider | None = None,
        *,
        now_ms: Callable[[], int] = wall_clock_ms,
    ) -> None:
        self.config = config or GraphConfig()
        self.embedder: EmbeddingProvider = embedder or HashingEmbedder()
        self.slept_at: int | None = None
        """When it was last consolidated."""
        self._now_ms = now_ms
        self._sleep: SleepCycleConfig | None = None
        self._keeper = self._new_keeper()
        self._saved: tuple[Path, int] | None = None

    @property
    def version(self) -> int:
        """Moves with every change."""
        return self._keeper.network.version

    # What is remembered

    def upsert_query(self, text: str, *, record_id: str | None = None, at_ms: int | None = None) -> str:
        """The id of the query's node, which is made, or met once more.

        `record_id` is the record that holds it, `at_ms` when that was said; now unless given.

        Raises:
            InvalidInput: a blank text, or one of more than 524,288 bytes.
            GraphFull: no room, and nothing that may go; nothing was changed.
        """
        return self._keeper.upsert(NodeType.QUERY, text, record_id=record_id, at_ms=at_ms).id

    def upsert_answer(self, query_id: str, text: str, *, record_id: str | None = None, at_ms: int | None = None) -> str:
        """The id of the answer's node, linked from its query by `responded_with`.

        Raises as `upsert_query` does; RecordNotFound for an unknown query, InvalidInput for a node that is none, and
        GraphFull also where there is no room for the edge.
        """
        query = self._keeper.known(query_id)
        if query.type is not NodeType.QUERY:
            raise InvalidInput(f"{query_id!r} is of type {query.type}; answer a query")
        links = {query.id: EdgeType.RESPONDED_WITH}
        return self._keeper.upsert(NodeType.ANSWER, text, record_id=record_id, at_ms=at_ms, linked_from=links).id

    def upsert_entity(
        self, text: str, *, of: Iterable[str] = (), record_id: str | None = None, at_ms: int | None = None
    ) -> str:
        """The id of the entity's node, linked from the nodes in `of` by `refers_to_entity`. Raises as `upsert_answer`
        does."""
        links = {self._keeper.known(node_id).id: EdgeType.REFERS_TO_ENTITY for node_id in of}
        return self._keeper.upsert(NodeType.ENTITY, text, record_id=record_id, at_ms=at_ms, linked_from=links).id

    def record_feedback(self, target_id: str, label: FeedbackLabel | str, note: str | None = None) -> str:
        """The id of the feedback's node, linked from its target; the same feedback again counts once more.

        `up` adds 1 to the target's feedback, `down` takes 1, `retry` a half. Similar queries get `diffusion` of
        that, times the similarity: one step far, to at most 32 of them.

        Raises:
            RecordNotFound: an unknown target. InvalidInput: a target that is neither a query nor an answer, another
            label, or a note that is too long. GraphFull: as `upsert_answer`.
        """
        target = self._keeper.known(target_id)
        if target.type not in (NodeType.QUERY, NodeType.ANSWER):
            raise InvalidInput(f"{target_id!r} is of type {target.type}; give feedback on a query or an answer")
        if label not in tuple(FeedbackLabel):
            raise InvalidInput(f"label={label!r} is not one of {', '.join(FeedbackLabel)}")
        label = FeedbackLabel(label)
        if note:
            checked_text(note, "note", max_bytes=MAX_TEXT_BYTES)
        text = f"{label}: {note}" if note else str(label)
        key = canonical_key(f"{target.id} {text}")
        links = {target.id: EdgeType.HAS_FEEDBACK}
        feedback = self._keeper.upsert(NodeType.FEEDBACK, text, key=key, linked_from=links)
        delta = FEEDBACK_DELTA[label]
        self.adjust_weights(target.id, feedback_delta=delta)
        # Known anew: making room may have merged the target into another.
        self._keeper.diffuse(self._keeper.known(target.id), delta)
        return feedback.id

    def adjust_weights(self, node_id: str, *, feedback_delta: float = 0.0, repeat_delta: float = 0.0) -> None:
        """Add to a node's weights; `repeat` stays at least 1.

        Raises:
            RecordNotFound: an unknown node. InvalidInput: a delta that is not finite.
        """
        node = self._keeper.known(node_id)
        if not (math.isfinite(feedback_delta) and math.isfinite(repeat_delta)):
            raise InvalidInput(f"feedback_delta={feedback_delta} and repeat_delta={repeat_delta} must be finite")
        node.weights.gain(repeat=repeat_delta, feedback=feedback_delta)
        self._keeper.network.put_node(node)

    def pin(self, node_id: str, is_pinned: bool = True) -> None:
        """Keep a node from eviction and decay, or no longer. Raises RecordNotFound."""
        node = self._keeper.known(node_id)
        node.pinned = is_pinned
        self._keeper.network.put_node(node)

    def link(self, from_id: str, to_id: str, type: EdgeType | str, weight: float, *, at_ms: int | None = None) -> None:  # noqa: A002 - the specification's name
        """Link two nodes, or set the weight of the edge that they have. `similar_to` has no direction.

        Raises:
            RecordNotFound: an end is no node. InvalidInput: both ends are one, an unknown type, or a weight that is
            negative or not finite. GraphFull: no room for an edge, and none that may go.
        """
        source, target = self._keeper.known(from_id), self._keeper.known(to_id)
        if type not in tuple(EdgeType):
            raise InvalidInput(f"type={type!r} is not one of {', '.join(EdgeType)}")
        if not (math.isfinite(weight) and weight >= 0):
            raise InvalidInput(f"weight={weight} must be a number of at least 0")
        if source is target:
            raise InvalidInput(f"{from_id!r} cannot be linked to itself")
        if at_ms is not None:
            checked_moment(at_ms, "at_ms")
        if not self._keeper.linked(source.id, target.id, EdgeType(type), weight, at_ms=at_ms):
            raise edges_full(self.config)

    def merge_node(self, node: GraphNode, *, carry_weights: bool, keep: Collection[str] = ()) -> str:
        """Take over a node of another graph: a new one here, or the one that says the same, met once more.

        With `carry_weights` its repeats and feedback are added; without, it counts as met once. `keep` is not evicted
        for it. Raises as `upsert_query` does.
        """
        return self._keeper.merge(node, carry_weights=carry_weights, keep=keep).id

    def sources_beside(self, record_ids: Collection[str], *, erased_keys: Collection[str] = ()) -> frozenset[str]:
        """The other records of the nodes that `detach_records` would touch: it wants the texts of those."""
        return sources_beside(self._keeper, record_ids, erased_keys)

    def detach_records(
        self, record_ids: Collection[str], *, text_of: Mapping[str, str], erased_keys: Collection[str] = ()
    ) -> int:
        """Take records out; how many nodes that touched. See `graph/detaching.py`."""
        return detached(self._keeper, record_ids, text_of, erased_keys)

    # What is found

    def search_similar_queries(self, text: str, k: int = 10) -> list[SimilarQuery]:
        """The k queries that are nearest to the text, best first: by similarity, lifted by rank and feedback.

        Of those that are near-duplicates, by an edge of at least `tau_dup`, the best is shown, with the others' ids.

        Raises:
            InvalidInput: a blank text, or k outside 1 to 1,000.
        """
        check_text(text)
        if not 1 <= k <= MAX_K:
            raise InvalidInput(f"k={k} is outside 1 to {MAX_K:,}")
        depth = _SEARCH_DEPTH * k
        while True:
            candidates = self._scored(text, depth)
            found = self._keeper.collapsed(candidates)
            if len(found) >= k or len(candidates) < depth:
                return found[:k]
            # Most of them are shown as others: look further.
            depth *= _SEARCH_DEPTH

    def node(self, node_id: str) -> GraphNode:
        """A copy of the node, its embedding included. The id of a merged one gives what it was merged into.

        Raises:
            RecordNotFound: no such node.
        """
        return self._keeper.copy(self._keeper.known(node_id))

    def nodes(self) -> Iterator[GraphNode]:
        """Copies of all nodes, in the order in which they came."""
        return (self._keeper.copy(node) for node in tuple(self._keeper.network.nodes.values()))

    def edges(self) -> Iterator[GraphEdge]:
        """Copies of all edges, in the order in which they came."""
        return (replace(edge) for edge in tuple(self._keeper.network.edges))

    def edges_of(self, node_id: str) -> list[GraphEdge]:
        """Copies of the node's edges, in and out, in the order in which they came. Raises RecordNotFound."""
        return [replace(edge) for edge in self._keeper.network.edges_of(self._keeper.known(node_id).id)]

    def has(self, node_id: str) -> bool:
        """Whether there is such a node, or one that it was merged into."""
        return self._keeper.found(node_id) is not None

    def node_of_record(self, record_id: str) -> str | None:
        """The query or answer that a record is; None where the graph has none of it."""
        return self._keeper.of_record(record_id)

    def rank(self, node_id: str) -> float:
        """The node's rank now, in [0, 1]; see `graph/ranking.py`. Raises RecordNotFound."""
        return self._keeper.rank(self._keeper.known(node_id))

    def ranked(
        self,
        type: NodeType | None = None,  # noqa: A002 - the field's name
        *,
        at_ms: int | None = None,
    ) -> list[tuple[float, GraphNode]]:
        """Every node, or every one of a type, with its rank now or at a moment, highest first; equal ones by id."""
        nodes = [node for node in self._keeper.network.nodes.values() if type in (None, node.type)]
        ranked = [(self._keeper.rank(node, at_ms), node) for node in nodes]
        ranked.sort(key=lambda pair: (-pair[0], pair[1].id))
        return [(value, self._keeper.copy(node)) for value, node in ranked]

    def stats(self) -> GraphStats:
        """How many nodes and edges there are."""
        return self._keeper.network.stats()

    # How it sleeps

    def configure_sleep_cycle(self, config: SleepCycleConfig) -> None:
        """Set the summarizer, the bounds and who hears of reports. Without it no cycle runs."""
        self._sleep = config
        self._keeper.before_eviction = self._sleep_before_eviction

    def plan_sleep_cycle(
        self, trigger: SleepCycleTrigger | str = SleepCycleTrigger.INTERVAL, **options: Any
    ) -> sleep.SleepPlan:
        """What a sleep cycle would merge now; changes nothing, and asks nobody for a summary.

        `options` are those of `SleepCycleOptions`, in place of the configured ones. Raises InvalidInput.
        """
        if trigger not in tuple(SleepCycleTrigger):
            raise InvalidInput(f"trigger={trigger!r} is not one of {', '.join(SleepCycleTrigger)}")
        settled = sleep.settled(self._sleep_defaults(), options)
        return sleep.planned(self._keeper, self.config, settled, SleepCycleTrigger(trigger), now_ms=self._now_ms())

    def apply_sleep_plan(self, plan: sleep.SleepPlan, summaries: Mapping[str, str]) -> SleepCycleReport:
        """Merge as planned; `summaries` by anchor, whose own text stands in for a missing one.

        Raises:
            Conflict: the graph has changed since the plan; nothing was merged.
        """
        report = sleep.applied(self._keeper, plan, summaries)
        self.slept_at = plan.timestamp
        if self._sleep is not None:
            sleep.told(self._sleep, report)
        return report

    def is_rested(self, **options: Any) -> bool:
        """Whether the last cycle is less than `cooldown_ms` ago."""
        cooldown_ms = sleep.settled(self._sleep_defaults(), options).cooldown_ms
        return self.slept_at is not None and self._now_ms() - self.slept_at < cooldown_ms

    def run_sleep_cycle(
        self, trigger: SleepCycleTrigger | str = SleepCycleTrigger.INTERVAL, *, force: bool = False, **options: Any
    ) -> SleepCycleReport | None:
        """Consolidate now; None where no cycle is configured, or the last one is not long enough ago.

        A summarizer that raises, or gives nothing, is replaced by the anchor's own text; one that gives too much is
        cut.
        """
        if self._sleep is None or (self.is_rested(**options) and not force):
            return None
        plan = self.plan_sleep_cycle(trigger, **options)
        return self.apply_sleep_plan(plan, sleep.summaries(plan, self._sleep.summarizer))

    # How it is kept

    def drain_changes(self) -> GraphChanges:
        """What changed since the last call; from now on that counts as stored."""
        changes = self._keeper.network.drain()
        for node in changes.nodes:
            node.embedding = self._keeper.vector(node.id)
        return changes

    def absorb(self, contents: GraphContents, *, is_whole: bool) -> None:
        """Take over what is stored: in place of everything, or what changed since. It does not count as a change, and
        the contents belong to this graph from then on."""
        if is_whole:
            self._become(contents)
        else:
            self._keeper.take(contents)
        self.slept_at = contents.state.slept_at
        self._keeper.network.settle()

    def to_snapshot(self) -> dict[str, Any]:
        """The whole graph, JSON-ready: `{graph: {nodes, edges}, embedder, canonical_meta}`."""
        return dumped(self.nodes(), self.edges(), self.embedder)

    def from_snapshot(self, data: Mapping[str, Any]) -> None:
        """Become the snapshot's graph.

        Raises:
            InvalidInput: not a snapshot, of another version or embedder, larger than the graph may be, or with edges
            that lead nowhere; the graph is as it was.
        """
        contents = parsed(data, self.embedder)
        if len(contents.nodes) > self.config.max_nodes or len(contents.edges) > self.config.max_edges:
            raise InvalidInput(
                f"the snapshot has {len(contents.nodes):,} nodes and {len(contents.edges):,} edges; this graph takes "
                f"{self.config.max_nodes:,} and {self.config.max_edges:,}: raise max_nodes and max_edges"
            )
        self._become(contents)

    async def save_to_file(self, file: Path | str, *, only_if_dirty: bool = False) -> bool:
        """Write the snapshot, whole or not at all; whether it was written.

        With `only_if_dirty`, the file that was written or read last is left alone while nothing has changed since.
        """
        path, version = Path(file), self._keeper.network.version
        if only_if_dirty and self._saved == (path, version) and await anyio.Path(path).exists():
            return False
        await write_json(path, self.to_snapshot())
        self._saved = (path, version)
        return True

    @staticmethod
    async def load_from_file(file: Path | str, store: "GraphStore") -> None:
        """Make the store the file's graph.

        Raises:
            InvalidInput: as `from_snapshot`, or the file cannot be read or is no JSON.
        """
        store.from_snapshot(await read_json(Path(file)))
        store._saved = (Path(file), store._keeper.network.version)

    # Within

    def _new_keeper(self) -> Keeper:
        keeper = Keeper(self.config, self.embedder, self._now_ms)
        if self._sleep is not None:
            keeper.before_eviction = self._sleep_before_eviction
        return keeper

    def _become(self, contents: GraphContents) -> None:
        keeper = self._new_keeper()
        keeper.take(contents)
        keeper.network.replaced(self._keeper.network)
        self._keeper = keeper

    def _sleep_defaults(self) -> SleepCycleOptions:
        return self._sleep.defaults if self._sleep is not None else SleepCycleOptions()

    def _sleep_before_eviction(self) -> None:
        self.run_sleep_cycle(SleepCycleTrigger.EVICTION)

    def _scored(self, text: str, count: int) -> list[SimilarQuery]:
        found: list[SimilarQuery] = []
        for node_id, similarity in self._keeper.index.nearest(self.embedder.embed(kept(text)), count):
            node = self._keeper.network.nodes[node_id]
            score = search_score(similarity, rank=self._keeper.rank(node), feedback=node.weights.feedback)
            found.append(SimilarQuery(node.id, score, similarity, node.text, node.canonical_key))
        return sorted(found, key=lambda one: (-one.score, one.id))
