"""Every type, method, option and note of graph-memory-api about the orchestrator, through an opened memory."""

import inspect
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import kalito_mcp
from kalito_mcp import Memory, MemoryOrchestrator, NewMessage, OrchestratorConfig, Role
from kalito_mcp.domain.graph import (
    CheckpointPolicy,
    GraphConfig,
    GraphPolicy,
    GraphScope,
    PromotionPolicy,
    SessionGraphConfig,
)
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sleep import (
    SleepCycleReport,
    SleepCycleTrigger,
)
from kalito_mcp.graph.snapshot_folder import SnapshotFolder
from kalito_mcp.orchestrator.graph_cache import GraphCache
from kalito_mcp.orchestrator.orchestrator import new_graph
from kalito_mcp.orchestrator.orchestrators import Orchestrators
from kalito_mcp.upkeep.finalizer import Finalizer
from tests.scripted import ScriptedClock

pytestmark = pytest.mark.anyio
TRAINS = [f"What does the night train to Oslo cost in {year}?" for year in range(2019, 2023)]


class FirstWords:
    """A summarizer as the specification has it."""

    def summarize(self, texts: Sequence[str], max_length: int) -> str:
        return f"the night train to Oslo, {len(texts)} times"


class Heard:
    """An `emit` hook that remembers."""

    def __init__(self) -> None:
        self.reports: list[tuple[GraphScope, SleepCycleReport]] = []

    def __call__(self, scope: GraphScope, report: SleepCycleReport) -> None:
        self.reports.append((scope, report))


def configured(memory: Memory, folder: Path, **config: Any) -> MemoryOrchestrator:
    """The default agent's orchestrator with settings of one's own, on the memory's database."""
    settings = OrchestratorConfig(**config)
    cache = GraphCache(memory.place.store, lambda scope: new_graph(settings, scope, memory.place.clock))
    orchestrators = Orchestrators(
        settings, store=memory.place.store, cache=cache, snapshots=SnapshotFolder(folder), clock=memory.place.clock
    )
    own = memory._services.finalizer
    finalizer = Finalizer(
        memory.place.store, memory._services.summaries, own._pins, own._observer, orchestrators, memory.place.clock
    )
    return orchestrators.of(Scope(), finalize=finalizer.finalize)


async def record(memory: Memory, *texts: str, session_id: str = "trip") -> list[str]:
    """Questions and answers in turn; the messages' ids."""
    roles = (Role.USER, Role.ASSISTANT)
    messages = [NewMessage(roles[place % 2], text) for place, text in enumerate(texts)]
    recorded = await memory.record_messages(session_id, messages)
    await memory.settled()
    return recorded.message_ids


def test_there_are_two_scopes() -> None:
    """graph-memory-api: `type Scope = 'agent'|'session'`."""
    assert [str(scope) for scope in GraphScope] == ["session", "agent"]


def test_a_configuration_of_the_orchestrator_has_every_field() -> None:
    """graph-memory-api: `OrchestratorCfg`; `outDir` is `folder`."""
    names = {one.name for one in fields(OrchestratorConfig)}
    assert {"session_graph", "agent_graph", "promotion", "checkpoint", "sleep", "run_on_finalize"} <= names
    assert {"summarizer", "emit"} <= names
    assert {one.name for one in fields(PromotionPolicy)} == {
        "min_rank",
        "max_promotions",
        "min_degree",
        "carry_weights",
    }
    assert {one.name for one in fields(CheckpointPolicy)} == {"top_k", "pretty", "folder"}
    assert "search_bias_session_first" in {one.name for one in fields(GraphPolicy)}
    config = OrchestratorConfig()
    assert isinstance(config.session_graph, SessionGraphConfig)
    assert isinstance(config.agent_graph, GraphConfig)


def test_the_orchestrator_has_every_method() -> None:
    """graph-memory-api: `class MemoryOrchestrator`, its eight methods; those that touch the database are async."""
    assert kalito_mcp.MemoryOrchestrator is MemoryOrchestrator
    for name in (
        "get_session_store", "get_agent_store", "upsert_query", "record_feedback", "search", "finalize_session",
        "gc_sessions",
    ):  # fmt: skip
        assert inspect.iscoroutinefunction(getattr(MemoryOrchestrator, name)), name
    assert inspect.isfunction(MemoryOrchestrator.get_active_sessions)


