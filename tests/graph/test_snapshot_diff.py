"""The difference between two snapshots."""

from typing import Any

import pytest

from kalito_mcp.errors import InvalidInput
from kalito_mcp.graph.snapshot_diff import diff
from kalito_mcp.graph.store import GraphStore


@pytest.fixture
def graph() -> GraphStore:
    store = GraphStore(now_ms=lambda: 1_772_600_767_089)
    store.upsert_answer(store.upsert_query("Where is Ann?"), "In Oslo.")
    return store


def test_a_snapshot_does_not_differ_from_itself(graph: GraphStore) -> None:
    found = diff(graph.to_snapshot(), graph.to_snapshot())
    assert not found
    assert (found.added, found.removed, found.changed) == ((), (), ())


def test_added_removed_and_changed_nodes_are_listed(graph: GraphStore) -> None:
    before = graph.to_snapshot()
    new = graph.upsert_query("Who is Bob?")
    known = graph.upsert_query("Where is Ann?")
    graph.upsert_entity("Bob", of=[new])
    found = diff(before, graph.to_snapshot())
    assert found
    assert {node["text"] for node in found.added} == {"Who is Bob?", "Bob"}
    assert [(one["id"], one["weights"]["repeat"], two["weights"]["repeat"]) for one, two in found.changed] == [
        (known, 1, 2)
    ]
    assert (found.removed, found.added_edges, found.removed_edges) == ((), 1, 0)
    back = diff(graph.to_snapshot(), before)
    assert (back.removed, back.removed_edges, back.added) == (found.added, 1, ())


def test_another_moment_of_access_is_no_change(graph: GraphStore) -> None:
    before = graph.to_snapshot()
    after = graph.to_snapshot()
    for node in after["graph"]["nodes"]:
        node["last_access"] += 1
    assert not diff(before, after)


@pytest.mark.parametrize(
    "broken", [{}, [], None, "x", {"graph": None}, {"graph": {"nodes": 1, "edges": []}}, {"graph": {"nodes": [1]}},
               {"graph": {"nodes": [{"id": "a"}]}}, {"graph": {"nodes": {"a": 1}, "edges": []}}],
)  # fmt: skip
def test_anything_but_a_snapshot_is_refused(graph: GraphStore, broken: Any) -> None:
    with pytest.raises(InvalidInput, match="not a snapshot"):
        diff(graph.to_snapshot(), broken)
    with pytest.raises(InvalidInput, match="not a snapshot"):
        diff(broken, graph.to_snapshot())
