"""Feedback: its targets, its weight, how far it reaches, and its effect on a search."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.graph import EdgeType, FeedbackLabel, NodeType
from kalito_mcp.errors import InvalidInput
from kalito_mcp.graph.canonical import canonical_key
from kalito_mcp.graph.network import MAX_SIMILAR
from tests.graph.graphs import edge_of, graph_of, query_id, seen, unchanged, weighed
from tests.scripted import ScriptedClock

TRAIN = [f"what does the night train to Oslo cost in {year}" for year in range(2019, 2026)]


@pytest.mark.parametrize(("label", "delta"), [("up", 1.0), ("down", -1.0), ("retry", -0.5)])
def test_feedback_is_a_node_and_moves_the_weight_of_its_target(clock: ScriptedClock, label: str, delta: float) -> None:
    graph = graph_of(clock)
    query = graph.upsert_query("bread")
    node = graph.node(graph.record_feedback(query, label, "as I like it"))
    assert (node.type, node.text) == (NodeType.FEEDBACK, f"{label}: as I like it")
    [edge] = graph.edges()
    assert (edge.from_id, edge.type, edge.to_id) == (query, EdgeType.HAS_FEEDBACK, node.id)
    assert graph.node(query).weights.feedback == delta


def test_the_same_feedback_again_counts_once_more_and_is_one_node(clock: ScriptedClock) -> None:
    graph = graph_of(clock)
    query = graph.upsert_query("bread")
    first = graph.record_feedback(query, FeedbackLabel.UP)
    assert graph.record_feedback(query, "up", "") == first
    assert graph.record_feedback(query, "down") != first
    assert (graph.node(first).weights.repeat, graph.node(query).weights.feedback) == (2.0, 1.0)
    assert (graph.stats().nodes, graph.stats().edges) == (3, 2)


def test_the_same_words_on_two_queries_are_two_nodes(clock: ScriptedClock) -> None:
    graph = graph_of(clock)
    given = [graph.record_feedback(graph.upsert_query(text), "up") for text in ("bread", "a dog")]
    assert len(set(given)) == 2


def test_an_answer_takes_feedback_too_and_nothing_else_does(clock: ScriptedClock) -> None:
    graph = graph_of(clock)
    query = graph.upsert_query("to Oslo")
    answer = graph.upsert_answer(query, "By train.")
    feedback = graph.record_feedback(answer, "up")
    assert graph.node(answer).weights.feedback == 1.0
    assert graph.node(query).weights.feedback == 0.0
    for other in (feedback, graph.upsert_entity("Oslo", of=[query])):
        with unchanged(graph), pytest.raises(InvalidInput, match="a query or an answer"):
            graph.record_feedback(other, "up")


@pytest.mark.parametrize("text", ["", "what does the night train to Oslo cost"])
def test_down_on_one_of_two_that_are_equally_near_puts_it_below_the_other(clock: ScriptedClock, text: str) -> None:
    for disliked in (0, 1):
        graph = graph_of(clock, tau_dup=1.0)
        ids = [graph.upsert_query(one) for one in TRAIN[:2]]
        asked = text or TRAIN[disliked]
        graph.record_feedback(ids[disliked], "down")
        hits = graph.search_similar_queries(asked)
        assert [hit.id for hit in hits] == [ids[1 - disliked], ids[disliked]]
        graph.record_feedback(ids[disliked], "up")
        graph.record_feedback(ids[disliked], "up")
        assert graph.search_similar_queries(asked)[0].id == ids[disliked]


def test_near_duplicates_are_shown_as_the_one_that_is_liked(clock: ScriptedClock) -> None:
    graph = graph_of(clock, tau_dup=0.9)
    first, second = (graph.upsert_query(text) for text in TRAIN[:2])
    graph.record_feedback(second, "up")
    [hit] = graph.search_similar_queries(TRAIN[0])
    assert (hit.id, hit.collapsed_ids) == (second, (first,))


def test_similar_queries_get_their_share_by_the_weight_of_their_edge(clock: ScriptedClock) -> None:
    graph = graph_of(clock, diffusion=0.2)
    first, second = (graph.upsert_query(text) for text in TRAIN[:2])
    edge = edge_of(graph, first, second)
    assert edge is not None
    graph.record_feedback(first, "down")
    assert graph.node(second).weights.feedback == pytest.approx(-0.2 * edge.weight)


def test_with_diffusion_off_only_the_target_gets_feedback(clock: ScriptedClock) -> None:
    graph = graph_of(clock, diffusion=0.0)
    ids = [graph.upsert_query(text) for text in TRAIN]
    graph.record_feedback(ids[0], "up")
    assert [graph.node(one).weights.feedback for one in ids] == [1.0, *[0.0] * (len(ids) - 1)]


def test_feedback_reaches_no_farther_than_one_step_and_only_along_similarities(clock: ScriptedClock) -> None:
    graph = graph_of(clock, diffusion=1.0)
    target, near, far, answered = (graph.upsert_query(text) for text in ("bread", "a dog", "why", "when"))
    answer = graph.upsert_answer(target, "At noon.")
    graph.link(target, near, "similar_to", 0.9)
    graph.link(near, far, "similar_to", 0.9)
    graph.link(target, answered, "refers_to_entity", 1.0)
    graph.record_feedback(target, "up")
    feedback = [graph.node(one).weights.feedback for one in (target, near, far, answered, answer)]
    assert feedback == pytest.approx([1.0, 0.9, 0.0, 0.0, 0.0])


def test_feedback_reaches_at_most_32_neighbours_the_nearest_first(clock: ScriptedClock) -> None:
    graph = graph_of(clock, tau_sim=1.0, tau_dup=1.0)
    target = graph.upsert_query("bread")
    others = [graph.upsert_query(f"{number}") for number in range(40)]
    for place, other in enumerate(others):
        graph.link(target, other, "similar_to", 0.9 - place / 100)
    graph.record_feedback(target, "up")
    reached = [graph.node(other).weights.feedback > 0 for other in others]
    assert reached == [True] * MAX_SIMILAR + [False] * (40 - MAX_SIMILAR)


@given(st.floats(0, 1), st.floats(0, 50), st.sampled_from(FeedbackLabel))
def test_no_neighbour_gets_more_than_the_target(diffusion: float, weight: float, label: FeedbackLabel) -> None:
    graph = graph_of(ScriptedClock(), diffusion=diffusion)
    target, other = graph.upsert_query("bread"), graph.upsert_query("a dog")
    graph.link(target, other, "similar_to", weight)
    graph.record_feedback(target, label)
    assert abs(graph.node(other).weights.feedback) <= abs(graph.node(target).weights.feedback) * diffusion


def test_what_diffuses_is_to_be_stored(clock: ScriptedClock) -> None:
    graph = graph_of(clock)
    ids = [graph.upsert_query(text) for text in TRAIN[:3]]
    graph.drain_changes()
    feedback = graph.record_feedback(ids[0], "up")
    changes = graph.drain_changes()
    assert {node.id for node in changes.nodes} == {*ids, feedback}
    assert len(changes.edges) == 1


def test_the_id_of_feedback_is_made_of_its_target_and_its_words(clock: ScriptedClock) -> None:
    graph = graph_of(clock)
    query = graph.upsert_query("bread")
    assert graph.record_feedback(query, "up") == f"feedback_{canonical_key(query_id('bread') + ' up')}"
    assert set(weighed(graph)) == {query, f"feedback_{canonical_key(query + ' up')}"}


@pytest.mark.parametrize("label", list(FeedbackLabel))
def test_feedback_that_is_taken_back_leaves_nothing_behind(clock: ScriptedClock, label: FeedbackLabel) -> None:
    graph = graph_of(clock, diffusion=0.2)
    target, _ = (graph.upsert_query(text) for text in TRAIN[:2])
    graph.record_feedback(target, "up", "as before")
    whole = seen(graph)
    graph.record_feedback(target, label)
    assert graph.withdraw_feedback(target, label)
    assert seen(graph) == whole
    graph.record_feedback(target, label)
    before = graph.node(target).weights.feedback
    node = graph.record_feedback(target, label)
    assert graph.withdraw_feedback(target, label)
    assert (graph.node(target).weights.feedback, graph.node(node).weights.repeat) == (before, 1.0)


def test_only_feedback_of_this_label_is_taken_back(clock: ScriptedClock) -> None:
    graph = graph_of(clock)
    target = graph.upsert_query("bread")
    entity = graph.upsert_entity("bread", of=[target])
    graph.record_feedback(target, "up")
    with unchanged(graph):
        assert not graph.withdraw_feedback(target, "down")
        with pytest.raises(InvalidInput, match="fine"):
            graph.withdraw_feedback(target, "fine")
        with pytest.raises(InvalidInput, match="a query or an answer"):
            graph.withdraw_feedback(entity, "up")
