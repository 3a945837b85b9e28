"""Backups are made while others write, are whole, and are put in place only if nobody has the database open."""

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from kalito_mcp.domain.backups import Backup
from kalito_mcp.domain.findings import Verdict
from kalito_mcp.errors import Conflict, InvalidInput, SchemaTooNew, StorageDamaged, StorageError
from kalito_mcp.storage.sqlite import backups as module
from kalito_mcp.storage.sqlite.backups import back_up, backup_folder, backups, restore_backup
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.storage.sqlite.inspection import inspect
from tests.scripted import START_MS
from tests.server import prepared
from tests.server.wire import clean_environment
from tests.storage.conftest import ROOT
from tests.storage.write_what_is_sent import append

DAY_MS = 86_400_000


def made(database: Path, *, day: int = 0, keep: int = 7) -> Backup:
    return back_up(database, now_ms=START_MS + day * DAY_MS, keep=keep, timeout_s=5.0)[0]


def put_back(database: Path, backup: Path) -> Path | None:
    async def run() -> Path | None:
        return (await restore_backup(database, backup, now_ms=START_MS, timeout_s=5.0))[1]

    return anyio.run(run)


def texts(database: Path) -> list[str]:
    with closing(sqlite3.connect(f"{database.as_uri()}?immutable=1", uri=True)) as connection:
        return [row[0] for row in connection.execute("SELECT text FROM records ORDER BY key")]


def add(database: Path, *words: str) -> None:
    async def run() -> None:
        store = await SqliteStore.open(database)
        await append(store, *words)
        await store.close()

    anyio.run(run)


def is_sound(database: Path) -> bool:
    return all(one.verdict is not Verdict.FAILED for one in inspect(database, is_deep=True))


def test_a_backup_has_what_the_database_has_and_its_time_as_its_name(copy: Path) -> None:
    backup = made(copy)
    assert backup.path == backup_folder(copy) / "2026-03-04T050607.089Z.db"
    assert backup.made_at_ms == START_MS
    assert texts(backup.path) == texts(copy)
    assert backup.records == len(texts(copy))
    assert is_sound(backup.path)
    assert [one.path for one in backups(copy)] == [backup.path]
    if os.name == "posix":
        assert backup.path.stat().st_mode & 0o077 == backup.path.parent.stat().st_mode & 0o077 == 0


def test_only_the_newest_are_kept_and_other_files_are_left_alone(copy: Path) -> None:
    other = backup_folder(copy) / "mine.db"
    for day in range(5):
        made(copy, day=day, keep=3)
        other.touch()
    assert [one.path.name[:10] for one in backups(copy)] == ["2026-03-08", "2026-03-07", "2026-03-06"]
    assert other.exists()


def test_a_backup_is_of_one_moment_while_others_write(copy: Path) -> None:
    over = threading.Event()

    def write() -> None:
        async def run() -> None:
            store = await SqliteStore.open(copy)
            number = 0
            while not over.is_set():
                await append(store, f"first {number}", f"second {number}")
                number += 1
            await store.close()

        anyio.run(run)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        found = [made(copy, day=day) for day in range(4)]
    finally:
        over.set()
        writer.join()
    for one in found:
        written = [text for text in texts(one.path) if text.startswith(("first", "second"))]
        assert len(written) % 2 == 0  # both of a transaction, or none
        assert one.records == len(texts(one.path))
        assert is_sound(one.path)
    assert len(texts(copy)) >= found[-1].records


