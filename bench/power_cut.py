"""The power-cut campaign: what was acknowledged survives, whatever part of the unsynced writes reached the disk.

strace records two servers while they answer mixed calls on one database, from its creation to its end. Images of the
disk are built in five ways (see disk_images.py), from moments all over the recording and from those just after a purge.

Every image is opened. The database is undamaged. Everything that was acknowledged by then is there in its last version.
A snapshot is complete or missing. What an acknowledged purge erased is in no file. Bytes of a -wal file that was cut
and not synced may come back. They are gone after the memory was opened and closed once.
"""

import json
import random
import shutil
import sqlite3
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import anyio

from bench.disk_images import STRACE, Disk, Event, Mode, recorded
from bench.kill import reopen
from bench.ledger import Ledger, Stored, Violations, compare, holding, inspect_deeply, read
from bench.mixed_calls import MIX, Caller
from bench.report import emit, options, progress
from bench.wire import ServerGone, clean_environment
from kalito_mcp.errors import KalitoError
from kalito_mcp.runtime.database_address import LocalFiles

_CALLERS: Final = 2
_MIX: Final = MIX | {"purge": 10, "finalize": 5, "search": 1, "context": 1, "history": 1}
_PURGE_SHARE: Final = 0.3
_REOPENED_SHARE: Final = 0.25
_NOT_ON_DISK: Final = ("-shm", ".lock")
_NOTHING: Final = Stored({}, {}, frozenset())


@dataclass(slots=True)
class Tally:
    """The counts of the campaign."""

    violations: Violations = field(default_factory=Violations)
    images: Counter[str] = field(default_factory=Counter[str])
    checks: int = 0
    words: int = 0
    """How often a word was searched in the bytes of all files."""
    words_back_in_wal: int = 0
    """Images whose -wal file contained an erased word again."""
    reopened: int = 0
    events: int = 0
    calls: Counter[str] = field(default_factory=Counter[str])
    log: list[str] = field(default_factory=list[str])


