"""`MemoryOrchestrator`: a search covers both graphs, feedback reaches both, and sleep is planned on a copy."""

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import anyio
import anyio.from_thread
import pytest

from kalito_mcp.domain.graph import (
    CheckpointPolicy,
    EdgeType,
    GraphConfig,
    GraphPolicy,
    GraphScope,
    PromotionPolicy,
    PromotionReport,
    SessionGraphConfig,
)
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import SessionState
from kalito_mcp.domain.sleep import (
    SleepCycleOptions,
    SleepCycleReport,
    SleepCycleTrigger,
)
from kalito_mcp.errors import (
    ConfigurationError,
    Conflict,
    InvalidInput,
    NotFound,
    RecordNotFound,
    SessionNotFound,
)
from kalito_mcp.graph import promotion
from kalito_mcp.graph.store import GraphStore
from kalito_mcp.orchestrator.orchestrator import MemoryOrchestrator
from tests.orchestrator.conftest import Setup, changed
from tests.scripted import START_MS
from tests.stored import content, texts_of

pytestmark = pytest.mark.anyio
ALIKE = [f"What does ticket {number} from Oslo to Bergen cost today?" for number in range(5)]
AGENT = Scope()


async def teach(agent: MemoryOrchestrator, question: str, *answers: str, session: str | None = "trip") -> str:
    """Put a question with its answers into the session's graph, or the agent's; the question's node."""
    scope = agent._agent() if session is None else agent._session(session)

    def add(graph: GraphStore) -> str:
        query_id = graph.upsert_query(question)
        for answer in answers:
            graph.upsert_answer(query_id, answer)
        return query_id

    return await changed(agent._cache, scope, add)


@dataclass
class Heard:
    """An `emit` hook that remembers."""

    reports: list[tuple[GraphScope, SleepCycleReport]] = field(default_factory=list)

    def __call__(self, scope: GraphScope, report: SleepCycleReport) -> None:
        self.reports.append((scope, report))


# search


async def test_a_query_is_upserted_and_found_in_its_session(setup: Setup) -> None:
    agent = setup.orchestrator()
    query_id = await agent.upsert_query("trip", "Where does Anna Keller live?")
    assert await agent.upsert_query("trip", "where does anna keller live") == query_id
    [hit] = await agent.search("trip", "Where does Anna live?")
    assert (hit.id, hit.scope, hit.text) == (query_id, GraphScope.SESSION, "Where does Anna Keller live?")
    assert hit.canonical_key is not None and 0 < hit.similarity < 1
    assert (await agent.get_session_store("trip")).node(query_id).weights.repeat == 2
    assert (await agent.get_agent_store()).stats().nodes == 0
    assert await agent.search(None, "Where does Anna live?") == []


async def test_the_sessions_own_come_first_by_the_bias(setup: Setup) -> None:
    for bias, first in ((0.0, GraphScope.AGENT), (0.9, GraphScope.SESSION)):
        agent = setup.orchestrator(graph=GraphPolicy(search_bias_session_first=bias))
        await teach(agent, "Where does Anna Keller live?", session=None)
        await teach(agent, "Where does Anna Keller work at the moment?")
        hits = await agent.search("trip", "Where does Anna Keller live?")
        assert hits[0].scope is first
        assert len(hits) == 2


async def test_what_both_know_comes_once(setup: Setup) -> None:
    agent = setup.orchestrator()
    query_id = await teach(agent, "Where is Ann?")
    assert await teach(agent, "Where is Ann?", session=None) == query_id
    [hit] = await agent.search("trip", "Where is Ann?")
    assert (hit.id, hit.scope) == (query_id, GraphScope.SESSION)


