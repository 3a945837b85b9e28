"""Every type, method, option and note of graph-memory-api about the graph, through the public names."""

import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pytest

import kalito_mcp
from kalito_mcp import GraphConfig, GraphStore
from kalito_mcp.domain.graph import (
    EdgeType,
    EmbeddingProvider,
    FeedbackLabel,
    GraphEdge,
    GraphNode,
    NodeType,
    SimilarQuery,
)
from kalito_mcp.domain.sleep import (
    SleepCycleClusterReport,
    SleepCycleConfig,
    SleepCycleOptions,
    SleepCycleReport,
    SleepCycleSummarizer,
    SleepCycleTrigger,
)
from kalito_mcp.domain.sparse_vectors import SparseVector
from kalito_mcp.errors import InvalidInput
from kalito_mcp.graph.canonical import canonical_key, canonical_meta, normalize
from kalito_mcp.graph.hashing import HashingEmbedder
from tests.scripted import START_MS, ScriptedClock

TRAIN = [f"what does the night train to Oslo cost in {year}" for year in range(2019, 2023)]


class FirstWords:
    """A summarizer as the specification has it."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[str], int]] = []

    def summarize(self, texts: Sequence[str], max_length: int) -> str:
        self.asked.append((list(texts), max_length))
        return "what the night train to Oslo costs"


class LettersEmbedder:
    """An embedder of one's own: how often each letter is there, from a state that it can hand over."""

    def __init__(self, shift: int = 0) -> None:
        self.shift = shift

    @property
    def fingerprint(self) -> str:
        return f"letters:{self.shift}"

    def embed(self, text: str) -> SparseVector:
        return SparseVector.of({ord(letter) + self.shift: text.count(letter) for letter in set(text)})

    def embed_all(self, texts: Sequence[str]) -> list[SparseVector]:
        return [self.embed(text) for text in texts]

    def export_state(self) -> dict[str, Any]:
        return {"kind": "letters", "shift": self.shift}

    def import_state(self, state: dict[str, Any]) -> None:
        self.shift = state["shift"]


class OnlyEmbeds:
    """An embedder with nothing but `embed`: how often each letter is there, in a shape of its vectors."""

    def __init__(self, shape: Callable[[dict[int, float]], Any]) -> None:
        self.shape = shape

    def embed(self, text: str) -> Any:
        return self.shape({ord(letter): float(text.count(letter)) for letter in set(text)})


SHAPES: dict[str, Callable[[dict[int, float]], Any]] = {
    "list": lambda counts: [counts.get(code, 0.0) for code in range(128)],
    "map": dict,
    "sparse": SparseVector.of,
}


def graph_of(clock: ScriptedClock, texts: Sequence[str] = (), **config: Any) -> GraphStore:
    graph = GraphStore(GraphConfig(**config), now_ms=clock.now_ms)
    for text in texts:
        graph.upsert_query(text)
    return graph


def report_of(graph: GraphStore, **options: Any) -> SleepCycleReport:
    report = graph.run_sleep_cycle(**options)
    assert report is not None
    return report


def names(kind: type) -> set[str]:
    return {one.name for one in fields(kind)}


# Types


def test_there_are_four_types_of_nodes() -> None:
    """graph-memory-api, Types, NodeType: query, answer, feedback, entity."""
    assert [str(one) for one in NodeType] == ["query", "answer", "feedback", "entity"]


def test_each_type_of_node_is_made_by_its_method(clock: ScriptedClock) -> None:
    """graph-memory-api, Types, NodeType: each of the four is there after its call."""
    graph = graph_of(clock)
    query = graph.upsert_query("to Oslo")
    made = [
        query,
        graph.upsert_answer(query, "By train."),
        graph.record_feedback(query, "up"),
        graph.upsert_entity("Oslo"),
    ]
    assert [graph.node(one).type for one in made] == list(NodeType)


