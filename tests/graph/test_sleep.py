"""The sleep cycle: its plan, its merges, what remains, and its limits."""

import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.graph import (
    EdgeType,
    GraphContents,
    GraphState,
)
from kalito_mcp.domain.sleep import (
    SleepCycleConfig,
    SleepCycleOptions,
    SleepCycleTrigger,
)
from kalito_mcp.errors import Conflict, InvalidInput
from kalito_mcp.graph import sleep
from kalito_mcp.graph.indexed_graph import MAX_SOURCES
from kalito_mcp.graph.store import GraphStore
from tests.graph.graphs import Listening, graph_of, query_id, seen, sleeping, unchanged, weighed
from tests.scripted import START_MS, ScriptedClock

OSLO = [f"what does the night train to Oslo cost in {year}" for year in range(2019, 2023)]
BREAD = ["how do I bake bread at home", "how do I bake breads at home", "how do we bake bread at home"]
OTHERS = ["is there a dog", "seven umbrellas", "why not"]


def asleep_graph(clock: ScriptedClock, reply: Any = "summed up", **config: Any) -> tuple[GraphStore, Listening]:
    """Two clusters and three queries that are like no other."""
    graph = graph_of(clock, **config)
    for text in [*OSLO, *BREAD, *OTHERS]:
        graph.upsert_query(text)
    return graph, sleeping(graph, reply)


def clusters_of(graph: GraphStore, **options: Any) -> list[set[str]]:
    """The queries of each planned cluster."""
    return [{one.anchor_id, *one.merged_ids} for one in graph.plan_sleep_cycle(**options).clusters]


def ids(texts: list[str]) -> set[str]:
    return {query_id(text) for text in texts}


def test_without_a_summarizer_no_cycle_runs(clock: ScriptedClock) -> None:
    graph = graph_of(clock)
    for text in OSLO:
        graph.upsert_query(text)
    with unchanged(graph):
        assert graph.run_sleep_cycle(force=True) is None


def test_a_plan_changes_nothing_and_asks_nobody(clock: ScriptedClock) -> None:
    graph, listening = asleep_graph(clock)
    with unchanged(graph):
        plan = graph.plan_sleep_cycle()
        assert [{one.anchor_id, *one.merged_ids} for one in plan.clusters] == [ids(OSLO), ids(BREAD)]
    assert (listening.asked, listening.reports, graph.slept_at) == ([], [], None)


def test_a_plan_as_it_is_previewed_is_the_report_as_it_is_applied(clock: ScriptedClock) -> None:
    graph, listening = asleep_graph(clock)
    plan = graph.plan_sleep_cycle("session-finalize")
    texts = sleep.summarize_clusters(plan, listening)
    assert sleep.preview_report(plan, texts) == graph.apply_sleep_plan(plan, texts)


@pytest.mark.parametrize("change", ["query", "weights", "pin", "link", "snapshot", "absorb"])
def test_a_plan_for_a_graph_that_has_changed_is_refused(clock: ScriptedClock, change: str) -> None:
    graph, listening = asleep_graph(clock)
    plan = graph.plan_sleep_cycle()
    anchor = plan.clusters[0].anchor_id
    {
        "query": lambda: graph.upsert_query("one more"),
        "weights": lambda: graph.adjust_weights(anchor, feedback_delta=1),
        "pin": lambda: graph.pin(anchor),
        "link": lambda: graph.link(anchor, query_id(OTHERS[0]), "similar_to", 0.1),
        "snapshot": lambda: graph.from_snapshot(graph.to_snapshot()),
        "absorb": lambda: graph.absorb(GraphContents([], [], GraphState())),
    }[change]()
    with unchanged(graph), pytest.raises(Conflict, match="plan it again"):
        graph.apply_sleep_plan(plan, {})
    assert (graph.slept_at, listening.reports) == (None, [])


def test_the_best_of_a_cluster_is_its_anchor_and_keeps_its_id_and_words(clock: ScriptedClock) -> None:
    graph, listening = asleep_graph(clock)
    best = query_id(OSLO[2])
    graph.adjust_weights(best, repeat_delta=1)
    report = graph.run_sleep_cycle()
    assert report is not None
    assert report.clusters[0].anchor_id == best
    node = graph.node(best)
    assert (node.text, node.summary) == (OSLO[2], "summed up")
    texts, max_length = listening.asked[0]
    assert (texts[0], set(texts), max_length) == (OSLO[2], set(OSLO), 240)


