"""Snapshots restore the same graph, whoever wrote them.

An invalid one is an error that says where, and changes nothing.
"""

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.graph import GraphConfig
from kalito_mcp.errors import InvalidInput
from kalito_mcp.graph.hashing import HashingEmbedder
from kalito_mcp.graph.store import GraphStore
from tests.graph.graphs import graph_of, query_id, sleeping, unchanged
from tests.scripted import START_MS, ScriptedClock

TRAIN = [f"what does the night train to Oslo cost in {year}" for year in range(2019, 2023)]
Snapshot = dict[str, Any]


def full_graph(clock: ScriptedClock) -> GraphStore:
    """A graph with something in every field."""
    graph = graph_of(clock)
    for number, text in enumerate([*TRAIN, "is there a dog", "Zürich → 東京 🚆"]):
        node_id = graph.upsert_query(text, record_id=f"msg_{number}")
    sleeping(graph)
    graph.run_sleep_cycle(similarity_threshold=0.97)
    graph.upsert_answer(node_id, "By plane.", record_id="msg_9")
    graph.upsert_entity("Oslo", of=[query_id(TRAIN[0])])
    graph.record_feedback(query_id(TRAIN[1]), "up", "good")
    graph.pin(node_id)
    return graph


def taken(data: Any, **config: Any) -> GraphStore:
    graph = GraphStore(GraphConfig(**config))
    graph.from_snapshot(data)
    return graph


def test_a_snapshot_makes_the_same_graph_also_through_json(clock: ScriptedClock) -> None:
    snapshot = full_graph(clock).to_snapshot()
    assert taken(snapshot).to_snapshot() == snapshot
    text = json.dumps(snapshot, allow_nan=False)
    assert taken(json.loads(text)).to_snapshot() == snapshot
    assert json.dumps(taken(json.loads(text)).to_snapshot()) == text


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60).filter(str.strip), max_size=8)
)
def test_any_texts_come_back_bit_for_bit(texts: list[str]) -> None:
    graph = graph_of(ScriptedClock())
    for text in texts:
        graph.upsert_query(text)
    snapshot = graph.to_snapshot()
    assert taken(json.loads(json.dumps(snapshot))).to_snapshot() == snapshot


def test_a_snapshot_answers_as_its_graph_did(clock: ScriptedClock) -> None:
    graph = full_graph(clock)
    again = GraphStore(now_ms=clock.now_ms)
    again.from_snapshot(graph.to_snapshot())
    assert again.search_similar_queries("the night train to Oslo") == graph.search_similar_queries(
        "the night train to Oslo"
    )
    assert again.node_of_record("msg_1") == graph.node_of_record("msg_1") is not None
    assert [value for value, _ in again.ranked()] == [value for value, _ in graph.ranked()]
    assert again.upsert_query(TRAIN[0]) == graph.upsert_query(TRAIN[0])


def test_a_snapshot_has_every_key_of_the_format(clock: ScriptedClock) -> None:
    graph = graph_of(clock)
    first, second = (graph.upsert_query(text) for text in TRAIN[:2])
    snapshot = graph.to_snapshot()
    node, edge = snapshot["graph"]["nodes"][0], snapshot["graph"]["edges"][0]
    assert snapshot.keys() == {"version", "graph", "embedder", "canonical_meta"}
    assert node.keys() == {
        "id",
        "type",
        "text",
        "canonical_key",
        "embedding",
        "created_at",
        "last_access",
        "weights",
        "degree",
    }
    assert (node["id"], node["weights"], node["degree"]) == (first, {"repeat": 1.0, "feedback": 0.0}, 1)
    assert (node["created_at"], node["last_access"]) == (START_MS, START_MS)
    assert all(isinstance(index, int) and isinstance(value, float) for index, value in node["embedding"])
    assert math.isclose(sum(value**2 for _, value in node["embedding"]), 1.0, rel_tol=1e-5)
    assert edge.keys() == {"id", "from", "to", "type", "weight", "created_at", "last_access"}
    assert {edge["from"], edge["to"]} == {first, second}
    assert edge["id"] == f"{edge['from']}::similar_to::{edge['to']}"


