"""The -wal file: bounded while others read, synced before a write is acknowledged, gone when all have closed."""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from kalito_mcp.domain.findings import Verdict
from kalito_mcp.domain.scope import Scope
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.storage.sqlite.inspection import inspect
from tests import drafts
from tests.scripted import START_MS
from tests.server import prepared
from tests.server.wire import clean_environment
from tests.storage.conftest import ROOT

pytestmark = pytest.mark.anyio
TRIP = Scope(session="trip")
LONG = "word " * 40_000

_ACKNOWLEDGE_UNTIL_KILLED = """
import pathlib, sys
import anyio
from kalito_mcp.domain.scope import Scope
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite.database import SqliteStore
from tests import drafts

async def main():
    store = await SqliteStore.open(pathlib.Path(sys.argv[1]))
    number = 0
    while True:
        async with store.transaction() as transaction:
            session = await ensure_session(transaction.sessions, Scope(session="trip"), now_ms=0)
            draft = drafts.message(f"message {number}", client_key=str(number))
            await transaction.conversations.append_messages(session, [draft], now_ms=0)
            await transaction.conversations.add_pins(session, [drafts.pin(f"pin {number}")])
        print(number, flush=True)
        number += 1

anyio.run(main)
"""


@pytest.mark.campaign
async def test_the_wal_stays_bounded_under_many_writes_with_a_reader(store: SqliteStore, database: Path) -> None:
    reading = await SqliteStore.open(database)
    wal = database.with_name("memory.db-wal")
    sizes: list[int] = []
    async with anyio.create_task_group() as tasks:

        async def read() -> None:
            while True:
                async with reading.view() as view:
                    session = await view.sessions.get(TRIP)
                    if session is not None:
                        await view.conversations.view(session, tail=3, pins=5)

        tasks.start_soon(read)
        for number in range(120):
            async with store.transaction() as transaction:
                session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
                draft = drafts.message(f"{LONG}{number}")
                await transaction.conversations.append_messages(session, [draft], now_ms=START_MS)
            sizes.append(wal.stat().st_size)
        tasks.cancel_scope.cancel()
    await reading.close()
    assert database.stat().st_size > 20_000_000
    assert max(sizes) < 13_000_000


async def test_the_database_runs_as_it_was_measured(store: SqliteStore) -> None:
    async with store.transaction():
        assert store._writer is not None
        pragmas = {}
        for name in ("journal_mode", "synchronous", "foreign_keys", "secure_delete", "trusted_schema", "query_only"):
            [[pragmas[name]]] = await store._writer.execute_fetchall(f"PRAGMA {name}")
    assert pragmas == {
        "journal_mode": "wal",
        "synchronous": 2,  # FULL: a commit that returned survives a power cut
        "foreign_keys": 1,
        "secure_delete": 1,
        "trusted_schema": 0,
        "query_only": 0,
    }


async def test_a_readers_connection_cannot_write(store: SqliteStore) -> None:
    async with store.view() as view:
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            await view.connection.execute_fetchall("DELETE FROM records")


@pytest.mark.parametrize("acknowledged", [1, 25])
def test_what_was_acknowledged_survives_the_kill_of_its_process(database: Path, acknowledged: int) -> None:
    with prepared.start(
        [sys.executable, "-c", _ACKNOWLEDGE_UNTIL_KILLED, str(database)],
        cwd=ROOT,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        for _ in range(acknowledged):
            last = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        heard = [int(line) for line in process.stdout]
    last = heard[-1] if heard else last
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT text FROM records WHERE type = 'message' ORDER BY seq").fetchall()
        pins = connection.execute("SELECT count(*) FROM records WHERE type = 'pin'").fetchone()[0]
    assert [text for (text,) in rows] == [f"message {number}" for number in range(len(rows))]
    assert len(rows) in {last + 1, last + 2}
    assert pins == len(rows)
    assert all(finding.verdict is Verdict.OK for finding in inspect(database, is_deep=True))
    assert os.path.exists(f"{database}-wal")  # noqa: PTH110


async def test_the_last_store_to_close_leaves_no_wal(store: SqliteStore, database: Path) -> None:
    other = await SqliteStore.open(database)
    async with other.transaction() as transaction:
        await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
    await store.close()
    assert database.with_name("memory.db-wal").exists()
    await other.close()
    assert not database.with_name("memory.db-wal").exists()