def test_what_is_merged_leaves_its_weights_its_records_and_its_ids(clock: ScriptedClock) -> None:
    graph = graph_of(clock, diffusion=0.0)
    for number, text in enumerate(OSLO):
        graph.upsert_query(text, record_id=f"msg_{number}", at_ms=START_MS + number)
        graph.adjust_weights(query_id(text), repeat_delta=number, feedback_delta=-number / 4)
    sleeping(graph)
    before = weighed(graph)
    report = graph.run_sleep_cycle()
    assert report is not None
    [cluster] = report.clusters
    node = graph.node(cluster.anchor_id)
    assert (node.weights.repeat, node.weights.feedback) == tuple(map(sum, zip(*before.values(), strict=True)))
    assert set(cluster.merged_node_ids) == set(node.source_node_ids) == ids(OSLO) - {node.id}
    assert set(node.source_record_ids) == {f"msg_{number}" for number in range(4)}
    assert {graph.node_of_record(f"msg_{number}") for number in range(4)} == {node.id}
    assert (node.created_at, node.last_access) == (START_MS, START_MS + 3)


def test_asking_what_was_merged_meets_the_anchor(clock: ScriptedClock) -> None:
    graph, _ = asleep_graph(clock)
    report = graph.run_sleep_cycle()
    assert report is not None
    anchor = report.clusters[0].anchor_id
    repeat = graph.node(anchor).weights.repeat
    for merged_id in report.clusters[0].merged_node_ids:
        assert graph.has(merged_id)
    assert {graph.upsert_query(text.upper()) for text in OSLO} == {anchor}
    assert graph.node(anchor).weights.repeat == repeat + 4
    graph.record_feedback(report.clusters[0].merged_node_ids[0], "up")
    assert graph.node(anchor).weights.feedback == 1.0


def test_what_was_merged_twice_still_meets_its_anchor(clock: ScriptedClock) -> None:
    graph, _ = asleep_graph(clock)
    graph.run_sleep_cycle(similarity_threshold=0.95)
    clock.advance(60)
    better = graph.upsert_query("what does the night train to Oslo cost in all")
    graph.adjust_weights(better, repeat_delta=50)
    report = graph.run_sleep_cycle(min_rank=1.0)
    assert report is not None
    assert {graph.node(query_id(text)).id for text in OSLO} == {better}
    assert graph.node(better).weights.repeat == 51 + len(OSLO)


def test_edges_are_attached_again_without_self_links_or_doubles(clock: ScriptedClock) -> None:
    graph = graph_of(clock)
    oslo = [graph.upsert_query(text) for text in OSLO]
    answer = graph.upsert_answer(oslo[0], "90 euros")
    clock.advance(1)
    graph.upsert_answer(oslo[1], "90 euros")
    other = graph.upsert_answer(oslo[2], "100 euros")
    entity = graph.upsert_entity("Oslo", of=oslo)
    dog = graph.upsert_query("is there a dog")
    graph.link(oslo[0], dog, "similar_to", 0.3)
    graph.link(dog, oslo[1], "similar_to", 0.4)
    graph.link(dog, oslo[2], "refers_to_entity", 1.0)
    sleeping(graph)
    report = graph.run_sleep_cycle()
    assert report is not None
    [anchor] = (cluster.anchor_id for cluster in report.clusters)
    first, second = sorted((anchor, dog))
    assert {(edge.from_id, edge.type, edge.to_id): edge.weight for edge in graph.edges()} == {
        (anchor, EdgeType.RESPONDED_WITH, answer): 1.0,
        (anchor, EdgeType.RESPONDED_WITH, other): 1.0,
        (anchor, EdgeType.REFERS_TO_ENTITY, entity): 1.0,
        (first, EdgeType.SIMILAR_TO, second): 0.4,
        (dog, EdgeType.REFERS_TO_ENTITY, anchor): 1.0,
    }
    [answered] = (edge for edge in graph.edges_of(answer) if edge.to_id == answer)
    assert (answered.created_at, answered.last_access) == (START_MS, START_MS + 1_000)


