"""The composition root of a migration: two addresses to two stores, of which one gets what the other one has."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import anyio

from kalito_mcp.ports.storage_policy import StoragePolicy
from kalito_mcp.ports.store import OpenedStore
from kalito_mcp.runtime.database_address import DatabaseAddress, ServerAddress
from kalito_mcp.storage.on_server import open_on_server
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.storage.sqlite.environment import refuse_opened
from kalito_mcp.storage.sqlite.mutex import WriteMutex
from kalito_mcp.upkeep.transfer import Progress, TransferReport, transfer


async def migrate(
    address: DatabaseAddress, target: DatabaseAddress, policy: StoragePolicy, progress: Progress
) -> TransferReport:
    """Move everything to another database, which is empty or has what an earlier call brought there. Nothing is changed
    at the address.

    Raises:
        Conflict: the database is in use, or the target has something else.
        ConfigurationError, StorageError: as when they are opened.
    """
    async with _source(address, policy) as source, _opened(target, policy, is_target=True) as destination:
        return await transfer(source, destination, progress)


def _source(address: DatabaseAddress, policy: StoragePolicy) -> AbstractAsyncContextManager[OpenedStore]:
    """The database, to be read while nobody writes to a file. On a server, what is written meanwhile is found at the
    end."""
    if address.server is None:
        return _opened_alone(address.path, policy)
    # The role that owns the tables is the target's.
    return _opened(DatabaseAddress(address.prefix, ServerAddress(address.server.url)), policy, is_target=False)


@asynccontextmanager
async def _opened(address: DatabaseAddress, policy: StoragePolicy, *, is_target: bool) -> AsyncIterator[OpenedStore]:
    store: OpenedStore
    if address.server is not None:
        store = await open_on_server(address.server, policy, is_target=is_target)
    else:
        store = await SqliteStore.open(address.path, policy, is_target=is_target)
    try:
        yield store
    finally:
        with anyio.CancelScope(shield=True):
            await store.close()


@asynccontextmanager
async def _opened_alone(path: Path, policy: StoragePolicy) -> AsyncIterator[SqliteStore]:
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
