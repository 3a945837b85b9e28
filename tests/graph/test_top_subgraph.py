"""The best questions of a graph, and the nodes that belong to them."""

import pytest

from kalito_mcp.graph.store import GraphStore
from kalito_mcp.graph.top_subgraph import top_subgraph

NOW_MS = 1_772_600_767_089


@pytest.fixture
def graph() -> GraphStore:
    """Two questions. The second is the better one."""
    store = GraphStore(now_ms=lambda: NOW_MS)
    for question, answer, about, label in (
        ("Where is Ann?", "In Oslo.", "Oslo", "down"),
        ("Who drives the car?", "Bob does.", "Bob", "up"),
    ):
        query_id = store.upsert_query(question)
        answer_id = store.upsert_answer(query_id, answer)
        store.upsert_entity("Keller", of=[query_id])
        store.upsert_entity(about, of=[answer_id])
        store.record_feedback(answer_id, label)
        store.record_feedback(query_id, label)
    return store


def texts(graph: GraphStore) -> set[str]:
    return {node.text or "" for node in graph.nodes()}


def test_the_best_question_comes_with_all_that_belongs_to_it_and_its_answers(graph: GraphStore) -> None:
    chosen = top_subgraph(graph, 1)
    assert texts(chosen) == {"Who drives the car?", "Bob does.", "Keller", "Bob", "up"}
    assert len([node for node in chosen.nodes() if node.text == "up"]) == 2
    assert chosen.stats().edges == 5


def test_as_many_as_there_are_is_the_whole_graph(graph: GraphStore) -> None:
    assert top_subgraph(graph, 100).to_snapshot() == graph.to_snapshot()


@pytest.mark.parametrize("top_k", [0, -1])
def test_none_is_an_empty_graph(graph: GraphStore, top_k: int) -> None:
    assert top_subgraph(graph, top_k).stats().nodes == 0


def test_the_best_is_a_snapshot_that_can_be_loaded(graph: GraphStore) -> None:
    again = GraphStore()
    again.from_snapshot(top_subgraph(graph, 1).to_snapshot())
    assert again.to_snapshot() == top_subgraph(graph, 1).to_snapshot()


def test_the_graph_is_not_touched(graph: GraphStore) -> None:
    before = graph.to_snapshot()
    top_subgraph(graph, 1).upsert_query("What else?")
    assert graph.to_snapshot() == before
