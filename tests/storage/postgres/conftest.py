"""An empty database on PostgreSQL, with its store and connections, for one test."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from kalito_mcp.storage.postgres.database import PostgresStore
from tests.postgres import OWNER, SUPERUSER, connected, new_database, shared_server


@pytest.fixture
async def database() -> str:
    return await new_database()


@pytest.fixture
async def store(database: str) -> AsyncIterator[PostgresStore]:
    opened = await PostgresStore.open(shared_server().url(database))
    yield opened
    await opened.close()


@pytest.fixture
async def all_rows(database: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection that sees the rows of every owner."""
    async with connected(database, SUPERUSER) as connection:
        yield connection


@pytest.fixture
async def of_tables(database: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection of the role that owns the tables."""
    async with connected(database, OWNER) as connection:
        yield connection
