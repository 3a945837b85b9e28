"""Backups of the database file, made while others write, and put back in its place.

A backup is a copy of one state, by SQLite's own backup. It is checked as a whole after it was written, and only then
gets its name: the time in UTC, in the folder `<name>.backups`. Restoring one requires that no process has the database
open. SQLite knows that: an open connection to a database with a -wal holds a lock on it, even one in another container
or of another user.
"""

import os
import re
import sqlite3
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from kalito_mcp.domain.backups import Backup
from kalito_mcp.errors import Conflict, InvalidInput, StorageDamaged, StorageError
from kalito_mcp.files import sync_folder
from kalito_mcp.runtime.crash_points import crash_point
from kalito_mcp.storage.sqlite.direct import Direct, only_step
from kalito_mcp.storage.sqlite.environment import refuse_opened
from kalito_mcp.storage.sqlite.failures import explained
from kalito_mcp.storage.sqlite.mutex import WriteMutex
from kalito_mcp.storage.sqlite.opening import (
    IMMUTABLE,
    READER_PRAGMAS,
    first_reader,
    open_connection,
    refuse_folder,
    refuse_missing,
    refuse_old_sqlite,
    unreadable,
)
from kalito_mcp.storage.sqlite.schema import is_current, migrations
from kalito_mcp.storage.sqlite.side_files import SideFiles

if TYPE_CHECKING:
    import aiosqlite

SELECT_COUNTS: Final = "SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM records)"
CHECK: Final = "PRAGMA integrity_check(5)"
CHECK_REFERENCES: Final = "PRAGMA foreign_key_check"
_NAME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d{6}\.\d{3}Z\.db")
_PATTERN: Final = "%Y-%m-%dT%H%M%S.%fZ.db"
_LONGEST_MS: Final = 3_600_000
"""No backup takes longer."""

_SIDES: Final = ("-wal", "-shm", "-journal")


def backup_folder(database: Path) -> Path:
    """The folder of a database's backups, next to it."""
    return database.with_name(f"{database.name}.backups")


def backups(database: Path) -> list[Backup]:
    """The backups, the newest first. Other files in the folder are left alone."""
    with suppress(FileNotFoundError):
        found = sorted((one for one in backup_folder(database).iterdir() if _NAME.fullmatch(one.name)), reverse=True)
        return [_described(one) for one in found]
    return []


def _described(path: Path, counts: tuple[int, int] = (-1, -1)) -> Backup:
    try:
        moment = datetime.strptime(path.name, _PATTERN).replace(tzinfo=UTC)
        made_at_ms = round(moment.timestamp() * 1000)
    except ValueError:  # a person has named it
        made_at_ms = 0
    return Backup(path, path.stat().st_size, made_at_ms, *counts)


def copies(database: Path) -> list[Path]:
    """Every file that is a copy of the database of some time, also what a process that was killed left of one."""
    folder = backup_folder(database)
    unfinished = [one for one in folder.iterdir() if _is_unfinished(one)] if folder.is_dir() else []
    restoring = database.with_name(f"{database.name}.restoring")
    return [*(one.path for one in backups(database)), *sorted(unfinished), *([restoring] if restoring.exists() else [])]


def back_up(database: Path, *, now_ms: int, keep: int, timeout_s: float) -> tuple[Backup, list[Path]]:
    """Write a backup, check it, and remove all but the newest `keep`. Returns the new one and the removed ones.

    Others read and write meanwhile. Nothing is removed unless the new one passed its checks.

    Raises:
        ConfigurationError, StorageError: as `SqliteStore.open` with `may_write=False`.
        StorageDamaged: the new backup is not whole; the older ones are kept.
        StorageFull: there is no room for it; the older backups are kept.
    """
    refuse_old_sqlite()
    refuse_folder(database)
    refuse_missing(database)
    folder = backup_folder(database)
    moment = datetime.fromtimestamp(now_ms / 1000, UTC)
    target = folder / f"{moment:%Y-%m-%dT%H%M%S}.{now_ms % 1000:03d}Z.db"
    if target.exists():
        raise Conflict(f"{target} exists already; try again")
    _make_folder(folder)
    with explained(database):
        counts = _copy_of_state(database, target, timeout_s)
    removed = [one.path for one in backups(database)[max(1, keep) :]]
    removed += [one for one in folder.iterdir() if _is_unfinished(one) and _is_old(one, now_ms)]
    for path in removed:
        path.unlink()
    return _described(target, counts), removed


async def restore_backup(database: Path, backup: Path, *, now_ms: int, timeout_s: float) -> tuple[Backup, Path | None]:
    """Put a backup in the place of the database. The backup stays, and what was there is kept under another name.

    Returns the backup as it was checked, and where the replaced database is now, or None.

    Raises:
        Conflict: a process has the database open; nothing was changed.
        StorageDamaged: the backup is not whole; nothing was changed.
        SchemaTooNew: a newer release wrote it; nothing was changed.
    """
    refuse_old_sqlite()
    _refuse_unusable(database, backup)
    async with WriteMutex(database.with_name(f"{database.name}.lock"), timeout_s=timeout_s).held() as lock:
        return _put_in_place(database, backup, lock, now_ms=now_ms, timeout_s=timeout_s)


