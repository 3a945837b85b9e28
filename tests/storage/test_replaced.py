"""A database that is moved, replaced or cut while it is open.

Nothing more is acknowledged, and a file put in its place is not touched.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest

from kalito_mcp.domain.findings import Verdict
from kalito_mcp.domain.scope import LOCAL_OWNER
from kalito_mcp.errors import StorageReplaced
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.storage.sqlite.environment import users
from kalito_mcp.storage.sqlite.inspection import inspect
from tests import drafts
from tests.scripted import START_MS
from tests.server import prepared
from tests.server.wire import clean_environment
from tests.storage.conftest import ROOT
from tests.storage.write_what_is_sent import TRIP, append, fill

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(os.name != "posix", reason="no open file is replaced there")]
Way = Callable[[Path, Path], None]


class Writer:
    """A process that has the database open, and writes what it is sent."""

    def __init__(self, database: Path, *, messages: int) -> None:
        self.process = prepared.start(
            [sys.executable, "-m", "tests.storage.write_what_is_sent", str(database), str(messages)],
            cwd=ROOT,
            env=clean_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "filled\n"

    def write(self, text: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(text, file=self.process.stdin, flush=True)
        return self.process.stdout.readline().strip()

    def end(self) -> int:
        assert self.process.stdin is not None
        with self.process:
            self.process.stdin.close()
            return self.process.wait(30)


@pytest.fixture
def writer(database: Path, messages: int) -> Iterator[Writer]:
    writer = Writer(database, messages=messages)
    yield writer
    with writer.process as process:
        process.kill()


async def texts(store: SqliteStore) -> list[str]:
    async with store.view() as view:
        session = await view.sessions.get(TRIP)
        return (
            [m.text for m in await view.conversations.messages(session, first_seq=1, last_seq=9_999)] if session else []
        )


def is_sound(path: Path) -> bool:
    return all(finding.verdict is Verdict.OK for finding in inspect(path, is_deep=True))


def run(*words: str | Path) -> None:
    """By another program: a descriptor of ours that is closed would take SQLite's locks along."""
    subprocess.run(words, check=True)


def rename_over(path: Path, backup: Path) -> None:
    run("cp", backup, f"{path}.new")
    run("mv", f"{path}.new", path)


def move_aside_and_copy(path: Path, backup: Path) -> None:
    run("mv", path, path.with_name("aside.db"))
    run("cp", backup, path)


def copy_over(path: Path, backup: Path) -> None:
    run("cp", backup, path)


def delete(path: Path, _: Path) -> None:
    run("rm", path)


def move_aside(path: Path, _: Path) -> None:
    run("mv", path, path.with_name("aside.db"))


def cut(size: int) -> Way:
    return lambda path, _: run("truncate", "-s", str(size), path)


def of_side_file(suffix: str, way: Way) -> Way:
    return lambda path, backup: way(path.with_name(path.name + suffix), backup)


REPLACED = [rename_over, move_aside_and_copy, copy_over]
GONE = [delete, move_aside]
CUT = [cut(0), cut(100), cut(4_096), cut(40_960)]
SIDE_FILES = [
    of_side_file("-wal", delete),
    of_side_file("-wal", cut(0)),
    of_side_file("-wal", cut(20_000)),
    of_side_file("-wal", rename_over),
    of_side_file("-shm", delete),
    of_side_file("-shm", rename_over),
]


async def _back_up(path: Path) -> None:
    store = await SqliteStore.open(path)
    await append(store, *(f"of the backup {number}" for number in range(150)))
    await store.close()


