"""Reads a database once, for a program that has no event loop."""

from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

import anyio

from kalito_mcp.ports.storage_policy import StoragePolicy
from kalito_mcp.storage.postgres.database import PostgresStore
from kalito_mcp.storage.postgres.views import ReadViewOfPostgres

T = TypeVar("T")
SELECT_SIZE: Final = "SELECT pg_database_size(current_database())"


def read_once(
    url: str, policy: StoragePolicy, work: Callable[[ReadViewOfPostgres], Coroutine[Any, Any, T]]
) -> tuple[T, int]:
    """The result of `work` on a view, and the size of the whole database in bytes.

    Raises:
        ConfigurationError, StorageError: see `PostgresStore.open`.
    """

    async def read() -> tuple[T, int]:
        store = await PostgresStore.open(url, policy)
        try:
            return await store.read(work), await store.read(_size)
        finally:
            await store.close()

    return anyio.run(read)


async def _size(view: ReadViewOfPostgres) -> int:
    [[size]] = await view.transaction.all(SELECT_SIZE)
    return int(size)
