"""GraphStore: which texts are one node, what is linked, found and refused."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.graph import (
    EdgeType,
    GraphConfig,
    GraphNode,
    NodeType,
    NodeWeights,
)
from kalito_mcp.domain.sleep import (
    SleepCycleOptions,
)
from kalito_mcp.errors import GraphFull, InvalidInput, RecordNotFound, TextTooLarge
from kalito_mcp.graph.canonical import canonical_key
from kalito_mcp.graph.store import GraphStore
from tests.graph.graphs import edge_of, graph_of, linked, query_id, unchanged, weighed
from tests.graph.pairs import DIFFERENT, SAME
from tests.scripted import START_MS, ScriptedClock

TEXTS = [
    f"what does the night train to {city} cost in {year}" for city in ("Oslo", "Turin") for year in range(2019, 2026)
]
TEXTS += ["How do I bake bread?", "how do I bake  bread", "is there a dog", "!?"]
CROWD = [f"how long does parcel {number} take to arrive" for number in range(100, 148)]


def graph_of_texts(texts: list[str], **config: Any) -> GraphStore:
    graph = graph_of(ScriptedClock(), **config)
    for text in texts:
        graph.upsert_query(text)
    return graph


@given(
    st.lists(st.sampled_from(TEXTS), max_size=25).flatmap(
        lambda texts: st.tuples(st.just(texts), st.permutations(texts))
    )
)
def test_any_order_of_the_same_queries_makes_the_same_graph(orders: tuple[list[str], list[str]]) -> None:
    one, other = (graph_of_texts(texts) for texts in orders)
    assert weighed(one) == weighed(other)
    assert linked(one) == linked(other)


@given(st.permutations(CROWD))
def test_any_order_makes_the_same_edges_where_more_are_near_than_are_linked(texts: list[str]) -> None:
    assert linked(graph_of_texts(texts)) == linked(graph_of_texts(CROWD))


def test_two_of_a_crowd_are_linked_where_either_is_among_the_32_nearest_of_the_other() -> None:
    graph = graph_of_texts(CROWD)
    ids = [query_id(text) for text in CROWD]
    vectors = {node.id: node.embedding for node in graph.nodes()}
    nearest = {
        one: {
            other
            for _, other in sorted(
                (-round(vectors[one].dot(vectors[other]), 6), other)  # type: ignore[union-attr, arg-type]
                for other in ids
                if other != one
            )[:32]
        }
        for one in ids
    }
    expected = {frozenset((one, other)) for one in ids for other in nearest[one]}
    assert {frozenset((edge.from_id, edge.to_id)) for edge in graph.edges()} == expected
    assert len(expected) < len(CROWD) * (len(CROWD) - 1) / 2


@pytest.mark.parametrize(("one", "other"), SAME)
def test_case_punctuation_and_white_space_make_no_other_query(clock: ScriptedClock, one: str, other: str) -> None:
    graph = graph_of(clock)
    assert graph.upsert_query(one) == graph.upsert_query(other)
    [node] = graph.nodes()
    assert (node.text, node.weights.repeat) == (one, 2.0)


@pytest.mark.parametrize("kind", DIFFERENT)
def test_what_differs_in_one_detail_stays_two_queries_that_are_linked(clock: ScriptedClock, kind: str) -> None:
    for one, other in DIFFERENT[kind]:
        graph = graph_of(clock)
        first, second = graph.upsert_query(one), graph.upsert_query(other)
        assert first != second, (one, other)
        edge = edge_of(graph, first, second)
        assert edge is not None, (one, other)
        assert edge.type is EdgeType.SIMILAR_TO
        assert edge.weight >= 0.94, (one, other, edge.weight)
        assert {node.weights.repeat for node in graph.nodes()} == {1.0}


@pytest.mark.parametrize("kind", DIFFERENT)
def test_near_duplicates_are_shown_as_the_better_of_them(clock: ScriptedClock, kind: str) -> None:
    for one, other in DIFFERENT[kind]:
        graph = graph_of(clock, tau_dup=0.94)
        first, second = graph.upsert_query(one), graph.upsert_query(other)
        [hit] = graph.search_similar_queries(one)
        assert (hit.id, hit.collapsed_ids) == (first, (second,))
        assert hit.sim == pytest.approx(1.0)


def test_the_pairs_are_those_that_a_threshold_would_merge(clock: ScriptedClock) -> None:
    pairs = [pair for kind in DIFFERENT.values() for pair in kind]
    merging = [graph_of(clock, merge_near_duplicates=True) for _ in pairs]
    merged = [
        graph.upsert_query(one) == graph.upsert_query(other) for graph, (one, other) in zip(merging, pairs, strict=True)
    ]
    assert len(pairs) >= 40
    assert sum(merged) >= 40


def test_the_bare_threshold_merges_and_remembers_what(clock: ScriptedClock) -> None:
    one, other = DIFFERENT["number"][0]
    graph = graph_of(clock, merge_near_duplicates=True)
    first = graph.upsert_query(one, record_id="msg_1")
    clock.advance(60)
    assert graph.upsert_query(other, record_id="msg_2") == first
    node = graph.node(query_id(other))
    assert (node.id, node.text, node.weights.repeat) == (first, one, 2.0)
    assert node.source_node_ids == (query_id(other),)
    assert node.source_record_ids == ("msg_1", "msg_2")
    assert node.last_access == clock.now_ms()
    assert graph.upsert_query(other) == first
    assert graph.stats().nodes == 1


def test_a_query_below_the_threshold_is_neither_merged_nor_linked(clock: ScriptedClock) -> None:
    graph = graph_of(clock, merge_near_duplicates=True)
    graph.upsert_query("what does the train cost")
    graph.upsert_query("why do cats purr at night")
    assert (graph.stats().nodes, graph.stats().edges) == (2, 0)


def test_a_query_that_is_met_again_keeps_its_words_and_appends_its_records(clock: ScriptedClock) -> None:
    graph = graph_of(clock)
    first = graph.upsert_query("Bread?", record_id="msg_1")
    clock.advance(60)
    assert graph.upsert_query("bread", record_id="msg_2", at_ms=clock.now_ms() - 1) == first
    node = graph.node(first)
    assert (node.text, node.source_record_ids) == ("Bread?", ("msg_1", "msg_2"))
    assert (node.created_at, node.last_access) == (START_MS, clock.now_ms() - 1)
    assert graph.node_of_record("msg_1") == graph.node_of_record("msg_2") == first


def test_what_is_met_late_does_not_make_a_node_older(clock: ScriptedClock) -> None:
    graph = graph_of(clock)
    node_id = graph.upsert_query("bread")
    graph.upsert_query("bread", at_ms=START_MS - 5_000)
    assert graph.node(node_id).last_access == START_MS


def test_a_node_remembers_its_first_record_and_its_newest(clock: ScriptedClock) -> None:
    graph = graph_of(clock)
    for number in range(100):
        graph.upsert_query("bread", record_id=f"msg_{number}")
    [node] = graph.nodes()
    assert node.source_record_ids == ("msg_0", *(f"msg_{number}" for number in range(37, 100)))
    assert graph.node_of_record("msg_36") is None
    assert graph.node_of_record("msg_0") == graph.node_of_record("msg_37") == node.id


def test_an_amended_record_belongs_only_to_its_new_query(clock: ScriptedClock) -> None:
    graph = graph_of(clock)
    before = graph.upsert_query("bread", record_id="msg_1")
    after = graph.upsert_query("cake", record_id="msg_1")
    graph.upsert_query("bread", record_id="msg_2")
    assert graph.node_of_record("msg_1") == after
    assert graph.node(before).source_record_ids == ("msg_2",)


def test_an_answer_and_an_entity_are_linked_from_what_they_belong_to(clock: ScriptedClock) -> None:
    graph = graph_of(clock)
    query = graph.upsert_query("what does the train to Oslo cost")
    answer = graph.upsert_answer(query, "About 90 euros.", record_id="msg_2")
    entity = graph.upsert_entity("Oslo", of=[query, answer, query])
    assert {(edge.from_id, edge.type, edge.to_id) for edge in graph.edges()} == {
        (query, EdgeType.RESPONDED_WITH, answer),
        (query, EdgeType.REFERS_TO_ENTITY, entity),
        (answer, EdgeType.REFERS_TO_ENTITY, entity),
    }
    assert [graph.node(one).type for one in (query, answer, entity)] == [
        NodeType.QUERY,
        NodeType.ANSWER,
        NodeType.ENTITY,
    ]
    assert [graph.node(one).embedding is None for one in (query, answer, entity)] == [False, True, True]
    assert graph.node_of_record("msg_2") == answer


def test_the_record_of_an_entity_is_the_message_and_not_the_entity(clock: ScriptedClock) -> None:
    graph = graph_of(clock)
    query = graph.upsert_query("to Oslo", record_id="msg_1")
    entity = graph.upsert_entity("Oslo", of=[query], record_id="msg_1")
    assert graph.node_of_record("msg_1") == query
    assert graph.node(entity).source_record_ids == ("msg_1",)


def test_a_long_text_keeps_its_beginning_and_stays_itself(clock: ScriptedClock) -> None:
    graph = graph_of(clock)
    text = "word " * 1_000 + "end"
    node_id = graph.upsert_query(text)
    kept = graph.node(node_id).text or ""
    assert (len(kept), kept[-1]) == (1_000, "…")
    assert graph.upsert_query(text) == node_id
    assert graph.upsert_query(f"{text}s") != node_id


def test_linking_again_sets_the_weight(clock: ScriptedClock) -> None:
    graph = graph_of(clock)
    one, other = sorted((graph.upsert_query("bread"), graph.upsert_query("a dog")))
    graph.link(other, one, "similar_to", 0.5)
    clock.advance(1)
    graph.link(one, other, EdgeType.SIMILAR_TO, 0.7)
    [edge] = graph.edges()
    assert (edge.id, edge.weight) == (f"{one}::similar_to::{other}", 0.7)
    assert (edge.created_at, edge.last_access) == (START_MS, START_MS + 1_000)


def test_weights_stay_finite_whatever_is_added(clock: ScriptedClock) -> None:
    graph = graph_of(clock)
    node_id = graph.upsert_query("bread")
    for _ in range(3):
        graph.adjust_weights(node_id, feedback_delta=1e308, repeat_delta=1e308)
    assert weighed(graph)[node_id] == (1e9, 1e9)
    assert graph.rank(node_id) <= 1
    graph.adjust_weights(node_id, feedback_delta=-1e308, repeat_delta=-1e308)
    assert weighed(graph)[node_id] == (1.0, -1e9)
    assert graph.search_similar_queries("bread")[0].score > 0


def merged_from(text: str, **fields: Any) -> GraphNode:
    """A node of another graph, met twice and liked."""
    source = graph_of(ScriptedClock())
    node_id = source.upsert_query(text, record_id="msg_1")
    return replace(source.node(node_id), weights=NodeWeights(2.0, 1.0), **fields)


def test_a_node_of_another_graph_comes_with_its_weights_and_sources(clock: ScriptedClock) -> None:
    graph = graph_of(clock)
    node_id = graph.merge_node(merged_from("bread", source_node_ids=("query_x",), pinned=True), carry_weights=True)
    node = graph.node(node_id)
    assert (node.id, node.text, node.weights, node.pinned) == (query_id("bread"), "bread", NodeWeights(2.0, 1.0), True)
    assert node.source_record_ids == ("msg_1",)
    assert graph.node("query_x").id == node_id


@pytest.mark.parametrize(("carry_weights", "expected"), [(True, (5.0, 3.0)), (False, (4.0, 2.0))])
def test_a_node_that_is_known_is_met_once_more(
    clock: ScriptedClock, carry_weights: bool, expected: tuple[float, float]
) -> None:
    graph = graph_of(clock)
    node_id = graph.upsert_query("bread")
    graph.adjust_weights(node_id, repeat_delta=2, feedback_delta=2)
    assert graph.merge_node(merged_from("Bread!"), carry_weights=carry_weights) == node_id
    assert weighed(graph)[node_id] == expected


@pytest.mark.parametrize(("carry_weights", "expected"), [(True, (3.0, 6.0)), (False, (2.0, 5.0))])
def test_merging_by_threshold_adds_to_the_weights_that_were_there(
    clock: ScriptedClock, carry_weights: bool, expected: tuple[float, float]
) -> None:
    one, other = DIFFERENT["number"][0]
    graph = graph_of(clock, merge_near_duplicates=True)
    known = graph.upsert_query(one)
    graph.adjust_weights(known, feedback_delta=5)
    assert graph.merge_node(merged_from(other), carry_weights=carry_weights) == known
    assert weighed(graph)[known] == expected
    assert graph.node(query_id(other)).id == known


def test_a_merged_id_keeps_its_node(clock: ScriptedClock) -> None:
    graph = graph_of(clock)
    cake = graph.upsert_query("cake")
    graph.merge_node(merged_from("bread", source_node_ids=(cake, "query_x")), carry_weights=True)
    graph.merge_node(merged_from("dog", source_node_ids=("query_x",)), carry_weights=True)
    assert graph.node(cake).id == cake
    assert graph.node("query_x").id == query_id("bread")
    assert graph.node(query_id("dog")).source_node_ids == ()


def test_a_search_finds_the_nearest_first_and_no_more_than_k(clock: ScriptedClock) -> None:
    graph = graph_of(clock)
    for text in TEXTS:
        graph.upsert_query(text)
    hits = graph.search_similar_queries("what does the night train to Turin cost in 2021", 3)
    assert hits[0].text == "what does the night train to Turin cost in 2021"
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert len(hits) == 3
    assert hits[0].canonical_key == query_id(hits[0].text).removeprefix("query_")


def test_a_search_looks_past_near_duplicates(clock: ScriptedClock) -> None:
    graph = graph_of(clock, tau_dup=0.85)
    for number in range(30):
        graph.upsert_query(f"how long does it take until parcel {number} is there")
    bread = graph.upsert_query("how long does a bread take")
    hits = graph.search_similar_queries("how long does it take until parcel 7 is there", 2)
    assert hits[1].id == bread
    assert len(hits[0].collapsed_ids) == 29


def test_a_search_changes_nothing(clock: ScriptedClock) -> None:
    graph = graph_of_texts(TEXTS)
    with unchanged(graph):
        assert graph.search_similar_queries("night train")


def test_an_empty_graph_finds_nothing(clock: ScriptedClock) -> None:
    graph = graph_of(clock)
    assert graph.search_similar_queries("bread") == []
    assert (graph.stats().nodes, graph.stats().edges, graph.ranked(), graph.node_of_record("msg_1")) == (0, 0, [], None)


def test_what_a_graph_gives_out_is_a_copy(clock: ScriptedClock) -> None:
    graph = graph_of_texts(["bread", "breads"])
    with unchanged(graph):
        for node in [*graph.nodes(), graph.node(query_id("bread")), graph.ranked()[0][1], *graph.drain_changes().nodes]:
            node.weights.repeat = 99
            node.pinned = True
        for edge in [*graph.edges(), *graph.edges_of(query_id("bread"))]:
            edge.weight = 99


def bad_calls() -> dict[str, tuple[type[Exception], str, Callable[[GraphStore, str], object]]]:
    """Which error, what it says, and the call; the id is that of a query."""
    big = "x" * 1_048_576
    other, entity = query_id("a dog"), f"entity_{canonical_key('Oslo')}"
    return {
        "blank query": (InvalidInput, "blank", lambda graph, _: graph.upsert_query(" \n")),
        "empty query": (InvalidInput, "empty", lambda graph, _: graph.upsert_query("")),
        "query of a megabyte": (TextTooLarge, "limit is 524,288", lambda graph, _: graph.upsert_query(big)),
        "query that is no Unicode": (InvalidInput, "surrogate", lambda graph, _: graph.upsert_query("\ud800")),
        "moment": (InvalidInput, "at_ms", lambda graph, _: graph.upsert_query("cake", at_ms=10**18)),
        "answer to nothing": (RecordNotFound, "search for it", lambda graph, _: graph.upsert_answer("query_0", "yes")),
        "answer to an entity": (
            InvalidInput,
            "give the id of a query",
            lambda graph, _: graph.upsert_answer(entity, "no"),
        ),
        "blank answer": (InvalidInput, "blank", lambda graph, node_id: graph.upsert_answer(node_id, " ")),
        "answer of a megabyte": (TextTooLarge, "limit", lambda graph, node_id: graph.upsert_answer(node_id, big)),
        "entity of nothing": (RecordNotFound, "query_0", lambda graph, _: graph.upsert_entity("Oslo", of=["query_0"])),
        "feedback on nothing": (RecordNotFound, "query_0", lambda graph, _: graph.record_feedback("query_0", "up")),
        "label": (
            InvalidInput,
            "one of up, down, retry",
            lambda graph, node_id: graph.record_feedback(node_id, "good"),
        ),
        "label in capitals": (InvalidInput, "'UP'", lambda graph, node_id: graph.record_feedback(node_id, "UP")),
        "note of a megabyte": (TextTooLarge, "note", lambda graph, node_id: graph.record_feedback(node_id, "up", big)),
        "weights of nothing": (RecordNotFound, "query_0", lambda graph, _: graph.adjust_weights("query_0")),
        "weight NaN": (
            InvalidInput,
            "finite",
            lambda graph, node_id: graph.adjust_weights(node_id, feedback_delta=math.nan),
        ),
        "weight infinite": (
            InvalidInput,
            "finite",
            lambda graph, node_id: graph.adjust_weights(node_id, repeat_delta=math.inf),
        ),
        "pin of nothing": (RecordNotFound, "query_0", lambda graph, _: graph.pin("query_0")),
        "self link": (InvalidInput, "itself", lambda graph, node_id: graph.link(node_id, node_id, "similar_to", 1.0)),
        "link to nothing": (
            RecordNotFound,
            "query_0",
            lambda graph, node_id: graph.link(node_id, "query_0", "similar_to", 1.0),
        ),
        "link of no type": (InvalidInput, "one of similar_to", lambda graph, one: graph.link(one, other, "likes", 1.0)),
        "link NaN": (InvalidInput, "weight=nan", lambda graph, one: graph.link(one, other, "similar_to", math.nan)),
        "link negative": (InvalidInput, "weight=-1", lambda graph, one: graph.link(one, other, "similar_to", -1)),
        "link moment": (
            InvalidInput,
            "at_ms",
            lambda graph, one: graph.link(one, other, "similar_to", 1, at_ms=-(10**18)),
        ),
        "blank search": (InvalidInput, "blank", lambda graph, _: graph.search_similar_queries(" ")),
        "search of a megabyte": (TextTooLarge, "limit", lambda graph, _: graph.search_similar_queries(big)),
        "k = 0": (InvalidInput, "outside 1 to 1,000", lambda graph, _: graph.search_similar_queries("bread", 0)),
        "k = 1,001": (
            InvalidInput,
            "outside 1 to 1,000",
            lambda graph, _: graph.search_similar_queries("bread", 1_001),
        ),
        "unknown node": (RecordNotFound, "query_0", lambda graph, _: graph.node("query_0")),
        "rank of nothing": (RecordNotFound, "query_0", lambda graph, _: graph.rank("query_0")),
        "edges of nothing": (RecordNotFound, "query_0", lambda graph, _: graph.edges_of("query_0")),
        "node without a text": (
            InvalidInput,
            "blank",
            lambda graph, _: graph.merge_node(GraphNode("query_1", NodeType.QUERY, 0, 0, " "), carry_weights=True),
        ),
        "trigger": (InvalidInput, "one of session-finalize", lambda graph, _: graph.plan_sleep_cycle("noon")),
    }


@pytest.mark.parametrize("name", bad_calls())
def test_a_bad_call_says_what_is_wrong_and_changes_nothing(clock: ScriptedClock, name: str) -> None:
    error, words, call = bad_calls()[name]
    graph = graph_of(clock)
    node_id = graph.upsert_query("bread", record_id="msg_1")
    graph.upsert_query("a dog")
    graph.upsert_answer(node_id, "yes", record_id="msg_2")
    graph.upsert_entity("Oslo")
    with unchanged(graph), pytest.raises(error, match=words):
        call(graph, node_id)


def test_an_entity_is_not_linked_to_itself(clock: ScriptedClock) -> None:
    graph = graph_of(clock)
    query, entity = graph.upsert_query("to Oslo"), graph.upsert_entity("Oslo")
    with unchanged(graph), pytest.raises(InvalidInput, match="itself"):
        graph.upsert_entity("oslo", of=[query, entity])


@pytest.mark.parametrize(
    ("call", "label"),
    [
        (lambda graph, one, _: graph.upsert_answer(one, "yes"), "answer"),
        (lambda graph, one, other: graph.upsert_entity("Oslo", of=[one, other]), "entity"),
        (lambda graph, one, _: graph.record_feedback(one, "up"), "feedback"),
        (lambda graph, one, other: graph.link(one, other, "similar_to", 1.0), "link"),
    ],
)
def test_where_there_is_no_room_for_an_edge_nothing_is_made(
    clock: ScriptedClock, call: Callable[[GraphStore, str, str], object], label: str
) -> None:
    graph = graph_of(clock, max_edges=1)
    one, other, third = (graph.upsert_query(text) for text in ("bread", "a dog", "why"))
    graph.link(one, third, "similar_to", 1.0)
    graph.pin(one)
    with unchanged(graph), pytest.raises(GraphFull, match="raise max_edges"):
        call(graph, one, other)


def test_a_likeness_that_links_above_the_one_that_merges_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"tau_sim=0\.8 is above tau_dup=0\.7; lower"):
        GraphConfig(tau_dup=0.7, tau_sim=0.8)


@pytest.mark.parametrize(
    "fields",
    [
        {"max_clusters": -1},
        {"max_inspect": -1},
        {"cooldown_ms": -1},
        {"min_cluster_size": 1},
        {"similarity_threshold": 0.0},
        {"similarity_threshold": math.nan},
        {"min_rank": 1.1},
        {"min_rank": math.nan},
        {"summary_max_length": 0},
    ],
)
def test_bounds_that_no_sleep_cycle_can_work_with_are_refused(clock: ScriptedClock, fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        SleepCycleOptions(**fields)
    graph = graph_of_texts(TEXTS)
    with unchanged(graph), pytest.raises(InvalidInput):
        graph.plan_sleep_cycle(**fields)