def test_there_are_four_types_of_edges(clock: ScriptedClock) -> None:
    """graph-memory-api, Types, EdgeType: similar_to, responded_with, has_feedback, refers_to_entity."""
    assert [str(one) for one in EdgeType] == ["similar_to", "responded_with", "has_feedback", "refers_to_entity"]
    graph = graph_of(clock, TRAIN[:2])
    query = graph.upsert_query(TRAIN[0])
    graph.upsert_answer(query, "90 euros")
    graph.record_feedback(query, "up")
    graph.upsert_entity("Oslo", of=[query])
    assert {edge.type for edge in graph.edges()} == set(EdgeType)


def test_a_node_has_every_field(clock: ScriptedClock) -> None:
    """graph-memory-api, Types, BaseNode: all twelve fields, in snake_case."""
    spec = "id type text canonical_key summary source_node_ids embedding created_at last_access weights degree pinned"
    # Beyond the specification: the records that the node was met in.
    assert names(GraphNode) == {*spec.split(), "source_record_ids"}
    graph = graph_of(clock, TRAIN)
    graph.configure_sleep_cycle(SleepCycleConfig(FirstWords()))
    [cluster] = report_of(graph).clusters
    graph.pin(cluster.anchor_id)
    node = graph.node(cluster.anchor_id)
    assert (node.id, node.type, node.text) == (cluster.anchor_id, NodeType.QUERY, node.text)
    assert node.canonical_key == canonical_key(node.text or "")
    assert (node.summary, node.source_node_ids) == (cluster.summary, cluster.merged_node_ids)
    assert isinstance(node.embedding, SparseVector)
    assert (node.created_at, node.last_access) == (START_MS, START_MS)
    assert asdict(node.weights) == {"repeat": 4.0, "feedback": 0.0}
    assert (node.degree, node.pinned) == (0, True)


def test_the_optional_fields_of_a_node_are_empty_where_there_is_nothing(clock: ScriptedClock) -> None:
    """graph-memory-api, Types, BaseNode: summary, sourceNodeIds, embedding and pinned are optional."""
    graph = graph_of(clock)
    node = graph.node(graph.upsert_entity("Oslo"))
    assert (node.summary, node.source_node_ids, node.embedding, node.pinned) == (None, (), None, False)


def test_an_edge_has_every_field_and_is_named_by_its_ends(clock: ScriptedClock) -> None:
    """graph-memory-api, Types, Edge: all seven fields; the id is `from::type::to`."""
    assert {*names(GraphEdge), "id"} == {"id", "from_id", "to_id", "type", "weight", "created_at", "last_access"}
    graph = graph_of(clock, ["to Oslo"])
    [query] = graph.nodes()
    answer = graph.upsert_answer(query.id, "By train.")
    [edge] = graph.edges()
    assert edge.id == f"{edge.from_id}::{edge.type}::{edge.to_id}" == f"{query.id}::responded_with::{answer}"
    assert (edge.weight, edge.created_at, edge.last_access) == (1.0, START_MS, START_MS)


def test_a_configuration_has_every_field() -> None:
    """graph-memory-api, Types, GraphConfig: all seven fields, with the recommended thresholds as defaults."""
    spec = {
        "max_nodes",
        "max_edges",
        "half_life_min",
        "tau_dup",
        "tau_sim",
        "protect_min_degree",
        "enable_inverted_index",
    }
    assert spec < names(GraphConfig)
    config = GraphConfig()
    assert (config.max_nodes, config.max_edges, config.tau_dup, config.tau_sim) == (50_000, 200_000, 0.96, 0.75)
    assert names(GraphConfig) - spec == {"merge_near_duplicates", "diffusion"}


def test_max_nodes_and_max_edges_are_limits(clock: ScriptedClock) -> None:
    """graph-memory-api, Types, GraphConfig: maxNodes, maxEdges."""
    graph = graph_of(clock, TRAIN, max_nodes=3, max_edges=1)
    assert (graph.stats().nodes, graph.stats().edges) == (3, 1)


def test_half_life_min_is_in_minutes(clock: ScriptedClock) -> None:
    """graph-memory-api, Types, GraphConfig: halfLifeMin."""
    graph = graph_of(clock, ["bread"], half_life_min=10.0)
    [node] = graph.nodes()
    before = graph.rank(node.id)
    clock.advance(600)
    assert graph.rank(node.id) == pytest.approx(before / 2)


