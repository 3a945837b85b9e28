"""The write mutex: one writer across processes.

Its death frees the lock, and a waiter that gives up leaves no trace.
"""

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import anyio
import pytest

from kalito_mcp.domain.scope import Scope
from kalito_mcp.errors import StorageBusy, StorageReadOnly
from kalito_mcp.files import LOCKED_BYTE
from kalito_mcp.ports.storage_policy import StoragePolicy
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite import side_files
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.storage.sqlite.mutex import WriteMutex
from tests import drafts, windows_like
from tests.scripted import START_MS
from tests.server import prepared
from tests.server.wire import clean_environment
from tests.storage.conftest import ROOT
from tests.storage.descriptors import open_below

pytestmark = pytest.mark.anyio
TRIP = Scope(session="trip")
NewMutex = Callable[..., WriteMutex]
IMPATIENT = StoragePolicy(busy_timeout_s=0.05)

_HOLD_THE_LOCK = """
import fcntl, os, sys
descriptor = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(descriptor, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""
_WRITE_AND_STOP_INSIDE = """
import pathlib, sys
import anyio
from kalito_mcp.domain.scope import Scope
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite.database import SqliteStore
from tests import drafts, windows_like

async def main():
    store = await SqliteStore.open(pathlib.Path(sys.argv[1]))
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, Scope(session="trip"), now_ms=0)
        await transaction.conversations.append_messages(session, [drafts.message("unfinished")], now_ms=0)
        print("held", flush=True)
        sys.stdin.read()

anyio.run(main)
"""
_APPEND = """
import pathlib, sys
import anyio
from kalito_mcp.domain.scope import Scope
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite.database import SqliteStore
from tests import drafts, windows_like

async def main():
    store = await SqliteStore.open(pathlib.Path(sys.argv[1]))
    for number in range(int(sys.argv[3])):
        async with store.transaction() as transaction:
            session = await ensure_session(transaction.sessions, Scope(session="trip"), now_ms=0)
            draft = drafts.message(f"{sys.argv[2]}{number}")
            await transaction.conversations.append_messages(session, [draft], now_ms=0)
    await store.close()

anyio.run(main)
"""


@contextmanager
def another_process(program: str, path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has taken the lock, until the block ends."""
    with prepared.start(
        [sys.executable, "-c", program, str(path)],
        cwd=ROOT,
        env=clean_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


async def count(store: SqliteStore) -> int:
    async with store.view() as view:
        session = await view.sessions.get(TRIP)
        return session.message_count if session else 0


async def append(store: SqliteStore, text: str = "mine") -> None:
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
        await transaction.conversations.append_messages(session, [drafts.message(text)], now_ms=START_MS)


async def test_the_lock_is_a_private_file_next_to_the_database(store: SqliteStore, database: Path) -> None:
    await append(store)
    lock = database.with_name("memory.db.lock")
    assert stat.S_IMODE(lock.stat().st_mode) == 0o600
    assert lock.stat().st_size < 100


async def test_a_write_while_another_process_writes_is_busy_after_the_timeout_and_reads_go_on(database: Path) -> None:
    store = await SqliteStore.open(database, IMPATIENT)
    await append(store)
    with another_process(_HOLD_THE_LOCK, database.with_name("memory.db.lock")):
        with pytest.raises(StorageBusy, match="doctor"):
            await append(store)
        assert await count(store) == 1
    await append(store)
    assert await count(store) == 2
    await store.close()


async def test_a_writer_killed_inside_its_transaction_frees_the_lock_and_leaves_nothing(database: Path) -> None:
    store = await SqliteStore.open(database)
    await append(store)
    with another_process(_WRITE_AND_STOP_INSIDE, database) as writer, anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(append, store)
            for _ in range(50):
                await anyio.lowlevel.checkpoint()
            writer.kill()
    assert await count(store) == 2
    await store.close()


async def test_writers_in_several_processes_lose_nothing(database: Path) -> None:
    await (await SqliteStore.open(database)).close()
    writers = [
        prepared.start([sys.executable, "-c", _APPEND, str(database), name, "40"], cwd=ROOT, env=clean_environment())
        for name in "abc"
    ]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0]
    store = await SqliteStore.open(database)
    async with store.view() as view:
        session = await view.sessions.get(TRIP)
        assert session is not None
        messages = await view.conversations.messages(session, first_seq=1, last_seq=1_000)
    await store.close()
    assert sorted(m.text for m in messages) == sorted(f"{name}{number}" for name in "abc" for number in range(40))
    assert [m.seq for m in messages] == list(range(1, 121))


async def test_a_program_that_locks_the_database_itself_makes_a_write_busy_and_nothing_else(database: Path) -> None:
    store = await SqliteStore.open(database, IMPATIENT)
    await append(store)
    with closing(sqlite3.connect(database, isolation_level=None)) as theirs:
        theirs.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageBusy, match="another program"):
            await append(store)
        assert await count(store) == 1
    await append(store)
    assert await count(store) == 2
    await store.close()


async def test_opening_a_store_that_needs_the_lock_is_busy_too(database: Path) -> None:
    with (
        another_process(_HOLD_THE_LOCK, database.with_name("memory.db.lock")),
        pytest.raises(StorageBusy),
    ):
        await SqliteStore.open(database, IMPATIENT)
    store = await SqliteStore.open(database, IMPATIENT)
    await store.close()


