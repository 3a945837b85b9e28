"""The network: no edge without its ends, one edge of a type between two ends, and changes until they are drained."""

import pytest

from kalito_mcp.domain.graph import EdgeType, GraphEdge, GraphNode, NodeType
from kalito_mcp.errors import InvalidInput, RecordNotFound
from kalito_mcp.graph.network import MAX_SIMILAR, Network


def node(name: str) -> GraphNode:
    return GraphNode(name, NodeType.QUERY, 0, 0)


def edge(from_id: str, to_id: str, weight: float = 1.0, kind: EdgeType = EdgeType.SIMILAR_TO) -> GraphEdge:
    return GraphEdge(from_id, to_id, kind, weight, 0, 0)


def network_of(*names: str) -> Network:
    network = Network()
    for name in names:
        network.put_node(node(name))
    return network


def test_an_edge_counts_at_both_ends_and_is_named_by_them() -> None:
    network = network_of("a", "b", "c")
    network.put_edge(edge("a", "b"))
    network.put_edge(edge("a", "b", kind=EdgeType.RESPONDED_WITH))
    network.put_edge(edge("c", "a"))
    assert [network.nodes[name].degree for name in "abc"] == [3, 2, 1]
    assert [one.id for one in network.edges_of("b")] == ["a::similar_to::b", "a::responded_with::b"]


def test_an_edge_of_a_type_between_two_ends_is_replaced_in_its_place() -> None:
    network = network_of("a", "b", "c")
    for one in (edge("a", "b"), edge("b", "c"), edge("a", "b", 0.5)):
        network.put_edge(one)
    assert [(one.id, one.weight) for one in network.edges] == [("a::similar_to::b", 0.5), ("b::similar_to::c", 1.0)]
    assert network.nodes["a"].degree == 1


def test_an_edge_needs_two_ends() -> None:
    network = network_of("a")
    with pytest.raises(RecordNotFound, match="'b'"):
        network.put_edge(edge("a", "b"))
    with pytest.raises(InvalidInput, match="itself"):
        network.put_edge(edge("a", "a"))
    assert list(network.edges) == []
    assert network.nodes["a"].degree == 0


def test_a_removed_node_takes_its_edges_along() -> None:
    network = network_of("a", "b", "c")
    network.put_edge(edge("a", "b"))
    network.put_edge(edge("b", "c"))
    network.remove_node("b")
    assert [(one.id, one.degree) for one in network.nodes.values()] == [("a", 0), ("c", 0)]
    assert list(network.edges) == list(network.edges_of("a")) == []


def test_removing_what_is_not_there_is_nothing() -> None:
    network = network_of("a")
    version = network.version
    network.remove_node("b")
    network.remove_edge(("a", EdgeType.SIMILAR_TO, "b"))
    assert network.version == version


def test_two_nodes_of_one_id_are_refused() -> None:
    network = network_of("a")
    with pytest.raises(InvalidInput, match="exists already"):
        network.put_node(node("a"))


def test_a_swapped_node_keeps_its_edges() -> None:
    network = network_of("a", "b")
    network.put_edge(edge("a", "b"))
    network.swap(node("a"))
    assert network.nodes["a"].degree == 1
    with pytest.raises(RecordNotFound):
        network.swap(node("c"))


def test_what_changed_is_drained_once_and_as_it_is_now() -> None:
    network = network_of("a", "b", "c")
    network.put_edge(edge("a", "b"))
    network.put_edge(edge("a", "b", 0.25))
    network.remove_node("c")
    changes = network.drain()
    assert [one.id for one in changes.nodes] == ["a", "b"]
    assert [(one.id, one.weight) for one in changes.edges] == [("a::similar_to::b", 0.25)]
    assert (changes.removed_nodes, changes.removed_edges) == (["c"], [])
    assert not network.drain()


def test_what_is_removed_and_added_again_is_stored() -> None:
    network = network_of("a", "b")
    network.put_edge(edge("a", "b"))
    network.drain()
    network.remove_node("a")
    network.put_node(node("a"))
    network.put_edge(edge("a", "b"))
    changes = network.drain()
    assert ([one.id for one in changes.nodes], len(changes.edges)) == (["a"], 1)
    assert (changes.removed_nodes, changes.removed_edges) == ([], [])
    assert not network.drain()


def test_replacing_a_network_removes_what_only_the_old_one_had() -> None:
    before, after = network_of("a", "b", "c"), network_of("a", "b")
    before.put_edge(edge("a", "b"))
    before.put_edge(edge("b", "c"))
    after.put_edge(edge("a", "b"))
    after.mark_replaced(before)
    changes = after.drain()
    assert changes.removed_nodes == ["c"]
    assert changes.removed_edges == [("b", EdgeType.SIMILAR_TO, "c")]
    assert after.version > before.version


def test_an_empty_network_in_the_place_of_another_is_a_change() -> None:
    before, after = network_of("a"), Network()
    after.mark_replaced(before)
    assert after.version > before.version


def test_the_farthest_of_the_most_similar_follows_every_change() -> None:
    names = [f"n{number:02}" for number in range(MAX_SIMILAR + 2)]
    network = network_of("a", *names)
    for place, name in enumerate(names[:MAX_SIMILAR]):
        assert network.farthest_similar("a") is None
        network.put_edge(edge("a", name, 0.9 - place / 100))
    last = names[MAX_SIMILAR - 1]
    assert network.farthest_similar("a") == (-(0.9 - (MAX_SIMILAR - 1) / 100), last)
    network.put_edge(edge("a", names[MAX_SIMILAR], 1.0))
    assert network.farthest_similar("a") == (-(0.9 - (MAX_SIMILAR - 2) / 100), names[MAX_SIMILAR - 2])
    network.remove_edge(("a", EdgeType.SIMILAR_TO, names[0]))
    assert network.farthest_similar("a") == (-(0.9 - (MAX_SIMILAR - 1) / 100), last)
    network.put_edge(edge("a", last, 2.0))
    assert network.similar_to("a")[0] == (2.0, last)
    assert network.farthest_similar("a") == (-(0.9 - (MAX_SIMILAR - 2) / 100), names[MAX_SIMILAR - 2])
    network.remove_node(last)
    assert network.farthest_similar("a") is None


def test_only_similarities_count_as_similar() -> None:
    names = [f"n{number:02}" for number in range(MAX_SIMILAR)]
    network = network_of("a", *names)
    for name in names:
        network.put_edge(edge("a", name, kind=EdgeType.REFERS_TO_ENTITY))
    assert network.similar_to("a") == []
    assert network.farthest_similar("a") is None
    for name in names:
        network.put_edge(edge("a", name))
    assert network.farthest_similar("a") == (-1.0, names[-1])
