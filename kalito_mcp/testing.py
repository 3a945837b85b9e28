"""A memory without a file, for the tests of programs that use one.

from kalito_mcp import NewMessage, Role
from kalito_mcp.testing import open_in_memory

async with open_in_memory() as memory:
    await memory.record_messages("trip", [NewMessage(Role.USER, "We fly to Oslo on May 3.")])
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from kalito_mcp.config.settings import Settings
from kalito_mcp.domain.graph import GraphScope
from kalito_mcp.domain.sleep import SleepCycleReport, SleepCycleSummarizer
from kalito_mcp.memory import Memory
from kalito_mcp.ports.clock import Clock, IdSource
from kalito_mcp.runtime.database_address import DatabaseAddress
from kalito_mcp.storage.memory.store import InMemoryStore
from kalito_mcp.wiring import memory_over

__all__ = ["InMemoryStore", "open_in_memory"]


@asynccontextmanager
async def open_in_memory(
    settings: Settings | None = None,
    *,
    store: InMemoryStore | None = None,
    clock: Clock | None = None,
    ids: IdSource | None = None,
    summarizer: SleepCycleSummarizer | None = None,
    emit: Callable[[GraphScope, SleepCycleReport], None] | None = None,
) -> AsyncIterator[Memory]:
    """Open a memory as `open_memory` does, but over a store in this process instead of a file, for the block.

    It follows the same rules. Of the settings, those of the database have no effect. `store` is what a memory that was
    opened earlier left; without it, nothing is remembered yet. Snapshots, which finalizing writes, are in a temporary
    folder until the block ends.

    Raises:
        ConfigurationError: a setting cannot be used, or an extra that it needs is not installed.
    """
    with TemporaryDirectory(prefix="kalito-") as folder:
        settings = replace(settings or Settings(), database=DatabaseAddress(Path(folder) / "memory"))
        opened = store or InMemoryStore()
        async with memory_over(opened, settings, clock=clock, ids=ids, summarizer=summarizer, emit=emit) as memory:
            yield memory
