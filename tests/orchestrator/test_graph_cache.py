"""Graphs in memory equal the stored ones: in two processes at once, after failures, and under many tasks."""

import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import pytest

from kalito_mcp.domain.graph import (
    GraphState,
)
from kalito_mcp.domain.scope import LOCAL_OWNER, Scope
from kalito_mcp.domain.sleep import (
    SleepCycleTrigger,
)
from kalito_mcp.errors import RecordNotFound, SessionNotFound
from kalito_mcp.graph.store import GraphStore
from kalito_mcp.orchestrator.graph_cache import GraphCache
from kalito_mcp.orchestrator.orchestrator import OrchestratorConfig, new_graph
from kalito_mcp.ports.store import WriteTransaction
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite.database import SqliteStore
from tests.orchestrator.conftest import changed
from tests.scripted import START_MS, ScriptedClock
from tests.stored import content, texts_of

pytestmark = pytest.mark.anyio
AGENT = Scope()
TRIP = Scope(session="trip")
T = TypeVar("T")


class Held:
    """A change of a graph that goes on when the test says so."""

    def __init__(self, change: Callable[[GraphStore], object], error: type[Exception] | None = None) -> None:
        self._change, self._error = change, error
        self._begun, self.go_on = threading.Event(), threading.Event()

    def __call__(self, graph: GraphStore) -> None:
        self._change(graph)
        self._begun.set()
        assert self.go_on.wait(30)
        if self._error is not None:
            raise self._error

    async def begun(self) -> None:
        assert await anyio.to_thread.run_sync(self._begun.wait, 30)


@dataclass
class Process:
    """A store on the database, and its cache."""

    store: SqliteStore
    cache: GraphCache

    async def ask(self, *texts: str, scope: Scope = AGENT) -> None:
        await self.change(lambda graph: [graph.upsert_query(text) for text in texts], scope)

    async def change(self, change: Callable[[GraphStore], T], scope: Scope = AGENT) -> T:
        return await changed(self.cache, scope, change)

    async def asked(self, scope: Scope = AGENT) -> list[str]:
        async with self.cache.reading(scope) as [graph]:
            return list(texts_of(graph, "query"))

    async def state(self, scope: Scope = AGENT) -> GraphState:
        async with self.store.view() as view:
            return await view.graphs.state(scope)

    async def fresh(self, scope: Scope = AGENT) -> dict[str, Any]:
        return content((await self.cache.copy(scope)).graph)

    async def shelved(self, scope: Scope = AGENT) -> dict[str, Any]:
        async with self.cache.reading(scope) as [graph]:
            return content(graph)

    async def open_session(self, session_id: str, *, agent: str | None = None) -> None:
        async with self.store.transaction() as transaction:
            await ensure_session(transaction.sessions, Scope(agent=agent, session=session_id), now_ms=START_MS)


@pytest.fixture
async def processes(database: Path, clock: ScriptedClock) -> AsyncIterator[list[Process]]:
    """Two processes on one file."""
    opened = []
    for _ in range(2):
        store = await SqliteStore.open(database)
        opened.append(Process(store, GraphCache(store, lambda scope: new_graph(OrchestratorConfig(), scope, clock))))
    yield opened
    for one in opened:
        await one.store.close()


@pytest.fixture
def one(processes: list[Process]) -> Process:
    return processes[0]


@pytest.fixture
def other(processes: list[Process]) -> Process:
    return processes[1]


async def test_what_one_process_adds_the_other_reads(one: Process, other: Process) -> None:
    assert await other.asked() == []
    await one.ask("Where is Ann?")
    assert await other.asked() == ["Where is Ann?"]
    await other.ask("Who is Bob?")
    await one.ask("Where is Ann?")
    assert await one.asked() == ["Where is Ann?", "Who is Bob?"]
    assert await one.shelved() == await other.shelved() == await one.fresh()


async def test_what_one_process_merges_is_gone_in_the_other(one: Process, other: Process) -> None:
    await one.ask(*(f"What does ticket {number} cost from Oslo to Bergen today?" for number in range(6)))
    assert len(await other.asked()) == 6
    report = await one.change(lambda graph: graph.run_sleep_cycle(SleepCycleTrigger.INTERVAL, force=True, min_rank=1.0))
    assert report is not None and report.freed_capacity > 0
    assert len(await other.asked()) == 6 - report.freed_capacity
    assert await other.shelved() == await one.shelved() == await one.fresh()


async def test_a_sleep_that_merged_nothing_is_known_to_the_other_process(one: Process, other: Process) -> None:
    await one.ask("Where is Ann?")
    assert await other.asked() == ["Where is Ann?"]
    await one.change(lambda graph: graph.run_sleep_cycle(force=True))
    assert await other.change(lambda graph: (graph.slept_at, graph.is_rested())) == (START_MS, True)


