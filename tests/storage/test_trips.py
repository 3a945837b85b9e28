"""A whole reading in one step on the thread of its connection."""

from collections.abc import Iterator

import pytest

from kalito_mcp.errors import StorageError, StorageReadOnly
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.storage.sqlite.views import ReadViewOfSqlite

pytestmark = pytest.mark.anyio


class Pause:
    """Suspends whoever awaits it."""

    def __await__(self) -> Iterator[None]:
        yield


async def test_a_reading_that_awaits_something_else_is_refused(store: SqliteStore) -> None:
    async def waits(_: ReadViewOfSqlite) -> None:
        await Pause()

    with pytest.raises(RuntimeError, match="something else than its view"):
        await store.trip(waits)

    async def works(view: ReadViewOfSqlite) -> int:
        [[one]] = await view.connection.execute_fetchall("SELECT 1")
        return int(one)

    assert await store.trip(works) == 1


async def test_what_sqlite_refuses_is_explained(store: SqliteStore) -> None:
    async def malformed(view: ReadViewOfSqlite) -> None:
        await view.connection.execute_fetchall("SELECT * FROM no_such_table")

    with pytest.raises(StorageError):
        await store.trip(malformed)


async def test_nothing_is_written_on_a_trip(store: SqliteStore) -> None:
    async def writes(view: ReadViewOfSqlite) -> None:
        await view.connection.execute_fetchall("DELETE FROM records")

    with pytest.raises(StorageReadOnly):
        await store.trip(writes)
