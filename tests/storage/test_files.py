"""The database file: who may read it, and what happens to a damaged one."""

import hashlib
import os
import random
import shutil
import sqlite3
import stat
import threading
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from kalito_mcp.domain.scope import LOCAL_OWNER, Scope
from kalito_mcp.domain.search import SearchRequest
from kalito_mcp.errors import StorageDamaged, StorageError, StorageReadOnly
from kalito_mcp.ports.storage_policy import StoragePolicy
from kalito_mcp.ports.store import Store
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.retrieval.policy import SearchPolicy
from kalito_mcp.retrieval.search import Searcher
from kalito_mcp.storage.sqlite.database import SqliteStore
from tests import drafts
from tests.campaign import first_of
from tests.index_reads import shown
from tests.scripted import START_MS, ScriptedClock
from tests.storage.conftest import MESSAGES, TEXT
from tests.storage.descriptors import open_below

pytestmark = pytest.mark.anyio
TRIP = Scope(session="trip")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


async def read_everything(store: Store) -> set[str]:
    """Every text that the reads give back, through every index."""
    texts: set[str] = set()
    async with store.view() as view:
        await view.sessions.totals(Scope())
        await view.sessions.list_owing(threshold=15, max_summaries=3, after=None, limit=100)
        for session in await view.sessions.list_recent(Scope(), limit=100):
            texts |= {m.text for m in await view.conversations.messages(session, first_seq=1, last_seq=10_000)}
            parts = await view.conversations.view(session, tail=8, pins=99)
            texts |= {p.content for p in parts.pins}
            texts |= {s.summary for s in await view.conversations.summaries(session, level=0, after_seq=0)}
            texts |= {n.text or "" for n in (await view.graphs.load(Scope(session=session.id))).nodes}
        texts |= {n.text or "" for n in (await view.graphs.load(Scope())).nodes}
        texts |= {c.text for c in await shown(view, Scope())}
    page = await Searcher(store, SearchPolicy(), ScriptedClock()).search(Scope(), SearchRequest("ferry to Moss", k=100))
    return texts | {hit.text for hit in page.hits}


async def use(path: Path) -> set[str]:
    """Open, read everything, append a message."""
    store = await SqliteStore.open(path)
    try:
        texts = await read_everything(store)
        async with store.transaction() as transaction:
            session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
            await transaction.conversations.append_messages(session, [drafts.message("ferry")], now_ms=START_MS)
    finally:
        await store.close()
    return texts


