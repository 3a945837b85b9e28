"""Invariants of a graph after random changes, and of a copy that only applied the changes."""

from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kalito_mcp.domain.graph import (
    EdgeKey,
    EdgeType,
    FeedbackLabel,
    GraphContents,
    GraphEdge,
    GraphNode,
    GraphState,
    NodeType,
    NodeWeights,
)
from kalito_mcp.domain.sleep import (
    SleepCycleTrigger,
)
from kalito_mcp.errors import GraphFull, InvalidInput, RecordNotFound
from kalito_mcp.graph.canonical import canonical_key
from kalito_mcp.graph.store import GraphStore
from tests.graph.graphs import graph_of, query_id, seen, sleeping
from tests.scripted import ScriptedClock

TEXTS = [f"what does the night train to {city} cost {when}" for city in ("Oslo", "Turin") for when in range(2019, 2026)]
TEXTS += ["How do I bake bread?", "how do i bake bread", "!?", "\u200b", "x" * 1_200, "東京への夜行列車"]
RECORDS = [f"msg_{number}" for number in range(8)]
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "max_clusters": st.integers(0, 3),
        "max_inspect": st.integers(0, 12),
        "min_cluster_size": st.integers(2, 4),
        "similarity_threshold": st.sampled_from([0.3, 0.75, 0.9, 1.0]),
        "min_rank": st.sampled_from([0.0, 0.3, 1.0]),
        "summary_max_length": st.integers(1, 50),
        "cooldown_ms": st.sampled_from([0, 60_000]),
    },
)
QUERIES = st.sampled_from(TEXTS)
MAYBE_RECORD = st.none() | st.sampled_from(RECORDS)
DELTAS = st.floats(-1e12, 1e12)


