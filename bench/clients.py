"""Many clients of one server over HTTP, each a thread that talks, on a memory of many records.

Each client has a session of its own. It records a message, builds a context for its words and searches with them, and
thinks for a second on average between two calls: a fast agent. `quiet` are the same calls of one client alone, in the
same run. `ping` is a request that the event loop answers by itself, sent twenty times a second, so its wait beyond the
quiet one is how late the event loop is. `busy` is the share of one processor that the server used; the clients use the
other.
"""

import random
import sys
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

import anyio

from bench.corpus import Corpus
from bench.filler import Filler
from bench.over_http import HttpClient, Served, served
from bench.process_tree import cpu_s
from bench.report import emit, latency, options, progress, rss_mb
from kalito_mcp.wiring import open_memory

TARGETS: Final = {"search_p99_ms": 300.0, "ping_p99_ms": 25.0, "rss_mb": 130.0, "disk_ratio": 5.0}
_RECORDS, _QUICK_RECORDS = 100_000, 5_000
_SECONDS, _QUICK_SECONDS = 60.0, 8.0
_QUIET_ROUNDS: Final = 40
_THINKING_S: Final = 1.0
_PING_S: Final = 0.05
_KINDS: Final = ("rare", "middling", "common")

Times = defaultdict[str, list[float]]


class Talker:
    """One client. It keeps what each call took, in seconds, and what failed."""

    def __init__(self, server: Served, number: int) -> None:
        self.times: Times = defaultdict(list)
        self.failed: list[str] = []
        self._client = HttpClient(server)
        self._corpus = Corpus(seed=number)
        self._chosen = random.Random(number)
        self._session = f"client-{number}"

    def talk_until(self, over: threading.Event) -> None:
        """Make calls, with pauses for thought, until the event."""
        while not over.wait(self._chosen.expovariate(1 / _THINKING_S)):
            self.round_of_one()

    def round_of_one(self) -> None:
        """Make one call of a kind by chance."""
        text, query = self._corpus.text(), self._corpus.query(_KINDS)
        tool, arguments = self._chosen.choice(
            [
                ("record_messages", {"session_id": self._session, "messages": [{"role": "user", "text": text}]}),
                ("build_context", {"session_id": self._session, "query": query}),
                ("search_memory", {"query": query}),
            ]
        )
        started = time.perf_counter()
        try:
            self._client.call(tool, arguments)
        except (RuntimeError, OSError) as error:
            self.failed.append(str(error))
        self.times[tool].append(time.perf_counter() - started)


def pings_until(server: Served, over: threading.Event) -> list[float]:
    """What pings take until the event."""
    client, took = HttpClient(server), list[float]()
    while not over.wait(_PING_S):
        started = time.perf_counter()
        client.request("ping", {})
        took.append(time.perf_counter() - started)
    return took


def talk(server: Served, clients: int, seconds: float) -> dict[str, Any]:
    """The figures of so many clients at once."""
    talkers = [Talker(server, number) for number in range(clients)]
    for talker in talkers:
        talker.round_of_one()
    times: Times = defaultdict(list)
    over = threading.Event()
    threads = [threading.Thread(target=talker.talk_until, args=(over,)) for talker in talkers]
    threads.append(threading.Thread(target=lambda: times["ping"].extend(pings_until(server, over))))
    started, cpu = time.perf_counter(), cpu_s(server.process_id)
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    took, used = time.perf_counter() - started, cpu_s(server.process_id)
    over.set()
    for thread in threads:
        thread.join()
    for talker in talkers:
        for tool, found in talker.times.items():
            times[tool] += found
    return {
        **{name: latency(found) for name, found in sorted(times.items())},
        "failed": [one for talker in talkers for one in talker.failed][:10],
        "busy": None if cpu is None or used is None else (used - cpu) / took,
        "rss_mb": rss_mb(server.process_id),
    }


async def settle(database: Path) -> None:
    """Do the work that the records owe, which the calls should not be measured beside."""
    async with open_memory(database) as memory:
        await memory.settled()


def main() -> int:
    """Run the benchmark."""
    parser = options(__doc__)
    parser.add_argument("--clients", type=int, default=64)
    given = parser.parse_args()
    records = _QUICK_RECORDS if given.quick else _RECORDS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        filler = Filler(folder / "memory.db", None)
        anyio.run(filler.fill, records)
        anyio.run(settle, filler.database)
        text_bytes, disk = filler.text_bytes, (folder / "memory.db").stat().st_size
        progress(f"clients: {filler.records:,} records")
        with served(folder) as server:
            idle = rss_mb(server.process_id)
            quiet = talk(server, 1, _QUICK_SECONDS if given.quick else _QUIET_ROUNDS * _THINKING_S)
            busy = talk(server, given.clients, _QUICK_SECONDS if given.quick else _SECONDS)
    emit(
        "clients",
        {
            "records": filler.records,
            "clients": given.clients,
            "disk_ratio": disk / text_bytes,
            "idle_rss_mb": idle,
            "quiet": quiet,
            "together": busy,
            "targets": TARGETS,
        },
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
