"""Eight processes, one file: each opens the memory and records, pins, builds contexts and searches.

Half of the writes of a process go to its own session, half to one that all share. So they also summarise the same
messages at once. `errors` and `lost` must be 0: every acknowledged message is looked up in SQLite by its client_key.
`bare` is the same number of processes with only the writes, in SQLite with its own busy timeout instead of a write
mutex.
"""

import logging
import multiprocessing
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
from bench.report import emit, latency, options, percentile, progress
from kalito_mcp.domain.findings import Verdict
from kalito_mcp.domain.records import CreatePinRequest, NewMessage, Role
from kalito_mcp.domain.search import SearchRequest
from kalito_mcp.errors import KalitoError
from kalito_mcp.memory import Memory
from kalito_mcp.storage.sqlite.inspection import inspect
from kalito_mcp.wiring import open_memory

TARGETS: Final = {"errors": 0, "lost": 0, "longest_wait_s": 2.0, "write_p99_ms": 250.0, "wal_mb": 128}
SHARED: Final = "shared"
_WRITES: Final = ("record", "pin")
_MIX: Final = ("record",) * 6 + ("context",) * 2 + ("search", "pin")
_SAMPLE_S: Final = 0.02
_START_S: Final = 60.0
_QUERY_KINDS: Final = ("middling", "common", "common")
_SELECT_STORED: Final = """
SELECT s.id || '/' || r.client_key FROM records r JOIN sessions s ON s.key = r.session_key
WHERE r.type = 'message' AND r.client_key IS NOT NULL
"""


@dataclass(slots=True)
class Log:
    """The results of one process: seconds of each operation by kind, error messages, and what was acknowledged."""

    times: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    errors: list[str] = field(default_factory=list[str])
    acknowledged: list[str] = field(default_factory=list[str])
    worked_s: float = 0.0


