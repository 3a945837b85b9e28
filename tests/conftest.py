"""What every test shares."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kalito_mcp.storage.sqlite.database import SqliteStore
from tests.scripted import CountedIds, ScriptedClock


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def clock() -> ScriptedClock:
    return ScriptedClock()


@pytest.fixture
def ids() -> CountedIds:
    return CountedIds()


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Where a test's database will be."""
    return tmp_path / "memory.db"


@pytest.fixture
async def store(database: Path) -> AsyncIterator[SqliteStore]:
    """A fresh store, closed when the test ends."""
    opened = await SqliteStore.open(database)
    yield opened
    await opened.close()