class AnyUse(RuleBasedStateMachine):
    """Anything that a graph is asked to do, in any order, in graphs that are nearly always full."""

    @initialize(
        max_nodes=st.integers(1, 12),
        max_edges=st.integers(0, 14),
        protect_min_degree=st.integers(0, 5),
        merge_near_duplicates=st.booleans(),
        diffusion=st.sampled_from([0.0, 0.1, 1.0]),
        sleeps=st.booleans(),
    )
    def open(self, sleeps: bool, **config: Any) -> None:
        self.clock = ScriptedClock()
        self.graph = graph_of(self.clock, tau_dup=0.9, half_life_min=60.0, **config)
        self.mirror = graph_of(self.clock, tau_dup=0.9, half_life_min=60.0, **config)
        self.stored_nodes: dict[str, GraphNode] = {}
        self.stored_edges: dict[EdgeKey, GraphEdge] = {}
        self.ids = {"query_0"}
        if sleeps:
            sleeping(self.graph, cooldown_ms=0)

    def anyone(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(sorted(self.ids)))

    def tried(self, does: Any, *arguments: Any, **options: Any) -> Any:
        """What is refused changes nothing; that is held by the tests of each refusal."""
        try:
            made = does(*arguments, **options)
        except (GraphFull, RecordNotFound, InvalidInput):
            return
        if isinstance(made, str):
            self.ids.add(made)

    @rule(text=QUERIES, record=MAYBE_RECORD, hours=st.integers(-3, 3))
    def upsert_query(self, text: str, record: str | None, hours: int) -> None:
        at_ms = self.clock.now_ms() + hours * 3_600_000
        self.tried(self.graph.upsert_query, text, record_id=record, at_ms=at_ms)
        self.ids.add(query_id(text))

    @rule(text=QUERIES, record=MAYBE_RECORD, data=st.data())
    def upsert_answer(self, text: str, record: str | None, data: st.DataObject) -> None:
        self.tried(self.graph.upsert_answer, self.anyone(data), text, record_id=record)

    @rule(text=st.sampled_from(["Oslo", "Turin"]), data=st.data())
    def upsert_entity(self, text: str, data: st.DataObject) -> None:
        self.tried(self.graph.upsert_entity, text, of=[self.anyone(data), self.anyone(data)], record_id="msg_1")

    @rule(label=st.sampled_from(FeedbackLabel), note=st.none() | st.just("too dear"), data=st.data())
    def record_feedback(self, label: FeedbackLabel, note: str | None, data: st.DataObject) -> None:
        self.tried(self.graph.record_feedback, self.anyone(data), label, note)

    @rule(feedback=DELTAS, repeat=DELTAS, data=st.data())
    def adjust_weights(self, feedback: float, repeat: float, data: st.DataObject) -> None:
        self.tried(self.graph.adjust_weights, self.anyone(data), feedback_delta=feedback, repeat_delta=repeat)

    @rule(is_pinned=st.booleans(), data=st.data())
    def pin(self, is_pinned: bool, data: st.DataObject) -> None:
        self.tried(self.graph.pin, self.anyone(data), is_pinned)

    @rule(kind=st.sampled_from(EdgeType), weight=st.floats(0, 3), data=st.data())
    def link(self, kind: EdgeType, weight: float, data: st.DataObject) -> None:
        self.tried(self.graph.link, self.anyone(data), self.anyone(data), kind, weight)

    @rule(options=OPTIONS, trigger=st.sampled_from(SleepCycleTrigger), force=st.booleans())
    def run_sleep_cycle(self, options: dict[str, Any], trigger: SleepCycleTrigger, force: bool) -> None:
        self.graph.run_sleep_cycle(trigger, force=force, **options)

    @rule(
        text=QUERIES,
        sources=st.lists(QUERIES.map(query_id), max_size=3, unique=True),
        records=st.lists(st.sampled_from(RECORDS), max_size=3, unique=True),
        repeat=st.floats(1, 9),
        carry_weights=st.booleans(),
        is_pinned=st.booleans(),
    )
    def merge_node(
        self, text: str, sources: list[str], records: list[str], repeat: float, carry_weights: bool, is_pinned: bool
    ) -> None:
        now_ms = self.clock.now_ms()
        node = GraphNode(
            query_id(text),
            NodeType.QUERY,
            now_ms - 5,
            now_ms,
            text,
            canonical_key(text),
            source_node_ids=tuple(sources),
            source_record_ids=tuple(records),
            weights=NodeWeights(repeat, -0.5),
            pinned=is_pinned,
        )
        self.tried(self.graph.merge_node, node, carry_weights=carry_weights)
        self.ids.update(sources)

    @rule()
    def reload(self) -> None:
        self.graph.from_snapshot(self.graph.to_snapshot())

    @rule(minutes=st.integers(0, 300))
    def wait(self, minutes: int) -> None:
        self.clock.advance(60 * minutes)

    @invariant()
    def no_edge_is_without_its_ends(self) -> None:
        ids = {node.id for node in self.graph.nodes()}
        edges = list(self.graph.edges())
        assert all({edge.from_id, edge.to_id} <= ids and edge.from_id != edge.to_id for edge in edges)
        similar = [frozenset((edge.from_id, edge.to_id)) for edge in edges if edge.type is EdgeType.SIMILAR_TO]
        assert len(set(similar)) == len(similar)

    @invariant()
    def a_degree_is_the_number_of_edges(self) -> None:
        ends = [end for edge in self.graph.edges() for end in (edge.from_id, edge.to_id)]
        for node in self.graph.nodes():
            assert node.degree == ends.count(node.id) == len(self.graph.edges_of(node.id))

    @invariant()
    def the_size_is_within_its_limits(self) -> None:
        stats = self.graph.stats()
        assert stats.nodes == len(list(self.graph.nodes())) <= self.graph.config.max_nodes
        assert stats.edges == len(list(self.graph.edges())) <= self.graph.config.max_edges

    @invariant()
    def a_snapshot_makes_the_same_graph(self) -> None:
        snapshot = self.graph.to_snapshot()
        again = GraphStore(self.graph.config, self.graph.embedder, now_ms=self.clock.now_ms)
        again.from_snapshot(snapshot)
        assert again.to_snapshot() == snapshot
        self.has_the_same_lookups(again)

    @invariant()
    def ranks_are_shares(self) -> None:
        assert all(0 <= rank <= 1 for rank, _ in self.graph.ranked())

    @invariant()
    def who_hears_of_the_changes_has_the_same_graph(self) -> None:
        changes = self.graph.drain_changes()
        self.stored_nodes |= {node.id: node for node in changes.nodes}
        self.stored_edges |= {(edge.from_id, edge.type, edge.to_id): edge for edge in changes.edges}
        for node_id in changes.removed_nodes:
            self.stored_nodes.pop(node_id, None)
        for key in changes.removed_edges:
            self.stored_edges.pop(key, None)
        nodes, edges = self.stored_nodes.values(), self.stored_edges.values()
        contents = GraphContents(
            # Copies: a graph takes over what it absorbs.
            nodes=[replace(node, weights=replace(node.weights)) for node in sorted(nodes, key=lambda node: node.id)],
            edges=[replace(edge) for edge in sorted(edges, key=lambda edge: (edge.from_id, edge.type, edge.to_id))],
            state=GraphState(embedder=self.graph.embedder_fingerprint),
        )
        self.mirror.absorb(contents)
        assert seen(self.mirror) == seen(self.graph)
        assert not self.mirror.drain_changes()
        self.has_the_same_lookups(self.mirror)

    def has_the_same_lookups(self, other: GraphStore) -> None:
        for record in RECORDS:
            assert other.node_of_record(record) == self.graph.node_of_record(record)
        for one in self.ids:
            assert other.has(one) == self.graph.has(one)
            assert not other.has(one) or other.node(one).id == self.graph.node(one).id


TestAnyUse = AnyUse.TestCase
TestAnyUse.settings = settings(stateful_step_count=25, suppress_health_check=list(HealthCheck))
