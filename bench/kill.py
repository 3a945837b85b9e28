"""The kill campaign: servers that write to one database are killed with SIGKILL, and everything acknowledged stays.

Every writer is a real server over stdio, `python -m kalito_mcp serve`, with a driver that records batches under
client_keys, half of them into a session that all share, and notes what was acknowledged. A round lets all of them
write, kills one to three at a random moment (each tenth round: all of them), half of the time just while a victim
has a call open, and then looks at a copy of the database made by SQLite's backup: every acknowledged message is
there once, word for word; an open call is there whole or not at all; nothing else is there; the deep inspection
finds nothing. The killed are started again (a fifth of the times one is killed while it starts) and repeat their
open call with the same client_keys, which must make no duplicate. Each 25 rounds begin with a fresh database.
"""

import random
import sqlite3
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import anyio

from bench.corpus import Corpus
from bench.report import emit, options, progress
from bench.wire import ServerGone, WireServer, clean_environment, memory_command
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.storage.sqlite.inspection import Verdict, inspect

_ROUNDS_PER_DATABASE: Final = 25
_ALL_EVERY: Final = 10
_BATCH: Final = (1, 6)
_WRITING_S: Final = (0.05, 0.4)
_AIMED_S: Final = 0.015
_STARTING_SHARE: Final = 0.2
_STARTING_S: Final = (0.3, 1.5)
_START_LIMIT_S: Final = 60.0
_POLL_S: Final = 0.05
_SHARED: Final = "shared"
_SELECT_MESSAGES: Final = """
SELECT s.id, r.client_key, r.key, r.text FROM records r JOIN sessions s ON s.key = r.session_key
WHERE r.type = 'message'
"""

Place = tuple[str, str]
"""A message's session and client_key."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One call of record_messages: a session, and texts by client_key."""

    session: str
    texts: dict[str, str]

    def arguments(self) -> dict[str, Any]:
        """As the tool takes it."""
        messages = [{"role": "user", "text": text, "client_key": key} for key, text in self.texts.items()]
        return {"session_id": self.session, "messages": messages}


@dataclass(slots=True)
class Tally:
    """What the campaign counted. All of `faults` are broken promises."""

    faults: list[str] = field(default_factory=list[str])
    kills: Counter[str] = field(default_factory=Counter[str])
    acknowledged: int = 0
    open_calls: Counter[str] = field(default_factory=Counter[str])
    """Calls that were cut off: `stored` before the kill, or `absent`."""
    retried: int = 0
    log: list[str] = field(default_factory=list[str])
    """What the servers had to say: nothing, unless something went wrong."""
    longest_reopen_s: float = 0.0