def test_from_tau_sim_up_queries_are_linked(clock: ScriptedClock) -> None:
    """graph-memory-api, Types, GraphConfig: tauSim is the threshold of a similar_to edge."""
    [edge] = graph_of(clock, TRAIN[:2]).edges()
    assert edge.type is EdgeType.SIMILAR_TO
    assert list(graph_of(clock, TRAIN[:2], tau_sim=edge.weight, tau_dup=1.0).edges())
    assert not list(graph_of(clock, TRAIN[:2], tau_sim=edge.weight + 1e-6, tau_dup=1.0).edges())


def test_from_tau_dup_up_queries_are_shown_as_one_and_merged_only_where_that_is_set(clock: ScriptedClock) -> None:
    """graph-memory-api, Types, GraphConfig: tauDup. Departure: it merges only with `merge_near_duplicates`; a number,
    a date, a negation or a name changed scores above it."""
    assert graph_of(clock, TRAIN[:2], tau_dup=0.9, merge_near_duplicates=True).stats().nodes == 1
    graph = graph_of(clock, TRAIN[:2], tau_dup=0.9)
    assert graph.stats().nodes == 2
    [hit] = graph.search_similar_queries(TRAIN[0])
    assert len(hit.collapsed_ids) == 1


def test_an_embedder_embeds_and_hands_over_its_state(clock: ScriptedClock) -> None:
    """graph-memory-api, Types, EmbeddingProvider: embed, exportState, importState."""
    embedder: EmbeddingProvider = LettersEmbedder(shift=5)
    graph = GraphStore(GraphConfig(), embedder)
    graph.upsert_query("otto")
    snapshot = graph.to_snapshot()
    assert snapshot["embedder"] == {"kind": "letters", "shift": 5}
    assert [index for index, _ in snapshot["graph"]["nodes"][0]["embedding"]] == [ord("o") + 5, ord("t") + 5]
    again = GraphStore(GraphConfig(), LettersEmbedder())
    again.from_snapshot(snapshot)
    assert again.search_similar_queries("toto")[0].sim == pytest.approx(1.0)


class NamedEmbedder(OnlyEmbeds):
    """An embedder with a state, and no way to take over another."""

    def export_state(self) -> dict[str, Any]:
        return {"modelName": "letters"}


def test_the_keys_of_an_embedders_state_are_its_own() -> None:
    """graph-memory-api, Types, EmbeddingProvider: importState gets what exportState returned."""
    graph = GraphStore(embedder=NamedEmbedder(dict))
    graph.from_snapshot(graph.to_snapshot())
    imported: list[dict[str, Any]] = []
    embedder = NamedEmbedder(dict)
    embedder.import_state = imported.append
    GraphStore(embedder=embedder).from_snapshot(graph.to_snapshot())
    assert imported == [{"modelName": "letters"}]


def test_the_members_of_an_embedder_may_be_in_camel_case() -> None:
    """graph-memory-api, Types, EmbeddingProvider: exportState, importState."""
    imported: list[dict[str, Any]] = []
    embedder = OnlyEmbeds(dict)
    vars(embedder).update(exportState=lambda: {"modelName": "letters"}, importState=imported.append)
    graph = GraphStore(embedder=embedder)
    graph.upsert_query("otto")
    assert graph.to_snapshot()["embedder"] == {"modelName": "letters"}
    graph.from_snapshot(graph.to_snapshot())
    assert imported == [{"modelName": "letters"}]


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_an_embedder_needs_only_embed_and_may_return_a_list_a_map_or_a_sparse_vector(shape: Any) -> None:
    """graph-memory-api, Types, EmbeddingProvider: `embed(text): number[] | Map<number, number>`, the rest optional."""
    graph = GraphStore(embedder=OnlyEmbeds(shape))
    otto = graph.upsert_query("otto")
    graph.upsert_query("bread")
    again = GraphStore(embedder=OnlyEmbeds(shape))
    again.from_snapshot(json.loads(json.dumps(graph.to_snapshot())))
    for one in (graph, again):
        assert [(hit.id, hit.sim) for hit in one.search_similar_queries("toto")] == [(otto, pytest.approx(1.0))]
    assert [[code, pytest.approx(0.5**0.5)] for code in map(ord, "ot")] == again.to_snapshot()["graph"]["nodes"][0][
        "embedding"
    ]