async def test_a_removed_graph_is_empty_and_can_be_filled_again(one: Process, other: Process) -> None:
    await one.ask("Where is Ann?", "Who is Bob?")
    assert len(await other.asked()) == 2
    async with one.store.transaction() as transaction:
        assert await transaction.graphs.remove(AGENT) == 2
    assert await other.asked() == await one.asked() == []
    await one.ask("What is new?")
    assert await other.asked() == ["What is new?"]
    assert await other.shelved() == await one.fresh()


async def test_an_error_inside_leaves_memory_and_disk_as_they_were(one: Process) -> None:
    await one.ask("Where is Ann?")
    before = await one.fresh()

    def fail(graph: GraphStore) -> None:
        graph.upsert_query("Who is Bob?")
        graph.run_sleep_cycle(force=True)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await one.change(fail)
    assert await one.shelved() == await one.fresh() == before


async def test_a_cancellation_inside_leaves_memory_and_disk_as_they_were(one: Process) -> None:
    await one.ask("Where is Ann?")
    before = await one.fresh()
    held = Held(lambda graph: graph.upsert_query("Who is Bob?"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.change, held)
        await held.begun()
        tasks.cancel_scope.cancel()
        threading.Timer(0.1, held.go_on.set).start()
    assert await one.shelved() == await one.fresh() == before


async def test_who_waited_for_a_change_that_failed_does_not_see_it(one: Process) -> None:
    await one.ask("Where is Ann?")
    seen: list[list[str]] = []

    async def read() -> None:
        seen.append(await one.asked())

    async def fail() -> None:
        with pytest.raises(ZeroDivisionError):
            await one.change(held)

    held = Held(lambda graph: graph.upsert_query("Who is Bob?"), error=ZeroDivisionError)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(fail)
        await held.begun()
        for _ in range(3):
            tasks.start_soon(read)
        await anyio.sleep(0.05)
        held.go_on.set()
    assert seen == [["Where is Ann?"]] * 3


async def test_who_waited_for_a_change_that_removed_something_sees_it_done(one: Process) -> None:
    await one.open_session("trip")
    await one.ask("Where is Ann?", "Who is Bob?", scope=TRIP)
    seen: list[list[str]] = []

    async def read() -> None:
        seen.append(await one.asked(TRIP))

    def remove_one(graph: GraphStore) -> None:
        smaller = graph.to_snapshot()
        smaller["graph"]["nodes"].pop()
        graph.from_snapshot(smaller)

    held = Held(remove_one)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.change, held, TRIP)
        await held.begun()
        for _ in range(3):
            tasks.start_soon(read)
        await anyio.sleep(0.05)
        held.go_on.set()
    # Each has a view of the database from before, and the graph as it is.
    assert [len(texts) for texts in seen] == [1, 1, 1]
    assert await one.shelved(TRIP) == await one.fresh(TRIP)


async def test_a_graph_dropped_while_it_is_changed_is_read_with_the_change(one: Process) -> None:
    await one.ask("Where is Ann?")
    held = Held(lambda graph: graph.upsert_query("Who is Bob?"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.change, held)
        await held.begun()
        one.cache.drop(AGENT)
        assert await one.asked() == ["Where is Ann?"]
        held.go_on.set()
    assert await one.asked() == ["Where is Ann?", "Who is Bob?"]
    assert await one.shelved() == await one.fresh()


async def test_a_refusal_that_changed_nothing_keeps_the_graph_in_memory(one: Process) -> None:
    await one.ask("Where is Ann?")
    async with one.cache.reading(AGENT) as [before]:
        pass
    with pytest.raises(RecordNotFound):
        await one.change(lambda graph: graph.record_feedback("query_none", "up"))
    async with one.cache.reading(AGENT) as [after]:
        assert after is before


async def test_nothing_is_written_where_nothing_changed(one: Process, other: Process) -> None:
    await one.ask("Where is Ann?")
    await one.change(lambda graph: graph.run_sleep_cycle(force=True))
    state, revision = await one.state(), await other.store.revision(LOCAL_OWNER)
    await one.change(lambda graph: graph.search_similar_queries("Where is Ann?"))
    assert await one.state() == state
    assert await other.store.revision(LOCAL_OWNER) == revision


async def test_a_read_does_not_wait_for_a_writer_that_waits_for_its_turn(one: Process, other: Process) -> None:
    await one.ask("Where is Ann?")
    async with anyio.create_task_group() as tasks, other.store.transaction():
        tasks.start_soon(one.ask, "Who is Bob?")
        await anyio.wait_all_tasks_blocked()
        with anyio.fail_after(10):
            assert await one.asked() == ["Where is Ann?"]
    assert await one.asked() == ["Where is Ann?", "Who is Bob?"]


async def test_searches_go_on_while_two_processes_change_what_they_search(one: Process, other: Process) -> None:
    kinds = ("boiler", "garden", "flight", "visa")

    async def write(process: Process, first: int) -> None:
        for number in range(first, first + 12):
            await process.ask(f"What about the {kinds[number % 4]}, number {number}?")
            if number % 4 == 3:
                await process.change(
                    lambda graph: graph.run_sleep_cycle(force=True, min_rank=1.0, similarity_threshold=0.75)
                )

    async def search(process: Process, kind: str) -> None:
        for _ in range(25):
            async with process.cache.reading(AGENT) as [graph]:
                for found in graph.search_similar_queries(f"What about the {kind}?", 5):
                    assert graph.node(found.id).text == found.text
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write, one, 0)
        tasks.start_soon(write, other, 12)
        for process in (one, other):
            for kind in kinds:
                tasks.start_soon(search, process, kind)
    assert await one.shelved() == await other.shelved() == await one.fresh()


