"""What a search costs, by the size of the memory: five-word queries compared with plain FTS5 on the same texts.

`fts5` is a table of the texts. It is asked for any of the words, best 10 by bm25(), in the same process and in turn
with ours. `mixed` queries have a rare word, two middling and two common ones. `common` queries have five words that
each occur in one record of twenty. `function` queries only have words like "the". `narrowed` searches one session, one
agent or one time in memories with many. `hits_per_query` shows whether it found the ten that exist. One record of
sixteen is a summary. `cpu_ms_per_query` is processor time, so other load does not change it. The databases are filled
through the storage layer. Each measurement runs in a fresh process, so that its memory is its own.

`cold` is the first query of a fresh process and the p50 of the next ones: `cached`, and `uncached` after the operating
system was asked to forget the file. Its memory is that of a process that only searches. `hostile` are queries that are
meant to be costly (see `bench.hostile`). `index_us` is the cost of analysing and storing a message, and of its text in
plain FTS5, over all messages since the previous size. `targets` shows what was aimed for. Missing one is not a failure.

`--plot FILE` draws the costs against the size.
"""

import multiprocessing
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import anyio

from bench.corpus import START_MS, Corpus
from bench.filler import NEVER, RECORDS_OF_SESSION, STEP_MS, Filler, agent_of
from bench.hostile import hostile_queries
from bench.plot import Panel, plot
from bench.report import emit, latency, options, peak_rss_mb, percentile, progress
from kalito_mcp.config.settings import Settings
from kalito_mcp.contexts.parts import ContextPolicy
from kalito_mcp.domain.search import SearchFilters, SearchRequest
from kalito_mcp.errors import InvalidInput
from kalito_mcp.memory import Memory
from kalito_mcp.pins.automatic import AutoPinPolicy
from kalito_mcp.summaries.window import SummaryWindowPolicy
from kalito_mcp.text.analysis import query_terms
from kalito_mcp.wiring import open_memory

TARGET_P50_MS: Final[Mapping[int, float]] = {100_000: 5.0, 1_000_000: 12.0}
TARGET_P95_TO_P50: Final = 4.0
TARGET_RSS_MB: Final[Mapping[int, float]] = {100_000: 150.0}
TARGET_FIRST_MORE_MS: Final = 50.0
TARGET_INDEX_US: Final = 100.0
TARGET_HOSTILE_MS: Final = 250.0
# No owed work: a fresh process would otherwise summarise the whole memory while it is measured.
_QUIET: Final = replace(
    Settings(),
    context=ContextPolicy(summaries=NEVER),
    window=SummaryWindowPolicy(threshold=NEVER, dense_threshold=NEVER),
    pins=AutoPinPolicy(enabled=False),
)
_K: Final = 10
_COLD_ROUNDS: Final = 3
_HOSTILE_ROUNDS: Final = 3
_FTS5_LIMIT_S: Final = 20.0
_KINDS: Final = {
    "mixed": ("rare", "middling", "middling", "common", "common"),
    "common": ("common",) * 5,
    "function": (),
}
_FUNCTION_QUERY: Final = "what is it that you do"
_SELECT_PLAIN: Final = "SELECT rowid, text FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT ?"


def queries(kind: str, count: int) -> Iterator[str]:
    """`count` queries of a kind, the same in every run."""
    corpus = Corpus(seed=2)
    return (corpus.query(_KINDS[kind]) or _FUNCTION_QUERY for _ in range(count))


def ranked(database: Path, plain: Path, count: int) -> dict[str, Any]:
    """The times of each kind of query, in turn to the memory and to FTS5, and the peak memory of this process."""
    return anyio.run(_ranked, database, plain, count)


async def _ranked(database: Path, plain: Path, count: int) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    async with open_memory(database, _QUIET) as memory:
        await memory.search_memory(SearchRequest("warm up", k=_K))
        opened_mb = peak_rss_mb()
        with closing(sqlite3.connect(plain)) as connection:
            for kind in _KINDS:
                ours: list[float] = []
                theirs: list[float] = []
                hits, cpu_s = 0, 0.0
                for query in queries(kind, count):
                    started, cpu_started = time.perf_counter(), time.process_time()
                    page = await memory.search_memory(SearchRequest(query, k=_K))
                    ours.append(time.perf_counter() - started)
                    cpu_s += time.process_time() - cpu_started
                    hits += len(page.hits)
                    if sum(theirs) < _FTS5_LIMIT_S:
                        started = time.perf_counter()
                        connection.execute(_SELECT_PLAIN, (_plain_query(query), _K)).fetchall()
                        theirs.append(time.perf_counter() - started)
                figures[kind] = _compared(ours, theirs) | {
                    "cpu_ms_per_query": 1000 * cpu_s / count,
                    "hits_per_query": hits / count,
                }
    return figures | {"rss_mb": {"opened": opened_mb, "peak": peak_rss_mb()}}