@pytest.fixture
def written(sample: bytes) -> set[str]:
    """Every text of the sample."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(sample.replace(b"\x02\x02", b"\x01\x01", 1))  # out of WAL mode, for use in memory
        rows = connection.execute("SELECT text FROM records UNION ALL SELECT text FROM graph_nodes")
        return {row[0] for row in rows}


async def test_only_the_owner_can_read_the_database_and_its_side_files(tmp_path: Path) -> None:
    umask = os.umask(0)
    path = tmp_path / "new" / "folder" / "memory.db"
    try:
        store = await SqliteStore.open(path)
        async with store.transaction() as transaction:
            await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
        modes = {found.name: mode(found) for found in path.parent.iterdir()}
        await store.close()
    finally:
        os.umask(umask)
    assert modes == dict.fromkeys(("memory.db", "memory.db-wal", "memory.db-shm", "memory.db.lock"), 0o600)
    assert mode(path.parent) == 0o700


async def test_a_folder_that_was_there_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    store = await SqliteStore.open(tmp_path / "memory.db")
    await store.close()
    assert mode(tmp_path) == 0o755


async def test_a_closed_database_leaves_only_its_lock_file(copy: Path) -> None:
    await use(copy)
    assert sorted(found.name for found in copy.parent.iterdir()) == ["memory.db", "memory.db.lock"]


@pytest.mark.parametrize("name", ["a b.db", "100%.db", "a#b?c=d.db", "it's.db", "データ.db", "%41.db"])
async def test_a_database_may_be_called_anything(tmp_path: Path, name: str) -> None:
    await use(tmp_path / name)
    assert sorted(found.name for found in tmp_path.iterdir()) == [name, f"{name}.lock"]


async def test_a_relative_path_is_the_one_under_the_folder_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    await use(Path("memory.db"))
    assert (tmp_path / "memory.db").stat().st_size > 0


async def test_a_folder_in_the_place_of_the_file_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(StorageDamaged, match="folder"):
        await SqliteStore.open(tmp_path)
    with pytest.raises(StorageReadOnly):
        await SqliteStore.open(Path("/proc/nowhere/memory.db"))
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageReadOnly):
        await SqliteStore.open(tmp_path / "file" / "memory.db")


async def test_an_empty_file_becomes_a_database(database: Path) -> None:
    database.touch()
    assert await use(database) == set()


@pytest.mark.parametrize(
    "content", [b"xy", b"not a database\n" * 500, b"SQLite format 3\x00", b"SQLite format 3\x00" + b"\x00" * 4080]
)
async def test_what_is_no_database_is_refused_and_stays_as_it_is(database: Path, content: bytes) -> None:
    database.write_bytes(content)
    with pytest.raises(StorageDamaged, match="doctor"):
        await SqliteStore.open(database)
    with pytest.raises(StorageDamaged):
        await SqliteStore.open(database, may_write=False)
    assert database.read_bytes() == content


async def test_a_file_cut_short_anywhere_is_refused_and_stays_as_it_is(sample: bytes, database: Path) -> None:
    chance = random.Random(3)
    lengths = {2, 15, 16, 17, 99, 100, 101, 511, 512, 1024, 4095, 4096, 4097, 8192, len(sample) - 4096}
    # Within its last page a cut is for `doctor` to find: SQLite reads zeros there.
    lengths |= {chance.randrange(2, len(sample) - 4096) for _ in range(30)}
    for length in sorted(lengths):
        database.write_bytes(sample[:length])
        before = digest(database)
        with pytest.raises(StorageDamaged):
            await SqliteStore.open(database)
        assert digest(database) == before, length


@pytest.mark.parametrize("first", first_of(range(4)))
async def test_a_page_of_zeros_anywhere_is_an_error_in_words_or_was_not_needed(
    sample: bytes, database: Path, written: set[str], first: int
) -> None:
    for page in range(first, len(sample) // 4096, 4):
        damaged = bytearray(sample)
        damaged[page * 4096 : (page + 1) * 4096] = bytes(4096)
        await check_damaged(database, bytes(damaged), written)


@pytest.mark.parametrize("seed", first_of(range(4)))
async def test_garbage_anywhere_is_an_error_in_words_or_was_not_needed(
    sample: bytes, database: Path, written: set[str], seed: int
) -> None:
    chance = random.Random(seed)
    for _ in range(10):
        damaged = bytearray(sample)
        start = chance.randrange(len(sample) - 512)
        damaged[start : start + 512] = chance.randbytes(512)
        await check_damaged(database, bytes(damaged), written, may_be_garbled=True)


@pytest.mark.parametrize("seed", first_of(range(4)))
async def test_a_flipped_bit_anywhere_is_an_error_in_words_or_was_not_needed(
    sample: bytes, database: Path, written: set[str], seed: int
) -> None:
    chance = random.Random(seed)
    for _ in range(10):
        damaged = bytearray(sample)
        damaged[chance.randrange(len(sample))] ^= 1 << chance.randrange(8)
        await check_damaged(database, bytes(damaged), written, may_be_garbled=True)


async def check_damaged(path: Path, content: bytes, written: set[str], *, may_be_garbled: bool = False) -> None:
    """Only errors of the storage's own tree come out; what comes out as text was written."""
    for beside in path.parent.iterdir():
        beside.unlink()
    path.write_bytes(content)
    try:
        store = await SqliteStore.open(path)
    except StorageError as error:
        assert isinstance(error, StorageDamaged), error
        assert path.read_bytes() == content
        return
    try:
        texts = await read_everything(store)
        assert may_be_garbled or texts <= written
    except StorageDamaged as error:
        assert TEXT[:10] not in str(error)
    finally:
        await store.close()


