"""What the personal graph costs at 5,000 and at 50,000 questions: adding one more, searching, loading, sleeping.

`upsert` adds questions through the cache, fifty to a transaction, as the observer does. Its time is the matching, the
linking and each question's share of the durable write. `matching` is the same in memory only. `search` asks the store
for ten. `load` reads a graph of that size from disk in a fresh process. `sleep` merges 5,000 questions while another
task measures how late the event loop wakes it. `steady` keeps adding new questions to a full graph and watches the
memory.
"""

import multiprocessing
import os
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio

from bench.corpus import Corpus
from bench.report import emit, latency, options, percentile, progress, rss_mb
from kalito_mcp.domain.graph import GraphConfig
from kalito_mcp.domain.scope import Scope
from kalito_mcp.graph.snapshot_folder import SnapshotFolder
from kalito_mcp.graph.store import GraphStore
from kalito_mcp.orchestrator.graph_cache import GraphCache
from kalito_mcp.orchestrator.orchestrator import MemoryOrchestrator, OrchestratorConfig, new_graph
from kalito_mcp.ports.store import WriteTransaction
from kalito_mcp.runtime.system import SystemClock
from kalito_mcp.storage.sqlite.database import SqliteStore

TARGETS: Final = {
    "upsert_p50_ms": 2.0,
    "upsert_growth": 3.0,
    "search_p50_ms": 5.0,
    "load_s": 1.0,
    "load_mb": 200.0,
    "sleep_s": 2.0,
    "loop_lag_p99_ms": 50.0,
}
_CHUNK: Final = 50
_AGENT: Final = Scope(agent="default")
_TICK_S: Final = 0.005
_WORDS: Final = (8, 20)
_REPEATED: Final = 0.1
_VARIED: Final = 0.2


class Questions:
    """Questions of a person who repeats themselves: a tenth word for word, a fifth with one changed word."""

    def __init__(self, seed: int = 3) -> None:
        self._random = random.Random(seed)
        self._corpus = Corpus(seed)
        self._asked: list[str] = []

    def one(self) -> str:
        """The next question."""
        kind = self._random.random()
        if self._asked and kind < _REPEATED:
            return self._random.choice(self._asked)
        if self._asked and kind < _REPEATED + _VARIED:
            words = self._random.choice(self._asked).split()
            words[self._random.randrange(len(words))] = self._corpus.text().split()[0]
            question = " ".join(words)
        else:
            words = self._corpus.text().split()[: self._random.randint(*_WORDS)]
            question = " ".join(words).rstrip(".") + "?"
        if len(self._asked) < 10_000:
            self._asked.append(question)
        else:
            self._asked[self._random.randrange(len(self._asked))] = question
        return question

    def new(self, count: int) -> Iterator[str]:
        """`count` questions."""
        return (self.one() for _ in range(count))


def open_cache(store: SqliteStore) -> GraphCache:
    """A cache of graphs that learn from the measured questions."""
    clock = SystemClock()
    config = OrchestratorConfig(agent_graph=GraphConfig(max_nodes=60_000))
    return GraphCache(store, lambda scope: new_graph(config, scope, clock))


async def fill(cache: GraphCache, questions: Questions, nodes: int) -> None:
    """Add questions to the agent's graph until it has this many nodes."""
    while True:
        if await cache.change([_AGENT], partial(_add_some, questions, nodes)) <= 0:
            return


async def _add_some(questions: Questions, nodes: int, _: WriteTransaction, graphs: Sequence[GraphStore]) -> int:
    missing = nodes - graphs[0].stats().nodes
    for question in questions.new(min(missing, 5_000)):
        graphs[0].upsert_query(question)
    return missing


async def at_size(folder: Path, sizes: Sequence[int], rounds: int) -> dict[str, Any]:
    """Upserts and searches at each size of one growing graph."""
    figures: dict[str, Any] = {}
    store = await SqliteStore.open(folder / "graph.db")
    try:
        cache, questions = open_cache(store), Questions()
        for size in sizes:
            await fill(cache, questions, size)
            progress(f"graph: {size} nodes")
            figures[str(size)] = {"upsert": await upserts(cache, questions, rounds)}
            async with cache.reading(_AGENT) as [graph]:
                matching, searching = [], []
                for question in questions.new(rounds):
                    started = time.perf_counter()
                    graph.search_similar_queries(question, 10)
                    searching.append(time.perf_counter() - started)
                figures[str(size)]["search"] = latency(searching)
                figures[str(size)]["edges"] = graph.stats().edges
            private = (await cache.copy(_AGENT)).graph
            for question in questions.new(rounds):
                started = time.perf_counter()
                private.upsert_query(question)
                matching.append(time.perf_counter() - started)
            figures[str(size)]["matching"] = latency(matching)
    finally:
        await store.close()
    smallest, largest = (figures[str(size)]["upsert"]["p50_ms"] for size in (sizes[0], sizes[-1]))
    return {**figures, "upsert_growth": largest / smallest}


async def _ask(asked: Sequence[str], _: WriteTransaction, graphs: Sequence[GraphStore]) -> None:
    for question in asked:
        graphs[0].upsert_query(question)