@pytest.fixture(scope="session")
def backup(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of 150 messages; another than the one that is served."""
    path = tmp_path_factory.mktemp("backup") / "backup.db"
    anyio.run(_back_up, path)
    return path


async def opened(database: Path, *, messages: int = 60) -> SqliteStore:
    store = await SqliteStore.open(database)
    await fill(store, messages)
    return store


@pytest.mark.parametrize("way", [*REPLACED, *GONE, *CUT, *SIDE_FILES])
async def test_nothing_is_acknowledged_on_files_that_are_not_those_opened(
    database: Path, backup: Path, way: Way
) -> None:
    store = await opened(database)
    way(database, backup)
    for _ in range(2):
        with pytest.raises(StorageReplaced, match=r"memory\.db.*nothing of this call was stored.*restart"):
            await append(store, "lost")
    await store.close()


@pytest.mark.parametrize("way", [rename_over, move_aside, of_side_file("-shm", delete)])
async def test_nothing_is_read_from_files_that_are_gone(database: Path, backup: Path, way: Way) -> None:
    store = await opened(database, messages=1)
    way(database, backup)
    with pytest.raises(StorageReplaced):
        await texts(store)
    with pytest.raises(StorageReplaced):
        await store.revision(LOCAL_OWNER)
    await store.close()


@pytest.mark.parametrize(("messages", "is_refused"), [(1, True), (60, False)])
@pytest.mark.parametrize("way", [*REPLACED, *GONE, *CUT[:3]])
async def test_a_process_that_ends_leaves_what_was_put_in_its_place_as_it_is(
    database: Path, backup: Path, way: Way, writer: Writer, messages: int, is_refused: bool
) -> None:
    if messages == 1 and way is CUT[2]:
        pytest.skip("no shorter than it was")
    way(database, backup)
    before = database.read_bytes() if database.exists() else None
    if is_refused:
        assert writer.write("lost") == "refused"
    assert writer.end() == 0
    assert (database.read_bytes() if database.exists() else None) == before


@pytest.mark.parametrize("lost", ["-wal", "-shm"])
@pytest.mark.parametrize("messages", [20])
async def test_a_lost_side_file_costs_nothing_when_the_last_process_ends(
    database: Path, lost: str, writer: Writer
) -> None:
    other = Writer(database, messages=1)
    database.with_name(database.name + lost).unlink()
    for one in (writer, other):
        assert one.write("lost") == "refused"
    for one in (writer, other):
        assert one.end() == 0
    reopened = await SqliteStore.open(database)
    assert len(await texts(reopened)) == 21
    await reopened.close()
    assert is_sound(database)


@pytest.mark.parametrize("way", [rename_over, move_aside_and_copy])
@pytest.mark.parametrize(("messages", "ends"), [(60, "before"), (1, "after"), (60, "killed")])
async def test_a_backup_that_was_put_in_its_place_is_served_whole(
    database: Path, backup: Path, way: Way, writer: Writer, ends: str
) -> None:
    way(database, backup)
    if ends == "before":
        writer.end()
    if ends == "killed":
        writer.process.kill()
    restored = await SqliteStore.open(database)
    assert len(await texts(restored)) == 150
    await append(restored, "after")
    if ends == "after":
        assert writer.write("lost") == "refused"
        writer.end()
    await append(restored, "and more")
    assert (await texts(restored))[-3:] == ["of the backup 149", "after", "and more"]
    await restored.close()
    assert is_sound(database)
    [aside] = database.parent.glob("memory.db.before-*.backup")
    assert b"of the served one" in aside.read_bytes()


@pytest.mark.parametrize(("messages", "ends"), [(1, "before"), (60, "before"), (60, "after"), (1, "killed")])
async def test_a_backup_copied_over_it_is_never_opened_with_the_wal_of_the_other(
    database: Path, backup: Path, writer: Writer, ends: str
) -> None:
    copy_over(database, backup)
    if ends == "before":
        writer.end()
    if ends == "killed":
        writer.process.kill()
    # A server that ends in its own time has set its -wal aside.
    if ends != "before":
        for may_write in (True, False):
            with pytest.raises(StorageReplaced, match=r"doctor.*move memory\.db-wal and memory\.db-shm aside"):
                await SqliteStore.open(database, may_write=may_write)
        assert [f.check for f in inspect(database, is_deep=True) if f.verdict is Verdict.FAILED] == ["files"]
    if ends == "after":
        writer.end()
    if ends == "killed":
        for suffix in ("-wal", "-shm"):
            database.with_name(database.name + suffix).unlink()
    restored = await SqliteStore.open(database)
    assert len(await texts(restored)) == 150
    await restored.close()
    assert is_sound(database)


@pytest.mark.parametrize("messages", [60])
async def test_a_new_database_in_the_place_of_a_deleted_one_begins_empty(database: Path, writer: Writer) -> None:
    delete(database, database)
    new = await SqliteStore.open(database)
    assert await texts(new) == []
    await append(new, "first")
    assert writer.write("lost") == "refused"
    writer.end()
    assert await texts(new) == ["first"]
    await new.close()
    assert is_sound(database)


@pytest.mark.parametrize("messages", [60])
@pytest.mark.parametrize("way", SIDE_FILES)
async def test_who_opens_after_a_side_file_was_lost_is_not_disturbed_by_who_had_it(
    database: Path, backup: Path, way: Way, writer: Writer
) -> None:
    way(database, backup)
    third = await SqliteStore.open(database)
    before = await texts(third)
    await append(third, "after")
    assert writer.write("lost") == "refused"
    writer.end()
    assert await texts(third) == [*before, "after"]
    await third.close()
    assert is_sound(database)


@pytest.mark.parametrize("way", [rename_over, move_aside_and_copy])
async def test_what_replaces_it_during_a_write_is_found_before_the_write_is_acknowledged(
    database: Path, backup: Path, way: Way
) -> None:
    store = await opened(database, messages=1)
    with pytest.raises(StorageReplaced):
        async with store.transaction() as transaction:
            session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
            await transaction.conversations.append_messages(session, [drafts.message("lost")], now_ms=START_MS)
            way(database, backup)
    await store.close()
    assert database.read_bytes() == backup.read_bytes()


@pytest.mark.parametrize("messages", [1])
@pytest.mark.parametrize("way", [rename_over, move_aside, delete, of_side_file("-wal", delete)])
async def test_the_doctor_names_the_process_that_holds_another_file(
    database: Path, backup: Path, way: Way, writer: Writer
) -> None:
    assert users(database).verdict is Verdict.OK
    way(database, backup)
    found = users(database)
    assert found.verdict is Verdict.FAILED
    assert f"process {writer.process.pid} " in found.detail


async def test_another_program_that_writes_or_checkpoints_is_not_taken_for_a_replacement(database: Path) -> None:
    store = await opened(database, messages=20)
    script = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); c.execute(sys.argv[2])"
    for statement in ("PRAGMA wal_checkpoint(PASSIVE)", "UPDATE agents SET id = id", "VACUUM"):
        run(sys.executable, "-c", script, database, statement)
        await append(store, statement)
    os.utime(database)
    await append(store, "touched")
    assert (await texts(store))[-1] == "touched"
    await store.close()
    assert is_sound(database)
