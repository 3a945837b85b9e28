"""The best of a session goes into the agent's graph: which nodes, with what, and how often it counts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.graph import EdgeType, GraphConfig, NodeType, PromotionPolicy, PromotionReport
from kalito_mcp.graph.promotion import mark_already_counted, promotable, promote
from kalito_mcp.graph.store import GraphStore

NOW_MS = 1_772_600_767_089
QUESTIONS = ("Where is Ann?", "Who drives the car?", "What does the boiler cost?", "When is the flight?")


def graph(config: GraphConfig | None = None) -> GraphStore:
    return GraphStore(config, now_ms=lambda: NOW_MS)


def answered(store: GraphStore, *questions: str, answer: str = "In Oslo.") -> list[str]:
    ids = []
    for question in questions:
        ids.append(store.upsert_query(question))
        store.upsert_answer(ids[-1], answer)
    return ids


def edges(store: GraphStore) -> list[tuple[str, str, str]]:
    names = {node.id: node.text or "" for node in store.nodes()}
    return sorted((names[edge.from_id], str(edge.type), names[edge.to_id]) for edge in store.edges())


def test_a_question_comes_with_its_answers_their_feedback_and_all_their_entities() -> None:
    session, agent = graph(), graph()
    query_id = session.upsert_query("Where is Ann?", record_id="msg_1")
    answer_id = session.upsert_answer(query_id, "In Oslo.", record_id="msg_2")
    session.upsert_entity("Ann", of=[query_id])
    session.upsert_entity("Oslo", of=[answer_id])
    session.record_feedback(query_id, "up")
    session.record_feedback(answer_id, "down", "too short")
    report = promote(session, agent, PromotionPolicy())
    assert report == PromotionReport(query_ids=(query_id,), merged=0, answers=1, entities=1)
    assert edges(agent) == edges(session)
    assert agent.node(query_id).weights == session.node(query_id).weights
    assert agent.node(answer_id).weights == session.node(answer_id).weights
    assert agent.node_of_record("msg_1") == query_id
    assert agent.node_of_record("msg_2") == answer_id


def test_what_belongs_to_several_questions_is_counted_once() -> None:
    session, agent = graph(), graph()
    ids = answered(session, *QUESTIONS)
    session.upsert_entity("Ann", of=ids)
    promote(session, agent, PromotionPolicy(min_rank=0))
    [answer] = [node for node in agent.nodes() if node.type is NodeType.ANSWER]
    [entity] = [node for node in agent.nodes() if node.type is NodeType.ENTITY]
    assert (answer.weights.repeat, answer.degree) == (4, 4)
    assert (entity.weights.repeat, entity.degree) == (1, 4)


def test_only_ranks_from_min_rank_up_and_the_best_of_them_go() -> None:
    session = graph()
    ids = answered(session, *QUESTIONS)
    session.record_feedback(ids[2], "up")
    session.record_feedback(ids[1], "down")
    best = promotable(session, PromotionPolicy(min_rank=0))
    assert best[0].id == ids[2] and best[-1].id == ids[1]
    assert [node.id for node in promotable(session, PromotionPolicy(min_rank=0, max_promotions=2))] == [
        node.id for node in best[:2]
    ]
    assert promotable(session, PromotionPolicy(max_promotions=0)) == []
    ranks = [session.rank(node.id) for node in best]
    assert [node.id for node in promotable(session, PromotionPolicy(min_rank=ranks[0]))] == [ids[2]]


def test_a_question_without_enough_edges_stays() -> None:
    session, agent = graph(), graph()
    session.upsert_query("Where is Ann?")
    assert promote(session, agent, PromotionPolicy(min_rank=0, min_degree=1)).query_ids == ()
    assert len(promote(session, agent, PromotionPolicy(min_rank=0, min_degree=0)).query_ids) == 1


def test_a_session_that_is_closed_late_is_not_forgotten() -> None:
    session = graph()
    query_id = session.upsert_query("Where is Ann?", at_ms=1_000)
    session.upsert_answer(query_id, "In Oslo.", at_ms=2_000)
    assert session.rank(query_id) < 0.001
    assert [node.id for node in promotable(session, PromotionPolicy())] == [query_id]


def test_what_the_agent_knows_is_met_once_more_with_all_its_weights() -> None:
    agent = graph()
    for repeats in (1, 3):
        session = graph()
        [query_id] = [answered(session, "Where is Ann?")[0] for _ in range(repeats)][:1]
        session.record_feedback(query_id, "up")
        report = promote(session, agent, PromotionPolicy())
        assert report.merged == (repeats == 3)
    weights = agent.node(query_id).weights
    assert (weights.repeat, weights.feedback) == (4, 2)


def test_without_carried_weights_each_session_counts_once() -> None:
    agent = graph()
    for _ in range(2):
        session = graph()
        for _ in range(5):
            [query_id] = answered(session, "Where is Ann?")
        session.record_feedback(query_id, "up")
        promote(session, agent, PromotionPolicy(carry_weights=False))
    weights = agent.node(query_id).weights
    assert (weights.repeat, weights.feedback) == (2, 0)


@pytest.mark.parametrize("label", ["up", "down", "retry"])
def test_feedback_that_was_already_counted_is_not_counted_again(label: str) -> None:
    session, agent = graph(), graph()
    [query_id] = answered(agent, "Where is Ann?")
    answered(session, "Where is Ann?")
    feedback_id = agent.record_feedback(query_id, label)
    counted = agent.node(query_id).weights.feedback
    assert session.record_feedback(query_id, label) == feedback_id
    mark_already_counted(session, feedback_id, label)
    promote(session, agent, PromotionPolicy(min_rank=0))
    assert agent.node(query_id).weights.feedback == counted
    assert agent.node(feedback_id).weights.repeat == 1
    assert agent.node(feedback_id).weights.feedback == 0


def test_feedback_already_given_to_the_anchor_is_not_counted_again() -> None:
    session, agent = graph(GraphConfig(diffusion=0)), graph(GraphConfig(diffusion=0))
    texts = [f"What does ticket {number} from Oslo to Bergen cost today?" for number in range(3)]
    answered(agent, *texts)
    agent.apply_sleep_plan(agent.plan_sleep_cycle(min_rank=1.0), {})
    [anchor] = [node.id for node in agent.nodes() if node.type is NodeType.QUERY]
    for query_id in answered(session, *texts):
        agent.record_feedback(query_id, "up")
        mark_already_counted(session, session.record_feedback(query_id, "up"), "up")
    promote(session, agent, PromotionPolicy())
    assert agent.node(anchor).weights.feedback == 3
    [feedback] = [node for node in agent.nodes() if node.type is NodeType.FEEDBACK]
    assert (feedback.weights.repeat, feedback.weights.feedback) == (3, 0)


def test_feedback_that_was_partly_promoted_adds_only_the_rest() -> None:
    session, agent = graph(), graph()
    [query_id] = answered(session, "Where is Ann?")
    session.record_feedback(query_id, "up")
    answered(agent, "Where is Ann?")
    feedback_id = agent.record_feedback(query_id, "up")
    session.record_feedback(query_id, "up")
    mark_already_counted(session, feedback_id, "up")
    promote(session, agent, PromotionPolicy())
    assert agent.node(query_id).weights.feedback == 2
    assert agent.node(feedback_id).weights.repeat == 2


def test_similarities_are_computed_again_in_the_agents_graph() -> None:
    session, agent = graph(), graph()
    [known] = answered(agent, "Where is Ann Keller staying in Oslo?")
    [new] = answered(session, "Where is Ann Keller staying in Oslo now?")
    promote(session, agent, PromotionPolicy())
    assert agent.edges_of(known)[-1].type is EdgeType.SIMILAR_TO
    assert {known, new} <= {node.id for node in agent.nodes()}


def test_a_full_agents_graph_takes_the_best_that_it_has_room_for() -> None:
    session = graph()
    ids = answered(session, *QUESTIONS)
    session.record_feedback(ids[3], "up")
    agent = graph(GraphConfig(max_nodes=4))
    agent.pin(agent.upsert_query("What never goes?"))
    report = promote(session, agent, PromotionPolicy(min_rank=0))
    assert report.query_ids[0] == ids[3]
    assert len(report.query_ids) < 4
    assert agent.stats().nodes <= 4
    assert agent.has(ids[3])


def test_a_question_merged_in_the_agents_sleep_goes_to_its_anchor_once() -> None:
    session, agent = graph(), graph()
    texts = [f"What does ticket {number} from Oslo to Bergen cost today?" for number in range(3)]
    answered(agent, *texts)
    answered(session, *texts)
    plan = agent.plan_sleep_cycle(min_rank=1.0)
    agent.apply_sleep_plan(plan, {})
    [anchor] = [node.id for node in agent.nodes() if node.type is NodeType.QUERY]
    report = promote(session, agent, PromotionPolicy())
    assert (report.query_ids, report.merged) == ((anchor,), 1)
    assert agent.node(anchor).weights.repeat == 6


def test_questions_linked_by_hand_may_become_one_in_the_agents_graph() -> None:
    session, agent = graph(), graph()
    texts = ["What does ticket 1 from Oslo to Bergen cost?", "What does ticket 2 from Oslo to Bergen cost?"]
    answered(agent, *texts)
    agent.apply_sleep_plan(agent.plan_sleep_cycle(min_rank=1.0), {})
    first, second = answered(session, *texts)
    session.link(first, second, EdgeType.RESPONDED_WITH, 1.0)
    assert len(promote(session, agent, PromotionPolicy()).query_ids) == 1


@given(st.lists(st.tuples(st.sampled_from(QUESTIONS), st.sampled_from(["In Oslo.", "Ann.", "Yes."])), max_size=12))
def test_an_empty_agents_graph_becomes_the_sessions_answered_part(turns: list[tuple[str, str]]) -> None:
    session, agent = graph(), graph()
    for question, answer in turns:
        answered(session, question, answer=answer)
    report = promote(session, agent, PromotionPolicy(min_rank=0))
    assert len(report.query_ids) == len({question for question, _ in turns})
    assert edges(agent) == edges(session)
    assert {node.id: node.weights for node in agent.nodes()} == {node.id: node.weights for node in session.nodes()}