def test_camel_case_and_a_missing_version_are_accepted(clock: ScriptedClock) -> None:
    snapshot = full_graph(clock).to_snapshot()

    def camel(value: Any) -> Any:
        if isinstance(value, list):
            return [camel(one) for one in value]
        if not isinstance(value, dict):
            return value
        return {
            name.split("_")[0] + "".join(part.capitalize() for part in name.split("_")[1:]): camel(one)
            for name, one in value.items()
        }

    written = camel(snapshot)
    assert "canonicalMeta" in written
    del written["version"]
    assert taken(written).to_snapshot() == snapshot


def test_vectors_that_are_not_of_unit_length_are_scaled_and_then_stay(clock: ScriptedClock) -> None:
    snapshot = graph_of_one(clock)
    snapshot["graph"]["nodes"][0]["embedding"] = [[5, 4], [2, 3.0], [9, 0.0]]
    scaled = taken(snapshot).to_snapshot()
    assert scaled["graph"]["nodes"][0]["embedding"] == [[2, pytest.approx(0.6)], [5, pytest.approx(0.8)]]
    assert taken(scaled).to_snapshot() == scaled


def graph_of_one(clock: ScriptedClock) -> Snapshot:
    graph = graph_of(clock)
    graph.upsert_query("bread")
    return graph.to_snapshot()


def test_missing_vectors_are_made(clock: ScriptedClock) -> None:
    snapshot = full_graph(clock).to_snapshot()
    stripped = json.loads(json.dumps(snapshot))
    for node in stripped["graph"]["nodes"]:
        node.pop("embedding", None)
    assert taken(stripped).search_similar_queries("is there a dog")[0].sim == pytest.approx(1.0)


def test_degrees_are_counted_whatever_the_snapshot_says(clock: ScriptedClock) -> None:
    snapshot = full_graph(clock).to_snapshot()
    wrong = json.loads(json.dumps(snapshot))
    for node in wrong["graph"]["nodes"]:
        node["degree"] = 77
    assert taken(wrong).to_snapshot() == snapshot


def test_a_similarity_that_runs_the_other_way_is_turned(clock: ScriptedClock) -> None:
    graph = graph_of(clock)
    for text in TRAIN[:2]:
        graph.upsert_query(text)
    snapshot = graph.to_snapshot()
    turned = json.loads(json.dumps(snapshot))
    [edge] = turned["graph"]["edges"]
    edge["from"], edge["to"] = edge["to"], edge["from"]
    edge["id"] = f"{edge['from']}::similar_to::{edge['to']}"
    assert taken(turned).to_snapshot() == snapshot


def node_edit(**fields: Any) -> Callable[[Snapshot], None]:
    return lambda data: data["graph"]["nodes"][0].update(fields)


def edge_edit(**fields: Any) -> Callable[[Snapshot], None]:
    return lambda data: data["graph"]["edges"][0].update(fields)


def remove(*path: str | int) -> Callable[[Snapshot], None]:
    def edit(data: Any) -> None:
        for name in path[:-1]:
            data = data[name]
        del data[path[-1]]

    return edit


def twice(kind: str) -> Callable[[Snapshot], None]:
    return lambda data: data["graph"][kind].append(dict(data["graph"][kind][0]))


