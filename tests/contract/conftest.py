"""The backends of every contract test. A test here uses only the ports."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
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
from tests.postgres import OWNER, new_database, shared_server
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
        self._name: str | None = None
        self._opened: list[PostgresStore] = []

    async def open(self) -> Store:
        server = shared_server()
        self._name = self._name or await new_database(server)
        store = await PostgresStore.open(server.url(self._name), direct_url=server.url(self._name, OWNER))
        self._opened.append(store)
        return store

    async def close(self) -> None:
        for store in self._opened:
            await store.close()


class PooledBackend(PostgresBackend):
    """A database behind PgBouncer."""

    async def open(self) -> Store:
        server, pooler = shared_server(), shared_pooler()
        self._name = self._name or await new_database(server)
        store = await PostgresStore.open(pooler.url(self._name), direct_url=server.url(self._name, OWNER))
        self._opened.append(store)
        return store


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
