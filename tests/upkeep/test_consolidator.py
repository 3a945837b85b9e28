"""Sleep cycles that nobody asked for, through an opened memory."""

from pathlib import Path

import anyio
import pytest

from kalito_mcp import GraphPolicy, Memory, NewMessage, Role, Settings, SleepCycleReport, open_memory
from kalito_mcp.domain.graph import DAY_MIN, GraphScope
from kalito_mcp.domain.sleep import SleepCycleTrigger
from kalito_mcp.upkeep import consolidator
from kalito_mcp.upkeep.consolidator import Consolidator
from tests.scripted import ScriptedClock

pytestmark = pytest.mark.anyio
LATER_S = DAY_MIN * 60 + 1
QUESTIONS = [f"How do I restart the large printer in the hall of building {number}, please?" for number in (1, 2, 3)]


async def ask(memory: Memory, question: str, session_id: str = "printers") -> None:
    await memory.record_messages(session_id, [NewMessage(Role.USER, question), NewMessage(Role.ASSISTANT, "By hand.")])


async def test_a_conversation_that_nobody_finalizes_is_consolidated_after_the_interval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consolidator, "_AFTER_S", 0.0)
    reported, clock = anyio.Event(), ScriptedClock()
    reports: list[tuple[GraphScope, SleepCycleReport]] = []

    def emit(scope: GraphScope, report: SleepCycleReport) -> None:
        reports.append((scope, report))
        reported.set()

    async with open_memory(tmp_path / "memory.db", clock=clock, emit=emit) as memory:
        for question in QUESTIONS:
            await ask(memory, question)
        clock.advance(LATER_S)
        await ask(memory, "And the one in the cellar?")
        with anyio.fail_after(30):
            await reported.wait()
        assert [scope for scope, _ in reports] == [GraphScope.SESSION]
        assert (reports[0][1].trigger, reports[0][1].freed_capacity) == (SleepCycleTrigger.INTERVAL, 2)


async def test_of_two_servers_one_consolidates_a_graph_and_again_only_after_something_new(tmp_path: Path) -> None:
    clock = ScriptedClock()

    def of(memory: Memory) -> Consolidator:
        return Consolidator(memory.place.store, memory._services.orchestrators, clock, GraphPolicy())

    async with (
        open_memory(tmp_path / "memory.db", clock=clock) as memory,
        open_memory(tmp_path / "memory.db", clock=clock) as other,
    ):
        await ask(memory, QUESTIONS[0])
        assert await of(memory).consolidate("local") == 0
        clock.advance(LATER_S)
        done: list[int] = []

        async def consolidate(one: Memory) -> None:
            done.append(await of(one).consolidate("local"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(consolidate, memory)
            tasks.start_soon(consolidate, other)
        assert sum(done) == 1
        clock.advance(LATER_S)
        assert await of(other).consolidate("local") == 0
        await ask(memory, QUESTIONS[1])
        assert await of(other).consolidate("local") == 1
        await memory.finalize_session("printers")
        clock.advance(LATER_S)
        await ask(memory, QUESTIONS[2], "later")
        assert await of(memory).consolidate("local") == 1  # the agent's graph
        assert (await memory.orchestrator().get_agent_store()).slept_at == clock.now_ms()


@pytest.mark.parametrize("policy", [GraphPolicy(enabled=False), GraphPolicy(sleep_interval_min=0)])
async def test_without_graphs_or_an_interval_nothing_runs(tmp_path: Path, policy: GraphPolicy) -> None:
    async with open_memory(tmp_path / "memory.db", Settings(graph=policy)) as memory:
        with anyio.fail_after(30):
            await Consolidator(memory.place.store, memory._services.orchestrators, ScriptedClock(), policy).run()
    assert GraphPolicy().sleep_interval_min == DAY_MIN
