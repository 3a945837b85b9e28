"""The campaign of purges that are cut short: killed in the middle, or without room for the sweep.

Two servers have one database open. One is asked to erase a record. By turns it is killed as soon as the record is
erased, or 0 to 60 ms after the call, or finds no room (on a small file system in memory, which takes root to mount).
Where the record is erased and its words are still in a file, `doctor` has to say that something is owed, and one of
three remedies has to finish the work: the next start of a server, the same purge again, the next write of the server
that lives. Afterwards the words are in no file.
"""

import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from bench.kill import PATIENCE_S
from bench.ledger import GONE, Entry, State, Violations, compare, holding, inspect_deeply, read, settle
from bench.mixed_calls import Caller
from bench.report import emit, options, progress
from bench.wire import ServerGone, clean_environment
from kalito_mcp.storage.sqlite.inspection import Verdict, inspect

CUTS: Final = ("killed when erased", "no room", "killed after the call")
REMEDIES: Final = ("next start", "same purge", "next write")
_CUT_AFTER_CALL_S: Final = (0.0, 0.06)
_CUT_AFTER_ERASING_S: Final = (0.0, 0.005)
_POLL_S: Final = 0.05
_WRITING: Final = {"record": 10, "pin": 1, "note": 1, "update": 2, "feedback": 1}
_SELECT_IS_ERASED: Final = """
SELECT 1 FROM records WHERE coalesce(id, 'msg_' || key) = :id AND purged_at IS NOT NULL
"""
_CALLS: Final = 20
"""Before the first purge, and half as many before each other, so that there is something to erase."""
_ROUNDS_PER_DATABASE: Final = 30
_SMALL_DISK: Final = "32m"
_SPARE_BYTES: Final = 300_000
"""What is left free: room for the transaction that erases, not for the file's new copy."""