def record(folder: Path, calls: int, seed: int, tally: Tally) -> tuple[list[Event], list[Ledger]]:
    """Let the servers work under strace. Returns what they did to the disk and what they acknowledged."""
    data, log = folder / "data", folder / "servers.log"
    data.mkdir()
    traces = [folder / f"{number}.strace" for number in range(_CALLERS)]
    environment = clean_environment(folder)
    callers = [
        Caller(
            number,
            seed,
            data / "memory.db",
            environment,
            log,
            tally.violations,
            mix=_MIX,
            wrapper=(*STRACE, str(traces[number])),
        )
        for number in range(_CALLERS)
    ]
    threads = [threading.Thread(target=_drive, args=(caller, calls)) for caller in callers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for caller in callers:
        caller.server.close()
        tally.calls += caller.calls
    tally.log += log.read_text(encoding="utf-8").splitlines()
    return recorded(traces, data.resolve()), [caller.ledger for caller in callers]


def _drive(caller: Caller, calls: int) -> None:
    try:
        caller.greet()
        for _ in range(calls):
            caller.step()
    except (ServerGone, RuntimeError) as error:
        caller.violations.add("ended_by_itself", error)


def moments(events: Sequence[Event], ledgers: Sequence[Ledger], count: int, chance: random.Random) -> list[int]:
    """`count` moments, as numbers of events so far: all over the recording, and just after purges."""
    purged_at = [
        step.acknowledged_at
        for ledger in ledgers
        for entry in ledger.entries
        for step in entry.steps
        if entry.is_erased and step is entry.steps[-1] and step.acknowledged_at is not None
    ]
    after_purges = [sum(event.at < moment for event in events) for moment in purged_at]
    chosen = chance.sample(after_purges, min(len(after_purges), round(count * _PURGE_SHARE)))
    others = chance.sample(range(1, len(events) + 1), min(len(events), count - len(chosen)))
    return sorted([*chosen, *others])


def look(image: Path, ledgers: Sequence[Ledger], at: float, when: str, tally: Tally, *, is_reopened: bool) -> None:
    """Open an image and look for everything that was acknowledged before the moment."""
    violations = tally.violations
    words = {word for ledger in ledgers for word in ledger.erased_words(at)}
    tally.words += len(words)
    held = holding(image, words)
    in_wal = {name for name in held if name.endswith("-wal")}
    tally.words_back_in_wal += bool(in_wal)
    if held.keys() - in_wal:
        violations.add("word_left", f"{when}: {held}")
    database = image / "memory.db"
    for snapshot in LocalFiles(database).snapshots.rglob("[!.]*.json"):
        try:
            json.loads(snapshot.read_bytes())["graph"]
        except (ValueError, KeyError) as error:
            violations.add("torn_snapshot", f"{when}: {snapshot.name}: {error}")
    if is_reopened or in_wal:
        tally.reopened += 1
        try:
            anyio.run(reopen, database)
        except KalitoError as error:
            violations.add("corrupt", f"{when}: {error}")
            return
        inspect_deeply(database, violations, when)
        if held := holding(image, words):
            violations.add("word_left", f"{when}, opened and closed again: {held}")
    try:
        stored = _opened(database)
    except sqlite3.Error as error:
        violations.add("corrupt", f"{when}: {error}")
        return
    tally.checks += compare(stored, ledgers, at, violations, when)


def _opened(database: Path) -> Stored:
    """The contents of an image's database. Empty if it was not created yet.

    Raises:
        sqlite3.Error: the database is damaged.
    """
    if not database.exists():
        return _NOTHING
    with closing(sqlite3.connect(database)) as connection:
        problems = [str(row[0]) for row in connection.execute("PRAGMA integrity_check")]
        if problems != ["ok"]:
            raise sqlite3.DatabaseError(problems[0])
        if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'vector_indexes'").fetchone():
            return _NOTHING
    return read(database)


def cut(events: list[Event], ledgers: list[Ledger], folder: Path, points: int, seed: int, tally: Tally) -> None:
    """Build and check the images of this many moments."""
    chance = random.Random(seed)
    disk, done = Disk(), 0
    for number, happened in enumerate(moments(events, ledgers, points, chance)):
        for event in events[done:happened]:
            disk.apply(event)
        done = happened
        # What was answered before the next event on the disk counts as answered by then.
        at = events[happened].at if happened < len(events) else time.time()
        for mode in Mode:
            image = folder / "image"
            image.mkdir()
            for name, content in disk.image(mode, chance).items():
                if not name.endswith(_NOT_ON_DISK):
                    (image / name).parent.mkdir(exist_ok=True, parents=True)
                    (image / name).write_bytes(content)
            when = f"event {happened} of {len(events)}, {mode}"
            look(image, ledgers, at, when, tally, is_reopened=chance.random() < _REOPENED_SHARE)
            shutil.rmtree(image)
            tally.images[mode] += 1
        progress(f"power_cut: moment {number + 1}, {tally.images.total()} images, {dict(tally.violations.counts)}")
    for event in events[done:]:
        disk.apply(event)
    _check_model(disk.image(Mode.ALL, chance), folder / "data", tally.violations)


def _check_model(image: dict[str, bytes], data: Path, violations: Violations) -> None:
    """Check that the model ends where the disk ended if all writes arrive. Otherwise its images prove nothing."""
    there = {str(path.relative_to(data)): path for path in data.rglob("*") if path.is_file()}
    for name in {*there, *image}:
        if name.endswith(_NOT_ON_DISK):
            continue
        if name not in there or image.get(name) != there[name].read_bytes():
            violations.add("model_wrong", name)


def campaign(*, recordings: int, calls: int, points: int, seed: int = 1) -> dict[str, Any]:
    """Make this many recordings with this many moments each. Returns the figures."""
    tally = Tally()
    started = time.perf_counter()
    for number in range(recordings):
        with tempfile.TemporaryDirectory() as folder:
            events, ledgers = record(Path(folder), calls, seed + number, tally)
            tally.events += len(events)
            cut(events, ledgers, Path(folder), points, seed + number, tally)
    return {
        "seed": seed,
        "recordings": recordings,
        "answered_calls": dict(tally.calls),
        "events": tally.events,
        "images": tally.images.total(),
        "images_by_mode": dict(tally.images),
        "checks": tally.checks,
        "words_looked_for": tally.words,
        "images_with_words_back_in_wal": tally.words_back_in_wal,
        "reopened": tally.reopened,
        **tally.violations.figures(),
        "log_lines": len(tally.log),
        "first_log_lines": tally.log[:3],
        "took_s": time.perf_counter() - started,
    }


def main() -> int:
    """Run the campaign. The exit code is 1 if it found a violation, or if strace is missing."""
    parser = options(__doc__)
    parser.add_argument("--recordings", type=int, help="default 4, quick 1")
    parser.add_argument("--points", type=int, help="moments of each recording, five images each: default 100, quick 10")
    parser.add_argument("--calls", type=int, help="calls to each server in a recording: default 120, quick 30")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if shutil.which(STRACE[0]) is None:
        progress("power_cut: strace is missing, so nothing was tested; install it (apt install strace)")
        return 1
    figures = campaign(
        recordings=given.recordings or (1 if given.quick else 4),
        calls=given.calls or (30 if given.quick else 120),
        points=given.points or (10 if given.quick else 100),
        seed=given.seed,
    )
    emit("power_cut", figures)
    return 1 if figures["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
