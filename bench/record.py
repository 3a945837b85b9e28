"""What recording costs: one message, batches of 100 and of 10,000, compared with plain SQLite writing the same rows.

`bare` inserts the rows durably. `bare_indexed` also writes their texts to a plain FTS5 table, the least that a
searchable memory must do. All three take turns. The owed work of recording (pins, summaries) is waited for between the
batches and not measured, except in `busy` and in `with_owed_per_s`. In `busy`, single messages follow one another while
owed work goes on.
"""

import sqlite3
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, Self

import anyio

from bench.corpus import Corpus
from bench.report import emit, latency, options, percentile, progress
from kalito_mcp.domain.records import NewMessage
from kalito_mcp.memory import Memory
from kalito_mcp.wiring import open_memory

TARGET_PER_S: Final = 20_000
_CREATE: Final = """
CREATE TABLE messages (id INTEGER PRIMARY KEY, session TEXT, role TEXT, text TEXT, created_at INTEGER);
CREATE VIRTUAL TABLE texts USING fts5 (text, content = 'messages', content_rowid = 'id');
"""
_INSERT: Final = "INSERT INTO messages (id, session, role, text, created_at) VALUES (?, ?, ?, ?, ?)"
_INSERT_TEXT: Final = "INSERT INTO texts (rowid, text) VALUES (?, ?)"


class BareTable:
    """The same rows in plain SQLite: WAL, synchronous=FULL, one transaction a batch."""

    def __init__(self, path: Path, *, is_indexed: bool) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.executescript(_CREATE)
        self._is_indexed = is_indexed
        self._next_id = 1

    def close(self) -> None:
        """Close it, which checkpoints it."""
        self._connection.close()

    def record(self, session: str, messages: Sequence[NewMessage]) -> float:
        """Insert the batch. Returns the seconds that took."""
        started = time.perf_counter()
        first = self._next_id
        self._next_id += len(messages)
        rows = [(first + i, session, str(m.role), m.text, m.created_at) for i, m in enumerate(messages)]
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany(_INSERT, rows)
        if self._is_indexed:
            self._connection.executemany(_INSERT_TEXT, [(row[0], row[3]) for row in rows])
        self._connection.execute("COMMIT")
        return time.perf_counter() - started


class Contest:
    """The memory and the two bare tables, given the same batches in turn."""

    def __init__(self, memory: Memory, bare: BareTable, indexed: BareTable) -> None:
        self._memory = memory
        self._bare = bare
        self._indexed = indexed
        self._corpus = Corpus()
        self.text_bytes = 0
        self.bare_text_bytes = 0

    async def batches(self, session_of: Callable[[int], str], *, size: int, count: int) -> dict[str, list[float]]:
        """Seconds of each batch, by contestant. `owed` is the owed work of the memory after each."""
        times: dict[str, list[float]] = {"kalito": [], "bare": [], "bare_indexed": [], "owed": []}
        for number in range(count):
            messages = self._messages(size, number * size)
            self.bare_text_bytes += _text_bytes(messages)
            session = session_of(number)
            times["bare"].append(self._bare.record(session, messages))
            times["bare_indexed"].append(self._indexed.record(session, messages))
            started = time.perf_counter()
            await self._memory.record_messages(session, messages)
            recorded = time.perf_counter()
            await self._memory.settled()
            times["kalito"].append(recorded - started)
            times["owed"].append(time.perf_counter() - recorded)
        return times

    async def busy(self, session: str, count: int) -> list[float]:
        """Seconds of single messages that do not wait for owed work."""
        times = []
        for number in range(count):
            messages = self._messages(1, number)
            started = time.perf_counter()
            await self._memory.record_messages(session, messages)
            times.append(time.perf_counter() - started)
        await self._memory.settled()
        return times

    def _messages(self, count: int, first: int) -> list[NewMessage]:
        messages = self._corpus.messages(count, key_prefix="m", first=first)
        self.text_bytes += _text_bytes(messages)
        return messages


class Bare:
    """The two bare tables, open for the block."""

    def __init__(self, folder: Path) -> None:
        self.paths = (folder / "bare.db", folder / "bare-indexed.db")
        self.tables = (
            BareTable(self.paths[0], is_indexed=False),
            BareTable(self.paths[1], is_indexed=True),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for table in self.tables:
            table.close()


async def measure(folder: Path, *, singles: int, hundreds: int, ten_thousands: int) -> dict[str, Any]:
    """The figures of this many single messages, batches of 100 and batches of 10,000."""
    database = folder / "memory.db"
    with Bare(folder) as bare:
        async with open_memory(database) as memory:
            contest = Contest(memory, *bare.tables)
            progress(f"record: {singles} single messages")
            single = await contest.batches(lambda _: "single", size=1, count=singles)
            busy = await contest.busy("busy", singles)
            progress(f"record: {hundreds} batches of 100")
            hundred = await contest.batches(lambda _: "hundreds", size=100, count=hundreds)
            progress(f"record: {ten_thousands} batches of 10,000")
            ten_thousand = await contest.batches(lambda number: f"long-{number}", size=10_000, count=ten_thousands)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return {
        "single": {name: latency(times) for name, times in single.items() if name != "owed"},
        "single_ratio": _ratios(single),
        "busy": latency(busy),
        "batch_100": _rates(hundred, 100),
        "batch_10000": _rates(ten_thousand, 10_000),
        "target_per_s": TARGET_PER_S,
        "text_bytes": contest.text_bytes,
        "bytes_per_text_byte": {
            "kalito": database.stat().st_size / contest.text_bytes,
            "bare": bare.paths[0].stat().st_size / contest.bare_text_bytes,
            "bare_indexed": bare.paths[1].stat().st_size / contest.bare_text_bytes,
        },
    }


def _text_bytes(messages: Sequence[NewMessage]) -> int:
    return sum(len(message.text.encode()) for message in messages)


def _rates(times: dict[str, list[float]], size: int) -> dict[str, Any]:
    """Messages a second, by the median batch."""
    typical = {name: percentile(values, 0.5) for name, values in times.items()}
    return {
        "batches": len(times["kalito"]),
        **{f"{name}_per_s": size / typical[name] for name in ("kalito", "bare", "bare_indexed")},
        "time_ratio": _ratios(times),
        "with_owed_per_s": size * len(times["kalito"]) / (sum(times["kalito"]) + sum(times["owed"])),
    }


def _ratios(times: dict[str, list[float]]) -> dict[str, float]:
    ours = percentile(times["kalito"], 0.5)
    return {name: ours / percentile(times[name], 0.5) for name in ("bare", "bare_indexed")}


def main() -> None:
    """Run the benchmark."""
    parser = options(__doc__)
    parser.add_argument("--singles", type=int, help="single messages (default 1000, quick 200)")
    parser.add_argument("--hundreds", type=int, help="batches of 100 (default 100, quick 20)")
    parser.add_argument("--ten-thousands", type=int, help="batches of 10,000 (default 5, quick 1)")
    given = parser.parse_args()
    sizes = {
        "singles": given.singles or (200 if given.quick else 1000),
        "hundreds": given.hundreds or (20 if given.quick else 100),
        "ten_thousands": given.ten_thousands or (1 if given.quick else 5),
    }
    with tempfile.TemporaryDirectory() as folder:
        emit("record", anyio.run(lambda: measure(Path(folder), **sizes)))


if __name__ == "__main__":
    main()