class _Pair:
    """A victim and a bystander on one database, and what is counted."""

    def __init__(self, data: Path, scratch: Path, seed: int, violations: Violations) -> None:
        self.data = data
        self.database = data / "memory.db"
        self.violations = violations
        self._log = scratch / "servers.log"
        environment = clean_environment(scratch) | {"TMPDIR": str(scratch)}
        self.bystander, self.victim = (
            Caller(number, seed, self.database, environment, self._log, violations, mix=_WRITING) for number in range(2)
        )
        self.ledgers = [self.bystander.ledger, self.victim.ledger]
        for caller in (self.bystander, self.victim):
            caller.greet()
            for _ in range(_CALLS // 2):
                caller.step()

    def close(self) -> list[str]:
        """End both; what they had to say."""
        for caller in (self.bystander, self.victim):
            caller.server.close()
        return self._log.read_text(encoding="utf-8").splitlines()

    def target(self, place: int) -> Entry:
        """A record to erase; each second time after a snapshot was written."""
        for _ in range(_CALLS // 2):
            self.victim.step()
        if place % 2:
            self.victim.finalize()
        kind = ("message", None)[place % 3 == 2]
        return [one for one in self.victim.ledger.of_state(State.KEPT) if kind in (None, one.kind)][-1]

    def start_victim(self) -> None:
        """Start it again, and have the memory opened."""
        self.victim.replace()
        self.victim.greet()

    def remedy(self, name: str, entry: Entry) -> None:
        """Do what has to finish the purge."""
        match name:
            case "next start":
                self.victim.kill()
                self.start_victim()
            case "next write":
                self.bystander.make("record")
            case _:
                try:
                    self.bystander.server.call(
                        "forget", {"record_ids": [entry.record_id], "purge": True, "confirmed": True}
                    )
                except RuntimeError as error:
                    self.violations.add("purge_again_refused", error)

    def wait_until_erased(self, entry: Entry, purge: threading.Thread) -> None:
        """Look at the database until the record is erased, or the purge has ended."""
        with closing(sqlite3.connect(f"{self.database.as_uri()}?mode=ro", uri=True)) as connection:
            while purge.is_alive():
                if connection.execute(_SELECT_IS_ERASED, {"id": entry.record_id}).fetchone():
                    return

    def is_gone(self, words: list[str]) -> bool:
        """Whether the words are in no file, at once or after the work that is owed."""
        deadline = time.monotonic() + PATIENCE_S
        while holding(self.data, words):
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_S)
        return True

    def warnings(self) -> list[str]:
        """What doctor does not find in order."""
        return [
            f"{one.check}: {one.detail}" for one in inspect(self.database, is_deep=True) if one.verdict != Verdict.OK
        ]


def _kill(pair: _Pair, entry: Entry, chance: random.Random, *, is_aimed: bool) -> None:
    """Ask the victim to erase, and kill it; `is_aimed` waits until the record is erased."""

    def ask() -> None:
        with suppress(ServerGone):
            pair.victim.purge([entry])

    thread = threading.Thread(target=ask)
    pair.victim.call_open.clear()
    thread.start()
    pair.victim.call_open.wait()
    if is_aimed:
        pair.wait_until_erased(entry, thread)
    time.sleep(chance.uniform(*(_CUT_AFTER_ERASING_S if is_aimed else _CUT_AFTER_CALL_S)))
    pair.victim.kill()
    thread.join()
    settle(read(pair.database), pair.ledgers)


def _judged(pair: _Pair, entry: Entry, remedy: str, before: list[str], violations: Violations) -> str:
    """Where the words are still in a file, see that doctor says so and that the remedy finishes the purge."""
    held = holding(pair.data, entry.words)
    if not entry.is_erased:
        return "not begun"
    if not held:
        return "finished"
    if pair.warnings() == before:
        violations.add("doctor_silent", f"{held} after the purge of {entry.record_id}")
    pair.remedy(remedy, entry)
    if pair.is_gone(entry.words):
        return f"cut short, finished by the {remedy}"
    violations.add("word_left", f"after the {remedy}: {holding(pair.data, entry.words)}")
    # So that the next round begins with clean files.
    pair.bystander.purge(pair.bystander.ledger.of_state(State.KEPT)[:1])
    return f"cut short, left by the {remedy}"


def _fill_the_disk(pair: _Pair, entry: Entry) -> None:
    """Ask the victim to erase while there is no room for the sweep; then there is room again."""
    ballast = pair.data / "ballast"
    ballast.write_bytes(bytes(max(0, shutil.disk_usage(pair.data).free - _SPARE_BYTES)))
    entry.ask(GONE)
    arguments = {"record_ids": [entry.record_id], "purge": True, "confirmed": True}
    try:
        pair.victim.server.call("forget", arguments)
        entry.acknowledge()
    except RuntimeError as error:
        if "storage_full" not in str(error):
            pair.violations.add("refused", error)
    settle(read(pair.database), pair.ledgers)
    ballast.unlink()


@contextmanager
def _disk(folder: Path) -> Iterator[tuple[Path, bool]]:
    """A folder for the database, and whether it is a file system of its own, of some megabytes."""
    disk = folder / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={_SMALL_DISK}", "tmpfs", str(disk)]
    try:
        is_small = subprocess.run(mount, check=False, capture_output=True).returncode == 0
    except FileNotFoundError:
        is_small = False
    try:
        yield disk, is_small
    finally:
        if is_small:
            subprocess.run(["umount", str(disk)], check=True)


def _run(rounds: range, seed: int, violations: Violations, found: Counter[str]) -> list[str]:
    """The rounds of these numbers, on one database; what the servers had to say."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder, _disk(Path(folder)) as (data, is_small):
        pair = _Pair(data, Path(folder), seed, violations)
        try:
            for place in rounds:
                if pair.victim.is_killed:
                    pair.start_victim()
                cut = CUTS[place % len(CUTS)]
                if cut == "no room" and not is_small:
                    found["skipped: no small file system could be mounted, which takes root"] += 1
                    continue
                entry, before = pair.target(place), pair.warnings()
                if cut == "no room":
                    _fill_the_disk(pair, entry)
                else:
                    _kill(pair, entry, chance, is_aimed=cut == "killed when erased")
                remedy = REMEDIES[(place + place // len(CUTS)) % len(REMEDIES)]
                found[f"{cut}: {_judged(pair, entry, remedy, before, violations)}"] += 1
                progress(f"cut_purges: {place + 1}, {dict(found)}, {dict(violations.counts)}")
            compare(read(pair.database), pair.ledgers, time.time(), violations, "at the end")
        finally:
            log = pair.close()
        inspect_deeply(pair.database, violations, "at the end")
        return log


def campaign(*, rounds: int, seed: int = 1) -> dict[str, Any]:
    """The figures of so many rounds."""
    violations = Violations()
    found: Counter[str] = Counter()
    log: list[str] = []
    started = time.perf_counter()
    for first in range(0, rounds, _ROUNDS_PER_DATABASE):
        log += _run(range(first, min(first + _ROUNDS_PER_DATABASE, rounds)), seed + first, violations, found)
    return {
        "seed": seed,
        "rounds": rounds,
        "found": dict(sorted(found.items())),
        **violations.figures(),
        "log_lines": len(log),
        "first_log_lines": log[:3],
        "took_s": time.perf_counter() - started,
    }


def main() -> int:
    """Run it; 1 where a promise was broken."""
    parser = options(__doc__)
    parser.add_argument("--rounds", type=int, help="default 180, quick 9")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    figures = campaign(rounds=given.rounds or (9 if given.quick else 180), seed=given.seed)
    emit("cut_purges", figures)
    return 1 if figures["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
