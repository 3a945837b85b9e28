"""A read-only database can be read, and writes are refused. Nothing is created and nothing is lost."""

import shutil
from pathlib import Path

import pytest

from kalito_mcp.domain.findings import Verdict
from kalito_mcp.domain.scope import LOCAL_OWNER, Scope
from kalito_mcp.errors import StorageReadOnly
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.storage.sqlite.environment import access
from kalito_mcp.storage.sqlite.inspection import inspect
from tests import drafts
from tests.scripted import START_MS
from tests.storage.conftest import Disk

pytestmark = pytest.mark.anyio
TRIP = Scope(session="trip")


async def append(store: SqliteStore, text: str) -> None:
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
        await transaction.conversations.append_messages(session, [drafts.message(text)], now_ms=START_MS)


async def texts(store: SqliteStore) -> list[str]:
    async with store.view() as view:
        session = await view.sessions.get(TRIP)
        assert session is not None
        return [m.text for m in await view.conversations.messages(session, first_seq=1, last_seq=1_000)]


async def create(path: Path, *written: str) -> None:
    store = await SqliteStore.open(path)
    for text in written:
        await append(store, text)
    await store.close()


async def test_opening_for_reading_on_purpose_reads_and_refuses_to_write(database: Path) -> None:
    await create(database, "one")
    store = await SqliteStore.open(database, may_write=False)
    assert store.is_read_only
    assert await texts(store) == ["one"]
    with pytest.raises(StorageReadOnly):
        await append(store, "two")
    assert await texts(store) == ["one"]
    await store.close()


async def test_opening_for_reading_on_purpose_creates_nothing(database: Path) -> None:
    with pytest.raises(StorageReadOnly, match="does not exist"):
        await SqliteStore.open(database, may_write=False)
    assert list(database.parent.iterdir()) == []
    database.touch()
    with pytest.raises(StorageReadOnly):
        await SqliteStore.open(database, may_write=False)
    assert database.stat().st_size == 0


async def test_a_reader_sees_what_another_store_writes_meanwhile(store: SqliteStore, database: Path) -> None:
    await append(store, "one")
    reading = await SqliteStore.open(database, may_write=False)
    before = await reading.revision(LOCAL_OWNER)
    await append(store, "two")
    assert await texts(reading) == ["one", "two"]
    assert await reading.revision(LOCAL_OWNER) != before
    await reading.close()


async def test_on_a_read_only_disk_a_database_is_read_with_a_warning(disk: Disk) -> None:
    await create(disk.database, "one", "two")
    disk.make_read_only()
    before = sorted(path.name for path in disk.folder.iterdir())
    store = await SqliteStore.open(disk.database)
    assert store.is_read_only
    assert store.warning is not None
    assert "reading only" in store.warning
    assert "-wal file, cannot be read" not in store.warning
    assert await texts(store) == ["one", "two"]
    assert await store.revision(LOCAL_OWNER) == await store.revision(LOCAL_OWNER)
    assert len(await store.secret()) == 16
    with pytest.raises(StorageReadOnly, match="KALITO_DATABASE"):
        await append(store, "three")
    with pytest.raises(StorageReadOnly):
        await store.reindex()
    await store.close()
    assert sorted(path.name for path in disk.folder.iterdir()) == before


async def test_on_a_read_only_disk_opening_for_reading_on_purpose_works_too(disk: Disk) -> None:
    await create(disk.database, "one")
    disk.make_read_only()
    store = await SqliteStore.open(disk.database, may_write=False)
    assert await texts(store) == ["one"]
    await store.close()


async def test_on_a_read_only_disk_what_only_the_wal_has_is_missing_and_that_is_said(disk: Disk) -> None:
    await create(disk.database, "one")
    store = await SqliteStore.open(disk.database)
    await append(store, "two")
    crashed = disk.folder / "crashed.db"
    for suffix in ("", "-wal"):
        shutil.copy(f"{disk.database}{suffix}", f"{crashed}{suffix}")
    await store.close()
    disk.make_read_only()
    reading = await SqliteStore.open(crashed)
    assert await texts(reading) == ["one"]
    assert "-wal file and cannot be read" in (reading.warning or "")
    await reading.close()


async def test_on_a_read_only_disk_a_new_database_is_refused_in_words(disk: Disk) -> None:
    disk.make_read_only()
    for path in (disk.folder / "new.db", disk.folder / "new" / "memory.db"):
        with pytest.raises(StorageReadOnly, match="KALITO_DATABASE"):
            await SqliteStore.open(path)


async def test_the_doctor_says_that_a_disk_is_read_only_and_finds_the_database_sound(disk: Disk) -> None:
    await create(disk.database, "one")
    disk.make_read_only()
    assert access(disk.database).verdict is Verdict.FAILED
    assert [f for f in inspect(disk.database, is_deep=True) if f.verdict is Verdict.FAILED] == []