def test_embedders_without_a_state_are_known_by_their_class() -> None:
    """graph-memory-api, Types, EmbeddingProvider: exportState and importState are optional."""
    stateless = GraphStore(embedder=OnlyEmbeds(dict))
    assert stateless.to_snapshot()["embedder"] == {"kind": f"{__name__}.OnlyEmbeds"}
    with pytest.raises(InvalidInput, match="another embedder"):
        stateless.from_snapshot(GraphStore().to_snapshot())
    with pytest.raises(InvalidInput, match="another embedder"):
        GraphStore().from_snapshot(stateless.to_snapshot())


@pytest.mark.parametrize("vector", [["x"], {"x": 1.0}, [[0, 1.0], [1, 2.0]], [float("nan")]])
def test_an_embedding_that_is_not_a_vector_is_refused(vector: Any) -> None:
    """graph-memory-api, Types, EmbeddingProvider: `embed` returns numbers."""
    with pytest.raises(InvalidInput, match="an embedding"):
        GraphStore(embedder=OnlyEmbeds(lambda counts: vector)).upsert_query("otto")


@pytest.mark.parametrize("trigger", ["session-finalize", "eviction", "interval"])
def test_each_trigger_of_a_sleep_cycle_is_reported(clock: ScriptedClock, trigger: str) -> None:
    """graph-memory-api, Types, SleepCycleTrigger: its three values."""
    assert len(SleepCycleTrigger) == 3
    graph = graph_of(clock, TRAIN)
    graph.configure_sleep_cycle(SleepCycleConfig(FirstWords()))
    assert report_of(graph, trigger=trigger).trigger == trigger


def test_a_sleep_cycle_has_seven_bounds() -> None:
    """graph-memory-api, Types, SleepCycleBaseOptions: all seven, each with a default."""
    spec = "max_clusters max_inspect min_cluster_size similarity_threshold min_rank summary_max_length cooldown_ms"
    assert names(SleepCycleOptions) == set(spec.split())


@pytest.mark.parametrize(
    ("options", "clusters"),
    [
        ({}, 1),
        ({"max_clusters": 0}, 0),
        ({"max_inspect": 1}, 0),
        ({"min_cluster_size": 5}, 0),
        ({"similarity_threshold": 1.0}, 0),
        ({"min_rank": 0.01}, 0),
    ],
)
def test_each_bound_of_a_sleep_cycle_holds(clock: ScriptedClock, options: dict[str, Any], clusters: int) -> None:
    """graph-memory-api, Types, SleepCycleBaseOptions: maxClusters, maxInspect, minClusterSize, similarityThreshold,
    minRank, each given for one run."""
    graph = graph_of(clock, TRAIN)
    graph.configure_sleep_cycle(SleepCycleConfig(FirstWords()))
    assert len(report_of(graph, **options).clusters) == clusters


def test_a_summary_is_no_longer_than_its_bound(clock: ScriptedClock) -> None:
    """graph-memory-api, Types, SleepCycleBaseOptions: summaryMaxLength."""
    graph = graph_of(clock, TRAIN)
    graph.configure_sleep_cycle(SleepCycleConfig(FirstWords()))
    [cluster] = report_of(graph, summary_max_length=12).clusters
    assert cluster.summary == "what the ni…"


def test_within_the_cooldown_there_is_no_cycle_unless_it_is_forced(clock: ScriptedClock) -> None:
    """graph-memory-api, Types, SleepCycleBaseOptions and SleepCycleRunOptions: cooldownMs, force."""
    graph = graph_of(clock, TRAIN)
    graph.configure_sleep_cycle(SleepCycleConfig(FirstWords()))
    report_of(graph)
    assert graph.run_sleep_cycle() is None
    assert graph.run_sleep_cycle(force=True) is not None
    assert graph.run_sleep_cycle(cooldown_ms=0) is not None


