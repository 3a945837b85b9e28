"""Permissions of a database file, and the processes that have it open."""

import glob
import os
import shutil
import sqlite3
import stat
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from kalito_mcp.domain.findings import Finding, Verdict
from kalito_mcp.domain.sizes import StoredFiles
from kalito_mcp.errors import Conflict
from kalito_mcp.storage.sqlite.opening import READ_WRITE

SELECT_FREE: Final = "SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size"
CHECKPOINT: Final = "PRAGMA wal_checkpoint(TRUNCATE)"
_PROC: Final = Path("/proc")
_UNLINKED: Final = " (deleted)"
_LONG_LOG_BYTES: Final = 64 * 1024**2
_LSOF_TIMEOUT_S: Final = 10
_STRAY: Final = ", which uses files that were moved or replaced: end it"


def access(path: Path) -> Finding:
    """Whether we can write the file, and nobody else can read it."""
    if not os.access(path, os.W_OK) or not os.access(path.parent, os.W_OK):
        return Finding(
            "access",
            Verdict.FAILED,
            f"{path} or its folder is read-only for you: `serve` can read it but not write; make both writable",
        )
    others = stat.S_IMODE(path.stat().st_mode) & (stat.S_IRWXG | stat.S_IRWXO)
    if others and os.name == "posix":
        return Finding("access", Verdict.WARNING, f"other users of this machine may open it; run chmod 600 {path}")
    return Finding("access", Verdict.OK, "writable, and closed to other users")


def log_size(path: Path) -> Finding:
    """Whether the write-ahead log is short. A program that keeps reading one view stops it from being emptied."""
    log = path.with_name(f"{path.name}-wal")
    size = log.stat().st_size if log.exists() else 0
    if size > _LONG_LOG_BYTES:
        return Finding(
            "log",
            Verdict.WARNING,
            f"{log.name} has {size // 1024**2:,} MB and grows while a program reads an old view of the database; end "
            "those under 'opened by' that are not memory servers",
        )
    return Finding("log", Verdict.OK, f"{log.name} has {size:,} bytes")


def stored_files(path: Path) -> StoredFiles:
    """The database with all that lies next to it under its name, the largest first."""
    sizes: list[tuple[str, int]] = []
    for one in path.parent.glob(f"{glob.escape(path.name)}*"):
        among = one.rglob("*") if one.is_dir() else [one]
        with suppress(OSError):  # gone meanwhile
            sizes.append((one.name, sum(file.stat().st_size for file in among if file.is_file())))
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        [free_bytes] = connection.execute(SELECT_FREE).fetchone()
    return StoredFiles(tuple(sorted(sizes, key=lambda one: -one[1])), free_bytes)


def users(path: Path) -> Finding:
    """Which processes have the database open. Several may. Fails if one uses files that were moved or replaced."""
    found = _from_proc(path) if _PROC.joinpath("self", "fd").exists() else _from_lsof(path)
    if found is None:
        return Finding("opened by", Verdict.OK, "unknown: this system has neither /proc nor lsof")
    verdict = Verdict.FAILED if any(one.endswith(_STRAY) for one in found) else Verdict.OK
    return Finding("opened by", verdict, ", ".join(sorted(set(found))) or "no process")


def refuse_opened(database: Path) -> None:
    """Empty the -wal, and refuse a database that a process has open. It cannot be opened while the mutex is held.

    Raises:
        Conflict: a process has it open.
    """
    if not database.exists():
        return
    who = users(database).detail
    try:
        with closing(sqlite3.connect(f"{database.absolute().as_uri()}{READ_WRITE}", uri=True, timeout=0.5)) as alone:
            alone.isolation_level = None
            alone.execute("PRAGMA locking_mode = EXCLUSIVE")
            alone.execute("BEGIN EXCLUSIVE").fetchall()
            alone.execute("ROLLBACK")
            alone.execute(CHECKPOINT).fetchall()
    except sqlite3.OperationalError as error:
        if (getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise
        raise Conflict(
            f"{database} is open ({who}); nothing was changed. Quit the hosts that use it, and try again"
        ) from error
    except sqlite3.DatabaseError:
        # It is damaged, which is why a backup is wanted; its locks cannot show whether it is open.
        if who != "no process":
            raise Conflict(
                f"{database} is damaged and may be open ({who}); nothing was changed. End these, and move the file "
                "aside together with its -wal and -shm"
            ) from None


def _from_proc(path: Path) -> list[str]:
    """Processes found in /proc; only those that we may inspect."""
    target = str(path.resolve())
    names = {f"{target}{suffix}{mark}" for suffix in ("", "-wal", "-shm") for mark in ("", _UNLINKED)}
    found = []
    for process in _PROC.iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid() and (held := names & {*_open_files(process)}):
            is_stray = target not in held or any(name.endswith(_UNLINKED) for name in held)
            found.append(f"process {process.name} ({_name(process)}){_STRAY if is_stray else ''}")
    return found


def _open_files(process: Path) -> Iterator[str]:
    try:
        descriptors = list(process.joinpath("fd").iterdir())
    except OSError:  # another user's process, or just ended
        return
    for descriptor in descriptors:
        try:
            yield str(descriptor.readlink())
        except OSError:
            continue


def _name(process: Path) -> str:
    try:
        words = process.joinpath("cmdline").read_bytes().split(b"\0")
    except OSError:
        return "gone"
    return " ".join(Path(word.decode(errors="replace")).name for word in words[:3] if word)


def _from_lsof(path: Path) -> list[str] | None:
    program = shutil.which("lsof")
    if program is None:
        return None
    answer = subprocess.run(  # noqa: S603 - a fixed program and our own path
        [program, "-t", "--", str(path)], capture_output=True, text=True, timeout=_LSOF_TIMEOUT_S, check=False
    )
    return [f"process {number}" for number in answer.stdout.split() if number != str(os.getpid())]
