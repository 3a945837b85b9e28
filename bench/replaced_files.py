"""The campaign of replaced files: the database is moved, deleted, replaced, overwritten or cut under a running server.

A server records, a backup is made, and the server records more. Then something happens to the files, and the server
must record on. When it has ended, what it acknowledged must be in the file at the database's path, or in the file that
was moved away. What it cannot keep must be refused with a message. A file that was put in the database's place must be
undamaged and complete afterwards. The old -wal file must not be merged into it.
"""

import os
import random
import shutil
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from bench.ledger import Stored, Violations, copied, read
from bench.mixed_calls import Caller
from bench.report import in_rounds, progress
from bench.wire import ServerGone, clean_environment
from kalito_mcp.domain.findings import Verdict
from kalito_mcp.storage.sqlite.inspection import inspect

_WRITING: Final = {"record": 10, "pin": 2, "note": 2, "update": 3}
_BEFORE: Final = 30
"""Calls before the backup, and again between the backup and the deed."""
_AFTER: Final = 10
_PAGE: Final = 4096


class Files:
    """The database's files, and the backup that somebody puts in their place."""

    def __init__(self, folder: Path) -> None:
        self.database = folder / "data" / "memory.db"
        self.database.parent.mkdir()
        self.wal = self.database.with_name("memory.db-wal")
        self.shm = self.database.with_name("memory.db-shm")
        self.aside = folder / "data" / "aside.db"
        self.backup = folder / "backup.db"

    def renamed_over(self) -> None:
        """Like `mv backup.db memory.db`."""
        shutil.copyfile(self.backup, self.backup.with_suffix(".copy"))
        self.backup.with_suffix(".copy").replace(self.database)

    def moved_and_copied(self) -> None:
        """As doctor advises: move the database aside and copy a backup to its place."""
        self.database.rename(self.aside)
        shutil.copyfile(self.backup, self.database)

    def cut_in_half(self, path: Path) -> None:
        """Cut at a page border, in the database or in its -wal file."""
        os.truncate(path, path.stat().st_size // 2 // _PAGE * _PAGE)


Deed = Callable[[Files], object]
REPLACED: Final[dict[str, Deed]] = {
    "renamed over": Files.renamed_over,
    "moved aside and copied": Files.moved_and_copied,
    "copied over": lambda files: shutil.copyfile(files.backup, files.database),
}
"""Afterwards another complete file is at the database's path."""
MOVED: Final[dict[str, Deed]] = {
    "moved": lambda files: files.database.rename(files.aside),
    "deleted": lambda files: files.database.unlink(),
    "wal unlinked": lambda files: files.wal.unlink(),
    "shm unlinked": lambda files: files.shm.unlink(),
}
CUT: Final[dict[str, Deed]] = {
    "cut to nothing": lambda files: os.truncate(files.database, 0),
    "cut to 100 bytes": lambda files: os.truncate(files.database, 100),
    "cut to one page": lambda files: os.truncate(files.database, _PAGE),
    "cut in half": lambda files: files.cut_in_half(files.database),
    "wal cut to nothing": lambda files: os.truncate(files.wal, 0),
    "wal cut in half": lambda files: files.cut_in_half(files.wal),
}
"""The deed itself damages the earlier records. Only what is acknowledged afterwards counts here."""
DEEDS: Final = REPLACED | MOVED | CUT


def try_out(name: str, seed: int, violations: Violations, found: Counter[str], log: list[str]) -> None:
    """Do one deed under one server."""
    with tempfile.TemporaryDirectory() as folder:
        files = Files(Path(folder))
        refusals = Violations()
        caller = _caller(files, Path(folder), 0, seed, refusals)
        beside = None
        try:
            _record(caller, _BEFORE)
            copied(files.database, files.backup)
            in_backup = _read(files.backup)
            _record(caller, _BEFORE)
            deed_at = time.time()
            DEEDS[name](files)
            if name == "shm unlinked":  # this only matters if another process opens the database
                beside = _caller(files, Path(folder), 1, seed, refusals)
                _record(beside, _AFTER)
            _record(caller, _AFTER)
        finally:
            for one in (caller, beside):
                if one is not None:
                    one.server.close()
        log += [line for line in (Path(folder) / "servers.log").read_text().splitlines() if "Traceback" in line]
        places = [_read(path) for path in (files.database, files.aside) if path.exists()]
        now = time.time()
        ledgers = [one.ledger for one in (caller, beside) if one is not None]
        for entry in (entry for ledger in ledgers for entry in ledger.entries if entry.steps):
            asked_at = entry.steps[-1].sent_at
            found["acknowledged_after"] += asked_at > deed_at and not entry.is_open
            is_there = any(place is not None and place.of(entry) in entry.allowed(now) for place in places)
            # The deed destroys the earlier records, but the server must report it.
            is_excused = asked_at <= deed_at and (bool(refusals.counts) or name not in ("wal unlinked", "shm unlinked"))
            if not is_there and not is_excused:
                found["lost"] += 1
                violations.add("lost", f"{name}: {entry.kind} {entry.record_id} {entry.now.state}")
        found["refused"] += refusals.counts["refused"]
        found["ended"] += refusals.counts["ended_by_itself"]
        if name in REPLACED:
            _is_whole(name, files.database, in_backup, violations)


def _caller(files: Files, folder: Path, number: int, seed: int, refusals: Violations) -> Caller:
    environment = clean_environment(folder)
    return Caller(number, seed, files.database, environment, folder / "servers.log", refusals, mix=_WRITING)


def _record(caller: Caller, calls: int) -> None:
    """Make `count` calls. If the server ends instead of answering, that is a refusal too."""
    try:
        if not caller.is_ready.is_set():
            caller.greet()
        for _ in range(calls):
            caller.step()
    except (ServerGone, RuntimeError) as error:
        caller.violations.add("ended_by_itself", error)


def _is_whole(name: str, database: Path, held: Stored | None, violations: Violations) -> None:
    """Check that the file that was put in place has all its records and no damage."""
    for finding in inspect(database, is_deep=True):
        if finding.verdict is Verdict.FAILED:
            violations.add("file_damaged", f"{name}: {finding.check}: {finding.detail[:200]}")
    now = _read(database)
    missing = [one for one in held.by_id if now is None or one not in now.by_id] if held else []
    if missing:
        violations.add("file_damaged", f"{name}: {len(missing)} records of the backup are gone")


def _read(database: Path) -> Stored | None:
    """The contents of a database file. None if it cannot be read."""
    try:
        with closing(sqlite3.connect(database)) as connection:
            if connection.execute("PRAGMA integrity_check").fetchone() != ("ok",):
                return None
        return read(database)
    except sqlite3.Error:
        return None


def campaign(*, rounds: int, deeds: Sequence[str] = tuple(DEEDS), seed: int = 1) -> dict[str, Any]:
    """Run `rounds` rounds of all these deeds. Returns the figures."""
    violations = Violations()
    found: dict[str, Counter[str]] = {name: Counter() for name in deeds}
    log: list[str] = []
    started = time.perf_counter()
    chance = random.Random(seed)
    for place in range(rounds):
        for name in deeds:
            try_out(name, chance.randrange(1 << 30), violations, found[name], log)
            progress(f"replaced_files: {place + 1}, {name}, {dict(found[name])}, {dict(violations.counts)}")
    return {
        "seed": seed,
        "rounds": rounds,
        "by_deed": {name: dict(counts) for name, counts in found.items()},
        **violations.figures(),
        "tracebacks": len(log),
        "took_s": time.perf_counter() - started,
    }


if __name__ == "__main__":
    sys.exit(in_rounds("replaced_files", __doc__, campaign, usual=4, quick=1))
