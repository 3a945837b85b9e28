"""The kill campaign: servers on one database are killed with SIGKILL, and everything acknowledged must survive.

Every caller has a real server over stdio, `python -m kalito_mcp serve`. It makes a mix of all calls that write, and
some that read. In a round all callers work. Then one to three servers are killed at a random moment, and in each tenth
round all of them. Half of the time a victim has a call open.

Then a copy of the database is checked. Every acknowledged change is there once and in its last version. A call that was
cut off is there completely or not at all. Nothing else is there.

Then the killed servers are started again. In a fifth of the cases one is killed while it starts. After they have opened
the memory, the bytes of no file contain an erased word, even if its purge was cut off. The deep inspection finds
nothing. A batch of messages that was cut off is sent again and makes no duplicate. After every 25 rounds a fresh
database begins.
"""

import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import anyio

from bench.ledger import State, Violations, compare, copied, holding, inspect_deeply, read, settle
from bench.mixed_calls import Caller
from bench.report import in_rounds, progress
from bench.wire import ServerGone, clean_environment
from kalito_mcp.wiring import open_memory

_ROUNDS_PER_DATABASE: Final = 25
_ALL_EVERY: Final = 10
_WORKING_S: Final = (0.05, 0.6)
_AIMED_S: Final = 0.03
_STARTING_SHARE: Final = 0.2
_STARTING_S: Final = (0.3, 1.5)
_START_LIMIT_S: Final = 60.0
_POLL_S: Final = 0.05
PATIENCE_S: Final = 10.0
"""How long a restarted server has to finish the owed work of the killed one."""


@dataclass(slots=True)
class Tally:
    """The counts of the campaign."""

    violations: Violations = field(default_factory=Violations)
    kills: Counter[str] = field(default_factory=Counter[str])
    cut_calls: Counter[str] = field(default_factory=Counter[str])
    """The calls that were open when their server was killed, by kind."""
    cut_purges: int = 0
    """How many of these calls had erased a record."""
    calls: Counter[str] = field(default_factory=Counter[str])
    acknowledged: int = 0
    checked: int = 0
    words: int = 0
    """How often a word was searched in the bytes of all files."""
    log: list[str] = field(default_factory=list[str])
    """What the servers logged. Empty unless something went wrong."""
    longest_reopen_s: float = 0.0