def test_a_sleep_cycle_is_configured_by_summarizer_defaults_and_emit(clock: ScriptedClock) -> None:
    """graph-memory-api, Types, SleepCycleConfig: all three fields; a run's options stand in place of the defaults."""
    assert names(SleepCycleConfig) == {"summarizer", "defaults", "emit"}
    heard: list[SleepCycleReport] = []
    graph = graph_of(clock, TRAIN)
    graph.configure_sleep_cycle(SleepCycleConfig(FirstWords(), SleepCycleOptions(max_clusters=0), heard.append))
    none = report_of(graph, trigger="interval", force=True)
    one = report_of(graph, trigger="interval", force=True, max_clusters=1)
    assert heard == [none, one]
    assert (len(none.clusters), len(one.clusters)) == (0, 1)


def test_a_run_takes_a_trigger_force_and_every_bound() -> None:
    """graph-memory-api, Types, SleepCycleRunOptions: trigger and force, and any of the seven."""
    parameters = inspect.signature(GraphStore.run_sleep_cycle).parameters
    assert parameters["trigger"].default is SleepCycleTrigger.INTERVAL
    assert parameters["force"].default is False
    assert parameters["options"].kind is inspect.Parameter.VAR_KEYWORD
    with pytest.raises(InvalidInput, match="unknown sleep cycle option"):
        GraphStore().plan_sleep_cycle(max_depth=3)


def test_a_summarizer_gets_the_texts_and_a_length(clock: ScriptedClock) -> None:
    """graph-memory-api, Types, SleepCycleSummarizer: summarize(texts, {maxLength}) gives one text."""
    summarizer = FirstWords()
    as_promised: SleepCycleSummarizer = summarizer
    graph = graph_of(clock, TRAIN)
    graph.configure_sleep_cycle(SleepCycleConfig(as_promised))
    report_of(graph)
    [(texts, max_length)] = summarizer.asked
    assert (sorted(texts), max_length) == (TRAIN, 240)


def test_a_report_and_its_clusters_have_every_field(clock: ScriptedClock) -> None:
    """graph-memory-api, Types, SleepCycleReport and SleepCycleClusterReport: all five and all six fields."""
    assert names(SleepCycleReport) == {"trigger", "clusters", "freed_capacity", "inspected", "timestamp"}
    spec = {"anchor_id", "merged_node_ids", "summary", "before_rank", "after_rank", "freed_nodes"}
    assert names(SleepCycleClusterReport) == spec
    graph = graph_of(clock, [*TRAIN, "is there a dog"])
    graph.configure_sleep_cycle(SleepCycleConfig(FirstWords()))
    before = {node.id: rank for rank, node in graph.ranked()}
    report = report_of(graph)
    assert (report.trigger, report.freed_capacity, report.inspected, report.timestamp) == ("interval", 3, 5, START_MS)
    [cluster] = report.clusters
    assert {cluster.anchor_id, *cluster.merged_node_ids} == {f"query_{canonical_key(text)}" for text in TRAIN}
    assert (cluster.summary, cluster.freed_nodes) == ("what the night train to Oslo costs", 3)
    assert (cluster.before_rank, cluster.after_rank) == (before[cluster.anchor_id], graph.rank(cluster.anchor_id))


# GraphStore


@pytest.mark.parametrize("name", ["GraphStore", "GraphConfig"])
def test_the_graph_is_imported_from_the_face(name: str) -> None:
    """graph-memory-api, GraphStore: a class of the package."""
    assert getattr(kalito_mcp, name).__name__ == name
    assert name in kalito_mcp.__all__


def test_a_store_takes_a_configuration_and_perhaps_an_embedder() -> None:
    """graph-memory-api, GraphStore, constructor: the embedder is optional, and by default the hashing one."""
    config = GraphConfig(max_nodes=7)
    assert GraphStore(config).config is config
    assert isinstance(GraphStore(config).embedder, HashingEmbedder)
    embedder = LettersEmbedder()
    assert GraphStore(config, embedder).embedder is embedder


