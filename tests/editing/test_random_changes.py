"""After random changes by two processes, a graph in memory equals the graph on disk."""

import random
import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

import pytest

from kalito_mcp import Memory, Settings, open_memory
from kalito_mcp.domain.finalizing import FinalizeOptions
from kalito_mcp.domain.graph import (
    GraphConfig,
    SessionGraphConfig,
)
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sleep import (
    SleepCycleOptions,
)
from kalito_mcp.errors import KalitoError
from tests.campaign import first_of
from tests.scripted import CountedIds, ScriptedClock
from tests.stored import content, said

pytestmark = pytest.mark.anyio
SESSIONS = ("one", "two", "three")
KINDS = ("boiler", "garden", "flight to Oslo", "visa of Anna Keller")
SMALL = Settings(
    session_graph=SessionGraphConfig(max_nodes=40, max_edges=80),
    agent_graph=GraphConfig(max_nodes=50, max_edges=100),
    sleep=SleepCycleOptions(min_rank=1.0, similarity_threshold=0.75),
)


class Walk:
    """Random steps of two processes on one database."""

    def __init__(self, memories: Sequence[Memory], clock: ScriptedClock, drawn: random.Random) -> None:
        self.random = drawn
        self._clock = clock
        self._memories = memories

    async def step(self) -> None:
        acts = (self.record, self.feedback, self.sleep, self.finalize, self.restore, self.collect)
        [act] = self.random.choices(acts, weights=(9, 4, 2, 0.5, 0.3, 0.3))
        self._clock.advance(self.random.choice([0, 1, 60, 86_400]))
        # What is refused is no step.
        with suppress(KalitoError):
            await act(self.random.choice(self._memories), self.random.choice(SESSIONS))

    async def record(self, memory: Memory, session: str) -> None:
        number, kind = self.random.randint(1, 30), self.random.choice(KINDS)
        await memory.record_messages(
            session, said(f"What about the {kind}, number {number}?", f"All is well, {number}.")
        )
        if self.random.random() < 0.5:
            await memory.settled()

    async def feedback(self, memory: Memory, session: str) -> None:
        place = self.random.choice([None, session])
        graph = memory.orchestrator()
        known = await (graph.get_agent_store() if place is None else graph.get_session_store(session))
        nodes = [node.id for node in known.nodes() if node.type in ("query", "answer")]
        label = self.random.choice(["up", "down", "retry", "fine"])
        await memory.record_feedback(self.random.choice([*nodes, "query_none"]), label, session_id=place)

    async def sleep(self, memory: Memory, session: str) -> None:
        await memory.orchestrator().run_sleep_cycle(self.random.choice([None, session]), force=True)

    async def finalize(self, memory: Memory, session: str) -> None:
        await memory.finalize_session(session, FinalizeOptions(dry_run=self.random.random() < 0.3))

    async def restore(self, memory: Memory, session: str) -> None:
        await memory.orchestrator().restore_snapshot("default")

    async def collect(self, memory: Memory, session: str) -> None:
        await memory.orchestrator().gc_sessions(self.random.choice([0, 10**9]))

    async def compare(self) -> int:
        """How many nodes there are, in graphs that are the same in both memories and on disk."""
        found = 0
        for memory in self._memories:
            await memory.settled()
        sessions = [session.id for session in await self._memories[0].conversations.recent()]
        for scope in (Scope(), *(Scope(session=session) for session in sessions)):
            for memory in self._memories:
                cache = memory._services.orchestrators.cache
                stored = content((await cache.copy(scope)).graph)
                async with cache.reading(scope) as [graph]:
                    assert content(graph) == stored
                found += len(stored["nodes"])
        return found


@pytest.mark.parametrize("seed", first_of(range(4)))
async def test_graphs_in_memory_are_those_on_disk_whatever_happens(database: Path, seed: int) -> None:
    clock, drawn, found = ScriptedClock(), random.Random(seed), 0
    for run in range(3):
        ids = [CountedIds(1_000 * (2 * run + place)) for place in range(2)]
        async with (
            open_memory(database, SMALL, clock=clock, ids=ids[0]) as one,
            open_memory(database, SMALL, clock=clock, ids=ids[1]) as other,
        ):
            walk = Walk((one, other), clock, drawn)
            for _ in range(2):
                for _ in range(10):
                    await walk.step()
                found += await walk.compare()
    assert found > 0
    with closing(sqlite3.connect(database)) as connection:
        assert list(connection.execute("PRAGMA integrity_check")) == [("ok",)]
        assert list(connection.execute("PRAGMA foreign_key_check")) == []