async def test_at_most_k_are_found_in_both_together(setup: Setup) -> None:
    agent = setup.orchestrator()
    for number in range(6):
        await teach(agent, f"What about river {number} in Norway?", session="trip" if number % 2 else None)
    hits = await agent.search("trip", "What about the rivers in Norway?", 4)
    assert len(hits) == 4
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    for k in (0, 1_001):
        with pytest.raises(InvalidInput, match="k="):
            await agent.search("trip", "rivers", k)
    with pytest.raises(InvalidInput, match="blank"):
        await agent.search("trip", " ")


async def test_an_unknown_session_takes_nothing_and_finds_what_the_agent_knows(setup: Setup) -> None:
    agent = setup.orchestrator()
    await teach(agent, "Where is Ann?", session=None)
    assert [hit.scope for hit in await agent.search("nowhere", "Where is Ann?")] == [GraphScope.AGENT]
    for act in (
        agent.upsert_query("nowhere", "Where is Ann?"),
        agent.get_session_store("nowhere"),
        agent.record_feedback("nowhere", "query_1", "up"),
        agent.run_sleep_cycle("nowhere", force=True),
        agent.promote("nowhere"),
        agent.graph_overview("nowhere"),
    ):
        with pytest.raises(SessionNotFound, match="nowhere"):
            await act
    assert agent.get_active_sessions() == []


async def test_an_agent_does_not_reach_into_the_sessions_of_another(setup: Setup) -> None:
    mine, other = setup.orchestrator("default"), setup.orchestrator("other")
    await teach(mine, "Where is Ann?", "In Oslo.")
    assert await other.search("trip", "Where is Ann?") == []
    with pytest.raises(SessionNotFound):
        await other.promote("trip")
    with pytest.raises(SessionNotFound):
        await other.upsert_query("trip", "Who is Bob?")
    assert (await other.get_agent_store()).stats().nodes == 0


async def test_retry_weighs_half_of_down(setup: Setup) -> None:
    agent = setup.orchestrator(session_graph=SessionGraphConfig(diffusion=0))
    query_id = await teach(agent, "Where is Ann?", "In Oslo.")
    await agent.record_feedback("trip", query_id, "down")
    await agent.record_feedback("trip", query_id, "retry")
    assert (await agent.get_session_store("trip")).node(query_id).weights.feedback == -1.5


# feedback


async def test_feedback_names_its_target_by_message_by_node_or_by_a_node_that_was_merged(setup: Setup) -> None:
    agent = setup.orchestrator(session_graph=SessionGraphConfig(diffusion=0))
    ids = await changed(
        agent._cache,
        agent._session("trip"),
        lambda graph: [graph.upsert_query(text, record_id=f"msg_{place}") for place, text in enumerate(ALIKE)],
    )
    report = await agent.run_sleep_cycle("trip", force=True, min_rank=1.0)
    assert report is not None
    [cluster] = report.clusters
    for target in (cluster.anchor_id, cluster.merged_node_ids[0], "msg_0", "msg_4", *ids):
        await agent.record_feedback("trip", target, "up")
    store = await agent.get_session_store("trip")
    assert store.node(cluster.anchor_id).weights.feedback == 4 + len(ids)


async def test_feedback_on_the_unknown_or_with_another_label_changes_nothing(setup: Setup) -> None:
    agent = setup.orchestrator()
    query_id = await teach(agent, "Where is Ann?")
    before = content(await agent.get_session_store("trip"))
    with pytest.raises(RecordNotFound, match="query_none"):
        await agent.record_feedback("trip", "query_none", "up")
    with pytest.raises(RecordNotFound, match="search_memory"):
        await agent.record_feedback(None, query_id, "up")
    with pytest.raises(InvalidInput, match="up, down, retry"):
        await agent.record_feedback("trip", query_id, "fine")
    feedback_id = await agent.record_feedback("trip", query_id, "up")
    with pytest.raises(InvalidInput, match="feedback"):
        await agent.record_feedback("trip", feedback_id, "up")
    assert len(content(await agent.get_session_store("trip"))["nodes"]) == len(before["nodes"]) + 1


