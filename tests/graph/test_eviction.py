"""Eviction: a sleep cycle comes first, then the lowest ranks go, several at once. Protected nodes stay."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.graph import (
    EdgeType,
    GraphContents,
    GraphState,
)
from kalito_mcp.domain.sleep import (
    SleepCycleTrigger,
)
from kalito_mcp.errors import GraphFull
from tests.graph.graphs import graph_of, query_id, sleeping, unchanged
from tests.scripted import ScriptedClock

WORDS = ["bread", "a dog", "why not", "Turin", "seven", "parcel", "umbrella", "xylophone", "quick fox", "lazy"]
TRAIN = [f"what does the night train to Oslo cost in {year}" for year in range(2000, 2030)]


def kept(graph_nodes: set[str]) -> list[str]:
    return [word for word in WORDS if query_id(word) in graph_nodes]


@given(
    st.lists(st.sampled_from([*WORDS, *TRAIN]), max_size=40),
    st.integers(1, 8),
    st.integers(0, 6),
    st.integers(0, 4),
    st.sets(st.sampled_from([*WORDS, *TRAIN])),
)
def test_a_graph_is_never_larger_than_it_may_be_and_keeps_what_is_pinned(
    texts: list[str], max_nodes: int, max_edges: int, protect_min_degree: int, pinned: set[str]
) -> None:
    graph = graph_of(ScriptedClock(), max_nodes=max_nodes, max_edges=max_edges, protect_min_degree=protect_min_degree)
    must_stay: set[str] = set()
    for text in texts:
        try:
            node_id = graph.upsert_query(text)
        except GraphFull:
            assert graph.stats().nodes == max_nodes
            continue
        if text in pinned:
            graph.pin(node_id)
            must_stay.add(node_id)
        assert graph.stats().nodes <= max_nodes
        assert graph.stats().edges <= max_edges
        assert must_stay <= {node.id for node in graph.nodes()}


def test_the_lowest_ranks_go_and_the_oldest_of_equal_ones(clock: ScriptedClock) -> None:
    graph = graph_of(clock, max_nodes=4)
    for word in WORDS[:4]:
        graph.upsert_query(word)
        clock.advance(1)
    graph.adjust_weights(query_id(WORDS[0]), feedback_delta=1)
    graph.upsert_query(WORDS[4])
    assert kept({node.id for node in graph.nodes()}) == [WORDS[0], *WORDS[2:5]]
    graph.adjust_weights(query_id(WORDS[3]), feedback_delta=-1)
    graph.upsert_query(WORDS[5])
    assert kept({node.id for node in graph.nodes()}) == [WORDS[0], WORDS[2], *WORDS[4:6]]


def test_of_equal_ranks_and_ages_the_lesser_id_goes(clock: ScriptedClock) -> None:
    graph = graph_of(clock, max_nodes=4)
    ids = sorted(graph.upsert_query(word) for word in WORDS[:4])
    graph.upsert_query(WORDS[4])
    assert not graph.has(ids[0])
    assert all(graph.has(one) for one in ids[1:])


def test_nodes_of_many_edges_stay(clock: ScriptedClock) -> None:
    graph = graph_of(clock, max_nodes=4, protect_min_degree=2)
    hub, *others = (graph.upsert_query(word) for word in WORDS[:4])
    for other in others[:2]:
        graph.link(hub, other, "refers_to_entity", 1.0)
        graph.pin(other)
    graph.adjust_weights(hub, feedback_delta=-50)
    clock.advance(10**7)
    for word in WORDS[4:]:
        graph.upsert_query(word)
    assert graph.has(hub)


def test_with_zero_no_degree_protects(clock: ScriptedClock) -> None:
    graph = graph_of(clock, max_nodes=2, protect_min_degree=0)
    for word in WORDS[:3]:
        graph.upsert_query(word)
    assert graph.stats().nodes == 2


def test_a_graph_of_pinned_nodes_refuses_and_is_unchanged(clock: ScriptedClock) -> None:
    graph = graph_of(clock, max_nodes=3)
    sleeping(graph)
    ids = [graph.upsert_query(text) for text in TRAIN[:3]]
    for one in ids:
        graph.pin(one)
    with unchanged(graph), pytest.raises(GraphFull, match="unpin some"):
        graph.upsert_query("one more", record_id="msg_1")
    with unchanged(graph), pytest.raises(GraphFull):
        graph.upsert_answer(ids[0], "yes")
    with unchanged(graph), pytest.raises(GraphFull):
        graph.record_feedback(ids[0], "up")
    assert graph.upsert_query(TRAIN[0]) == ids[0]
    graph.pin(ids[0], False)
    graph.upsert_query("one more")
    assert not graph.has(ids[0])


def test_what_a_new_node_is_linked_from_is_not_evicted_for_it(clock: ScriptedClock) -> None:
    graph = graph_of(clock, max_nodes=2)
    old = graph.upsert_query("bread")
    graph.adjust_weights(old, feedback_delta=-5)
    graph.upsert_query("a dog")
    answer = graph.upsert_answer(old, "yes")
    assert {node.id for node in graph.nodes()} == {old, answer}
    feedback = graph.record_feedback(old, "up")
    assert {node.id for node in graph.nodes()} == {old, feedback}


def test_a_sleep_cycle_comes_first_and_says_so(clock: ScriptedClock) -> None:
    graph = graph_of(clock, max_nodes=6)
    listening = sleeping(graph)
    for text in [*TRAIN[:4], *WORDS[:2]]:
        graph.upsert_query(text)
    assert listening.reports == []
    graph.upsert_query("one more")
    [report] = listening.reports
    assert report.trigger is SleepCycleTrigger.EVICTION
    assert report.freed_capacity == 3
    # What it freed was enough: nothing had to go.
    assert all(graph.has(query_id(text)) for text in [*TRAIN[:4], *WORDS[:2], "one more"])
    assert graph.stats().nodes == 4


def test_within_the_cooldown_nodes_go_without_a_sleep_cycle(clock: ScriptedClock) -> None:
    graph = graph_of(clock, max_nodes=3)
    listening = sleeping(graph, cooldown_ms=60_000)
    for word in WORDS[:6]:
        graph.upsert_query(word)
    assert len(listening.reports) == 1
    clock.advance(60)
    graph.upsert_query(WORDS[6])
    assert len(listening.reports) == 2
    assert graph.stats().nodes == 3


def test_a_node_merged_while_room_was_made_is_linked_as_its_anchor(clock: ScriptedClock) -> None:
    graph = graph_of(clock, max_nodes=3)
    sleeping(graph)
    ids = [graph.upsert_query(text) for text in TRAIN[:3]]
    answer = graph.upsert_answer(ids[2], "90 euros")
    [query] = (node for node in graph.nodes() if node.id != answer)
    assert graph.node(ids[2]).id == query.id
    [edge] = graph.edges()
    assert (edge.from_id, edge.type, edge.to_id) == (query.id, EdgeType.RESPONDED_WITH, answer)


def test_feedback_that_gets_its_target_merged_still_reaches_the_neighbours(clock: ScriptedClock) -> None:
    graph = graph_of(clock, max_nodes=4, diffusion=1.0)
    sleeping(graph)
    ids = [graph.upsert_query(text) for text in TRAIN[:3]]
    other = graph.upsert_query("bread")
    for one in ids:
        graph.link(one, other, "similar_to", 0.75)
    graph.adjust_weights(ids[0], repeat_delta=1)
    graph.record_feedback(ids[2], "down")
    assert graph.node(ids[2]).id == ids[0]
    assert graph.node(ids[0]).weights.feedback == -1.0
    assert graph.node(other).weights.feedback == -0.75


def test_a_twentieth_goes_at_once(clock: ScriptedClock) -> None:
    graph = graph_of(clock, max_nodes=100, tau_sim=1.0, tau_dup=1.0)
    for number in range(100):
        graph.upsert_query(f"{number}")
    graph.drain_changes()
    graph.upsert_query("one more")
    assert len(graph.drain_changes().removed_nodes) == 5
    for number in range(4):
        graph.upsert_query(f"and {number}")
    assert graph.drain_changes().removed_nodes == []
    assert graph.stats().nodes == 100


def test_the_weakest_edges_go_a_twentieth_at_once_and_never_those_of_pinned_nodes(clock: ScriptedClock) -> None:
    graph = graph_of(clock, max_edges=40, tau_sim=1.0, tau_dup=1.0)
    hub, pinned = graph.upsert_query("hub"), graph.upsert_query("pinned")
    others = [graph.upsert_query(f"{number}") for number in range(42)]
    graph.pin(pinned)
    graph.link(pinned, hub, "similar_to", 0.0)
    for place, other in enumerate(others[:39]):
        graph.link(hub, other, "similar_to", 0.5 + place / 100)
    graph.drain_changes()
    graph.link(hub, others[39], "similar_to", 0.9)
    gone = graph.drain_changes().removed_edges
    assert {end for key in gone for end in (key[0], key[2])} == {hub, others[0], others[1]}
    graph.link(hub, others[40], "similar_to", 0.9)
    assert graph.drain_changes().removed_edges == []
    assert graph.stats().edges == 40


def test_an_edge_that_was_not_met_for_long_goes_before_a_weaker_one(clock: ScriptedClock) -> None:
    graph = graph_of(clock, max_edges=2, half_life_min=60.0)
    ids = [graph.upsert_query(word) for word in WORDS[:4]]
    graph.link(ids[0], ids[1], "similar_to", 0.9)
    clock.advance(7_200)
    graph.link(ids[0], ids[2], "similar_to", 0.3)
    graph.link(ids[0], ids[3], "similar_to", 0.9)
    assert {edge.weight for edge in graph.edges_of(ids[0])} == {0.3, 0.9}
    assert graph.edges_of(ids[1]) == []


def test_a_node_that_comes_from_another_graph_makes_room_too(clock: ScriptedClock) -> None:
    session = graph_of(clock)
    node = session.node(session.upsert_query("bread"))
    agent = graph_of(clock, max_nodes=2)
    kept_id, gone = agent.upsert_query("a dog"), agent.upsert_query("why not")
    agent.merge_node(node, carry_weights=True, keep={kept_id})
    assert (agent.has(kept_id), agent.has(gone), agent.has(node.id)) == (True, False, True)


def test_what_is_evicted_is_forgotten_with_its_record(clock: ScriptedClock) -> None:
    graph = graph_of(clock, max_nodes=1)
    graph.upsert_query("bread", record_id="msg_1")
    graph.upsert_query("a dog", record_id="msg_2")
    assert graph.node_of_record("msg_1") is None
    assert graph.search_similar_queries("bread") == []
    assert graph.node(graph.upsert_query("bread")).weights.repeat == 1.0


def test_a_stored_graph_that_is_too_large_shrinks_to_its_limits(
    clock: ScriptedClock,
) -> None:
    stored = graph_of(clock)
    ids = [stored.upsert_query(text) for text in [*TRAIN[:3], *WORDS]]
    changes = stored.drain_changes()
    graph = graph_of(clock, max_nodes=4)
    sleeping(graph)
    contents = GraphContents(changes.nodes, changes.edges, GraphState(embedder=graph.embedder_fingerprint))
    graph.absorb(contents)
    for one in ids[:3]:
        graph.adjust_weights(one, feedback_delta=-5)
    graph.adjust_weights(ids[0], feedback_delta=1)
    answer = graph.upsert_answer(ids[2], "90 euros")
    [edge] = graph.edges_of(answer)
    assert edge.from_id == graph.node(ids[2]).id == ids[0]
    assert graph.stats().nodes == 4