def test_a_copy_that_is_not_whole_is_refused_and_the_older_ones_are_kept(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = made(copy)
    whole = module._write_copy

    def write_badly(source: sqlite3.Connection, target: Path) -> tuple[int, int]:
        counts = whole(source, target)
        content = bytearray(target.read_bytes())
        content[20_000:40_000] = bytes(20_000)
        target.write_bytes(content)
        return counts

    monkeypatch.setattr(module, "_write_copy", write_badly)
    with pytest.raises(StorageError):
        made(copy, day=1, keep=1)
    assert [one.path for one in backups(copy)] == [kept.path]
    assert [one.name for one in backup_folder(copy).iterdir()] == [kept.path.name]


def test_a_copy_with_fewer_records_than_were_counted_is_refused(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = module._write_copy
    monkeypatch.setattr(module, "_write_copy", lambda source, target: (whole(source, target)[0], 1))
    with pytest.raises(StorageDamaged, match="not whole"):
        made(copy)
    assert backups(copy) == []


def test_a_restored_backup_is_what_is_opened_next_and_the_other_is_kept(copy: Path) -> None:
    backup = made(copy)
    before = texts(copy)
    add(copy, "said later")
    kept = put_back(copy, backup.path)
    assert kept is not None
    assert texts(copy) == before == texts(backup.path)
    assert texts(kept) == [*before, "said later"]
    add(copy, "goes on")
    assert texts(copy) == [*before, "goes on"]
    assert texts(kept)[-1] == "said later"
    assert is_sound(copy)
    assert is_sound(kept)


def test_a_backup_makes_a_database_where_there_is_none(copy: Path, tmp_path: Path) -> None:
    backup = made(copy)
    new = tmp_path / "elsewhere" / "memory.db"
    assert put_back(new, backup.path) is None
    assert texts(new) == texts(copy)


def test_nothing_is_restored_while_another_process_has_the_database_open(copy: Path) -> None:
    backup = made(copy)
    before = texts(copy)
    with prepared.start(
        [sys.executable, "-m", "tests.storage.write_what_is_sent", str(copy), "1"],
        cwd=ROOT,
        env=clean_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as host:
        assert host.stdout is not None
        assert host.stdin is not None
        assert host.stdout.readline() == "filled\n"
        with pytest.raises(Conflict, match=f"is open .*{host.pid}" if sys.platform == "linux" else "is open"):
            put_back(copy, backup.path)
        print("still works", file=host.stdin, flush=True)
        assert host.stdout.readline() == "stored\n"
        host.stdin.close()
        assert host.wait(30) == 0
    assert texts(copy) == [*before, "0 of the served one", "still works"]
    put_back(copy, backup.path)
    assert texts(copy) == before


def test_a_damaged_database_is_replaced_by_its_backup(copy: Path) -> None:
    backup = made(copy)
    copy.write_bytes(b"no database at all" * 1_000)
    kept = put_back(copy, backup.path)
    assert kept is not None
    assert kept.read_bytes().startswith(b"no database")
    assert is_sound(copy)


def test_what_is_no_backup_is_refused_and_nothing_is_changed(copy: Path, tmp_path: Path) -> None:
    backup = made(copy).path
    before = copy.read_bytes()
    cut, foreign, newer = tmp_path / "cut.db", tmp_path / "foreign.db", tmp_path / "newer.db"
    cut.write_bytes(backup.read_bytes()[:30_000])
    with closing(sqlite3.connect(foreign)) as connection:
        connection.execute("CREATE TABLE notes (text)")
    shutil.copy(backup, newer)
    with closing(sqlite3.connect(newer)) as connection:
        connection.execute("PRAGMA user_version = 999")
        connection.commit()
    opened = Path(shutil.copy(backup, tmp_path / "opened.db"))
    opened.with_name("opened.db-wal").write_bytes(b"x")
    for path, error in (
        (cut, StorageDamaged),
        (foreign, StorageDamaged),
        (newer, SchemaTooNew),
        (opened, Conflict),
        (copy, InvalidInput),
        (tmp_path / "nothing.db", InvalidInput),
        (tmp_path, InvalidInput),
    ):
        with pytest.raises(error):
            put_back(copy, path)
        assert copy.read_bytes() == before
    assert not list(tmp_path.glob("*.restoring*"))


_RESTORE = """
import sys, anyio
from pathlib import Path
from kalito_mcp.storage.sqlite.backups import restore_backup
async def run():
    await restore_backup(Path(sys.argv[1]), Path(sys.argv[2]), now_ms=1, timeout_s=5.0)
anyio.run(run)
"""


@pytest.mark.skipif(os.name != "posix", reason="there are no links everywhere else")
@pytest.mark.parametrize("point", ["backup.aside", "backup.placed"])
def test_a_restoring_process_that_is_killed_leaves_one_whole_database(copy: Path, point: str) -> None:
    backup = made(copy).path
    old = texts(copy)
    add(copy, "said later")
    killed = prepared.run(
        [sys.executable, "-c", _RESTORE, str(copy), str(backup)],
        cwd=ROOT,
        env=clean_environment(KALITO_CRASH_POINT=point),
        check=False,
    )
    assert killed.returncode < 0
    assert texts(copy) == (old if point == "backup.placed" else [*old, "said later"])
    add(copy, "goes on")
    assert is_sound(copy)


@pytest.mark.anyio
async def test_a_purge_names_the_backups(copy: Path) -> None:
    backup = made(copy).path
    unfinished = backup.with_name("2026-03-01T000000.000Z.db.part")
    unfinished.touch()
    os.utime(unfinished, (0, 0))
    backup.with_name("mine.part").touch()
    copy.with_name("memory.db.restoring").touch()
    store = await SqliteStore.open(copy)
    left = await store.maintenance.finish_erasures()
    await store.close()
    folder = "memory.db.backups"
    assert set(left) == {f"{folder}/{backup.name}", f"{folder}/{unfinished.name}", "memory.db.restoring"}
    assert "--keep 1" in left[f"{folder}/{backup.name}"]
    newest = made(copy, day=1, keep=1).path
    assert {one.name for one in backup_folder(copy).iterdir()} == {newest.name, "mine.part"}
