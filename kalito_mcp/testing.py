"""A memory that is gone after the test of a program that uses one.

from kalito_mcp import NewMessage, Role
from kalito_mcp.testing import open_temporary_memory

async with open_temporary_memory() as memory:
    await memory.record_messages("trip", [NewMessage(Role.USER, "We fly to Oslo on May 3.")])
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from kalito_mcp.config.settings import Settings
from kalito_mcp.memory import Memory
from kalito_mcp.ports.clock import Clock, IdSource
from kalito_mcp.wiring import open_memory

__all__ = ["open_temporary_memory"]


@asynccontextmanager
async def open_temporary_memory(
    settings: Settings | None = None, *, clock: Clock | None = None, ids: IdSource | None = None
) -> AsyncIterator[Memory]:
    """Open a memory as `open_memory` does, in a temporary folder that is deleted after the block.

    `settings.database` has no effect.

    Raises:
        ConfigurationError: a setting cannot be used, or an extra that it needs is not installed.
    """
    with TemporaryDirectory(prefix="kalito-") as folder:
        async with open_memory(Path(folder) / "memory.db", settings, clock=clock, ids=ids) as memory:
            yield memory