async def test_feedback_that_both_know_of_counts_once_in_the_end(setup: Setup) -> None:
    agent = setup.orchestrator(promotion=PromotionPolicy(min_rank=0.0))
    await teach(agent, "Where is Ann?", "In Oslo.", session=None)
    query_id = await teach(agent, "Where is Ann?", "In Oslo.")
    await agent.record_feedback("trip", query_id, "down")
    for store in (await agent.get_session_store("trip"), await agent.get_agent_store()):
        assert store.node(query_id).weights.feedback == -1
    assert await agent.promote("trip") is not None
    assert (await agent.get_agent_store()).node(query_id).weights.feedback == -1


# sleep


async def test_emit_gets_a_sleep_report_with_its_owner_once_it_is_stored(setup: Setup) -> None:
    heard = Heard()
    agent = setup.orchestrator(emit=heard)
    for text in ALIKE:
        await teach(agent, text)
        await teach(agent, text, session=None)
    in_session = await agent.run_sleep_cycle("trip", SleepCycleTrigger.SESSION_FINALIZE, force=True, min_rank=1.0)
    in_agent = await agent.run_sleep_cycle(force=True, min_rank=1.0)
    assert in_session is not None and in_session.freed_capacity == len(ALIKE) - 1
    assert heard.reports == [(GraphScope.SESSION, in_session), (GraphScope.AGENT, in_agent)]
    assert await agent.run_sleep_cycle("trip") is None
    assert len(heard.reports) == 2


async def test_nothing_is_emitted_for_a_sleep_that_did_not_happen(setup: Setup) -> None:
    heard = Heard()
    agent = setup.orchestrator(emit=heard, agent_graph=GraphConfig(max_nodes=5))
    for text in ALIKE:
        await teach(agent, text)
        await teach(agent, text, session=None)
    dry = await agent.run_sleep_cycle("trip", force=True, dry_run=True, min_rank=1.0)
    assert dry is not None and dry.clusters
    await agent.preview(await agent.get_session_store("trip"), sleeps=True, promotes=True)
    copy = await agent.get_session_store("trip")
    assert copy.run_sleep_cycle(force=True, min_rank=1.0) is not None
    (await agent.get_agent_store()).upsert_query("What does a full graph do first?")
    assert heard.reports == []
    assert (await agent.get_session_store("trip")).stats().nodes == len(ALIKE)


async def test_a_full_graph_sleeps_before_it_evicts_and_tells_of_it(setup: Setup) -> None:
    heard = Heard()
    agent = setup.orchestrator(
        emit=heard, session_graph=SessionGraphConfig(max_nodes=5), sleep=SleepCycleOptions(min_rank=1.0)
    )
    for text in (*ALIKE, "Who is Bob?"):
        await agent.upsert_query("trip", text)
    [(scope, report)] = heard.reports
    assert (scope, report.trigger) == (GraphScope.SESSION, SleepCycleTrigger.EVICTION)
    assert len(texts_of(await agent.get_session_store("trip"), "query")) == 2


async def test_an_emit_hook_that_raises_is_its_own_problem(setup: Setup, caplog: pytest.LogCaptureFixture) -> None:
    def emit(scope: GraphScope, report: SleepCycleReport) -> None:
        raise ZeroDivisionError

    agent = setup.orchestrator(emit=emit)
    await teach(agent, "Where is Ann?")
    assert await agent.run_sleep_cycle("trip", force=True) is not None
    assert (await agent.get_session_store("trip")).slept_at == START_MS
    assert "could not be handed on" in caplog.text


@dataclass
class Interfering:
    """A summarizer during which another process asks something, so many times."""

    other: MemoryOrchestrator
    times: int
    calls: int = 0

    def summarize(self, texts: Sequence[str], max_length: int) -> str:
        self.calls += 1
        if self.calls <= self.times:
            anyio.from_thread.run(self.other.upsert_query, "trip", f"Who is Bob, for the time number {self.calls}?")
        return f"{len(texts)} questions"


