"""What live calls feel of the background work: an import is recorded, then one host goes on talking.

The messages are recorded in batches of 1,000, ten batches a session. As soon as the last one is acknowledged, and until
nothing is owed any more, a live session records a message, builds a context and searches, with a pause of 50 ms between
the three. The same calls are made again when all is quiet, as the baseline of the same run. `lag` is how late a timer
of 5 ms rings on the event loop. `steps` are those of the event loop, in processor time of its thread, which other
programs do not change: `over_5_ms` counts those that kept everything else waiting. `cpu_ms_a_message` is the processor
time of all owed work, without the live calls' share as the quiet rounds give it.
"""

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import anyio

from bench.corpus import Corpus
from bench.report import emit, options, percentile, progress
from kalito_mcp.domain.records import NewMessage, Role
from kalito_mcp.domain.search import SearchRequest
from kalito_mcp.memory import Memory
from kalito_mcp.wiring import open_memory

TARGETS: Final = {"live_p95_ms": 20.0, "cpu_ms_a_message": 0.4, "imported_per_s": 20_000}
_BATCH: Final = 1_000
_BATCHES_A_SESSION: Final = 10
_PAUSE_S: Final = 0.05
_TICK_S: Final = 0.005
_QUERY_KINDS: Final = ("rare", "middling", "common")
_LIVE: Final = "live"
_LONG_STEP_MS: Final = 5.0


class Live:
    """One host that goes on talking. The seconds of its calls, by kind, and how late its timer rang."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._corpus = Corpus(seed=5)
        self.times: dict[str, list[float]] = {"record": [], "context": [], "search": []}
        self.lags: list[float] = []
        self.rounds = 0

    async def round(self) -> None:
        """One of each call."""
        query = self._corpus.query(_QUERY_KINDS)
        message = NewMessage(Role.USER, self._corpus.text())
        await self._timed("record", lambda: self._memory.record_messages(_LIVE, [message]))
        await self._timed("context", lambda: self._memory.build_context(_LIVE, query=query))
        await self._timed("search", lambda: self._memory.search_memory(SearchRequest(query)))
        self.rounds += 1

    async def tick(self) -> None:
        """Ring every 5 ms until cancelled."""
        while True:
            started = time.perf_counter()
            await anyio.sleep(_TICK_S)
            self.lags.append(time.perf_counter() - started - _TICK_S)

    async def _timed(self, kind: str, call: Callable[[], Awaitable[Any]]) -> None:
        started = time.perf_counter()
        await call()
        self.times[kind].append(time.perf_counter() - started)
        await anyio.sleep(_PAUSE_S)

    def figures(self) -> dict[str, float]:
        """Milliseconds."""
        found = {f"{kind}_p50_ms": 1e3 * percentile(times, 0.5) for kind, times in self.times.items()}
        found |= {f"{kind}_p95_ms": 1e3 * percentile(times, 0.95) for kind, times in self.times.items()}
        found |= {f"{kind}_max_ms": 1e3 * max(times, default=0.0) for kind, times in self.times.items()}
        return {**found, "lag_p99_ms": 1e3 * percentile(self.lags, 0.99), "lag_max_ms": 1e3 * max(self.lags, default=0)}


@contextmanager
def loop_steps() -> Iterator[list[float]]:
    """Gets the processor time of each step of the event loop, in milliseconds."""
    steps: list[float] = []
    original = asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        started = time.thread_time()
        original(handle)
        steps.append(1e3 * (time.thread_time() - started))

    asyncio.Handle._run = timed  # type: ignore[method-assign] - the loop offers no other place to look
    try:
        yield steps
    finally:
        asyncio.Handle._run = original  # type: ignore[method-assign]


async def _import(memory: Memory, count: int) -> float:
    """Record so many messages. Returns the seconds of all calls."""
    corpus, took = Corpus(), 0.0
    for place, first in enumerate(range(0, count, _BATCH)):
        batch = corpus.messages(min(_BATCH, count - first), first=first)
        started = time.perf_counter()
        await memory.record_messages(f"import{place // _BATCHES_A_SESSION}", batch)
        took += time.perf_counter() - started
    return took


async def measure(database: Path, count: int) -> dict[str, Any]:
    """The figures of one run."""
    async with open_memory(database) as memory:
        await memory.record_messages(_LIVE, [NewMessage(Role.USER, "Good morning.")])
        await memory.settled()
        imported_s = await _import(memory, count)
        progress(f"background: {count} messages recorded in {imported_s:.1f} s")
        busy, quiet = Live(memory), Live(memory)
        started, started_cpu = time.perf_counter(), time.process_time()
        settled = anyio.Event()

        async def settle() -> None:
            await memory.settled()
            settled.set()

        with loop_steps() as steps:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(settle)
                tasks.start_soon(busy.tick)
                while not settled.is_set():
                    await busy.round()
                tasks.cancel_scope.cancel()
        owed_s, owed_cpu_s = time.perf_counter() - started, time.process_time() - started_cpu
        progress(f"background: nothing owed after {owed_s:.1f} s")
        started_cpu = time.process_time()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(quiet.tick)
            for _ in range(max(20, min(busy.rounds, 100))):
                await quiet.round()
            tasks.cancel_scope.cancel()
        await memory.settled()
        live_cpu_s = (time.process_time() - started_cpu) / quiet.rounds * busy.rounds
    return {
        "messages": count,
        "imported_per_s": count / imported_s,
        "owed_s": owed_s,
        "cpu_ms_a_message": 1e3 * max(0.0, owed_cpu_s - live_cpu_s) / count,
        "rounds": busy.rounds,
        "steps": {
            "p99_ms": percentile(steps, 0.99),
            "max_ms": max(steps),
            "over_5_ms": sum(step > _LONG_STEP_MS for step in steps),
        },
        "busy": busy.figures(),
        "quiet": quiet.figures(),
        "targets": TARGETS,
    }


def main() -> None:
    """Run the benchmark."""
    parser = options(__doc__)
    parser.add_argument("--messages", type=int, default=None, help="to import; 10,000, or 1,000 with --quick")
    given = parser.parse_args()
    count = given.messages or (1_000 if given.quick else 10_000)
    with tempfile.TemporaryDirectory() as folder:
        emit("background", anyio.run(measure, Path(folder) / "memory.db", count))


if __name__ == "__main__":
    main()
