"""The campaign of snapshot races: one process finalizes a session, which writes a snapshot, while another erases.

In half of the rounds both run at once. Neither may be refused, the purge must reach every file, and the snapshot
contains no erased word afterwards. In the other half, the process that finalizes is stopped (SIGSTOP) at a random
moment. The other erases, and the first is killed (SIGKILL). What was erased is then in no snapshot and in no other
file.
"""

import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from bench.kill import PATIENCE_S
from bench.ledger import Entry, State, Violations, compare, holding, inspect_deeply, read, settle
from bench.mixed_calls import Caller
from bench.report import in_rounds, progress
from bench.wire import ServerGone, clean_environment

_WRITING: Final = {"record": 10, "pin": 1, "feedback": 2}
_BEGIN: Final = 20
_BATCHES: Final = 4
_PURGED: Final = 3
_STARTS_LATER_S: Final = (-0.03, 0.06)
"""The start of the purge, in seconds after the start of the finalize."""
_STOPPED_AFTER_S: Final = (0.0, 0.12)
_STOPPED_FOR_S: Final = 2.0
"""Longer than a purge takes. A purge that waits for a lock of the stopped process continues when that is killed."""
_ROUNDS_PER_DATABASE: Final = 40


class Race:
    """A server that finalizes and one that erases, on one database."""

    def __init__(self, folder: Path, seed: int, violations: Violations, found: Counter[str]) -> None:
        self._data = folder / "data"
        self._data.mkdir()
        self._database = self._data / "memory.db"
        self._log = folder / "servers.log"
        self._random = random.Random(seed)
        self._violations = violations
        self._found = found
        environment = clean_environment(folder)
        self._closer, self._eraser = (
            Caller(number, seed, self._database, environment, self._log, violations, mix=_WRITING)
            for number in range(2)
        )
        self._ledgers = [self._closer.ledger, self._eraser.ledger]
        for caller in (self._closer, self._eraser):
            caller.greet()
            for _ in range(_BEGIN):
                caller.step()

    def run(self, rounds: range) -> list[str]:
        """Run these rounds. Returns what the servers logged."""
        try:
            for number in rounds:
                when = f"round {number + 1}"
                if self._closer.is_killed:
                    self._closer.replace()
                    self._closer.greet()
                erased = self._prepare()
                if number % 2:
                    self._freeze(erased)
                else:
                    self._together(erased)
                self._look(when, erased)
                progress(f"snapshot_races: {when}, {dict(self._found)}, {dict(self._violations.counts)}")
            compare(read(self._database), self._ledgers, time.time(), self._violations, "at the end")
        finally:
            for caller in (self._closer, self._eraser):
                caller.server.close()
        inspect_deeply(self._database, self._violations, "at the end")
        return self._log.read_text(encoding="utf-8").splitlines()

    def _prepare(self) -> list[Entry]:
        """A session to close, and records to erase whose words are in the agent's graph and in the snapshot."""
        for caller in (self._eraser, self._closer):
            for _ in range(_BATCHES):
                caller.make("record")
            while not caller.has_session:
                caller.make("record")
        self._eraser.finalize()
        messages = [one for one in self._eraser.ledger.of_state(State.KEPT) if one.kind == "message"]
        in_snapshot = [one for one in messages if holding(self._data / "memory.db.snapshots", one.words)]
        return (in_snapshot or messages)[-_PURGED:]

    def _together(self, erased: list[Entry]) -> None:
        later_s = self._random.uniform(*_STARTS_LATER_S)
        purge = threading.Thread(target=_after, args=(max(0.0, later_s), lambda: self._purge(erased)))
        purge.start()
        _after(max(0.0, -later_s), self._closer.finalize)
        purge.join()
        self._found["together"] += 1

    def _freeze(self, erased: list[Entry]) -> None:
        closer = self._closer
        finalize = threading.Thread(target=_unless_gone, args=(closer,))
        closer.call_open.clear()
        finalize.start()
        closer.call_open.wait(PATIENCE_S)
        time.sleep(self._random.uniform(*_STOPPED_AFTER_S))
        os.kill(closer.server.process_id, signal.SIGSTOP)
        self._found["stopped_in_finalize" if closer.call_open.is_set() else "stopped_later"] += 1
        purge = threading.Thread(target=self._purge, args=(erased,))
        purge.start()
        purge.join(_STOPPED_FOR_S)
        self._found["purged_while_stopped" if not purge.is_alive() else "purged_after_the_kill"] += 1
        closer.kill()
        purge.join()
        finalize.join()
        settle(read(self._database), self._ledgers)

    def _purge(self, erased: list[Entry]) -> None:
        answer = self._eraser.purge(erased)
        if answer and answer["not_reached"]:
            self._violations.add("not_reached", answer["not_reached"])

    def _look(self, when: str, erased: list[Entry]) -> None:
        words = [word for one in erased if one.is_erased for word in one.words]
        self._found["words"] += len(words)
        if held := holding(self._data, words):
            self._violations.add("word_left", f"{when}: {held}")
            self._eraser.purge(self._eraser.ledger.of_state(State.KEPT)[:1])


def _after(wait_s: float, act: Any) -> None:
    time.sleep(wait_s)
    act()


def _unless_gone(closer: Caller) -> None:
    with suppress(ServerGone):
        closer.finalize()


def campaign(*, rounds: int, seed: int = 1) -> dict[str, Any]:
    """Run `rounds` rounds. Returns the figures."""
    violations = Violations()
    found: Counter[str] = Counter()
    log: list[str] = []
    started = time.perf_counter()
    for first in range(0, rounds, _ROUNDS_PER_DATABASE):
        with tempfile.TemporaryDirectory() as folder:
            race = Race(Path(folder), seed + first, violations, found)
            log += race.run(range(first, min(first + _ROUNDS_PER_DATABASE, rounds)))
    return {
        "seed": seed,
        "rounds": rounds,
        "found": dict(found),
        **violations.figures(),
        "log_lines": len(log),
        "first_log_lines": log[:3],
        "took_s": time.perf_counter() - started,
    }


if __name__ == "__main__":
    sys.exit(in_rounds("snapshot_races", __doc__, campaign, usual=160, quick=6))