BAD: dict[str, tuple[str, Callable[[Snapshot], Any]]] = {
    "another version": ("version 2.*upgrade", lambda data: data.update(version=2)),
    "version as a text": ("version '1'", lambda data: data.update(version="1")),
    "another embedder": ("dim is 1024 there and 16384 here", lambda data: data["embedder"].update(dim=1024)),
    "another seed": ("seed is 7 there", lambda data: data["embedder"].update(seed=7)),
    "another kind": ("kind is 'model'", lambda data: data["embedder"].update(kind="model")),
    "no embedder": ("no embedder", remove("embedder")),
    "other keys": ("other key settings", lambda data: data["canonical_meta"].update(norm_version=0)),
    "no meta": ("no canonical_meta", remove("canonical_meta")),
    "no graph": ("graph is not an object", remove("graph")),
    "no nodes": (r"graph\.nodes should be of type list", remove("graph", "nodes")),
    "edges as an object": (r"graph\.edges should be of type list", lambda data: data["graph"].update(edges={})),
    "unknown key of the graph": ("unknown key 'labels'", lambda data: data["graph"].update(labels=[])),
    "node as a list": (r"graph\.nodes\[0\] is not an object", lambda data: data["graph"]["nodes"].__setitem__(0, [])),
    "node twice": ("node 'query_.*' is there twice; give a file that kalito wrote", twice("nodes")),
    "edge twice": ("edge 'query_.*' is there twice", twice("edges")),
    "dangling edge": ("leads to the missing node", remove("graph", "nodes", 0)),
    "unknown key of a node": (r"graph\.nodes\[0\] has an unknown key 'colour'", node_edit(colour="red")),
    "unknown key of weights": ("unknown key 'x'", lambda data: data["graph"]["nodes"][0]["weights"].update(x=1)),
    "unknown key of an edge": (r"graph\.edges\[0\] has an unknown key 'label'", edge_edit(label="")),
    "no id": (r"nodes\[0\]\.id should be of type str", remove("graph", "nodes", 0, "id")),
    "empty id": (r"nodes\[0\]\.id is empty", node_edit(id="")),
    "unknown node type": ("type='thought' is not one of query", node_edit(type="thought")),
    "type of the wrong type": ("type should be of type str", node_edit(type=1)),
    "text as a number": ("text should be of type str", node_edit(text=5)),
    "text that is no Unicode": ("text has an unpaired surrogate", node_edit(text="\ud800")),
    "no moment": ("created_at should be of type int", remove("graph", "nodes", 0, "created_at")),
    "moment as a text": ("last_access should be of type int", node_edit(last_access="2026-03-04")),
    "moment true": ("last_access should be of type int", node_edit(last_access=True)),
    "moment out of all years": ("outside the years", node_edit(last_access=-(10**400))),
    "pinned as a number": ("pinned should be of type bool", node_edit(pinned=1)),
    "sources as a text": ("source_node_ids should be of type list", node_edit(source_node_ids="query_1")),
    "sources as numbers": ("source_record_ids should be a list of strings", node_edit(source_record_ids=[1])),
    "source that is no Unicode": ("source_node_ids has an unpaired", node_edit(source_node_ids=["\udfff"])),
    "weights missing": ("weights should be of type dict", remove("graph", "nodes", 0, "weights")),
    "weight NaN": ("repeat should be a finite", node_edit(weights={"repeat": math.nan, "feedback": 0})),
    "weight infinite": ("feedback should be a finite", node_edit(weights={"repeat": 1, "feedback": -math.inf})),
    "weight as a text": ("repeat should be a finite", node_edit(weights={"repeat": "1", "feedback": 0})),
    "weight too small": ("repeat must be at least 1", node_edit(weights={"repeat": 0, "feedback": 0})),
    "weight too large": ("neither may exceed", node_edit(weights={"repeat": 1, "feedback": 1e300})),
    "whole number too large": ("feedback should be a finite", node_edit(weights={"repeat": 1, "feedback": 10**400})),
    "embedding as an object": ("embedding should be of type list", node_edit(embedding={"1": 1.0})),
    "embedding of numbers": (r"embedding should be \[\[index, value\]", node_edit(embedding=[1, 2])),
    "embedding of triples": (r"embedding should be \[\[index, value\]", node_edit(embedding=[[1, 2, 3]])),
    "embedding of uneven parts": (r"embedding should be \[\[index, value\]", node_edit(embedding=[[1, 2], [3]])),
    "embedding of texts": (r"embedding should be \[\[index, value\]", node_edit(embedding=[["1", "2"]])),
    "embedding of objects": (r"embedding should be \[\[index, value\]", node_edit(embedding=[{}])),
    "embedding with a part of an index": ("not a whole number", node_edit(embedding=[[1.5, 1.0]])),
    "embedding beyond its dimensions": (r"0\.\.16,383", node_edit(embedding=[[16_384, 1.0]])),
    "embedding with an index below": ("not a whole number", node_edit(embedding=[[-1, 1.0]])),
    "embedding with an index twice": ("repeated", node_edit(embedding=[[1, 1.0], [1, 2.0]])),
    "embedding NaN": ("not finite", node_edit(embedding=[[1, math.nan]])),
    "embedding index NaN": ("not a whole number", node_edit(embedding=[[math.nan, 1.0]])),
    "unknown edge type": ("type='likes' is not one of similar_to", edge_edit(type="likes")),
    "edge weight NaN": ("weight should be a finite", edge_edit(weight=math.nan)),
    "edge weight below": ("a weight of at least 0", edge_edit(weight=-0.5)),
    "edge with another name": ("has the id from::type::to", edge_edit(id="x")),
    "edge to itself": ("two different ends", lambda data: data["graph"]["edges"].__setitem__(0, self_edge(data))),
}


