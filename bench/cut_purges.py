"""The campaign of interrupted purges: the server is killed meanwhile, or the disk is too full for the sweep.

Two servers have one database open. One is asked to erase a record. The rounds take turns: it is killed as soon as the
record is erased, or killed 0 to 60 ms after the call, or the disk is full. The full disk is a small file system in
memory; mounting it needs root.

If the record is erased and its words are still in a file, `doctor` must report that work is owed. Then one of three
remedies must finish the work: the next start of a server, the same purge again, or the next write of the server that is
still alive. Afterwards the words are in no file.
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
from bench.report import in_rounds, progress
from bench.wire import ServerGone, clean_environment
from kalito_mcp.domain.findings import Verdict
from kalito_mcp.storage.sqlite.inspection import inspect

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
"""Calls before the first purge. Before each later one there are half as many, so that there is something to erase."""
_ROUNDS_PER_DATABASE: Final = 30
_SMALL_DISK: Final = "32m"
_SPARE_BYTES: Final = 300_000
"""The free space: enough for the transaction that erases, too little for the new copy of the file."""


class _Pair:
    """A victim and a bystander on one database, and the counts of the campaign."""

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
        """End both servers. Returns what they logged."""
        for caller in (self.bystander, self.victim):
            caller.server.close()
        return self._log.read_text(encoding="utf-8").splitlines()

    def target(self, place: int) -> Entry:
        """A record to erase. Every second time, a snapshot is written first."""
        for _ in range(_CALLS // 2):
            self.victim.step()
        if place % 2:
            self.victim.finalize()
        kind = ("message", None)[place % 3 == 2]
        return [one for one in self.victim.ledger.of_state(State.KEPT) if kind in (None, one.kind)][-1]

    def start_victim(self) -> None:
        """Start the victim again, and make it open the memory."""
        self.victim.replace()
        self.victim.greet()

    def remedy(self, name: str, entry: Entry) -> None:
        """Do what must finish the purge."""
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
        """Watch the database until the record is erased or the purge has ended."""
        with closing(sqlite3.connect(f"{self.database.as_uri()}?mode=ro", uri=True)) as connection:
            while purge.is_alive():
                if connection.execute(_SELECT_IS_ERASED, {"id": entry.record_id}).fetchone():
                    return

    def is_gone(self, words: list[str]) -> bool:
        """Whether the words are in no file, at once or after the owed work."""
        deadline = time.monotonic() + PATIENCE_S
        while holding(self.data, words):
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_S)
        return True

    def warnings(self) -> list[str]:
        """The warnings of doctor."""
        return [
            f"{one.check}: {one.detail}" for one in inspect(self.database, is_deep=True) if one.verdict != Verdict.OK
        ]


def _kill(pair: _Pair, entry: Entry, chance: random.Random, *, is_aimed: bool) -> None:
    """Ask the victim to erase, and kill it. If `is_aimed`, wait first until the record is erased."""

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
    """If the words are still in a file, check that doctor reports it and that the remedy finishes the purge."""
    held = holding(pair.data, entry.words)
    if not entry.is_erased:
        return "not begun"
    if not held:
        return "finished"
    # The other server may have finished the purge between the two looks.
    if pair.warnings() == before and holding(pair.data, entry.words):
        violations.add("doctor_silent", f"{held} after the purge of {entry.record_id}")
    pair.remedy(remedy, entry)
    if pair.is_gone(entry.words):
        return f"cut short, finished by the {remedy}"
    violations.add("word_left", f"after the {remedy}: {holding(pair.data, entry.words)}")
    # The next round must begin with clean files.
    pair.bystander.purge(pair.bystander.ledger.of_state(State.KEPT)[:1])
    return f"cut short, left by the {remedy}"


def _fill_the_disk(pair: _Pair, entry: Entry) -> None:
    """Ask the victim to erase while the disk is too full for the sweep. Then make room again."""
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
    """A folder for the database, and whether it is a small file system of its own."""
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
    """Run these rounds on one database. Returns what the servers logged."""
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
    """Run `rounds` rounds. Returns the figures."""
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


if __name__ == "__main__":
    sys.exit(in_rounds("cut_purges", __doc__, campaign, usual=180, quick=9))