async def test_only_so_many_graphs_stay_in_memory_and_the_last_used_do(one: Process) -> None:
    sessions = [Scope(session=f"session {number}") for number in range(40)]
    for scope in sessions:
        await one.open_session(scope.session or "")
        await one.ask("Where is Ann?", scope=scope)
    assert one.cache.loaded() == sessions[-32:]
    assert await one.asked(sessions[0]) == ["Where is Ann?"]
    assert one.cache.loaded() == [*sessions[-31:], sessions[0]]


async def test_a_graph_that_is_being_changed_is_not_dropped_for_others(one: Process) -> None:
    others = [Scope(session=f"session {number}") for number in range(33)]
    for scope in others:
        await one.open_session(scope.session or "")
    held = Held(lambda graph: graph.upsert_query("Where is Ann?"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.change, held)
        await held.begun()
        for scope in others:
            await one.asked(scope)
        assert Scope(agent="default") in one.cache.loaded()
        held.go_on.set()
    assert await one.asked() == ["Where is Ann?"]


async def test_an_unknown_session_has_an_empty_graph_that_cannot_be_changed(one: Process) -> None:
    assert await one.asked(TRIP) == []
    assert one.cache.loaded() == []
    with pytest.raises(SessionNotFound, match="trip"):
        await one.ask("Where is Ann?", scope=TRIP)
    with pytest.raises(SessionNotFound, match="trip"):
        await one.fresh(TRIP)


async def test_a_session_belongs_only_to_its_agent(one: Process) -> None:
    await one.open_session("trip", agent="travel")
    await one.ask("Where is Ann?", scope=Scope(agent="travel", session="trip"))
    assert await one.asked(TRIP) == ["Where is Ann?"]
    foreign = Scope(agent="home", session="trip")
    assert await one.asked(foreign) == []
    with pytest.raises(SessionNotFound):
        await one.ask("Who is Bob?", scope=foreign)


async def test_a_copy_is_ones_own(one: Process) -> None:
    await one.ask("Where is Ann?")
    copy = await one.cache.copy(AGENT)
    assert isinstance(copy.graph, GraphStore) and copy.state == await one.state()
    copy.graph.upsert_query("Who is Bob?")
    assert await one.asked() == ["Where is Ann?"]
    assert await one.state() == copy.state


async def test_a_changed_copy_is_stored_unless_the_graph_changed_meanwhile(one: Process, other: Process) -> None:
    await one.ask("Where is Ann?")
    copy, late = await one.cache.copy(AGENT), await one.cache.copy(AGENT)
    for held in (copy, late):
        held.graph.upsert_query("Who is Bob?")

    async def never(_: WriteTransaction) -> bool:
        return False

    assert await one.cache.store_copies({AGENT: copy}, never) is None
    assert await other.asked() == ["Where is Ann?"]
    assert await one.cache.store_copies({AGENT: copy}) is True
    assert await one.cache.store_copies({AGENT: late}) is False
    assert copy.state == await one.state()
    one.cache.keep(AGENT, copy)
    async with one.cache.reading(AGENT) as [kept]:
        assert kept is copy.graph
    assert await one.shelved() == await other.shelved() == await one.fresh()


async def test_a_large_graph_is_loaded_as_it_is_stored(one: Process, other: Process) -> None:
    await one.ask(*(f"Question {number} of the quiz about {number * 7} rivers?" for number in range(300)))
    assert await other.shelved() == await one.shelved() == await one.fresh()
