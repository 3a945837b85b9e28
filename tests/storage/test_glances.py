"""A row or two, read on the event loop's own thread."""

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from kalito_mcp.domain.scope import LOCAL_OWNER, Scope
from kalito_mcp.errors import StorageBusy
from kalito_mcp.ports.storage_policy import StoragePolicy
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.storage.sqlite.glances import Glances
from kalito_mcp.storage.sqlite.opening import READ_WRITE
from kalito_mcp.storage.sqlite.views import ReadViewOfSqlite
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio
TRIP = Scope(session="trip")


async def test_a_glance_sees_the_last_commit_and_waits_for_no_reading(database: Path) -> None:
    store = await SqliteStore.open(database, StoragePolicy(readers=1))
    threads: list[int] = []

    async def has_trip(view: ReadViewOfSqlite) -> bool:
        threads.append(threading.get_ident())
        return await view.sessions.get(TRIP) is not None

    async with store.view():  # the only reader is taken
        before = await store.revision(LOCAL_OWNER)
        assert not await store.read(has_trip, is_short=True)
        async with store.transaction() as transaction:
            await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
        assert await store.read(has_trip, is_short=True)
        assert await store.revision(LOCAL_OWNER) != before
    assert set(threads) == {threading.get_ident()}
    await store.close()


async def test_a_glance_waits_for_another_program_beside_the_event_loop_and_not_for_ever(database: Path) -> None:
    await (await SqliteStore.open(database)).close()

    def look(connection: sqlite3.Connection) -> bool:
        connection.execute("PRAGMA query_only = OFF")
        connection.execute("BEGIN IMMEDIATE")
        connection.rollback()
        return True

    with closing(sqlite3.connect(database, isolation_level=None)) as theirs:
        theirs.execute("BEGIN IMMEDIATE")
        impatient = Glances(database, timeout_s=0.0)
        with pytest.raises(StorageBusy, match="another program"):
            await impatient.run(look, READ_WRITE)
        impatient.close()
        patient = Glances(database, timeout_s=10.0)
        seen: list[bool] = []

        async def glance() -> None:
            seen.append(await patient.run(look, READ_WRITE))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(glance)
            await anyio.sleep(0.03)
            assert not seen
            theirs.rollback()
        assert seen == [True]
        patient.close()