def test_upsert_query_gives_the_id_of_one_node_for_the_same_words(clock: ScriptedClock) -> None:
    """graph-memory-api, GraphStore, upsertQuery: an exact duplicate is met once more."""
    graph = graph_of(clock)
    node_id = graph.upsert_query("How do I bake bread?")
    assert graph.upsert_query("how do i bake bread") == node_id
    assert graph.node(node_id).weights.repeat == 2.0


@pytest.mark.parametrize(("label", "feedback"), [("up", 1.0), ("down", -1.0), ("retry", -0.5)])
def test_record_feedback_takes_three_labels_and_a_note(clock: ScriptedClock, label: str, feedback: float) -> None:
    """graph-memory-api, GraphStore, recordFeedback: 'up', 'down', 'retry', and a note or none."""
    graph = graph_of(clock)
    query = graph.upsert_query("bread")
    node = graph.node(graph.record_feedback(query, label))
    noted = graph.node(graph.record_feedback(query, FeedbackLabel(label), "as ever"))
    assert (node.type, node.text, noted.text) == (NodeType.FEEDBACK, label, f"{label}: as ever")
    assert graph.node(query).weights.feedback == 2 * feedback


def test_there_is_no_fourth_label(clock: ScriptedClock) -> None:
    """graph-memory-api, GraphStore, recordFeedback: a closed list."""
    graph = graph_of(clock)
    with pytest.raises(InvalidInput, match="one of up, down, retry"):
        graph.record_feedback(graph.upsert_query("bread"), "meh")


def test_adjust_weights_adds_either_delta(clock: ScriptedClock) -> None:
    """graph-memory-api, GraphStore, adjustWeights: feedbackDelta and repeatDelta, each optional."""
    graph = graph_of(clock)
    node_id = graph.upsert_query("bread")
    graph.adjust_weights(node_id, feedback_delta=0.25)
    graph.adjust_weights(node_id, repeat_delta=2)
    assert asdict(graph.node(node_id).weights) == {"repeat": 3.0, "feedback": 0.25}


def test_a_search_gives_id_score_sim_text_and_key_of_at_most_k(clock: ScriptedClock) -> None:
    """graph-memory-api, GraphStore, searchSimilarQueries: all five fields of a hit; k is optional."""
    assert names(SimilarQuery) == {"id", "score", "sim", "text", "canonical_key", "collapsed_ids"}
    graph = graph_of(clock, TRAIN)
    hit, *_ = graph.search_similar_queries(TRAIN[1].upper())
    assert (hit.id, hit.text, hit.canonical_key) == (
        f"query_{canonical_key(TRAIN[1])}",
        TRAIN[1],
        canonical_key(TRAIN[1]),
    )
    assert hit.sim == pytest.approx(1.0)
    assert 0.375 < hit.score < 1.5
    assert len(graph.search_similar_queries("night train", k=2)) == 2


def test_link_takes_two_ends_a_type_and_a_weight(clock: ScriptedClock) -> None:
    """graph-memory-api, GraphStore, link: from, to, type, weight."""
    graph = graph_of(clock)
    one, other = graph.upsert_query("bread"), graph.upsert_query("a dog")
    graph.link(one, other, "refers_to_entity", 0.5)
    [edge] = graph.edges()
    assert (edge.from_id, edge.type, edge.to_id, edge.weight) == (one, EdgeType.REFERS_TO_ENTITY, other, 0.5)


def test_a_snapshot_has_its_three_parts_and_makes_the_same_graph(clock: ScriptedClock) -> None:
    """graph-memory-api, GraphStore, toSnapshot and fromSnapshot: graph, embedder, canonicalMeta. Departure: in
    snake_case, with a version; camelCase is accepted."""
    snapshot = graph_of(clock, TRAIN).to_snapshot()
    assert snapshot.keys() == {"graph", "embedder", "canonical_meta", "version"}
    assert snapshot["graph"].keys() == {"nodes", "edges"}
    again = GraphStore()
    again.from_snapshot({("canonicalMeta" if name == "canonical_meta" else name): snapshot[name] for name in snapshot})
    assert again.to_snapshot() == snapshot


