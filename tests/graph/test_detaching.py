"""Records leave a graph: with them goes what only they said. What others also say stays."""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from kalito_mcp.domain.graph import GraphChanges
from kalito_mcp.graph.canonical import canonical_key
from kalito_mcp.graph.entities import entities
from kalito_mcp.graph.indexed_graph import MAX_SOURCES
from kalito_mcp.graph.store import GraphStore
from tests.graph.graphs import edge_of, graph_of, linked, query_id, seen, sleeping, unchanged, weighed
from tests.graph.test_invariants import RECORDS, TEXTS, AnyUse
from tests.scripted import ScriptedClock

TRAIN = "When does the train to Oslo leave?"
NOON = "At noon, says Anna Keller."


@pytest.fixture
def graph(clock: ScriptedClock) -> GraphStore:
    return graph_of(clock)


def keys(*texts: str) -> list[str]:
    return [canonical_key(text) for text in texts]


def turn(graph: GraphStore, question: str, answer: str, *, first: int = 1) -> tuple[str, str]:
    """A question and its answer, of two records."""
    asked = graph.upsert_query(question, record_id=f"msg_{first}")
    return asked, graph.upsert_answer(asked, answer, record_id=f"msg_{first + 1}")


def merged(graph: GraphStore) -> str:
    """Three questions that sleep made one: its anchor."""
    for number, city in enumerate(("Oslo", "Oslo now", "Oslo today"), start=1):
        graph.upsert_query(f"When does the night train leave for {city}?", record_id=f"msg_{number}")
    sleeping(graph, "three trains to Oslo", similarity_threshold=0.5)
    report = graph.run_sleep_cycle(force=True, min_rank=1.0, min_cluster_size=2)
    assert report is not None
    assert graph.stats().nodes == 1
    return report.clusters[0].anchor_id


def test_a_question_that_nobody_else_asked_goes_with_its_edges(graph: GraphStore) -> None:
    asked, answered = turn(graph, TRAIN, NOON)
    graph.upsert_query("When does the train to Oslo leave today?", record_id="msg_3")
    assert graph.detach_records(["msg_1"], text_of={}) == 1
    assert not graph.has(asked)
    assert graph.node_of_record("msg_1") is None
    assert graph.node_of_record("msg_2") == answered
    assert not linked(graph)


def test_its_feedback_goes_along_and_entities_that_nobody_refers_to(graph: GraphStore) -> None:
    asked, answered = turn(graph, TRAIN, NOON)
    graph.record_feedback(answered, "up", "Anna knows")
    graph.upsert_entity("Anna Keller", of=[answered], record_id="msg_2")
    graph.upsert_entity("Oslo", of=[asked, answered], record_id="msg_1")
    graph.detach_records(["msg_2"], text_of={"msg_1": TRAIN})
    assert sorted(node.text or "" for node in graph.nodes()) == ["Oslo", TRAIN]


def test_a_pin_keeps_nothing_that_was_forgotten(graph: GraphStore) -> None:
    asked, _ = turn(graph, TRAIN, NOON)
    graph.pin(asked)
    graph.detach_records(["msg_1"], text_of={})
    assert not graph.has(asked)


def test_a_question_that_others_asked_too_stays_as_theirs_and_counts_less(graph: GraphStore) -> None:
    asked, answered = turn(graph, TRAIN, NOON)
    graph.upsert_query("WHEN does the train to Oslo leave", record_id="msg_9")
    graph.detach_records(["msg_1"], text_of={"msg_9": "WHEN does the train to Oslo leave"})
    node = graph.node(asked)
    assert (node.text, node.source_record_ids) == ("WHEN does the train to Oslo leave", ("msg_9",))
    assert weighed(graph)[asked] == (1.0, 0.0)
    assert edge_of(graph, asked, answered)


@pytest.mark.parametrize("text_of", [{}, {"msg_9": "Something else by now."}])
def test_a_source_whose_words_are_gone_keeps_nothing(graph: GraphStore, text_of: dict[str, str]) -> None:
    asked, _ = turn(graph, TRAIN, NOON)
    graph.upsert_query(TRAIN, record_id="msg_9")
    graph.detach_records(["msg_1"], text_of=text_of)
    assert not graph.has(asked)


