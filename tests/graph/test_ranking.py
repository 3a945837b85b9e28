"""Rank and search score: bounded, and never lower if a component grows."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.graph import FEEDBACK_DELTA, MAX_WEIGHT, EdgeType, GraphEdge, GraphNode, NodeType, NodeWeights
from kalito_mcp.graph.ranking import edge_rank, rank, search_score
from tests.graph.graphs import graph_of
from tests.scripted import START_MS, ScriptedClock

HALF_LIFE_MIN = 60.0
HOUR_MS = 3_600_000
WEIGHTS = st.builds(NodeWeights, st.floats(1, MAX_WEIGHT), st.floats(-MAX_WEIGHT, MAX_WEIGHT))
NODES = st.builds(
    GraphNode,
    st.just("a"),
    st.sampled_from(NodeType),
    st.just(0),
    st.integers(START_MS - 100 * HOUR_MS, START_MS + HOUR_MS),
    weights=WEIGHTS,
    degree=st.integers(0, 10_000),
)
HALF_LIVES = st.floats(1e-300, 1e300)


def ranked(node: GraphNode, half_life_min: float = HALF_LIFE_MIN) -> float:
    return rank(node, now_ms=START_MS, half_life_min=half_life_min)


def a_node(repeat: float = 1.0, feedback: float = 0.0, last_access: int = START_MS, **fields: Any) -> GraphNode:
    return GraphNode("a", NodeType.QUERY, 0, last_access, weights=NodeWeights(repeat, feedback), **fields)


@given(NODES, HALF_LIVES)
def test_a_rank_is_a_share(node: GraphNode, half_life_min: float) -> None:
    assert 0 <= ranked(node, half_life_min) <= 1


@given(NODES, st.floats(0, 1e6), HALF_LIVES)
def test_a_rank_never_falls_with_repeats(node: GraphNode, more: float, half_life_min: float) -> None:
    better = replace(node, weights=replace(node.weights, repeat=node.weights.repeat + more))
    assert ranked(better, half_life_min) >= ranked(node, half_life_min)


@given(NODES, st.floats(0, 1e6), HALF_LIVES)
def test_a_rank_never_falls_with_feedback(node: GraphNode, more: float, half_life_min: float) -> None:
    better = replace(node, weights=replace(node.weights, feedback=node.weights.feedback + more))
    assert ranked(better, half_life_min) >= ranked(node, half_life_min)


@given(NODES, st.integers(0, 1_000), HALF_LIVES)
def test_a_rank_never_falls_with_edges(node: GraphNode, more: int, half_life_min: float) -> None:
    assert ranked(replace(node, degree=node.degree + more), half_life_min) >= ranked(node, half_life_min)


@given(NODES, st.integers(0, 10**9), HALF_LIVES)
def test_a_rank_never_falls_with_a_later_access(node: GraphNode, later: int, half_life_min: float) -> None:
    better = replace(node, last_access=node.last_access + later)
    assert ranked(better, half_life_min) >= ranked(node, half_life_min)


@given(NODES, st.integers(0, 10**12))
def test_a_rank_never_rises_by_waiting(node: GraphNode, later: int) -> None:
    assert rank(node, now_ms=START_MS + later, half_life_min=HALF_LIFE_MIN) <= ranked(node)


@given(NODES, HALF_LIVES)
def test_nothing_ranks_above_what_is_pinned(node: GraphNode, half_life_min: float) -> None:
    assert ranked(replace(node, pinned=True), half_life_min) == 1.0 >= ranked(node, half_life_min)


def test_each_part_alone_makes_a_difference() -> None:
    plain = ranked(a_node())
    assert plain == pytest.approx(0.2)
    assert ranked(a_node(repeat=2.0)) == pytest.approx(0.2 + 0.3 * 0.5)
    assert ranked(a_node(feedback=1.0)) == pytest.approx(0.4 * 0.75)
    assert ranked(a_node(feedback=-1.0)) == pytest.approx(0.4 * 0.25)
    assert ranked(a_node(degree=4)) == pytest.approx(0.2 + 0.3 * 0.5)


def test_a_rank_halves_with_every_half_life() -> None:
    assert ranked(a_node(last_access=START_MS - HOUR_MS)) == pytest.approx(ranked(a_node()) / 2)
    assert ranked(a_node(last_access=START_MS - 3 * HOUR_MS)) == pytest.approx(ranked(a_node()) / 8)
    assert ranked(a_node(last_access=START_MS + HOUR_MS)) == ranked(a_node())


def test_a_question_asked_a_thousand_times_is_below_one_that_was_asked_twice_and_liked() -> None:
    assert ranked(a_node(repeat=1_000.0)) < ranked(a_node(repeat=2.0, feedback=3.0, degree=2))


def test_an_edge_ranks_by_its_weight_and_age() -> None:
    edge = GraphEdge("a", "b", EdgeType.SIMILAR_TO, 0.8, 0, START_MS - HOUR_MS)
    assert edge_rank(edge, now_ms=START_MS, half_life_min=HALF_LIFE_MIN) == pytest.approx(0.4)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(-MAX_WEIGHT, MAX_WEIGHT))
def test_a_search_score_lies_between_nothing_and_one_and_a_half_of_the_similarity(
    similarity: float, one_rank: float, feedback: float
) -> None:
    score = search_score(similarity, rank=one_rank, feedback=feedback)
    assert 0 <= score <= 1.5 * similarity + 1e-12


@given(st.floats(0, 1), st.floats(0, 0.5), st.floats(0, 0.5), st.floats(-9, 9), st.floats(0, 9))
def test_a_search_score_never_falls_with_rank_or_feedback(
    similarity: float, one_rank: float, more_rank: float, feedback: float, more_feedback: float
) -> None:
    score = search_score(similarity, rank=one_rank, feedback=feedback)
    assert search_score(similarity, rank=one_rank + more_rank, feedback=feedback) >= score
    assert search_score(similarity, rank=one_rank, feedback=feedback + more_feedback) >= score


def test_one_down_halves_a_score_and_one_up_adds_a_quarter() -> None:
    assert search_score(0.8, rank=1.0, feedback=-1.0) == pytest.approx(0.8 * 0.5)
    assert search_score(0.8, rank=1.0, feedback=1.0) == pytest.approx(0.8 * 1.25)
    assert {str(label): delta for label, delta in FEEDBACK_DELTA.items()} == {"up": 1.0, "down": -1.0, "retry": -0.5}


def test_a_graph_ranks_by_its_clock_and_orders_ties_by_id(clock: ScriptedClock) -> None:
    graph = graph_of(clock, half_life_min=HALF_LIFE_MIN)
    ids = sorted(graph.upsert_query(text) for text in ("bread", "a dog", "why"))
    assert [node.id for _, node in graph.ranked()] == ids
    graph.pin(ids[2])
    clock.advance(3_600)
    assert [graph.rank(one) for one in ids] == pytest.approx([0.1, 0.1, 1.0])
    assert [(value, node.id) for value, node in graph.ranked(NodeType.QUERY, at_ms=START_MS)] == [
        (1.0, ids[2]),
        (0.2, ids[0]),
        (0.2, ids[1]),
    ]
    assert graph.ranked(NodeType.ANSWER) == []