class Writer:
    """A server, the thread that drives it, and what it was told."""

    def __init__(self, number: int, database: Path, environment: dict[str, str], log: Path, tally: Tally) -> None:
        self.number = number
        self.acknowledged: dict[Place, tuple[str, str]] = {}
        """Message id and text, of everything acknowledged."""
        self.open_call: Batch | None = None
        self.has_call_open = threading.Event()
        self.is_ready = threading.Event()
        self._corpus = Corpus(seed=number)
        self._random = random.Random(number)
        self._next_key = 0
        self._database = database
        self._environment = environment
        self._log = log
        self._tally = tally
        self._was_cut_off = False
        self.start()

    def start(self) -> None:
        """Start the server, without waiting for it."""
        self.is_ready.clear()
        self.is_gone = self._is_killed = False
        self._server = WireServer(memory_command(self._database), self._environment, self._log)

    def kill(self) -> None:
        """SIGKILL the server."""
        self._is_killed = True
        self._server.kill()

    def replace(self) -> None:
        """Bury a server that is gone, and start another."""
        self._server.close()
        self.has_call_open.clear()
        self._was_cut_off = self.open_call is not None
        self.start()

    def close(self) -> None:
        """Let the server end by itself."""
        self._server.close()

    def write(self, over: threading.Event) -> None:
        """Record batches until it is over, or until the server is killed."""
        try:
            if not self.is_ready.is_set():
                self._server.shake_hands()
            while not over.is_set():
                self._record()
                self.is_ready.set()
        except ServerGone:
            self.is_gone = True
            if not self._is_killed:
                self._tally.faults.append(f"the server of writer {self.number} ended by itself")
        except RuntimeError as error:
            self._tally.faults.append(f"writer {self.number}: {error}")
        finally:
            self.has_call_open.clear()

    def _record(self) -> None:
        batch = self.open_call or self._new_batch()
        self.open_call = batch
        self.has_call_open.set()
        result = self._server.call("record_messages", batch.arguments())["structuredContent"]
        self.has_call_open.clear()
        if self._was_cut_off:
            self._tally.retried += 1
            self._was_cut_off = False
            if result["duplicates"] not in (0, len(batch.texts)):
                self._tally.faults.append(f"half of a call was stored: {result['duplicates']} of {len(batch.texts)}")
        elif result["duplicates"]:
            self._tally.faults.append(f"{result['duplicates']} new messages were taken for known ones")
        for (key, text), message_id in zip(batch.texts.items(), result["message_ids"], strict=True):
            self.acknowledged[(batch.session, key)] = (message_id, text)
        self._tally.acknowledged += len(batch.texts)
        self.open_call = None

    def _new_batch(self) -> Batch:
        first, size = self._next_key, self._random.randint(*_BATCH)
        self._next_key += size
        session = self._random.choice([_SHARED, f"own-{self.number}"])
        return Batch(session, {f"{self.number}-{first + i}": self._corpus.text() for i in range(size)})