async def test_a_sleep_whose_graph_changed_meanwhile_is_planned_again(setup: Setup) -> None:
    summarizer = Interfering(setup.orchestrator(), times=2)
    agent = setup.orchestrator(summarizer=summarizer)
    for text in ALIKE:
        await teach(agent, text)
    report = await agent.run_sleep_cycle("trip", force=True, min_rank=1.0)
    assert report is not None
    assert summarizer.calls >= 3
    store = await agent.get_session_store("trip")
    assert any(text.startswith("Who is Bob") for text in texts_of(store, "query"))
    assert report.clusters[0].summary.endswith(" questions")
    assert store.stats().nodes == len(ALIKE) + 2 - report.freed_capacity


async def test_a_graph_that_keeps_changing_is_a_conflict_and_nothing_is_merged(setup: Setup) -> None:
    summarizer = Interfering(setup.orchestrator(), times=99)
    agent = setup.orchestrator(summarizer=summarizer, sleep=SleepCycleOptions(max_clusters=1, min_rank=1.0))
    for text in ALIKE:
        await teach(agent, text)
    with pytest.raises(Conflict, match="kept changing"):
        await agent.run_sleep_cycle("trip", force=True)
    assert summarizer.calls == 5
    store = await agent.get_session_store("trip")
    assert store.stats().nodes == len(ALIKE) + 5
    assert store.slept_at is None


@dataclass
class Scripted:
    """A summarizer that returns scripted texts."""

    reply: object

    def summarize(self, texts: Sequence[str], max_length: int) -> str:
        if isinstance(self.reply, BaseException):
            raise self.reply
        return self.reply  # type: ignore[return-value]  # models keep no promises


@pytest.mark.parametrize("reply", [ZeroDivisionError(), "", "  \n", None, 7, "\ud800", "word " * 200_000])
async def test_a_bad_summarizer_is_replaced_or_cut(setup: Setup, reply: object) -> None:
    agent = setup.orchestrator(summarizer=Scripted(reply))
    for text in ALIKE:
        await teach(agent, text)
    report = await agent.run_sleep_cycle("trip", force=True, min_rank=1.0, summary_max_length=100)
    assert report is not None
    [cluster] = report.clusters
    assert 0 < len(cluster.summary) <= 100
    assert (await agent.get_session_store("trip")).node(cluster.anchor_id).summary == cluster.summary


async def test_a_summarizer_that_hangs_is_given_up(setup: Setup, caplog: pytest.LogCaptureFixture) -> None:
    is_over = threading.Event()

    class Hanging:
        def summarize(self, texts: Sequence[str], max_length: int) -> str:
            is_over.wait(30)
            return "too late"

    agent = setup.orchestrator(summarizer=Hanging(), summarizer_timeout_s=0.05)
    for text in ALIKE:
        await teach(agent, text)
    try:
        with anyio.fail_after(20):
            report = await agent.run_sleep_cycle("trip", force=True, min_rank=1.0)
    finally:
        is_over.set()
    assert report is not None and report.clusters[0].summary in ALIKE
    assert "0.05 s" in caplog.text


async def test_a_sleep_cycle_refuses_what_it_does_not_know(setup: Setup) -> None:
    agent = setup.orchestrator()
    await teach(agent, "Where is Ann?")
    for trigger, options in (("sometimes", {}), ("interval", {"min_rnk": 1.0}), ("interval", {"min_rank": 2.0})):
        with pytest.raises(InvalidInput):
            await agent.run_sleep_cycle("trip", trigger, force=True, **options)


# promotion, sessions, snapshots