def self_edge(data: Snapshot) -> Snapshot:
    edge = {name: value for name, value in data["graph"]["edges"][0].items() if name != "id"}
    return {**edge, "to": edge["from"]}


@pytest.mark.parametrize("name", BAD)
def test_a_snapshot_that_is_wrong_is_refused_and_the_graph_is_as_it_was(clock: ScriptedClock, name: str) -> None:
    words, edit = BAD[name]
    graph = full_graph(clock)
    data = graph.to_snapshot()
    edit(data)
    with unchanged(graph), pytest.raises(InvalidInput, match=words):
        graph.from_snapshot(data)
    assert graph.node_of_record("msg_4") == query_id("is there a dog")


@pytest.mark.parametrize("data", [None, [], "snapshot", 1, {}, {"version": 1}])
def test_what_is_no_snapshot_is_refused(clock: ScriptedClock, data: Any) -> None:
    graph = full_graph(clock)
    with unchanged(graph), pytest.raises(InvalidInput, match="snapshot"):
        graph.from_snapshot(data)


def test_a_snapshot_of_another_embedder_is_refused(clock: ScriptedClock) -> None:
    graph = GraphStore(embedder=HashingEmbedder(dim=1_024))
    with unchanged(graph), pytest.raises(InvalidInput, match="dim is 16384 there and 1024 here"):
        graph.from_snapshot(full_graph(clock).to_snapshot())


@pytest.mark.parametrize("config", [{"max_nodes": 3}, {"max_edges": 1}])
def test_a_snapshot_that_is_larger_than_the_graph_may_be_is_refused(
    clock: ScriptedClock, config: dict[str, int]
) -> None:
    graph = graph_of(clock, **config)
    graph.upsert_query("bread")
    with unchanged(graph), pytest.raises(InvalidInput, match="raise max_nodes and max_edges"):
        graph.from_snapshot(full_graph(clock).to_snapshot())


def test_what_a_snapshot_replaced_is_removed_from_the_stored_graph(clock: ScriptedClock) -> None:
    graph = graph_of(clock)
    gone, stays = graph.upsert_query("a dog"), query_id("bread")
    graph.drain_changes()
    graph.from_snapshot(graph_of_one(clock))
    changes = graph.drain_changes()
    assert [node.id for node in changes.nodes] == [stays]
    assert changes.removed_nodes == [gone]
