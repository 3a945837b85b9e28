"""A look into a database without an event loop sees and refuses what a store does that is opened for reading."""

import shutil
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from kalito_mcp.domain.scope import Scope
from kalito_mcp.errors import StorageError, StorageReplaced
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.storage.sqlite.reading_once import CountsOfSqlite, read_once
from tests import drafts
from tests.scripted import START_MS
from tests.storage.conftest import Disk

pytestmark = pytest.mark.anyio
OWNED = Scope()
BEGIN = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None).execute('BEGIN IMMEDIATE')"


async def totals(view: CountsOfSqlite) -> dict[str, int]:
    return await view.sessions.totals(OWNED)


def read(path: Path) -> dict[str, int]:
    return read_once(path, totals, timeout_s=5)


async def append(store: SqliteStore, text: str) -> None:
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, Scope(session="trip"), now_ms=START_MS)
        await transaction.conversations.append_messages(session, [drafts.message(text)], now_ms=START_MS)


async def refusal_of_a_store(path: Path) -> StorageError:
    with pytest.raises(StorageError) as refused:
        await SqliteStore.open(path, may_write=False)
    return refused.value


def refusal(path: Path) -> StorageError:
    with pytest.raises(StorageError) as refused:
        read(path)
    return refused.value


def run(statements: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(statements)

    return change


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(Path.unlink, id="missing"),
        pytest.param(folder, id="folder"),
        pytest.param(lambda path: path.write_bytes(b""), id="empty"),
        pytest.param(lambda path: path.write_bytes(b"Dear diary, " * 1000), id="text"),
        pytest.param(lambda path: path.write_bytes(path.read_bytes()[:5000]), id="cut short"),
        pytest.param(run("PRAGMA application_id = 5"), id="another program"),
        pytest.param(run("PRAGMA user_version = 9"), id="older"),
        pytest.param(run("PRAGMA user_version = 999"), id="newer"),
        pytest.param(run("UPDATE migrations SET checksum = 'x' WHERE number = 3"), id="another migration"),
    ],
)
async def test_what_a_store_refuses_to_read_is_refused_in_the_same_words(
    copy: Path, spoil: Callable[[Path], None]
) -> None:
    spoil(copy)
    was = copy.read_bytes() if copy.is_file() else None
    of_a_store = await refusal_of_a_store(copy)
    found = refusal(copy)
    assert (type(found), str(found)) == (type(of_a_store), str(of_a_store))
    assert (copy.read_bytes() if copy.is_file() else None) == was


async def test_a_log_of_another_database_is_refused_in_the_same_words(
    store: SqliteStore, database: Path, sample: bytes
) -> None:
    await append(store, "one")
    other = database.with_name("other.db")
    other.write_bytes(sample)
    other.replace(database)
    assert str(refusal(database)) == str(await refusal_of_a_store(database))
    assert isinstance(refusal(database), StorageReplaced)
    assert database.read_bytes() == sample


async def test_an_index_of_an_older_release_is_read_with_the_warning(
    copy: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run("UPDATE identity SET analysis = 1")(copy)
    assert read(copy)["messages"] == 240
    assert "an older release made the text index" in caplog.text


async def test_a_look_sees_what_a_store_wrote_and_takes_no_lock_from_it(store: SqliteStore, database: Path) -> None:
    await append(store, "one")
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, Scope(session="trip"), now_ms=START_MS)
        await transaction.conversations.append_messages(session, [drafts.message("two")], now_ms=START_MS)
        assert read(database)["messages"] == 1
        other = await anyio.run_process([sys.executable, "-c", BEGIN, database], check=False)
        assert b"database is locked" in other.stderr
    assert read(database)["messages"] == 2


def test_a_look_never_takes_the_write_mutex(copy: Path) -> None:
    assert read(copy)["messages"] == 240
    assert not copy.with_name(f"{copy.name}.lock").exists()


async def test_on_a_read_only_disk_a_database_is_read_without_its_log(disk: Disk) -> None:
    store = await SqliteStore.open(disk.database)
    await append(store, "one")
    await store.close()
    store = await SqliteStore.open(disk.database)
    await append(store, "two")
    crashed = disk.folder / "crashed.db"
    for suffix in ("", "-wal"):
        shutil.copy(f"{disk.database}{suffix}", f"{crashed}{suffix}")
    await store.close()
    disk.make_read_only()
    before = sorted(disk.folder.iterdir())
    assert read(disk.database)["messages"] == 2
    assert read(crashed)["messages"] == 1
    assert sorted(disk.folder.iterdir()) == before
