"""The backends of every contract test. A test here uses only the ports."""

from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Protocol

import pytest

from kalito_mcp.ports.store import Store
from kalito_mcp.storage.postgres.database import PostgresStore
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.storage.sqlite.views import WriteTransactionOfSqlite
from tests.campaign import LATER
from tests.empty_database import lay_empty_database
from tests.pgbouncer import shared_pooler
from tests.postgres import OWNER, empty_database, shared_server
from tests.qdrant import LocalClient, points_of


class Backend(Protocol):
    """One empty database."""

    async def open(self) -> Store:
        """Open a store on the database, as another process would."""
        ...

    async def close(self) -> None:
        """Close every store that was opened."""
        ...


class SqliteBackend:
    """A file in its own folder."""

    def __init__(self, folder: Path) -> None:
        self._path = lay_empty_database(folder / "memory.db")
        self._opened: list[SqliteStore] = []

    async def open(self) -> Store:
        store = await SqliteStore.open(self._path)
        self._opened.append(store)
        return store

    async def close(self) -> None:
        for store in self._opened:
            await store.close()


class StoreOfQdrant(SqliteStore):
    """Moves vectors to Qdrant after each commit, as the background does."""

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[WriteTransactionOfSqlite]:
        async with super().transaction() as transaction:
            yield transaction
        if not self._is_moving:
            self._is_moving = True
            try:
                assert not await self.maintenance.move_vectors()
            finally:
                self._is_moving = False

    _is_moving = False


class QdrantBackend(SqliteBackend):
    """A file in its own folder, whose vectors are in one Qdrant."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._client = LocalClient()

    async def open(self) -> Store:
        store = await StoreOfQdrant.open(self._path, points=points_of(self._client))
        self._opened.append(store)
        return store

    async def close(self) -> None:
        await super().close()
        self._client.close()


class PostgresBackend:
    """A database of a real server."""

    def __init__(self, folder: Path) -> None:
        del folder
        self._used = AsyncExitStack()
        self._name: str | None = None

    async def open(self) -> Store:
        server = shared_server()
        name = await self._database()
        return await self._kept(PostgresStore.open(server.url(name), direct_url=server.url(name, OWNER)))

    async def close(self) -> None:
        await self._used.aclose()

    async def _database(self) -> str:
        self._name = self._name or await self._used.enter_async_context(empty_database())
        return self._name

    async def _kept(self, opening: Awaitable[PostgresStore]) -> PostgresStore:
        store = await opening
        self._used.push_async_callback(store.close)
        return store


class PooledBackend(PostgresBackend):
    """A database behind PgBouncer."""

    async def open(self) -> Store:
        server, pooler = shared_server(), shared_pooler()
        name = await self._database()
        return await self._kept(PostgresStore.open(pooler.url(name), direct_url=server.url(name, OWNER)))


@pytest.fixture(params=["sqlite", "postgres", pytest.param("pooled", marks=LATER)])
async def backend(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Backend]:
    backends = {
        "sqlite": SqliteBackend,
        "postgres": PostgresBackend,
        "pooled": PooledBackend,
        "qdrant": QdrantBackend,
    }
    opened: Backend = backends[request.param](tmp_path)
    yield opened
    await opened.close()


@pytest.fixture
async def store(backend: Backend) -> Store:
    """One store on the backend."""
    return await backend.open()
