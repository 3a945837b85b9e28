"""A full disk: the error names the file and the room, nothing acknowledged is lost, and the work can continue."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kalito_mcp import NewMessage, Role, open_memory
from kalito_mcp.domain.access import Permission
from kalito_mcp.domain.findings import Verdict
from kalito_mcp.domain.scope import Scope
from kalito_mcp.editing import eraser
from kalito_mcp.errors import StorageError, StorageFull
from kalito_mcp.exchange.archive import archive_pieces
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.storage.sqlite.inspection import inspect
from kalito_mcp.storage.sqlite.schema import migrations
from kalito_mcp.web.rest.endpoint import Call, Nothing
from kalito_mcp.web.rest.whole import ExportOf, export
from tests import drafts
from tests.scripted import START_MS
from tests.server import prepared
from tests.storage.conftest import ROOT, Disk

pytestmark = pytest.mark.anyio
TRIP = Scope(session="trip")
LONG = "The crossing to Moss, and what was said of it at length. " * 60


async def append(store: SqliteStore, text: str) -> None:
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
        await transaction.conversations.append_messages(session, [drafts.message(text)], now_ms=START_MS)


async def texts(store: SqliteStore) -> list[str]:
    async with store.view() as view:
        session = await view.sessions.get(TRIP)
        return (
            [m.text for m in await view.conversations.messages(session, first_seq=1, last_seq=9_999)] if session else []
        )


def is_sound(path: Path) -> bool:
    return all(finding.verdict is Verdict.OK for finding in inspect(path, is_deep=True))


async def write_until_full(store: SqliteStore) -> tuple[list[str], StorageError]:
    """What was acknowledged, and the error that ended it."""
    acknowledged: list[str] = []
    for number in range(10_000):
        try:
            await append(store, f"{number}: {LONG}")
        except StorageError as error:
            return acknowledged, error
        acknowledged.append(f"{number}: {LONG}")
    raise AssertionError("the disk never filled")


async def test_a_full_disk_fails_in_words_keeps_what_was_acknowledged_and_lets_writing_go_on(disk: Disk) -> None:
    store = await SqliteStore.open(disk.database)
    await append(store, "before")
    ballast = disk.folder / "ballast"
    ballast.write_bytes(bytes(1_500_000))
    acknowledged, error = await write_until_full(store)
    assert isinstance(error, StorageFull), error
    assert str(disk.database) in str(error)
    assert "bytes free" in str(error)
    assert await texts(store) == ["before", *acknowledged]
    for _ in range(3):
        with pytest.raises(StorageFull):
            await append(store, LONG * 20)
    assert await texts(store) == ["before", *acknowledged]
    ballast.unlink()
    await append(store, "after")
    assert await texts(store) == ["before", *acknowledged, "after"]
    await store.close()
    assert is_sound(disk.database)


async def test_a_store_closed_on_a_full_disk_has_everything_when_it_is_opened_again(disk: Disk) -> None:
    store = await SqliteStore.open(disk.database)
    (disk.folder / "ballast").write_bytes(bytes(1_000_000))
    acknowledged, _ = await write_until_full(store)
    ballast = disk.fill()
    await store.close()
    store = await SqliteStore.open(disk.database)
    assert await texts(store) == acknowledged
    ballast.unlink()
    await store.close()
    store = await SqliteStore.open(disk.database)
    await append(store, "after")
    assert await texts(store) == [*acknowledged, "after"]
    await store.close()
    assert is_sound(disk.database)


async def test_without_a_byte_left_a_token_counts_and_the_memory_can_be_taken_out_over_rest(disk: Disk) -> None:
    async with open_memory(disk.database) as memory:
        made = await memory.access.create_token(Permission.ADMIN)
        await memory.record_messages("trip", [NewMessage(Role.USER, "The ferry leaves at seven.")])
        await memory.settled()
        disk.fill()
        with pytest.raises(StorageFull):
            while True:
                await memory.record_messages("trip", [NewMessage(Role.USER, LONG)])
        principal = await memory.access.principal_of(made.text)
        assert principal == made.token.principal
        asked = Call(memory, principal, {}, Nothing(), ExportOf(), None, None, archive_pieces, is_placed=False)
        stream = (await export(asked)).stream
        assert stream is not None
        assert "leaves at seven" in b"".join([piece async for piece in stream]).decode()


async def test_without_a_byte_left_a_closed_database_is_read_and_stays_as_it_is(disk: Disk) -> None:
    store = await SqliteStore.open(disk.database)
    await append(store, "one")
    await store.close()
    before = disk.database.read_bytes()
    ballast = disk.fill()
    store = await SqliteStore.open(disk.database)
    assert store.is_read_only
    assert await texts(store) == ["one"]
    with pytest.raises(StorageFull, match="opened for reading only: no room to write"):
        await append(store, "two")
    await store.close()
    assert disk.database.read_bytes() == before
    ballast.unlink()
    store = await SqliteStore.open(disk.database)
    assert await texts(store) == ["one"]
    await store.close()


async def test_a_new_database_on_a_full_disk_is_refused_in_words_and_works_once_there_is_room(disk: Disk) -> None:
    ballast = disk.fill()
    with pytest.raises(StorageError) as failure:
        await SqliteStore.open(disk.database)
    assert isinstance(failure.value, StorageFull), failure.value
    ballast.unlink()
    store = await SqliteStore.open(disk.database)
    await append(store, "one")
    assert await texts(store) == ["one"]
    await store.close()


async def test_a_purge_without_room_for_its_sweep_is_finished_once_there_is_room(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_memory(disk.database) as memory:
        await memory.record_messages("trip", [NewMessage(Role.USER, "Zanzibarquokka"), NewMessage(Role.USER, LONG)])
        await memory.settled()
        # The disk is filled by others between the erasure and the sweep.
        monkeypatch.setattr(eraser, "crash_point", lambda name: name == "purge.erased" and disk.fill())
        for _ in range(2):
            with pytest.raises(StorageFull, match="free some space and purge again"):
                await memory.purge(["msg_1"])
        monkeypatch.undo()
        (disk.folder / "ballast").unlink()
        assert b"Zanzibarquokka" in b"".join(path.read_bytes() for path in disk.folder.glob("memory.db*"))
        assert (await memory.purge(["msg_1"])).erased == ("msg_1",)
        assert b"Zanzibarquokka" not in b"".join(path.read_bytes() for path in disk.folder.glob("memory.db*"))
    assert is_sound(disk.database)


async def test_a_backup_that_finds_no_room_stops_the_migration_and_leaves_no_half_backup(disk: Disk) -> None:
    store = await SqliteStore.open(disk.database)
    for number in range(30):
        await append(store, f"{number}: {LONG}")
    await store.close()
    ballast = disk.fill()
    ballast.write_bytes(bytes(ballast.stat().st_size - 150_000))
    steps = [*migrations(), replace(migrations()[0], number=len(migrations()) + 1, sql="CREATE TABLE notes (x);\n")]
    with pytest.raises(StorageFull):
        await SqliteStore.open(disk.database, steps=steps)
    assert list(disk.folder.glob("*.backup")) == []
    ballast.unlink()
    store = await SqliteStore.open(disk.database, steps=steps)
    assert len(await texts(store)) == 30
    await store.close()


def test_a_limit_on_the_size_of_files_is_a_full_disk_and_the_process_lives_on(database: Path) -> None:
    program = f"""
import anyio, pathlib, resource
from kalito_mcp.errors import StorageFull
from kalito_mcp.storage.sqlite.database import SqliteStore
from tests.storage.test_disk_full import append, texts, write_until_full

async def main():
    store = await SqliteStore.open(pathlib.Path({str(database)!r}))
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, hard))
    acknowledged, error = await write_until_full(store)
    assert isinstance(error, StorageFull), repr(error)
    assert {str(database)!r} in str(error)
    assert await texts(store) == acknowledged
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    await append(store, "after")
    assert await texts(store) == [*acknowledged, "after"]
    await store.close()
    print(len(acknowledged))

anyio.run(main)
"""
    run = prepared.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) > 5
    assert is_sound(database)