def _refuse_unusable(database: Path, backup: Path) -> None:
    """Refuse what cannot be put in place, and make the folder of the database."""
    if not backup.is_file():
        raise InvalidInput(f"{backup} is not a file; `kalito-mcp backup --list` lists the backups")
    if database.exists() and backup.samefile(database):
        raise InvalidInput(f"{backup} is the database itself; name a backup")
    for side in (_side(backup, "-wal"), _side(backup, "-journal")):
        if side.exists() and side.stat().st_size:
            raise Conflict(f"{backup} is open, or was not closed: there is {side.name}; name a backup that nobody uses")
    database.parent.mkdir(mode=0o700, parents=True, exist_ok=True)


def _put_in_place(
    database: Path, backup: Path, lock: int, *, now_ms: int, timeout_s: float
) -> tuple[Backup, Path | None]:
    """The part of `restore_backup` under the mutex, whose descriptor is `lock`."""
    files = SideFiles(database)
    files.prepare(lock)
    files.refuse_foreign_wal()
    refuse_opened(database)
    new = database.with_name(f"{database.name}.restoring")
    try:
        with explained(backup):
            source = open_connection(backup, IMMUTABLE, timeout_s=timeout_s, pragmas=READER_PRAGMAS)
            with closing(source):
                only_step(is_current(cast("aiosqlite.Connection", Direct(source)), migrations(), backup))
                counts = _write_copy(source, new)
                _check(new, counts)
        _sync(new)
        kept = _keep_aside(database, now_ms)
        crash_point("backup.aside")
        new.replace(database)
        crash_point("backup.placed")
        files.forget(lock)
        sync_folder(database.parent)
    finally:
        new.unlink(missing_ok=True)
        _side(new, "-journal").unlink(missing_ok=True)
    return _described(backup, counts), kept


def _copy_of_state(database: Path, target: Path, timeout_s: float) -> tuple[int, int]:
    """Copy the state that the database has now, and check the copy. The counts of its sessions and records."""
    source = only_step(_reader(database, timeout_s))
    part = _side(target, ".part")
    try:
        only_step(is_current(cast("aiosqlite.Connection", Direct(source)), migrations(), database))
        source.execute("BEGIN")  # what is counted and what is copied are one state
        counts = _write_copy(source, part)
        source.rollback()
        crash_point("backup.written")
        _check(part, counts)
        _sync(part)
        part.replace(target)
        sync_folder(target.parent)
    finally:
        source.close()
        part.unlink(missing_ok=True)
        _side(part, "-journal").unlink(missing_ok=True)
    return counts


async def _reader(database: Path, timeout_s: float) -> sqlite3.Connection:
    """A connection that cannot write."""

    async def connect(mode: str) -> sqlite3.Connection:
        return open_connection(database, mode, timeout_s=timeout_s, pragmas=READER_PRAGMAS)

    opened = await first_reader(SideFiles(database), connect)
    if opened is None:
        raise unreadable(database)
    return opened[0]


def _write_copy(source: sqlite3.Connection, target: Path) -> tuple[int, int]:
    """Write a copy of the connection's database that only this user can read."""
    counts = cast("tuple[int, int]", source.execute(SELECT_COUNTS).fetchone())
    target.unlink(missing_ok=True)
    os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    with closing(sqlite3.connect(target)) as written:
        source.backup(written)  # in one step: a writer in between would make it begin again
    return counts


def _check(path: Path, counts: tuple[int, int]) -> None:
    """Check a copy as a whole. Raises StorageDamaged if it is not one."""
    with closing(open_connection(path, IMMUTABLE, timeout_s=1.0, pragmas=READER_PRAGMAS)) as copy:
        faults = [str(row[0]) for row in copy.execute(CHECK) if row[0] != "ok"]
        faults += [f"{row[0]} row {row[1] or '?'}: a missing reference" for row in copy.execute(CHECK_REFERENCES)]
        found = copy.execute(SELECT_COUNTS).fetchone()
    if faults or found != counts:
        what = "; ".join(faults[:5]) or f"it has {found} sessions and records, not {counts}"
        raise StorageDamaged(
            f"the copy is not whole ({what}); nothing was changed. Run `kalito-mcp doctor --deep`: if the database is "
            "damaged, keep the older backups"
        )


def _keep_aside(database: Path, now_ms: int) -> Path | None:
    """Give the database, which no process has open, a second name. The rest of its -wal goes along."""
    if not database.exists():
        return None
    kept = database.with_name(f"{database.name}.before-{now_ms}.backup")
    try:
        kept.hardlink_to(database)
    except (OSError, NotImplementedError):
        database.replace(kept)  # a file system without links: for a moment there is no database
    for suffix in _SIDES:
        with suppress(FileNotFoundError):
            _side(database, suffix).replace(_side(kept, suffix))
    return kept


def _is_unfinished(path: Path) -> bool:
    name, _, ending = path.name.partition(".part")
    return bool(_NAME.fullmatch(name)) and ending in ("", "-journal") and path.name != name


def _is_old(path: Path, now_ms: int) -> bool:
    """Whether no process can be writing the file any more."""
    return path.stat().st_mtime * 1000 < now_ms - _LONGEST_MS


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot create {folder}: {error.strerror}; nothing was backed up") from error


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _side(path: Path, suffix: str) -> Path:
    return path.with_name(f"{path.name}{suffix}")