@pytest.mark.anyio
async def test_a_graph_is_saved_where_it_is_dirty_and_loaded_into_a_store(clock: ScriptedClock, tmp_path: Path) -> None:
    """graph-memory-api, GraphStore, saveToFile and loadFromFile: onlyIfDirty; loading is static, into a store."""
    graph, again, file = graph_of(clock, TRAIN), GraphStore(), tmp_path / "graph.json"
    assert await graph.save_to_file(str(file))
    assert not await graph.save_to_file(str(file), only_if_dirty=True)
    await GraphStore.load_from_file(str(file), again)
    assert again.to_snapshot() == graph.to_snapshot()


def test_stats_count_nodes_and_edges(clock: ScriptedClock) -> None:
    """graph-memory-api, GraphStore, stats: nodes and edges."""
    assert asdict(graph_of(clock, TRAIN).stats()) == {"nodes": 4, "edges": 6}


def test_configure_sleep_cycle_wires_a_summarizer_and_defaults(clock: ScriptedClock) -> None:
    """graph-memory-api, GraphStore, sleep-cycle consolidation: without it no cycle runs."""
    graph = graph_of(clock, TRAIN)
    assert graph.run_sleep_cycle(force=True) is None
    graph.configure_sleep_cycle(SleepCycleConfig(FirstWords(), SleepCycleOptions(min_cluster_size=5)))
    assert report_of(graph).clusters == ()


def test_a_cycle_merges_low_ranked_similar_queries_into_an_anchor(clock: ScriptedClock) -> None:
    """graph-memory-api, GraphStore, sleep-cycle consolidation: by call or by eviction; the summary is stored and
    `sourceNodeIds` say what was merged."""
    graph = graph_of(clock, [*TRAIN, "is there a dog"], max_nodes=5)
    heard: list[SleepCycleReport] = []
    graph.configure_sleep_cycle(SleepCycleConfig(FirstWords(), emit=heard.append))
    graph.upsert_query("one more")
    [report] = heard
    assert report.trigger is SleepCycleTrigger.EVICTION
    [cluster] = report.clusters
    anchor = graph.node(cluster.anchor_id)
    assert anchor.summary == "what the night train to Oslo costs"
    assert set(anchor.source_node_ids) == set(cluster.merged_node_ids)
    assert graph.stats().nodes == 3


def test_embeddings_are_written_as_pairs(clock: ScriptedClock) -> None:
    """graph-memory-api, GraphStore, notes: `[[i,v],...]`."""
    graph = graph_of(clock, ["bread"])
    [node] = graph.to_snapshot()["graph"]["nodes"]
    assert node["embedding"] == HashingEmbedder().embed("bread").pairs()
    assert all(len(pair) == 2 and isinstance(pair[0], int) and 0 <= pair[0] < 16_384 for pair in node["embedding"])


def test_a_snapshot_that_another_embedder_or_another_key_made_is_refused(clock: ScriptedClock) -> None:
    """graph-memory-api, GraphStore, notes: canonicalMeta and the embedder's state guarantee that it means the same."""
    snapshot = graph_of(clock, ["bread"]).to_snapshot()
    with pytest.raises(InvalidInput, match="another embedder"):
        GraphStore(embedder=HashingEmbedder(seed=1)).from_snapshot(snapshot)
    with pytest.raises(InvalidInput, match="other key settings"):
        GraphStore().from_snapshot({**snapshot, "canonical_meta": {**canonical_meta(), "seed": 1}})


# Embedding & canonicalKey


def test_the_default_embedding_counts_hashed_ngrams_of_three_to_five_characters() -> None:
    """graph-memory-api, Embedding & canonicalKey: character n-grams of 3 to 5, 16,384 dimensions, L2, cosine."""
    embedder = HashingEmbedder()
    assert (embedder.min_n, embedder.max_n, embedder.dim) == (3, 5, 16_384)
    vector = embedder.embed("bread")
    # " bread " has 5 n-grams of 3, 4 of 4 and 3 of 5.
    assert len(vector) == 12
    assert vector.dot(vector) == pytest.approx(1.0)
    assert vector.dot(embedder.embed("breads")) > vector.dot(embedder.embed("xylophone")) == 0.0