class Campaign:
    """Rounds on one database."""

    def __init__(self, folder: Path, writers: int, seed: int, tally: Tally) -> None:
        self._folder = folder
        self._database = folder / "memory.db"
        self._random = random.Random(seed)
        self._tally = tally
        self._log = folder / "servers.log"
        environment = clean_environment(folder)
        self._writers = [Writer(number, self._database, environment, self._log, tally) for number in range(writers)]

    def run(self, rounds: range) -> None:
        """The rounds of these numbers, and a last look at the database when every server has ended."""
        try:
            for number in rounds:
                killed = self._round(is_all=number % _ALL_EVERY == _ALL_EVERY - 1)
                self._check(killed, number)
                for writer in self._writers:
                    if writer in killed or writer.is_gone:
                        writer.replace()
                if self._random.random() < _STARTING_SHARE:
                    time.sleep(self._random.uniform(*_STARTING_S))
                    self._tally.kills["while_starting"] += 1
                    killed[0].kill()
                    killed[0].replace()
                progress(f"kill: round {number + 1}, {self._tally.acknowledged} acknowledged, {self._tally.faults[:1]}")
            self._write_until(lambda: None)  # the last open calls are repeated too
        finally:
            for writer in self._writers:
                writer.close()
            self._tally.log += self._log.read_text(encoding="utf-8").splitlines()
        self._look(self._database, "at the end")

    def _round(self, *, is_all: bool) -> Sequence[Writer]:
        count = len(self._writers) if is_all else min(self._random.randint(1, 3), len(self._writers))
        victims = self._random.sample(self._writers, count)
        is_aimed = self._random.random() < 0.5

        def kill() -> None:
            time.sleep(self._random.uniform(*_WRITING_S))
            if is_aimed:
                victims[0].has_call_open.wait(1.0)
                time.sleep(self._random.uniform(0, _AIMED_S))
            for victim in victims:
                kind = "all" if is_all else "with_a_call_open" if victim.has_call_open.is_set() else "between_calls"
                self._tally.kills[kind] += 1
                victim.kill()

        self._write_until(kill)
        return victims

    def _write_until(self, act: Callable[[], None]) -> None:
        """Let all write; when each has been acknowledged something, act; then let them finish their calls."""
        over = threading.Event()
        threads = [threading.Thread(target=writer.write, args=(over,)) for writer in self._writers]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + _START_LIMIT_S
        for writer, thread in zip(self._writers, threads, strict=True):
            while not writer.is_ready.wait(_POLL_S) and thread.is_alive():
                if time.monotonic() > deadline:
                    self._tally.faults.append(f"writer {writer.number} did not start in {_START_LIMIT_S:.0f} s")
                    writer.kill()
        act()
        over.set()
        for thread in threads:
            thread.join()

    def _check(self, killed: Sequence[Writer], number: int) -> None:
        if len(killed) == len(self._writers):
            for writer in killed:
                writer.close()
            # Nobody has it open: the next to open it recovers it.
            started = time.perf_counter()
            anyio.run(_reopen, self._database)
            self._tally.longest_reopen_s = max(self._tally.longest_reopen_s, time.perf_counter() - started)
        copy = self._folder / "copy.db"
        copy.unlink(missing_ok=True)
        # The owed work of the servers that live goes on: only a copy holds still for an inspection.
        with (
            closing(sqlite3.connect(f"{self._database.as_uri()}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(copy)) as target,
        ):
            source.backup(target)
        self._look(copy, f"round {number + 1}")

    def _look(self, database: Path, when: str) -> None:
        """Compare the database with what was acknowledged, and inspect it."""
        faults = self._tally.faults
        with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
            rows = list(connection.execute(_SELECT_MESSAGES))
        times = Counter((session, client_key) for session, client_key, _, _ in rows)
        stored = {(session, client_key): (f"msg_{key}", text) for session, client_key, key, text in rows}
        known: set[Place] = set()
        for writer in self._writers:
            for place, content in writer.acknowledged.items():
                known.add(place)
                if times[place] != 1 or stored[place] != content:
                    faults.append(f"{when}: acknowledged {place} is there {times[place]} times: {stored.get(place)}")
            if writer.open_call is not None:
                batch = writer.open_call
                places = [(batch.session, key) for key in batch.texts]
                known.update(places)
                found = [times[place] for place in places]
                if found not in ([0] * len(places), [1] * len(places)):
                    faults.append(f"{when}: an open call is there in part: {found}")
                self._tally.open_calls["stored" if found[0] else "absent"] += 1
        faults += [f"{when}: {place} was never sent" for place in stored if place not in known]
        for finding in inspect(database, is_deep=True):
            if finding.verdict is Verdict.FAILED:
                faults.append(f"{when}: {finding.check}: {finding.detail}")


async def _reopen(database: Path) -> None:
    store = await SqliteStore.open(database)
    await store.close()


def campaign(*, rounds: int, writers: int, seed: int = 1) -> dict[str, Any]:
    """The figures of so many rounds."""
    tally = Tally()
    started = time.perf_counter()
    databases = 0
    for first in range(0, rounds, _ROUNDS_PER_DATABASE):
        with tempfile.TemporaryDirectory() as folder:
            block = Campaign(Path(folder), writers, seed + first, tally)
            block.run(range(first, min(first + _ROUNDS_PER_DATABASE, rounds)))
            databases += 1
    return {
        "rounds": rounds,
        "writers": writers,
        "writers_are": "stdio servers",
        "databases": databases,
        "kills": sum(tally.kills.values()),
        "kills_by_moment": dict(tally.kills),
        "acknowledged": tally.acknowledged,
        "cut_off_calls": dict(tally.open_calls),
        "repeated_calls": tally.retried,
        "faults": len(tally.faults),
        "first_faults": tally.faults[:5],
        "log_lines": len(tally.log),
        "first_log_lines": tally.log[:5],
        "longest_reopen_s": tally.longest_reopen_s,
        "took_s": time.perf_counter() - started,
    }


def main() -> None:
    """Run it."""
    parser = options(__doc__)
    parser.add_argument("--rounds", type=int, help="default 200, quick 3")
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rounds = given.rounds or (3 if given.quick else 200)
    emit("kill", campaign(rounds=rounds, writers=given.writers, seed=given.seed))


if __name__ == "__main__":
    main()
