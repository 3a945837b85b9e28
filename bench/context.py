"""What a context costs by the length of the session: 100, 10,000 and 100,000 messages in one database.

Every session is summarised first. `after_write` builds each context right after another process recorded a message, so
that nothing comes from the cache. `uncached` switches the cache off. `cached` is the second of two calls. `with_query`
also searches for older messages. The sessions take turns, so that their ratios are fair.
"""

import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import anyio

from bench.corpus import Corpus
from bench.report import emit, latency, options, progress
from kalito_mcp.config.settings import Settings
from kalito_mcp.contexts.cache import CachePolicy
from kalito_mcp.domain.records import NewMessage, Role
from kalito_mcp.memory import Memory
from kalito_mcp.wiring import open_memory

TARGET_P50_MS: Final = 2.0
TARGET_RATIO: Final = 1.3
_BATCH: Final = 5_000
_QUERY_KINDS: Final = ("rare", "middling", "middling", "common", "common")


async def fill(memory: Memory, corpus: Corpus, sizes: Sequence[int]) -> float:
    """Record one session of each size, `s<size>`, and wait for its summaries. Returns the seconds of the largest."""
    took = 0.0
    for size in sizes:
        started = time.perf_counter()
        for first in range(0, size, _BATCH):
            await memory.record_messages(f"s{size}", corpus.messages(min(_BATCH, size - first), first=first))
        await memory.settled()
        await memory.conversations.summarize(f"s{size}")
        took = time.perf_counter() - started
        progress(f"context: {size} messages recorded and summarised in {took:.1f} s")
    return took


async def contexts(
    memory: Memory, corpus: Corpus, sizes: Sequence[int], *, rounds: int, mode: str
) -> dict[int, list[float]]:
    """Seconds of each context, by the size of its session."""
    times: dict[int, list[float]] = {size: [] for size in sizes}
    for _ in range(rounds):
        for size in sizes:
            query = corpus.query(_QUERY_KINDS) if mode == "with_query" else None
            if mode == "after_write":
                await memory.record_messages("elsewhere", [NewMessage(Role.USER, corpus.text())])
                await memory.settled()
            if mode == "cached":
                await memory.build_context(f"s{size}")
            started = time.perf_counter()
            await memory.build_context(f"s{size}", query=query)
            times[size].append(time.perf_counter() - started)
    return times


async def measure(database: Path, *, sizes: Sequence[int], rounds: int) -> dict[str, Any]:
    """The figures, by mode and by size."""
    corpus = Corpus()
    figures: dict[str, Any] = {}
    async with open_memory(database) as memory:
        filled_s = await fill(memory, corpus, sizes)
        found = await memory.build_context(f"s{sizes[-1]}")
        parts = {"summaries": len(found.summaries), "pins": len(found.semantic_pins), "tokens": found.total_tokens}
        for mode in ("after_write", "cached"):
            figures[mode] = _by_size(await contexts(memory, corpus, sizes, rounds=rounds, mode=mode))
    uncached = replace(Settings(), cache=CachePolicy(ttl_s=0))
    async with open_memory(database, uncached) as memory:
        await memory.build_context(f"s{sizes[0]}")
        for mode in ("uncached", "with_query"):
            figures[mode] = _by_size(await contexts(memory, corpus, sizes, rounds=rounds, mode=mode))
    return {
        **figures,
        "largest_context": parts,
        "largest_recorded_and_summarised_per_s": sizes[-1] / filled_s,
        "targets": {"p50_ms": TARGET_P50_MS, "ratio": TARGET_RATIO},
    }


def _by_size(times: dict[int, list[float]]) -> dict[str, Any]:
    figures: dict[str, Any] = {str(size): latency(of_size) for size, of_size in times.items()}
    medians = [figures[str(size)]["p50_ms"] for size in times]
    return {**figures, "ratio_largest_to_smallest": medians[-1] / medians[0]}


def main() -> None:
    """Run the benchmark."""
    parser = options(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", help="messages (default 100 10000 100000; quick 100 5000)")
    parser.add_argument("--rounds", type=int, help="contexts of each session and mode (default 300, quick 100)")
    given = parser.parse_args()
    sizes = sorted(given.sizes or ([100, 5_000] if given.quick else [100, 10_000, 100_000]))
    rounds = given.rounds or (100 if given.quick else 300)
    with tempfile.TemporaryDirectory() as folder:
        emit("context", anyio.run(lambda: measure(Path(folder) / "memory.db", sizes=sizes, rounds=rounds)))


if __name__ == "__main__":
    main()