@given(st.randoms(use_true_random=False))
def test_reported_ranks_are_those_that_the_graph_has(chance: Any) -> None:
    clock = ScriptedClock()
    graph, _ = asleep_graph(clock)
    queries = sorted(node.id for node in graph.nodes())
    answers = [graph.upsert_answer(chance.choice(queries), word) for word in ("yes", "no", "perhaps")]
    for _ in range(15):
        one, other = chance.sample([*queries, *answers], 2)
        graph.link(one, other, chance.choice(list(EdgeType)), chance.random())
        graph.record_feedback(chance.choice(queries), "up")
    before = {node.id: graph.rank(node.id) for node in graph.nodes()}
    report = graph.run_sleep_cycle(min_rank=1.0, similarity_threshold=0.6)
    assert report is not None
    for cluster in report.clusters:
        assert cluster.before_rank == before[cluster.anchor_id]
        assert cluster.after_rank == pytest.approx(graph.rank(cluster.anchor_id), abs=1e-12)


def test_ranks_are_right_where_two_neighbouring_clusters_are_merged(clock: ScriptedClock) -> None:
    graph, _ = asleep_graph(clock)
    for one in OSLO:
        for other in BREAD:
            graph.link(query_id(one), query_id(other), "similar_to", 0.5)
    report = graph.run_sleep_cycle(min_rank=1.0)
    assert report is not None
    assert len(report.clusters) == 2
    assert [graph.node(cluster.anchor_id).degree for cluster in report.clusters] == [1, 1]
    assert [cluster.after_rank for cluster in report.clusters] == [
        graph.rank(cluster.anchor_id) for cluster in report.clusters
    ]


def test_a_report_says_what_was_done(clock: ScriptedClock) -> None:
    graph, listening = asleep_graph(clock)
    report = graph.run_sleep_cycle(SleepCycleTrigger.SESSION_FINALIZE)
    assert report is not None
    assert listening.reports == [report]
    assert (report.trigger, report.timestamp) == (SleepCycleTrigger.SESSION_FINALIZE, START_MS)
    assert (report.inspected, report.freed_capacity) == (10, 5)
    assert [(len(one.merged_node_ids), one.freed_nodes, one.summary) for one in report.clusters] == [
        (3, 3, "summed up"),
        (2, 2, "summed up"),
    ]
    assert graph.stats().nodes == 5


@pytest.mark.parametrize("trigger", SleepCycleTrigger)
def test_each_trigger_is_reported_by_its_name(clock: ScriptedClock, trigger: SleepCycleTrigger) -> None:
    graph, _ = asleep_graph(clock)
    report = graph.run_sleep_cycle(str(trigger))
    assert report is not None
    assert report.trigger is trigger


def test_a_cycle_that_finds_nothing_reports_that_and_changes_nothing(clock: ScriptedClock) -> None:
    graph = graph_of(clock)
    listening = sleeping(graph)
    for text in OTHERS:
        graph.upsert_query(text)
    with unchanged(graph):
        report = graph.run_sleep_cycle()
    assert report is not None
    assert (report.clusters, report.freed_capacity, report.inspected) == ((), 0, 3)
    assert listening.reports == [report]


def test_max_clusters_takes_the_largest(clock: ScriptedClock) -> None:
    graph, _ = asleep_graph(clock)
    assert clusters_of(graph, max_clusters=1) == [ids(OSLO)]
    assert clusters_of(graph, max_clusters=0) == []


def test_max_inspect_looks_at_the_lowest_ranks(clock: ScriptedClock) -> None:
    graph, _ = asleep_graph(clock)
    clock.advance(600)
    for text in OSLO:
        graph.upsert_query(text)
    assert graph.plan_sleep_cycle(max_inspect=6).inspected == 6
    assert clusters_of(graph, max_inspect=6) == [ids(BREAD)]
    assert graph.plan_sleep_cycle(max_inspect=0).inspected == 0


def test_min_cluster_size_leaves_smaller_clusters(clock: ScriptedClock) -> None:
    graph, _ = asleep_graph(clock)
    assert clusters_of(graph, min_cluster_size=3) == [ids(OSLO), ids(BREAD)]
    assert clusters_of(graph, min_cluster_size=4) == [ids(OSLO)]


def test_a_threshold_above_tau_sim_needs_more_likeness(clock: ScriptedClock) -> None:
    graph, _ = asleep_graph(clock)
    assert clusters_of(graph, similarity_threshold=0.99) == []
    assert len(clusters_of(graph, similarity_threshold=0.8)) == 2


