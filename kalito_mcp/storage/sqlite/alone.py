"""A database file that no other process has open, and that none can write to."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from kalito_mcp.ports.storage_policy import StoragePolicy
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.storage.sqlite.environment import refuse_opened
from kalito_mcp.storage.sqlite.mutex import WriteMutex


@asynccontextmanager
async def opened_alone(path: Path, policy: StoragePolicy) -> AsyncIterator[SqliteStore]:
    """The database for reading, for a block in which nobody can write to it. It is brought up to date before.

    Raises:
        Conflict: a process has it open.
        ConfigurationError, StorageError: as `SqliteStore.open`.
    """
    await (await SqliteStore.open(path, policy)).close()
    async with WriteMutex(path.with_name(f"{path.name}.lock"), timeout_s=policy.busy_timeout_s).held():
        refuse_opened(path)
        store = await SqliteStore.open(path, policy, may_write=False)
        try:
            yield store
        finally:
            with anyio.CancelScope(shield=True):
                await store.close()