async def upserts(cache: GraphCache, questions: Questions, rounds: int) -> dict[str, Any]:
    """The seconds of each question: a fiftieth of its transaction of fifty."""
    times: list[float] = []
    for _ in range(max(1, rounds // _CHUNK)):
        asked = list(questions.new(_CHUNK))
        started = time.perf_counter()
        await cache.change([_AGENT], partial(_ask, asked))
        times += [(time.perf_counter() - started) / _CHUNK] * _CHUNK
    return latency(times)


def loaded(database: Path) -> dict[str, Any]:
    """Seconds and megabytes of loading the graph. numpy is imported before."""
    return anyio.run(_loaded, database)


async def _loaded(database: Path) -> dict[str, Any]:
    store = await SqliteStore.open(database)
    try:
        cache = open_cache(store)
        GraphStore().upsert_query("warm up")
        before = rss_mb(os.getpid()) or 0.0
        lags: list[float] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(tick, lags)
            started = time.perf_counter()
            async with cache.reading(_AGENT) as [graph]:
                took = time.perf_counter() - started
                stats = graph.stats()
            tasks.cancel_scope.cancel()
        after = rss_mb(os.getpid()) or 0.0
    finally:
        await store.close()
    return {
        "nodes": stats.nodes,
        "edges": stats.edges,
        "load_s": took,
        "load_mb": after - before,
        "loop_lag_p99_ms": 1000 * percentile(lags, 0.99),
    }


async def slept(folder: Path, nodes: int) -> dict[str, Any]:
    """One forced sleep cycle over `size` questions. Also measures the event loop's lag and concurrent searches."""
    store = await SqliteStore.open(folder / "sleep.db")
    try:
        cache = open_cache(store)
        await fill(cache, Questions(seed=5), nodes)
        agent = MemoryOrchestrator(
            "default",
            OrchestratorConfig(),
            store=store,
            cache=cache,
            snapshots=SnapshotFolder(folder),
            clock=SystemClock(),
        )
        lags: list[float] = []
        searches: list[float] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(tick, lags)
            tasks.start_soon(ask, agent, searches)
            started = time.perf_counter()
            report = await agent.run_sleep_cycle(force=True, max_inspect=nodes, min_rank=1.0, max_clusters=nodes)
            took = time.perf_counter() - started
            tasks.cancel_scope.cancel()
    finally:
        await store.close()
    assert report is not None
    return {
        "nodes": nodes,
        "sleep_s": took,
        "clusters": len(report.clusters),
        "freed": report.freed_capacity,
        "loop_lag_p99_ms": 1000 * percentile(lags, 0.99),
        "loop_lag_max_ms": 1000 * max(lags, default=0.0),
        "searches_meanwhile": latency(searches),
    }


async def tick(lags: list[float]) -> None:
    """Record how late every wake-up is."""
    while True:
        due = time.perf_counter() + _TICK_S
        await anyio.sleep(_TICK_S)
        lags.append(max(0.0, time.perf_counter() - due))


async def ask(agent: MemoryOrchestrator, times: list[float]) -> None:
    """Search again and again."""
    while True:
        started = time.perf_counter()
        await agent.search(None, "what was it that we said?", 5)
        times.append(time.perf_counter() - started)
        await anyio.sleep(_TICK_S)


def steady(count: int, max_nodes: int) -> dict[str, Any]:
    """Memory while `count` questions are added to a graph that is full at `max_nodes`."""
    graph = GraphStore(GraphConfig(max_nodes=max_nodes))
    questions = Questions(seed=9)
    resident: list[float] = []
    started = time.perf_counter()
    for done, question in enumerate(questions.new(count), start=1):
        graph.upsert_query(question)
        if done % max(1, count // 20) == 0:
            graph.drain_changes()
            resident.append(rss_mb(os.getpid()) or 0.0)
            progress(f"graph: {done} upserts, {graph.stats()}, {resident[-1]:.0f} MB")
    half = len(resident) // 2
    return {
        "upserts": count,
        "max_nodes": max_nodes,
        "per_s": count / (time.perf_counter() - started),
        "rss_mb": resident,
        "second_half_growth": max(resident[half:]) / max(resident[:half]),
    }


def measure(folder: Path, *, sizes: Sequence[int], rounds: int, sleep_nodes: int, upserts: int) -> dict[str, Any]:
    """Run all parts."""
    figures = anyio.run(at_size, folder, sizes, rounds)
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as fresh:
        figures["load"] = fresh.submit(loaded, folder / "graph.db").result()
        progress("graph: loaded")
        figures["sleep"] = anyio.run(slept, folder, sleep_nodes)
        progress("graph: slept")
        if upserts:
            figures["steady"] = fresh.submit(steady, upserts, sizes[-1]).result()
    return {**figures, "targets": TARGETS}


def main() -> None:
    """Run the benchmark."""
    parser = options(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", help="nodes (default 5000 50000; quick 500 2000)")
    parser.add_argument("--rounds", type=int, help="questions of each kind (default 1000, quick 200)")
    parser.add_argument("--upserts", type=int, help="into a full graph (default 1000000, quick 5000; 0 leaves it out)")
    given = parser.parse_args()
    sizes = sorted(given.sizes or ([500, 2_000] if given.quick else [5_000, 50_000]))
    rounds = given.rounds or (200 if given.quick else 1_000)
    many = (5_000 if given.quick else 1_000_000) if given.upserts is None else given.upserts
    with tempfile.TemporaryDirectory() as folder:
        emit(
            "graph",
            measure(
                Path(folder),
                sizes=sizes,
                rounds=rounds,
                sleep_nodes=1_000 if given.quick else 5_000,
                upserts=many,
            ),
        )


if __name__ == "__main__":
    main()