class Campaign:
    """Rounds on one database."""

    def __init__(self, folder: Path, callers: int, seed: int, tally: Tally) -> None:
        self._folder = folder / "data"
        self._folder.mkdir()
        self._database = self._folder / "memory.db"
        self._copy = folder / "copy.db"
        self._log = folder / "servers.log"
        self._random = random.Random(seed)
        self._tally = tally
        environment = clean_environment(folder)
        self._callers = [
            Caller(number, seed, self._database, environment, self._log, tally.violations) for number in range(callers)
        ]
        self._ledgers = [caller.ledger for caller in self._callers]

    def run(self, rounds: range) -> None:
        """Run these rounds, and check the database once more after every server has ended."""
        tally = self._tally
        try:
            for number in rounds:
                when = f"round {number + 1}"
                killed = self._round(is_all=number % _ALL_EVERY == _ALL_EVERY - 1)
                self._look(killed, when)
                self._start_again([one for one in self._callers if one in killed or one.is_gone])
                self._look_for_erased_words(when)
                inspect_deeply(copied(self._database, self._copy), tally.violations, when)
                changes = sum(ledger.acknowledged() for ledger in self._ledgers)
                progress(f"kill: {when}, {changes} changes, {dict(tally.violations.counts)}")
            self._work_until(lambda: None)  # the last open calls are repeated too
            self._end_with_a_purge()
        finally:
            for caller in self._callers:
                caller.server.close()
                tally.calls += caller.calls
            tally.acknowledged += sum(ledger.acknowledged() for ledger in self._ledgers)
            tally.log += self._log.read_text(encoding="utf-8").splitlines()
        self._compare("at the end")
        inspect_deeply(self._database, tally.violations, "at the end")
        if held := holding(self._folder, self._erased(is_all=True)):
            tally.violations.add("word_left", f"at the end: {held}")

    def _round(self, *, is_all: bool) -> Sequence[Caller]:
        count = len(self._callers) if is_all else min(self._random.randint(1, 3), len(self._callers))
        victims = self._random.sample(self._callers, count)
        working_s, aimed_s = self._random.uniform(*_WORKING_S), self._random.uniform(0, _AIMED_S)
        is_aimed = self._random.random() < 0.5

        def kill() -> None:
            time.sleep(working_s)
            if is_aimed:
                victims[0].call_open.wait(1.0)
                time.sleep(aimed_s)
            for victim in victims:
                is_open = victim.call_open.is_set()
                victim.kill()
                self._tally.kills["with_a_call_open" if is_open else "between_calls"] += 1
                self._tally.cut_calls[str(victim.doing)] += is_open

        self._work_until(kill)
        return victims

    def _work_until(self, act: Callable[[], None]) -> None:
        """Let all callers work. When each has got an answer, act. Then let them finish their calls."""
        over = threading.Event()
        threads = [threading.Thread(target=caller.run, args=(over,)) for caller in self._callers]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + _START_LIMIT_S
        for caller, thread in zip(self._callers, threads, strict=True):
            while not caller.is_ready.wait(_POLL_S) and thread.is_alive():
                if time.monotonic() > deadline:
                    self._tally.violations.add("did_not_start", f"caller {caller.number} in {_START_LIMIT_S:.0f} s")
                    caller.kill()
        act()
        over.set()
        for thread in threads:
            thread.join()

    def _look(self, killed: Sequence[Caller], when: str) -> None:
        """Compare the database with the acknowledged changes, and settle the calls that were cut off."""
        if len(killed) == len(self._callers):
            for caller in killed:
                caller.server.close()
            # Nobody has it open. The next process that opens it recovers it.
            started = time.perf_counter()
            anyio.run(reopen, self._database)
            self._tally.longest_reopen_s = max(self._tally.longest_reopen_s, time.perf_counter() - started)
        self._compare(when)
        if held := holding(self._folder, self._erased()):
            self._tally.violations.add("word_left", f"{when}: {held}")
        self._tally.words += len(self._erased())
        self._tally.cut_purges += len(settle(read(self._database), self._ledgers))

    def _compare(self, when: str) -> None:
        stored = read(self._database)
        self._tally.checked += compare(stored, self._ledgers, time.time(), self._tally.violations, when)

    def _start_again(self, gone: Sequence[Caller]) -> None:
        for caller in gone:
            caller.replace()
        if gone and self._random.random() < _STARTING_SHARE:
            time.sleep(self._random.uniform(*_STARTING_S))
            self._tally.kills["while_starting"] += 1
            gone[0].kill()
            gone[0].replace()
        for caller in gone:
            try:
                caller.greet()
            except (ServerGone, RuntimeError) as error:
                self._tally.violations.add("did_not_start", f"caller {caller.number}: {error}")

    def _look_for_erased_words(self, when: str) -> None:
        """Check erased words, also those of purges that were cut off: restarted servers finish the owed work."""
        deadline = time.monotonic() + PATIENCE_S
        while held := holding(self._folder, self._erased()):
            if time.monotonic() > deadline:
                self._tally.violations.add("word_left", f"{when}, after a start: {held}")
                for one in (entry for ledger in self._ledgers for entry in ledger.of_state(State.GONE)):
                    one.is_reported = True  # counted once
                return
            time.sleep(_POLL_S)

    def _erased(self, *, is_all: bool = False) -> set[str]:
        now = time.time()
        return {word for ledger in self._ledgers for word in ledger.erased_words(now, is_all=is_all)}

    def _end_with_a_purge(self) -> None:
        """Erase one more record with only one server left.

        This also removes what earlier purges reported as not reached.
        """
        *others, last = self._callers
        for caller in others:
            caller.server.close()
        if able := last.ledger.of_state(State.KEPT):
            last.purge(able[:1])


async def reopen(database: Path) -> None:
    """Open the memory, let it finish its owed work, and close it."""
    async with open_memory(database) as memory:
        await memory.settled()


def campaign(*, rounds: int, callers: int = 8, seed: int = 1) -> dict[str, Any]:
    """Run `rounds` rounds. Returns the figures."""
    tally = Tally()
    started = time.perf_counter()
    databases = 0
    for first in range(0, rounds, _ROUNDS_PER_DATABASE):
        with tempfile.TemporaryDirectory() as folder:
            block = Campaign(Path(folder), callers, seed + first, tally)
            block.run(range(first, min(first + _ROUNDS_PER_DATABASE, rounds)))
            databases += 1
    return {
        "seed": seed,
        "rounds": rounds,
        "callers": callers,
        "callers_are": "stdio servers",
        "databases": databases,
        "kills": tally.kills.total(),
        "kills_by_moment": dict(tally.kills),
        "cut_calls": dict(tally.cut_calls),
        "cut_purges_that_erased": tally.cut_purges,
        "answered_calls": dict(tally.calls),
        "acknowledged_changes": tally.acknowledged,
        "checks": tally.checked,
        "words_looked_for": tally.words,
        **tally.violations.figures(),
        "log_lines": len(tally.log),
        "first_log_lines": tally.log[:5],
        "longest_reopen_s": tally.longest_reopen_s,
        "took_s": time.perf_counter() - started,
    }


if __name__ == "__main__":
    sys.exit(in_rounds("kill", __doc__, campaign, usual=200, quick=3))