def narrowed(database: Path, sessions: int, agents: int, count: int) -> dict[str, Any]:
    """Queries in parts of a memory: one session, one agent, or a time."""
    return anyio.run(_narrowed, database, sessions, agents, count)


async def _narrowed(database: Path, sessions: int, agents: int, count: int) -> dict[str, Any]:
    records = sessions * RECORDS_OF_SESSION
    early = SearchFilters(until=START_MS + records * STEP_MS // 10)
    late = SearchFilters(since=START_MS + records * STEP_MS * 9 // 10)
    oldest, newest = agent_of(0, agents), agent_of(sessions - 1, agents)
    cases: dict[str, Callable[[int], dict[str, Any]]] = {
        "an_agent": lambda i: {"agent_id": agent_of(i, agents)},
        "the_oldest_session": lambda _: {"agent_id": oldest, "session_id": "session-0"},
        "the_newest_session": lambda _: {"agent_id": newest, "session_id": f"session-{sessions - 1}"},
        "the_first_tenth_of_time": lambda _: {"agent_id": oldest, "filters": early},
        "the_last_tenth_of_time": lambda _: {"agent_id": newest, "filters": late},
    }
    figures: dict[str, Any] = {"records": records, "agents": agents, "sessions": sessions}
    async with open_memory(database, _QUIET) as memory:
        for kind in ("mixed", "common"):
            asked = list(queries(kind, count))
            figures[kind] = {name: await _asked(memory, asked, case) for name, case in cases.items()}
    return figures


async def _asked(memory: Memory, asked: Sequence[str], case: Callable[[int], dict[str, Any]]) -> dict[str, Any]:
    times, hits = [], 0
    for place, query in enumerate(asked):
        scope = case(place)
        request = SearchRequest(query, k=_K, filters=scope.pop("filters", SearchFilters()))
        started = time.perf_counter()
        page = await memory.search_memory(request, **scope)
        times.append(time.perf_counter() - started)
        hits += len(page.hits)
    return latency(times) | {"hits_per_query": hits / len(asked)}


def _plain_query(query: str) -> str:
    return " OR ".join(f'"{word}"' for word in query_terms(query))


def _compared(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, Any]:
    figures = {"kalito": latency(ours), "fts5": latency(theirs)}
    return {**figures, "p50_ratio": figures["kalito"]["p50_ms"] / figures["fts5"]["p50_ms"]}


def cold(database: Path, count: int, *, is_cached: bool) -> dict[str, float]:
    """The first query of this process, the p50 of the next ones, and the memory of all."""
    if not is_cached:
        _forget(database)
    return anyio.run(_cold, database, count)


async def _cold(database: Path, count: int) -> dict[str, float]:
    asked = list(queries("mixed", count + 1))
    started = time.perf_counter()
    async with open_memory(database, _QUIET) as memory:
        opened_s = time.perf_counter() - started
        times: list[float] = []
        for query in asked:
            started = time.perf_counter()
            await memory.search_memory(SearchRequest(query, k=_K))
            times.append(time.perf_counter() - started)
        peak_mb = peak_rss_mb()
    p50_s = percentile(times[1:], 0.5)
    return {
        "opened_ms": 1000 * opened_s,
        "first_ms": 1000 * times[0],
        "p50_ms": 1000 * p50_s,
        "first_more_ms": 1000 * (times[0] - p50_s),
        "rss_mb": peak_mb,
    }


def _forget(database: Path) -> None:
    """Ask the operating system to drop the file from its cache, if it supports that."""
    if hasattr(os, "posix_fadvise"):
        with database.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def hostile(database: Path) -> dict[str, Any]:
    """The longest time of each hostile query. Refused queries count too."""
    return anyio.run(_hostile, database)


async def _hostile(database: Path) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    async with open_memory(database, _QUIET) as memory:
        await memory.search_memory(SearchRequest("warm up", k=_K))
        for name, query in hostile_queries(_QUIET.search.max_query_chars).items():
            times, found = [], "refused"
            for _ in range(_HOSTILE_ROUNDS):
                started = time.perf_counter()
                with suppress(InvalidInput):
                    found = f"{len((await memory.search_memory(SearchRequest(query, k=_K))).hits)} hits"
                times.append(time.perf_counter() - started)
            figures[name] = {"max_ms": 1000 * max(times), "found": found}
    return {**figures, "max_ms": max(one["max_ms"] for one in figures.values())}


def measure(folder: Path, *, sizes: Sequence[int], many: int, agents: int, count: int) -> dict[str, Any]:
    """The figures at each size, and in a memory of `many` records of several agents."""
    filler = Filler(folder / "memory.db", folder / "plain.db")
    by_size: dict[str, Any] = {}
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as fresh:
        for size in sizes:
            by_size[str(size)] = at_size(folder, filler, size, count, fresh)
            for line in targets(size, by_size[str(size)]):
                progress(f"search: {size} records, {line}")
        progress("search: one agent's sessions and times")
        one_agent = fresh.submit(narrowed, folder / "memory.db", filler.sessions, 1, count).result()
        filler = Filler(folder / "many.db", None)
        anyio.run(filler.fill, many, agents)
        progress("search: several agents")
        several = fresh.submit(narrowed, folder / "many.db", filler.sessions, agents, count).result()
    return {**by_size, "narrowed": [one_agent, several]}


def at_size(folder: Path, filler: Filler, size: int, count: int, fresh: Executor) -> dict[str, Any]:
    """All figures of the memory at this size, each from a process of its own."""
    database, plain = folder / "memory.db", folder / "plain.db"
    costs = anyio.run(filler.fill, size)
    index_us = costs.per_message_us()
    progress(f"search: {size} records, {index_us['analysis'] + index_us['insert']:.0f} us a message")
    figures: dict[str, Any] = {"records": filler.records, "index_us": index_us}
    for name, is_cached in (("uncached", False), ("cached", True)):
        rounds = [fresh.submit(cold, database, count, is_cached=is_cached).result() for _ in range(_COLD_ROUNDS)]
        figures.setdefault("cold", {})[name] = {key: percentile([one[key] for one in rounds], 0.5) for key in rounds[0]}
    figures |= fresh.submit(ranked, database, plain, count).result()
    figures["hostile"] = fresh.submit(hostile, database).result()
    bytes_ = {"kalito": database.stat().st_size, "fts5": plain.stat().st_size}
    figures["bytes"] = bytes_
    figures["bytes_per_record"] = {name: size_ / filler.records for name, size_ in bytes_.items()}
    figures["bytes_per_text_byte"] = {name: size_ / filler.text_bytes for name, size_ in bytes_.items()}
    figures["targets"] = targets_of(size, figures)
    return figures


def targets_of(size: int, figures: Mapping[str, Any]) -> dict[str, Any]:
    """The targets at this size, the measured values, and whether they were met. The slowest kind of query counts."""
    kinds = [figures[kind]["kalito"] for kind in _KINDS]
    first = figures["cold"]["cached"]
    wanted = {
        "p50_ms": (max(kind["p50_ms"] for kind in kinds), TARGET_P50_MS.get(size)),
        "p95_to_p50": (max(kind["p95_ms"] / kind["p50_ms"] for kind in kinds), TARGET_P95_TO_P50),
        "rss_mb": (first["rss_mb"], TARGET_RSS_MB.get(size)),
        "first_more_ms": (first["first_more_ms"], TARGET_FIRST_MORE_MS),
        "index_beyond_fts5_us": (figures["index_us"]["beyond_fts5"], TARGET_INDEX_US),
        "hostile_max_ms": (figures["hostile"]["max_ms"], TARGET_HOSTILE_MS),
    }
    return {
        name: {"is": value, "wanted": most, "met": value <= most}
        for name, (value, most) in wanted.items()
        if most is not None
    }


def targets(size: int, figures: Mapping[str, Any]) -> Iterator[str]:
    """The targets of a size as lines of text."""
    for name, one in targets_of(size, figures).items():
        yield f"{name}: {one['is']:.1f}, target at most {one['wanted']:g}: {'met' if one['met'] else 'missed'}"


def panels(figures: Mapping[str, Any], sizes: Sequence[int]) -> list[Panel]:
    """The panels of the plot: the p50 of mixed queries, the disk and the memory."""
    at = [(figures[str(size)]["records"], figures[str(size)]) for size in sizes]
    return [
        Panel(
            "query p50, ms",
            {
                "kalito-mcp": [(records, one["mixed"]["kalito"]["p50_ms"]) for records, one in at],
                "FTS5 bm25()": [(records, one["mixed"]["fts5"]["p50_ms"]) for records, one in at],
            },
        ),
        Panel(
            "disk, MB",
            {
                "kalito-mcp": [(records, one["bytes"]["kalito"] / 1e6) for records, one in at],
                "FTS5 bm25()": [(records, one["bytes"]["fts5"] / 1e6) for records, one in at],
            },
        ),
        Panel(
            "memory of a searching process, MB",
            {"kalito-mcp": [(records, one["cold"]["cached"]["rss_mb"]) for records, one in at]},
        ),
    ]


def main() -> None:
    """Run the benchmark."""
    parser = options(__doc__)
    parser.add_argument("--full", action="store_true", help="also a million records")
    parser.add_argument("--sizes", type=int, nargs="+", help="records (default 10000 100000, with --full 1000000)")
    parser.add_argument("--queries", type=int, help="queries of each kind (default 200, quick 50)")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write the costs against the size as an SVG")
    given = parser.parse_args()
    sizes = sorted(given.sizes or [10_000, 100_000, *([1_000_000] if given.full else [])])
    many, agents = (20_000, 10) if given.quick else (100_000, 50)
    count = given.queries or (50 if given.quick else 200)
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(Path(folder), sizes=sizes, many=many, agents=agents, count=count)
    if given.plot is not None:
        given.plot.write_text(plot(panels(figures, sizes), across="records"), encoding="utf-8")
    emit("search", figures)


if __name__ == "__main__":
    main()