def test_what_was_merged_says_what_is_left_of_it(graph: GraphStore) -> None:
    anchor = merged(graph)
    said = graph.node(anchor).source_record_ids
    texts = {
        f"msg_{number}": f"When does the night train leave for {city}?"
        for number, city in enumerate(("Oslo", "Oslo now", "Oslo today"), start=1)
    }
    answer = graph.upsert_answer(anchor, NOON, record_id="msg_7")
    other = graph.upsert_query("When does the night train leave for Oslo tomorrow?", record_id="msg_8")
    erased = next(one for one in said if query_id(texts[one]) == anchor)
    left = texts | {"msg_7": NOON, "msg_8": "When does the night train leave for Oslo tomorrow?"}
    del left[erased]
    assert graph.other_sources([erased]) == {one for one in said if one != erased}
    graph.detach_records([erased], text_of=left, erased_keys=keys(texts[erased]))
    [node] = [one for one in graph.nodes() if one.id not in (answer, other)]
    assert node.id == query_id(node.text or "")
    assert (node.text, node.summary) == (left[node.source_record_ids[0]], None)
    assert not graph.has(query_id(texts[erased]))
    assert all(graph.has(query_id(texts[one])) for one in node.source_record_ids)
    assert edge_of(graph, node.id, answer)
    similarity = edge_of(graph, node.id, other)
    found = {one.id: one.sim for one in graph.search_similar_queries(node.text or "")}
    assert found[node.id] == pytest.approx(1.0)
    assert similarity is not None
    assert found[other] == pytest.approx(similarity.weight)


def test_a_node_of_an_erased_text_goes_though_it_forgot_the_record(graph: GraphStore) -> None:
    for number in range(MAX_SOURCES + 2):
        asked = graph.upsert_query(TRAIN, record_id=f"msg_{number}")
    assert "msg_1" not in graph.node(asked).source_record_ids
    with unchanged(graph):
        graph.detach_records(["msg_1"], text_of={})
    assert len(graph.other_sources(["msg_1"], erased_keys=keys("when does the train to oslo leave"))) == MAX_SOURCES
    graph.detach_records(["msg_1"], text_of={"msg_5": TRAIN}, erased_keys=keys(TRAIN))
    assert graph.node(asked).source_record_ids == ("msg_5",)
    graph.detach_records(["msg_5"], text_of={}, erased_keys=keys(TRAIN))
    assert graph.stats().nodes == 0


def test_an_entity_stays_where_a_record_that_is_left_names_it(graph: GraphStore) -> None:
    first, _ = turn(graph, "Is ANNA  KELLER in Oslo?", "Yes.")
    second, _ = turn(graph, "Where is Anna Keller?", "In Oslo.", first=3)
    entity = graph.upsert_entity("Anna Keller", of=[first, second], record_id="msg_1")
    graph.upsert_entity("Anna Keller", of=[first, second], record_id="msg_3")
    graph.detach_records(["msg_3"], text_of={"msg_1": "Is ANNA  KELLER in Oslo?"})
    assert graph.node(entity).source_record_ids == ("msg_1",)
    graph.detach_records(["msg_1"], text_of={"msg_2": "Yes."})
    assert not graph.has(entity)


def test_what_is_found_in_a_text_is_contained_in_it() -> None:
    text = "Anna  Keller flies SK 4711 to  New York on May 3, pays €1,200.50, and mails ann@x.org from src/app/main.py."
    found = entities(text)
    assert len(found) > 3
    assert all(" ".join(one.casefold().split()) in " ".join(text.casefold().split()) for one in found)


def test_a_record_that_nobody_names_changes_nothing(graph: GraphStore) -> None:
    turn(graph, TRAIN, NOON)
    with unchanged(graph):
        assert graph.detach_records(["msg_77"], text_of={}, erased_keys=keys("never said")) == 0


def test_the_storage_learns_what_was_removed(graph: GraphStore) -> None:
    asked, answered = turn(graph, TRAIN, NOON)
    graph.drain_changes()
    graph.detach_records(["msg_1"], text_of={})
    changes: GraphChanges = graph.drain_changes()
    assert changes.removed_nodes == [asked]
    assert [key[2] for key in changes.removed_edges] == [answered]


class AnyUseAndForgetting(AnyUse):
    """The same graphs, with records removed in between."""

    @rule(
        gone=st.sets(st.sampled_from(RECORDS), min_size=1, max_size=3),
        text_of=st.dictionaries(st.sampled_from(RECORDS), st.sampled_from(TEXTS)),
        erased=st.lists(st.sampled_from(TEXTS), max_size=2),
    )
    def detach(self, gone: set[str], text_of: dict[str, str], erased: list[str]) -> None:
        beside = self.graph.other_sources(gone, erased_keys=keys(*erased))
        assert not beside & gone
        self.graph.detach_records(gone, text_of=text_of, erased_keys=keys(*erased))
        left = [node for node in self.graph.nodes() if not gone.isdisjoint(node.source_record_ids)]
        assert not left
        if not text_of:
            ids = {node.id for node in self.graph.nodes()}
            assert ids.isdisjoint(map(query_id, erased))
        before = seen(self.graph)
        self.graph.detach_records(gone, text_of=text_of, erased_keys=())
        assert seen(self.graph) == before


TestAnyUseAndForgetting = AnyUseAndForgetting.TestCase
TestAnyUseAndForgetting.settings = settings(stateful_step_count=20, suppress_health_check=list(HealthCheck))