async def test_an_orchestrator_is_an_agents(memory: Memory) -> None:
    """graph-memory-api: `constructor(agentId, cfg)`."""
    assert memory.orchestrator().agent_id == "default"
    assert memory.orchestrator("travel").agent_id == "travel"


async def test_each_session_has_a_store_and_the_agent_one(memory: Memory) -> None:
    """graph-memory-api: `getSessionStore`, `getAgentStore`."""
    await record(memory, "Where is Ann?", "In Oslo.")
    await record(memory, "Who is Bob?", "A driver.", session_id="home")
    agent = memory.orchestrator()
    for session_id, text in (("trip", "Where is Ann?"), ("home", "Who is Bob?")):
        store = await agent.get_session_store(session_id)
        assert [node.text for node in store.nodes() if node.type == "query"] == [text]
    assert (await agent.get_agent_store()).stats().nodes == 0


async def test_a_query_goes_into_its_sessions_store(memory: Memory) -> None:
    """graph-memory-api: `upsertQuery(sessionId, text): string`."""
    await record(memory, "Hello!", "Hi.")
    agent = memory.orchestrator()
    query_id = await agent.upsert_query("trip", "Where is Ann?")
    assert (await agent.get_session_store("trip")).node(query_id).text == "Where is Ann?"


async def test_feedback_goes_to_a_query_with_a_label_and_a_note(memory: Memory) -> None:
    """graph-memory-api: `recordFeedback(sessionId, qId, label, note?): string`."""
    [question, _] = await record(memory, "Where is Ann?", "In Oslo.")
    agent = memory.orchestrator()
    feedback_id = await agent.record_feedback("trip", question, "up", "just right")
    store = await agent.get_session_store("trip")
    assert store.node(feedback_id).text == "up: just right"
    assert store.node(store.node_of_record(question) or "").weights.feedback == 1


async def test_a_search_tells_from_where_each_hit_is(memory: Memory) -> None:
    """graph-memory-api: `search(sessionId, text, k)`: `id`, `score`, `from`, `text`, `canonicalKey`."""
    await record(memory, "Where is Ann today?", "In Oslo.", session_id="home")
    await memory.finalize_session("home")
    await record(memory, "Where is Ann tomorrow?", "In Rome.")
    hits = await memory.orchestrator().search("trip", "Where is Ann?", 2)
    assert [str(hit.scope) for hit in hits] == ["session", "agent"]
    assert [hit.text for hit in hits] == ["Where is Ann tomorrow?", "Where is Ann today?"]
    assert all(hit.id and hit.canonical_key and hit.score > 0 for hit in hits)
    assert len(await memory.orchestrator().search("trip", "Where is Ann?", 1)) == 1


async def test_finalizing_promotes_and_writes_a_checkpoint_by_its_options(memory: Memory) -> None:
    """graph-memory-api: `finalizeSession(sessionId, { promote, checkpoint, checkpointName })`."""
    await record(memory, "Where is Ann?", "In Oslo.", session_id="home")
    await record(memory, "Who is Bob?", "A driver.")
    agent = memory.orchestrator()
    await agent.finalize_session("home", promote=False, checkpoint=False)
    assert (await agent.get_agent_store()).stats().nodes == 0
    assert agent.list_snapshots() == []
    await agent.finalize_session("trip", checkpoint_name="after-trip")
    assert [one.name for one in agent.list_snapshots()] == ["after-trip"]
    nodes = (await agent.read_snapshot("after-trip"))["graph"]["nodes"]
    assert "Who is Bob?" in [node["text"] for node in nodes]


async def test_sessions_that_are_over_are_collected(memory: Memory, clock: ScriptedClock) -> None:
    """graph-memory-api: `gcSessions(olderThanMs)`, and `getActiveSessions()` before and after it."""
    await record(memory, "Where is Ann?", "In Oslo.")
    agent = memory.orchestrator()
    await agent.finalize_session("trip")
    assert agent.get_active_sessions() == ["trip"]
    clock.advance(3600)
    assert await agent.gc_sessions(older_than_ms=60_000) == 1
    assert agent.get_active_sessions() == []