async def test_a_read_that_failed_leaves_no_reader_behind_that_sees_the_past(copy: Path) -> None:
    with closing(sqlite3.connect(copy)) as connection:
        connection.execute("UPDATE records SET text = CAST(x'c328' AS TEXT) WHERE type = 'pin'")
        connection.commit()
    store = await SqliteStore.open(copy, StoragePolicy(readers=1))
    kept: list[BaseException] = []
    for number in range(3):
        async with store.view() as view:
            session = await view.sessions.get(TRIP)
        assert session is not None
        assert session.message_count == MESSAGES + number
        try:
            async with store.view() as view:
                await view.conversations.view(session, tail=1, pins=5)
        except StorageDamaged as error:
            kept.append(error)  # as a log or a debugger would
        async with store.transaction() as transaction:
            session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
            await transaction.conversations.append_messages(session, [drafts.message("new")], now_ms=START_MS)
    assert len(kept) == 3
    await store.close()


async def test_the_side_files_of_a_closed_database_are_not_needed(copy: Path, written: set[str]) -> None:
    copy.with_name("memory.db-shm").write_bytes(b"garbage" * 1000)
    assert await use(copy) == written


@pytest.mark.parametrize("lost", ["-shm", "-wal"])
async def test_a_lost_side_file_never_costs_what_is_in_the_database(
    copy: Path, tmp_path: Path, lost: str, written: set[str]
) -> None:
    store = await SqliteStore.open(copy)
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
        await transaction.conversations.append_messages(session, [drafts.message("in the wal")], now_ms=START_MS)
    crashed = tmp_path / "crashed" / "memory.db"
    crashed.parent.mkdir()
    for suffix in ("", "-wal", "-shm"):  # what a killed process would leave behind
        shutil.copy(f"{copy}{suffix}", f"{crashed}{suffix}")
    await store.close()
    Path(f"{crashed}{lost}").unlink()
    expected = written | {"in the wal"} if lost == "-shm" else written
    assert await use(crashed) == expected


async def test_a_wal_cut_short_anywhere_loses_whole_transactions_from_its_end_and_nothing_else(
    copy: Path, tmp_path: Path
) -> None:
    store = await SqliteStore.open(copy)
    for number in range(8):
        async with store.transaction() as transaction:
            session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
            pair = [drafts.message(f"pair {number} {half}") for half in ("one", "two")]
            await transaction.conversations.append_messages(session, pair, now_ms=START_MS)
    database, wal = copy.read_bytes(), Path(f"{copy}-wal").read_bytes()
    await store.close()
    survivors: list[int] = []
    for length in range(0, len(wal) + 1, len(wal) // 24):
        crashed = tmp_path / str(length) / "memory.db"
        crashed.parent.mkdir()
        crashed.write_bytes(database)
        Path(f"{crashed}-wal").write_bytes(wal[:length])
        store = await SqliteStore.open(crashed)
        async with store.view() as view:
            found = await view.sessions.get(TRIP)
            assert found is not None
            messages = await view.conversations.messages(found, first_seq=MESSAGES + 1, last_seq=10_000)
        await store.close()
        assert [m.text for m in messages] == [
            f"pair {number} {half}" for number in range(len(messages) // 2) for half in ("one", "two")
        ]
        survivors.append(len(messages))
    assert survivors == sorted(survivors)
    assert survivors[0] == 0


def connection_threads() -> int:
    return sum("_connection_worker_thread" in thread.name for thread in threading.enumerate())


async def settle(threads: int) -> None:
    """Wait for the threads that are about to end."""
    with anyio.fail_after(10):
        while connection_threads() > threads:
            await anyio.lowlevel.checkpoint()


async def test_a_store_that_was_closed_keeps_no_thread_and_no_descriptor(copy: Path) -> None:
    before = connection_threads()
    store = await SqliteStore.open(copy)
    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(read_everything, store)
            tasks.start_soon(store.revision, LOCAL_OWNER)
    for steps in range(0, 800, 40):
        await store.close()
        store = await SqliteStore.open(copy)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read_everything, store)
            tasks.start_soon(store.revision, LOCAL_OWNER)
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
    await store.close()
    await settle(before)
    assert not open_below(copy.parent)


async def test_an_opening_that_is_cancelled_keeps_no_thread_and_no_descriptor(copy: Path) -> None:
    before = connection_threads()
    for steps in range(0, 2_000, 50):
        opened: list[SqliteStore] = []

        async def open_one(into: list[SqliteStore]) -> None:
            into.append(await SqliteStore.open(copy))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(open_one, opened)
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        for store in opened:
            await store.close()
    await settle(before)
    assert not open_below(copy.parent)