def test_a_threshold_below_tau_sim_finds_what_no_edge_says(clock: ScriptedClock) -> None:
    graph = graph_of(clock, tau_sim=0.95, tau_dup=0.99)
    for text in ("how do I bake bread", "how do I bake cake"):
        graph.upsert_query(text)
    assert graph.stats().edges == 0
    assert clusters_of(graph, similarity_threshold=0.96) == []
    assert clusters_of(graph, similarity_threshold=0.5) == [ids(["how do I bake bread", "how do I bake cake"])]


def test_min_rank_leaves_what_is_worth_more(clock: ScriptedClock) -> None:
    graph, _ = asleep_graph(clock)
    for text in OSLO:
        graph.adjust_weights(query_id(text), repeat_delta=50, feedback_delta=9)
    assert clusters_of(graph, min_rank=0.5) == [ids(BREAD)]
    assert clusters_of(graph, min_rank=1.0) == [ids(OSLO), ids(BREAD)]
    assert clusters_of(graph, min_rank=0.0) == []


def test_what_is_pinned_is_never_merged(clock: ScriptedClock) -> None:
    graph, _ = asleep_graph(clock)
    graph.pin(query_id(OSLO[0]))
    clusters = clusters_of(graph, min_rank=1.0)
    assert len(clusters) == 2
    assert ids(OSLO[1:]) in clusters


def test_only_queries_are_merged(clock: ScriptedClock) -> None:
    graph, _ = asleep_graph(clock)
    query = query_id(OSLO[0])
    answers = {graph.upsert_answer(query, text) for text in BREAD}
    entity = graph.upsert_entity("Oslo", of=[query])
    graph.link(query, entity, "similar_to", 1.0)
    graph.run_sleep_cycle(min_rank=1.0)
    assert {*answers, entity} <= {node.id for node in graph.nodes()}


def test_summary_max_length_is_passed_on_and_enforced(clock: ScriptedClock) -> None:
    graph, listening = asleep_graph(clock, reply="one two three four")
    report = graph.run_sleep_cycle(summary_max_length=10)
    assert report is not None
    assert [one.summary for one in report.clusters] == ["one two t…"] * 2
    assert listening.asked[0][1] == 10


def test_within_the_cooldown_nothing_is_done_unless_it_is_forced(clock: ScriptedClock) -> None:
    graph, listening = asleep_graph(clock)
    assert not graph.is_rested()
    graph.run_sleep_cycle()
    assert graph.slept_at == START_MS
    clock.advance(59.999)
    with unchanged(graph):
        assert graph.is_rested()
        assert graph.run_sleep_cycle() is None
    assert graph.run_sleep_cycle(force=True) is not None
    clock.advance(60)
    assert graph.run_sleep_cycle() is not None
    with pytest.raises(InvalidInput, match="weekly"):
        graph.run_sleep_cycle("weekly")
    assert graph.run_sleep_cycle(cooldown_ms=0) is not None
    assert len(listening.reports) == 4


def test_options_override_the_configured_ones(clock: ScriptedClock) -> None:
    graph, _ = asleep_graph(clock)
    sleeping(graph, max_clusters=1, summary_max_length=5)
    assert len(graph.plan_sleep_cycle().clusters) == 1
    plan = graph.plan_sleep_cycle(max_clusters=2)
    assert (len(plan.clusters), plan.summary_max_length) == (2, 5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_cluster": 3}, "use one of max_clusters, max_inspect"),
        ({"max_clusters": "3"}, "type int"),
        ({"max_inspect": 2.5}, "type int"),
        ({"min_rank": None}, "type float"),
        ({"cooldown_ms": True}, "type int"),
        ({"similarity_threshold": 1.5}, "must be at most 1"),
    ],
)
def test_unknown_options_are_refused(clock: ScriptedClock, options: dict[str, Any], words: str) -> None:
    graph, _ = asleep_graph(clock)
    for call in (graph.run_sleep_cycle, graph.plan_sleep_cycle, graph.is_rested):
        with unchanged(graph), pytest.raises(InvalidInput, match=words):
            call(**options)  # type: ignore[operator]