async def test_a_store_can_be_closed_while_another_process_is_stuck_in_a_write(database: Path) -> None:
    store = await SqliteStore.open(database, IMPATIENT)
    with another_process(_HOLD_THE_LOCK, database.with_name("memory.db.lock")), anyio.fail_after(10):
        await store.close()


@pytest.fixture(
    params=["flock", pytest.param("msvcrt", marks=pytest.mark.skipif(sys.platform != "linux", reason="OFD"))]
)
def new_mutex(request: pytest.FixtureRequest) -> NewMutex:
    """Makes mutexes with the locks of this system, and with those of Windows as far as Linux can stand in for them."""
    return WriteMutex if request.param == "flock" else windows_like.mutex_of_windows()[0].WriteMutex


async def test_two_mutexes_on_one_file_exclude_each_other_in_one_process(tmp_path: Path, new_mutex: NewMutex) -> None:
    path = tmp_path / "lock"
    inside: list[str] = []

    async def hold(name: str) -> None:
        for _ in range(5):
            async with new_mutex(path, timeout_s=10).held():
                inside.append(name)
                await anyio.lowlevel.checkpoint()
                assert inside[-1] == name
                inside.append(name)

    async with anyio.create_task_group() as tasks:
        for name in "abc":
            tasks.start_soon(hold, name)
    assert inside[::2] == inside[1::2]
    assert len(open_below(path)) == 0


async def test_a_wait_that_is_cancelled_at_any_moment_leaves_neither_the_lock_nor_a_descriptor(
    tmp_path: Path, new_mutex: NewMutex
) -> None:
    path = tmp_path / "lock"
    mutex = new_mutex(path, timeout_s=30)

    async def want() -> None:
        async with mutex.held():
            pass

    for round_ in range(300):
        async with mutex.held(), anyio.create_task_group() as tasks:
            tasks.start_soon(want)
            for _ in range(round_ % 30 * 4):
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
    await settle(path, 0)
    with anyio.fail_after(5):
        await want()


async def test_a_wait_that_was_cancelled_before_it_began_leaves_no_descriptor(
    tmp_path: Path, new_mutex: NewMutex
) -> None:
    mutex = new_mutex(tmp_path / "lock", timeout_s=30)
    async with mutex.held():
        for _ in range(100):
            with anyio.CancelScope() as scope:
                scope.cancel()
                async with mutex.held():
                    pass
        assert len(open_below(tmp_path / "lock")) == 1


async def test_a_cancellation_while_getting_the_lock_never_loses_the_lock(tmp_path: Path, new_mutex: NewMutex) -> None:
    path = tmp_path / "lock"
    mutex = new_mutex(path, timeout_s=30)

    async def want() -> None:
        async with mutex.held():
            pass

    for round_ in range(200):
        async with anyio.create_task_group() as tasks:
            async with mutex.held():
                tasks.start_soon(want)
                await anyio.lowlevel.checkpoint()
            for _ in range(round_ * 4):
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
    await settle(path, 0)


async def test_a_cancellation_that_races_with_the_timeout_closes_the_descriptor_once(
    tmp_path: Path, new_mutex: NewMutex
) -> None:
    path = tmp_path / "lock"
    holder, impatient = new_mutex(path, timeout_s=30), new_mutex(path, timeout_s=0.002)

    async def want() -> None:
        async with impatient.held():
            pass

    async with holder.held():
        for round_ in range(150):
            waiting = asyncio.ensure_future(want())
            for _ in range(round_ * 4):
                await anyio.lowlevel.checkpoint()
            waiting.cancel()
            outcome = (await asyncio.gather(waiting, return_exceptions=True))[0]
            assert isinstance(outcome, StorageBusy | asyncio.CancelledError)
        await settle(path, 1)


async def settle(path: Path, descriptors: int) -> None:
    """Wait for the threads that were given up to notice."""
    with anyio.fail_after(10):
        while len(open_below(path)) != descriptors:
            await anyio.lowlevel.checkpoint()


async def test_a_lock_that_cannot_be_created_says_so(tmp_path: Path, new_mutex: NewMutex) -> None:
    (tmp_path / "lock").mkdir()
    with pytest.raises(StorageReadOnly, match="lock"):
        async with new_mutex(tmp_path / "lock", timeout_s=1).held():
            pass


@pytest.mark.skipif(sys.platform != "linux", reason="the locks that stand in for those of Windows")
async def test_on_windows_a_byte_is_locked_that_nobody_reads_and_a_killed_holder_frees_it(tmp_path: Path) -> None:
    module, locks = windows_like.mutex_of_windows()
    holder = """
import pathlib, sys
import anyio
from tests import windows_like

async def main():
    module, _ = windows_like.mutex_of_windows()
    async with module.WriteMutex(pathlib.Path(sys.argv[1]), timeout_s=1).held():
        print("held", flush=True)
        sys.stdin.read()

anyio.run(main)
"""
    path = tmp_path / "lock"
    with another_process(holder, path), pytest.raises(StorageBusy, match="another process"):
        async with module.WriteMutex(path, timeout_s=0.05).held():
            pass
    async with module.WriteMutex(path, timeout_s=30).held() as descriptor:
        assert os.fstat(descriptor).st_size == 0
    # Windows lets nobody read what another one has locked, and stores read the note in this file without the lock.
    assert locks.locked_from == {LOCKED_BYTE}
    assert side_files._NOTE.size < LOCKED_BYTE