class Overheard(logging.Handler):
    """Counts failures of owed work as errors. They are logged and never raised."""

    def __init__(self, errors: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._errors = errors

    def emit(self, record: logging.LogRecord) -> None:
        cause = record.exc_info[1] if record.exc_info else ""
        self._errors.append(f"{record.getMessage()} {cause}")


def work(database: str, number: int, operations: int, start: threading.Barrier) -> Log:
    """Run one process's share. It begins when all processes are ready."""
    return anyio.run(_work, database, number, operations, start)


async def _work(database: str, number: int, operations: int, start: threading.Barrier) -> Log:
    log = Log()
    logging.getLogger("kalito").addHandler(Overheard(log.errors))
    # All open at once. The first one creates the database.
    start.wait(_START_S)
    try:
        async with open_memory(database) as memory:
            await _operations(memory, number, operations, log)
    except KalitoError as error:
        log.errors.append(f"open: {error.code}: {error}")
    return log


async def _operations(memory: Memory, number: int, operations: int, log: Log) -> None:
    corpus = Corpus(seed=100 + number)
    for session in (SHARED, f"own-{number}"):
        await memory.record_messages(session, [NewMessage(Role.USER, "Let us begin.")])
    began = time.perf_counter()
    for place in range(operations):
        kind = _MIX[(place + number) % len(_MIX)]
        started = time.perf_counter()
        try:
            log.acknowledged += await _operate(memory, corpus, kind, number, place)
        except KalitoError as error:
            log.errors.append(f"{kind}: {error.code}: {error}")
        log.times.setdefault(kind, []).append(time.perf_counter() - started)
    log.worked_s = time.perf_counter() - began
    await memory.settled()


async def _operate(memory: Memory, corpus: Corpus, kind: str, number: int, place: int) -> list[str]:
    """Do one operation. Returns what must be found afterwards."""
    session = SHARED if place % 2 else f"own-{number}"
    key = f"{number}-{place}"
    if kind == "record":
        await memory.record_messages(session, [NewMessage(Role.USER, corpus.text(), client_key=key)])
        return [f"{session}/{key}"]
    if kind == "pin":
        await memory.create_pin(CreatePinRequest(session, corpus.text(), client_key=key))
    elif kind == "context":
        await memory.build_context(session)
    else:
        await memory.search_memory(SearchRequest(corpus.query(_QUERY_KINDS), k=10))
    return []


def bare_work(database: str, number: int, operations: int, start: threading.Barrier) -> Log:
    """The same number of writes in plain SQLite."""
    log = Log()
    corpus = Corpus(seed=100 + number)
    with closing(sqlite3.connect(database, timeout=30, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        start.wait(_START_S)
        began = time.perf_counter()
        for _ in range(operations):
            text = corpus.text()
            started = time.perf_counter()
            try:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("INSERT INTO messages (text) VALUES (?)", (text,))
                connection.execute("COMMIT")
            except sqlite3.Error as error:
                log.errors.append(str(error))
            log.times.setdefault("record", []).append(time.perf_counter() - started)
        log.worked_s = time.perf_counter() - began
    return log


Work = Callable[[str, int, int, threading.Barrier], Log]


def together(target: Work, database: Path, *, processes: int, operations: int) -> tuple[list[Log], int]:
    """The results of each process, and the largest size of the -wal file meanwhile, in bytes."""
    spawn = multiprocessing.get_context("spawn")
    with spawn.Manager() as manager, spawn.Pool(processes) as pool:
        start = manager.Barrier(processes)
        answers = [pool.apply_async(target, (str(database), number, operations, start)) for number in range(processes)]
        wal, over = _WalWatch(database), threading.Event()
        watch = threading.Thread(target=wal.run, args=(over,))
        watch.start()
        try:
            logs = [answer.get() for answer in answers]
        finally:
            over.set()
            watch.join()
    return logs, wal.most_bytes


class _WalWatch:
    """Watches the size of the -wal file by its name. Never opens it."""

    def __init__(self, database: Path) -> None:
        self._wal = database.with_name(database.name + "-wal")
        self.most_bytes = 0

    def run(self, over: threading.Event) -> None:
        while not over.wait(_SAMPLE_S):
            if self._wal.exists():
                self.most_bytes = max(self.most_bytes, self._wal.stat().st_size)


def measure(folder: Path, *, processes: int, operations: int) -> dict[str, Any]:
    """The figures of the memory and of plain SQLite."""
    database, plain = folder / "memory.db", folder / "plain.db"
    progress(f"processes: {processes} x {operations} operations")
    logs, wal_bytes = together(work, database, processes=processes, operations=operations)
    acknowledged = [key for log in logs for key in log.acknowledged]
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
        stored = Counter(row[0] for row in connection.execute(_SELECT_STORED))
    faults = [f"{one.check}: {one.detail}" for one in inspect(database, is_deep=True) if one.verdict is Verdict.FAILED]
    with closing(sqlite3.connect(plain)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY, text TEXT)")
    progress("processes: the same writes in plain SQLite")
    bare, _ = together(bare_work, plain, processes=processes, operations=operations)
    ours, theirs = _figures(logs), _figures(bare)
    return {
        "processes": processes,
        "operations_each": operations,
        "lost": sum(stored[key] != 1 for key in acknowledged),
        "acknowledged": len(acknowledged),
        "deep_inspection": faults or "clean",
        "wal_mb": wal_bytes / 1024**2,
        "kalito": ours,
        "bare": theirs,
        "writes_per_s_ratio": ours["writes_per_s"] / theirs["writes_per_s"],
        "longest_wait_ratio": ours["longest_wait_s"] / theirs["longest_wait_s"],
        "targets": TARGETS,
    }


def _figures(logs: Sequence[Log]) -> dict[str, Any]:
    kinds = sorted({kind for log in logs for kind in log.times})
    errors = [error for log in logs for error in log.errors]
    times = {kind: [seconds for log in logs for seconds in log.times.get(kind, ())] for kind in kinds}
    writes = [seconds for kind in _WRITES for seconds in times.get(kind, ())]
    took_s = max(log.worked_s for log in logs)
    return {
        "errors": len(errors),
        "first_errors": errors[:3],
        "operations_per_s": sum(map(len, times.values())) / took_s,
        "writes_per_s": len(writes) / took_s,
        "longest_wait_s": max(max(of_kind) for of_kind in times.values()),
        "write_p99_ms": 1000 * percentile(writes, 0.99),
        **{kind: latency(of_kind) for kind, of_kind in times.items()},
    }


def main() -> None:
    """Run the benchmark."""
    parser = options(__doc__)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--operations", type=int, help="operations of each process (default 1000, quick 100)")
    given = parser.parse_args()
    operations = given.operations or (100 if given.quick else 1000)
    with tempfile.TemporaryDirectory() as folder:
        emit("processes", measure(Path(folder), processes=given.processes, operations=operations))


if __name__ == "__main__":
    main()