@pytest.mark.parametrize("reply", [RuntimeError("no model"), "", " \n", None, 5, b"bytes"])
def test_where_the_summarizer_fails_the_anchors_own_words_stand_in(
    clock: ScriptedClock, caplog: pytest.LogCaptureFixture, reply: Any
) -> None:
    graph, _ = asleep_graph(clock, reply)
    with caplog.at_level(logging.ERROR):
        report = graph.run_sleep_cycle()
    assert report is not None
    assert [one.summary for one in report.clusters] == [graph.node(one.anchor_id).text for one in report.clusters]
    assert ("the summarizer failed" in caplog.text) == isinstance(reply, Exception)
    assert OSLO[0] not in "".join(record.getMessage() for record in caplog.records)


def test_a_long_summary_is_cut_and_broken_unicode_is_mended(clock: ScriptedClock) -> None:
    graph, _ = asleep_graph(clock, "word\n" * 200_000)
    report = graph.run_sleep_cycle()
    assert report is not None
    assert all(len(one.summary) <= 240 and one.summary.startswith("word word") for one in report.clusters)
    graph, _ = asleep_graph(clock, "half \ud83d of it")
    report = graph.run_sleep_cycle()
    assert report is not None
    assert {one.summary for one in report.clusters} == {"half ? of it"}


def test_a_missing_summary_is_the_anchors_own_text(clock: ScriptedClock) -> None:
    graph, _ = asleep_graph(clock)
    plan = graph.plan_sleep_cycle()
    first, second = (cluster.anchor_id for cluster in plan.clusters)
    report = graph.apply_sleep_plan(plan, {first: None, second: "  ", "query_0": "nobody's"})  # type: ignore[dict-item]
    assert [one.summary for one in report.clusters] == [graph.node(first).text, graph.node(second).text]


def test_a_listener_that_fails_leaves_the_cycle_done(clock: ScriptedClock, caplog: pytest.LogCaptureFixture) -> None:
    graph, listening = asleep_graph(clock)

    def emit(_: object) -> None:
        raise RuntimeError("dashboard is down")

    graph.configure_sleep_cycle(SleepCycleConfig(listening, SleepCycleOptions(similarity_threshold=0.8), emit))
    with caplog.at_level(logging.ERROR):
        report = graph.run_sleep_cycle()
    assert report is not None
    assert (report.freed_capacity, graph.stats().nodes) == (5, 5)
    assert "could not be handed on" in caplog.text


def test_nobody_need_listen(clock: ScriptedClock) -> None:
    graph, listening = asleep_graph(clock)
    graph.configure_sleep_cycle(SleepCycleConfig(listening, SleepCycleOptions(similarity_threshold=0.8)))
    assert graph.run_sleep_cycle() is not None
    assert listening.reports == []


def test_a_graph_that_became_another_still_sleeps_when_it_is_full(clock: ScriptedClock) -> None:
    graph, listening = asleep_graph(clock, max_nodes=10)
    graph.from_snapshot(graph.to_snapshot())
    graph.upsert_query("one more")
    assert [report.trigger for report in listening.reports] == [SleepCycleTrigger.EVICTION]


def test_an_anchor_remembers_at_most_64_merged_nodes(clock: ScriptedClock) -> None:
    graph = graph_of(clock)
    texts = [f"how long does parcel {number} take to arrive" for number in range(100, 200)]
    for text in texts:
        graph.upsert_query(text)
    sleeping(graph)
    report = graph.run_sleep_cycle(similarity_threshold=0.5)
    assert report is not None
    [cluster] = report.clusters
    node = graph.node(cluster.anchor_id)
    assert (len(cluster.merged_node_ids), len(node.source_node_ids)) == (99, MAX_SOURCES)
    assert node.source_node_ids == (cluster.merged_node_ids[0], *cluster.merged_node_ids[1 - MAX_SOURCES :])
    assert all(graph.node(one).id == node.id for one in node.source_node_ids)
    assert not graph.has(cluster.merged_node_ids[1])


@given(st.permutations([*OSLO, *BREAD, *OTHERS]))
def test_any_order_of_the_same_queries_sleeps_to_the_same_graph(texts: list[str]) -> None:
    graphs = []
    for order in (texts, [*OSLO, *BREAD, *OTHERS]):
        graph = graph_of(ScriptedClock())
        for text in order:
            graph.upsert_query(text)
        sleeping(graph)
        graph.run_sleep_cycle()
        graphs.append(graph)
    assert seen(graphs[0]) == seen(graphs[1])