async def test_promotion_follows_its_policy_and_merges_into_what_the_agent_knows(setup: Setup) -> None:
    agent = setup.orchestrator(promotion=PromotionPolicy(max_promotions=1, min_rank=0.0))
    await teach(agent, "Where is Ann?", "In Oslo.", session=None)
    best = await teach(agent, "Where is Ann?", "In Oslo.")
    await teach(agent, "Who is Bob?", "A driver.")
    await agent.record_feedback("trip", best, "up")
    report = await agent.promote("trip")
    assert report is not None
    assert (report.query_ids, report.merged, report.answers) == ((best,), 1, 1)
    store = await agent.get_agent_store()
    assert texts_of(store, "query") == ["Where is Ann?"]
    assert store.node(best).weights.repeat == 2


async def test_sessions_are_active_while_their_graphs_are_in_memory(setup: Setup) -> None:
    agent = setup.orchestrator()
    await setup.open_session("home")
    for session in ("trip", "home", "trip"):
        await agent.upsert_query(session, "Where is Ann?")
    assert agent.get_active_sessions() == ["home", "trip"]


async def test_the_graphs_of_idle_finalized_sessions_are_removed(setup: Setup) -> None:
    agent = setup.orchestrator()
    await teach(agent, "Where is Ann?", "In Oslo.")
    assert await agent.gc_sessions(0) == 0
    async with setup.store.transaction() as transaction:
        session = await transaction.sessions.get(Scope(session="trip"))
        assert session is not None
        await transaction.sessions.set_state(session, SessionState.FINALIZED, now_ms=setup.clock.now_ms())
    setup.clock.advance(60)
    assert await agent.gc_sessions(60_000) == 0
    assert await setup.orchestrator("other").gc_sessions(1_000) == 0
    assert await agent.gc_sessions(1_000) == 1
    assert agent.get_active_sessions() == []
    assert (await agent.get_session_store("trip")).stats().nodes == 0
    assert await agent.gc_sessions(1_000) == 0
    with pytest.raises(InvalidInput, match="older_than_ms"):
        await agent.gc_sessions(-1)


async def test_a_snapshot_restores_the_agents_graph(setup: Setup) -> None:
    agent = setup.orchestrator(checkpoint=CheckpointPolicy(pretty=True))
    await teach(agent, "Where is Ann?", "In Oslo.", session=None)
    before = content(await agent.get_agent_store())
    written = await agent.save_snapshot()
    assert (written.name, [one.name for one in agent.list_snapshots()]) == ("default", ["default"])
    assert written.path.read_text(encoding="utf-8").startswith('{\n  "version"')
    await teach(agent, "Who is Bob?", session=None)
    assert await agent.restore_snapshot("default") == 2
    assert content(await agent.get_agent_store()) == before
    shown = await agent.snapshot_overview("default")
    assert (shown["name"], shown["nodes"], shown["top_queries"][0]["text"]) == ("default", 2, "Where is Ann?")


async def test_only_the_best_of_the_graph_are_in_a_compact_snapshot(setup: Setup) -> None:
    agent = setup.orchestrator(checkpoint=CheckpointPolicy(top_k=1))
    await teach(agent, "Where is Ann?", "In Oslo.", session=None)
    best = await teach(agent, "Who is Bob?", "A driver.", session=None)
    await agent.record_feedback(None, best, "up")
    written = await agent.save_snapshot("best")
    assert "\n" not in written.path.read_text(encoding="utf-8")
    data = await agent.read_snapshot("best")
    assert {node["text"] for node in data["graph"]["nodes"]} == {"Who is Bob?", "A driver.", "up"}


@pytest.mark.parametrize(
    "damage",
    ["", "{", "[]", "{}", '"x"', '{"version": 2}', "dangling", "other embedder", "truncated", "too large"],
)
async def test_a_broken_snapshot_leaves_the_graph_as_it_is(setup: Setup, damage: str) -> None:
    agent = setup.orchestrator()
    await teach(agent, "Where is Ann?", "In Oslo.", session=None)
    path = (await agent.save_snapshot("end")).path
    before = content(await agent.get_agent_store())
    data = json.loads(path.read_text(encoding="utf-8"))
    if damage == "dangling":
        data["graph"]["nodes"].pop()
    elif damage == "other embedder":
        data["embedder"]["seed"] = 7
    if damage == "too large":
        agent = setup.orchestrator(agent_graph=GraphConfig(max_nodes=1))
    elif damage == "truncated":
        path.write_bytes(path.read_bytes()[:-40])
    else:
        text = json.dumps(data) if damage in ("dangling", "other embedder") else damage
        path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput):
        await agent.restore_snapshot("end")
    assert content(await setup.orchestrator().get_agent_store()) == before
    async with agent._cache.reading(AGENT) as [graph]:
        assert content(graph) == before