async def test_promotion_has_four_bounds(memory: Memory, tmp_path: Path) -> None:
    """graph-memory-api: `promotion: { minRank, maxPromotions, minDegree?, carryWeights? }`."""
    await record(memory, "Where is Ann?", "In Oslo.", "Where is Ann?", "In Oslo.", "Who is Bob?", "A driver.")
    for policy, promoted, repeat in (
        (PromotionPolicy(min_rank=1.0), 0, None),
        (PromotionPolicy(min_degree=9), 0, None),
        (PromotionPolicy(max_promotions=1, carry_weights=False), 1, 1.0),
        (PromotionPolicy(max_promotions=1), 1, 3.0),
    ):
        agent = configured(memory, tmp_path, promotion=policy)
        report = await agent.promote("trip")
        assert report is not None and len(report.query_ids) == promoted
        if report.query_ids:
            assert (await agent.get_agent_store()).node(report.query_ids[0]).weights.repeat == repeat


async def test_a_checkpoint_lies_in_its_folder_with_the_top_k_pretty_or_compact(memory: Memory, tmp_path: Path) -> None:
    """graph-memory-api: `checkpoint: { outDir, topK, pretty? }`."""
    await record(memory, "Where is Ann?", "In Oslo.", "Who is Bob?", "A driver.")
    for pretty in (True, False):
        agent = configured(memory, tmp_path / "out", checkpoint=CheckpointPolicy(top_k=1, pretty=pretty))
        await agent.promote("trip")
        written = await agent.save_snapshot("end")
        assert written.path == tmp_path / "out" / "end.json"
        assert ("\n" in written.path.read_text(encoding="utf-8")) is pretty
        nodes = (await agent.read_snapshot("end"))["graph"]["nodes"]
        assert len([node for node in nodes if node["type"] == "query"]) == 1


async def test_the_bias_puts_the_session_first(memory: Memory, tmp_path: Path) -> None:
    """graph-memory-api: `searchBiasSessionFirst`."""
    await record(memory, "Where is Ann today?", "In Oslo.", session_id="home")
    await memory.finalize_session("home")
    await record(memory, "Where is Ann going to be tomorrow?", "In Rome.")
    for bias, first in ((0.0, "agent"), (2.0, "session")):
        agent = configured(memory, tmp_path, graph=GraphPolicy(search_bias_session_first=bias))
        assert (await agent.search("trip", "Where is Ann today?"))[0].scope == first


async def test_one_summarizer_serves_both_stores_and_emit_tells_them_apart(memory: Memory, tmp_path: Path) -> None:
    """graph-memory-api: the same summarizer for agent and session stores; `emit` gets (scope, report)."""
    heard = Heard()
    agent = configured(
        memory, tmp_path, summarizer=FirstWords(), emit=heard, sleep=kalito_mcp.SleepCycleOptions(min_rank=1)
    )
    await record(memory, *(text for train in TRAINS for text in (train, "40 euro.")))
    await agent.promote("trip")
    for session_id in ("trip", None):
        await agent.run_sleep_cycle(session_id, force=True)
    assert [scope for scope, _ in heard.reports] == [GraphScope.SESSION, GraphScope.AGENT]
    for _, report in heard.reports:
        assert [cluster.summary for cluster in report.clusters] == ["the night train to Oslo, 4 times"]


async def test_finalizing_sleeps_first_so_that_summaries_reach_the_checkpoint(memory: Memory, tmp_path: Path) -> None:
    """graph-memory-api: `runOnFinalize`, on: a forced cycle before promotion and checkpoint."""
    heard = Heard()
    sleep = kalito_mcp.SleepCycleOptions(min_rank=1.0)
    agent = configured(memory, tmp_path, summarizer=FirstWords(), emit=heard, sleep=sleep)
    await record(memory, *(text for train in TRAINS for text in (train, "40 euro.")))
    await agent.finalize_session("trip", checkpoint_name="end")
    [(scope, report)] = heard.reports
    assert (scope, report.trigger) == (GraphScope.SESSION, SleepCycleTrigger.SESSION_FINALIZE)
    nodes = (await agent.read_snapshot("end"))["graph"]["nodes"]
    assert [node["summary"] for node in nodes if node["type"] == "query"] == ["the night train to Oslo, 4 times"]


async def test_without_run_on_finalize_nothing_is_merged(memory: Memory, tmp_path: Path) -> None:
    """graph-memory-api: `runOnFinalize`, off."""
    heard = Heard()
    agent = configured(memory, tmp_path, emit=heard, run_on_finalize=False)
    await record(memory, *(text for train in TRAINS for text in (train, "40 euro.")))
    done = await agent.finalize_session("trip")
    assert (done.sleep, heard.reports) == (None, [])
    assert done.promotion is not None and len(done.promotion.query_ids) == len(TRAINS)
