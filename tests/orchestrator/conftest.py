"""Orchestrators over one database, as each test sets them up."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from kalito_mcp.domain.scope import Scope
from kalito_mcp.graph.snapshot_folder import SnapshotFolder
from kalito_mcp.graph.store import GraphStore
from kalito_mcp.orchestrator.graph_cache import GraphCache
from kalito_mcp.orchestrator.orchestrator import MemoryOrchestrator, OrchestratorConfig, new_graph
from kalito_mcp.ports.store import WriteTransaction
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite.database import SqliteStore
from tests.scripted import ScriptedClock

T = TypeVar("T")


@dataclass
class Setup:
    """A store, and the orchestrators on it."""

    store: SqliteStore
    clock: ScriptedClock
    snapshots: SnapshotFolder

    def orchestrator(self, agent_id: str = "default", **config: Any) -> MemoryOrchestrator:
        """An orchestrator with these settings and its own cache, like that of another process."""
        settings = OrchestratorConfig(**config)
        cache = GraphCache(self.store, lambda scope: new_graph(settings, scope, self.clock))
        return MemoryOrchestrator(
            agent_id, settings, store=self.store, cache=cache, snapshots=self.snapshots, clock=self.clock
        )

    async def open_session(self, session_id: str = "trip", *, agent: str | None = None) -> None:
        async with self.store.transaction() as transaction:
            await ensure_session(
                transaction.sessions, Scope(agent=agent, session=session_id), now_ms=self.clock.now_ms()
            )


@pytest.fixture
async def setup(store: SqliteStore, clock: ScriptedClock, tmp_path: Path) -> AsyncIterator[Setup]:
    """An orchestrator with an open session, `trip`."""
    built = Setup(store, clock, SnapshotFolder(tmp_path / "snapshots"))
    await built.open_session()
    yield built


async def changed(cache: GraphCache, scope: Scope, change: Callable[[GraphStore], T]) -> T:
    """Change one graph, and store it."""

    async def work(_: WriteTransaction, graphs: Sequence[GraphStore]) -> T:
        return change(graphs[0])

    return await cache.change([scope], work)