async def test_snapshots_that_are_not_there_or_may_not_be_are_errors(setup: Setup) -> None:
    agent = setup.orchestrator()
    for act in (agent.restore_snapshot("end"), agent.read_snapshot("end"), agent.snapshot_overview("end")):
        with pytest.raises(NotFound, match="none yet"):
            await act
    for refused in (agent.save_snapshot("../end"), agent.restore_snapshot("../../etc/passwd")):
        with pytest.raises(InvalidInput, match="not plain"):
            await refused
    assert agent.list_snapshots() == []


async def test_an_overview_is_counts_and_the_best(setup: Setup) -> None:
    agent = setup.orchestrator()
    query_id = await teach(agent, "Where is Ann?", "In Oslo.")

    def pin(graph: GraphStore) -> None:
        graph.upsert_entity("Ann", of=[query_id])
        graph.pin(query_id)

    await changed(agent._cache, agent._session("trip"), pin)
    shown = await agent.graph_overview("trip")
    assert (shown["agent_id"], shown["session_id"], shown["nodes"], shown["edges"]) == ("default", "trip", 3, 2)
    assert shown["nodes_by_type"] == {"answer": 1, "entity": 1, "query": 1}
    assert shown["edges_by_type"] == {str(EdgeType.REFERS_TO_ENTITY): 1, str(EdgeType.RESPONDED_WITH): 1}
    assert shown["top_queries"] == [
        {"id": query_id, "text": "Where is Ann?", "rank": 1.0, "repeat": 1.0, "feedback": 0.0, "degree": 2,
         "pinned": True}
    ]  # fmt: skip
    assert [one["text"] for one in shown["top_entities"]] == ["Ann"]
    assert "session_id" not in await agent.graph_overview()


async def test_only_an_opened_memory_closes_sessions(setup: Setup) -> None:
    with pytest.raises(ConfigurationError, match="opened memory"):
        await setup.orchestrator().finalize_session("trip")


async def test_what_is_given_out_is_a_copy(setup: Setup) -> None:
    agent = setup.orchestrator()
    await teach(agent, "Where is Ann?")
    copy = await agent.get_session_store("trip")
    assert isinstance(copy, GraphStore)
    copy.upsert_query("Who is Bob?")
    assert texts_of(await agent.get_session_store("trip"), "query") == ["Where is Ann?"]


async def test_others_write_while_a_graph_is_promoted_and_a_change_meanwhile_is_kept(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = setup.orchestrator()
    query_id = await teach(agent, "When does the ferry to Moss leave?", "At seven.")
    promote, calls = promotion.promote, []

    def meanwhile(session: GraphStore, long_term: GraphStore, policy: PromotionPolicy) -> PromotionReport:
        calls.append(long_term.stats().nodes)
        if len(calls) == 1:
            # In the transaction, this would wait for ever.
            anyio.from_thread.run(lambda: teach(agent, "Who has the tickets?", session=None))
        return promote(session, long_term, policy)

    monkeypatch.setattr(promotion, "promote", meanwhile)
    with anyio.fail_after(30):
        report = await agent.promote("trip")
    assert report is not None
    assert report.query_ids == (query_id,)
    assert calls == [0, 1]
    assert (await agent.get_agent_store()).stats().nodes == 3
    async with agent._cache.reading(AGENT) as [graph]:
        assert graph.has(query_id)
