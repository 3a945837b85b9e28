"""A whole transaction in one step on the thread of its connection."""

import threading
from collections.abc import Iterator

import anyio
import anyio.to_thread
import pytest

from kalito_mcp.domain.scope import Scope
from kalito_mcp.errors import StorageError, StorageReadOnly
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.runtime.long_texts import LONG_CHARS, read_aside
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.storage.sqlite.views import ReadViewOfSqlite, WriteTransactionOfSqlite

pytestmark = pytest.mark.anyio
TRIP = Scope(session="trip")


class Pause:
    """Suspends whoever awaits it."""

    def __await__(self) -> Iterator[None]:
        yield


async def test_a_reading_that_awaits_something_else_is_refused(store: SqliteStore) -> None:
    async def waits(_: ReadViewOfSqlite) -> None:
        await Pause()

    with pytest.raises(RuntimeError, match="something else than its transaction"):
        await store.read(waits)

    async def works(view: ReadViewOfSqlite) -> int:
        [[one]] = await view.connection.execute_fetchall("SELECT 1")
        return int(one)

    assert await store.read(works) == 1


async def test_a_write_that_awaits_something_else_writes_nothing(store: SqliteStore) -> None:
    async def waits(transaction: WriteTransactionOfSqlite) -> None:
        await ensure_session(transaction.sessions, TRIP, now_ms=1)
        await Pause()

    with pytest.raises(RuntimeError, match="something else than its transaction"):
        await store.write(waits)
    async with store.view() as view:
        assert await view.sessions.get(TRIP) is None


async def test_a_write_that_is_cancelled_is_taken_back_before_its_next_statement(store: SqliteStore) -> None:
    begun, go_on = threading.Event(), threading.Event()

    async def waits(transaction: WriteTransactionOfSqlite) -> None:
        await ensure_session(transaction.sessions, TRIP, now_ms=1)
        begun.set()
        assert go_on.wait(30)
        await ensure_session(transaction.sessions, Scope(session="tax"), now_ms=1)
        pytest.fail("the statement ran")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.write, waits)
        assert await anyio.to_thread.run_sync(begun.wait, 30)
        tasks.cancel_scope.cancel()
        threading.Timer(0.1, go_on.set).start()
    async with store.view() as view:
        assert await view.sessions.get(TRIP) is None


async def test_a_long_text_is_read_on_the_thread_of_its_write(store: SqliteStore) -> None:
    async def reads(_: WriteTransactionOfSqlite) -> int:
        return await read_aside(LONG_CHARS + 1, threading.get_ident)

    assert await store.write(reads) != threading.get_ident()


async def test_what_sqlite_refuses_is_explained(store: SqliteStore) -> None:
    async def malformed(view: ReadViewOfSqlite) -> None:
        await view.connection.execute_fetchall("SELECT * FROM no_such_table")

    with pytest.raises(StorageError):
        await store.read(malformed)


async def test_nothing_is_written_on_a_trip(store: SqliteStore) -> None:
    async def writes(view: ReadViewOfSqlite) -> None:
        await view.connection.execute_fetchall("DELETE FROM records")

    with pytest.raises(StorageReadOnly):
        await store.read(writes)