def test_a_canonical_key_is_the_hash_of_the_normalized_text() -> None:
    """graph-memory-api, Embedding & canonicalKey: hash(normalize(text)), with normVersion, hashAlgo and seed."""
    assert normalize("  How do I bake\nBREAD?! ") == "how do i bake bread"
    assert canonical_key("  How do I bake\nBREAD?! ") == canonical_key("how do i bake bread")
    assert canonical_key("bread 1") != canonical_key("bread 2")
    assert canonical_meta().keys() == {"norm_version", "hash_algo", "seed"}


def test_the_recommended_thresholds_are_the_defaults() -> None:
    """graph-memory-api, Embedding & canonicalKey: tauDup ~ 0.96, tauSim ~ 0.75, to be tuned."""
    assert (GraphConfig().tau_dup, GraphConfig().tau_sim) == (0.96, 0.75)
    tuned = GraphConfig(tau_dup=0.9, tau_sim=0.6)
    assert (tuned.tau_dup, tuned.tau_sim) == (0.9, 0.6)


# Checkpoint/Snapshot Format


def test_a_snapshot_is_of_the_specified_format(clock: ScriptedClock) -> None:
    """graph-memory-api, Checkpoint/Snapshot Format: every key of a node, an edge, the embedder and the meta."""
    snapshot = graph_of(clock, TRAIN[:2]).to_snapshot()
    node, _ = snapshot["graph"]["nodes"]
    [edge] = snapshot["graph"]["edges"]
    spec = "id type text canonical_key embedding created_at last_access weights degree"
    assert node.keys() == set(spec.split())
    assert edge.keys() == set("id from to type weight created_at last_access".split())
    assert snapshot["embedder"].keys() == set("kind dim min_n max_n seed norm_version hash_algo".split())
    assert snapshot["canonical_meta"] == {
        name: snapshot["embedder"][name] for name in ("norm_version", "hash_algo")
    } | {"seed": canonical_meta()["seed"]}


# Quality & Tuning


@pytest.mark.parametrize("enable_inverted_index", [True, False])
def test_the_setting_of_an_inverted_index_changes_nothing(clock: ScriptedClock, enable_inverted_index: bool) -> None:
    """graph-memory-api, Quality & Tuning: enableInvertedIndex."""
    graph, plain = graph_of(clock, TRAIN, enable_inverted_index=enable_inverted_index), graph_of(clock, TRAIN)
    assert graph.to_snapshot() == plain.to_snapshot()
    assert graph.search_similar_queries("night train") == plain.search_similar_queries("night train")


def test_nodes_of_high_degree_are_protected(clock: ScriptedClock) -> None:
    """graph-memory-api, Quality & Tuning: hubs are preserved."""
    kept = []
    for protect_min_degree in (0, 2):
        graph = graph_of(clock, ["hub", "a dog", "why not"], max_nodes=3, protect_min_degree=protect_min_degree)
        hub, *others = [node.id for node in graph.nodes()]
        for other in others:
            graph.link(hub, other, "refers_to_entity", 1.0)
        graph.adjust_weights(hub, feedback_delta=-1e9)
        for other in others:
            graph.adjust_weights(other, feedback_delta=1e9, repeat_delta=1e9)
        graph.upsert_query("one more")
        kept.append(graph.has(hub))
    assert kept == [False, True]


def test_feedback_diffuses_to_similar_neighbours(clock: ScriptedClock) -> None:
    """graph-memory-api, Quality & Tuning: feedback diffusion, bounded, and off by a setting."""
    shares = []
    for diffusion in (0.0, 0.1, 1.0):
        graph = graph_of(clock, TRAIN[:2], diffusion=diffusion)
        one, other = (node.id for node in graph.nodes())
        [edge] = graph.edges()
        graph.record_feedback(one, "up")
        shares.append(graph.node(other).weights.feedback / edge.weight)
    assert shares == pytest.approx([0.0, 0.1, 1.0])
