"""What vectors cost and find: the nearest 100 of 512-d vectors of records, compared with float32 in numpy.

The vectors are drawn around centres, with noise of 32 directions, and all lean to one side: the cosine of two is 0.5 on
average, as with many models. `recall_at_100` and `recall_at_10` are how many of the nearest by float32 are among ours.
Times are of the processor, in milliseconds. `cold` is the first question, which loads the vectors. `session` searches
one of the sessions, `project` one record in fifty, `wordings` with the mean of four vectors. The database is filled
through the storage layer. It is searched in a fresh process, so that its memory is its own.
"""

import multiprocessing
import tempfile
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, Final

import anyio
import numpy as np
from numpy.typing import NDArray

from bench.corpus import START_MS
from bench.report import emit, latency, options, progress, rss_mb
from kalito_mcp.domain.records import Role
from kalito_mcp.domain.scope import Scope
from kalito_mcp.ports.conversations import MessageDraft
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.text.analysis import index_text

TARGET_P50_MS: Final = 5.0
TARGET_RSS_MB: Final = 20.0
TARGET_RECALL: Final = 0.97
_DIMENSION: Final = 512
_CENTRES, _DIRECTIONS, _NOISE, _LEANING = 1_000, 32, 0.7, 1.2
_OF_SESSION: Final = 500
_OF_PROJECT: Final = 50
_BATCH: Final = 5_000
_K: Final = 100
_WORDINGS: Final = 4
_QUERIES: Final = 1 << 30
_FINGERPRINT: Final = "bench:512"


class Drawn:
    """Random vectors, the same in every process."""

    def __init__(self) -> None:
        chance = np.random.default_rng(1)
        side = _LEANING * chance.normal(size=_DIMENSION)
        self._centres = side + chance.normal(size=(_CENTRES, _DIMENSION))
        self._basis = chance.normal(size=(_DIRECTIONS, _DIMENSION)) / _DIRECTIONS**0.5

    def vectors(self, count: int, seed: int) -> NDArray[np.float32]:
        """Vectors of shape (count, 512) and unit length."""
        chance = np.random.default_rng(seed)
        noise = chance.normal(size=(count, _DIRECTIONS)) @ self._basis
        drawn = self._centres[chance.integers(0, _CENTRES, count)] + _NOISE * noise
        return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True), np.float32)


async def fill(database: Path, size: int) -> dict[str, Any]:
    """Write `size` messages and their vectors. Returns the costs."""
    store = await SqliteStore.open(database)
    drawn, recorded_s, embedded_s = Drawn(), 0.0, 0.0
    for start in range(0, size, _BATCH):
        count = min(_BATCH, size - start)
        started = time.perf_counter()
        for first in range(start, start + count, _OF_SESSION):
            batch = [_message(number) for number in range(first, min(first + _OF_SESSION, start + count))]
            async with store.transaction() as transaction:
                session = await ensure_session(transaction.sessions, Scope(session=f"s{first}"), now_ms=START_MS)
                await transaction.conversations.append_messages(session, batch, now_ms=START_MS)
        recorded_s += time.perf_counter() - started
        vectors = drawn.vectors(count, start)
        started = time.perf_counter()
        async with store.transaction() as transaction:
            await transaction.vectors.open_index(_FINGERPRINT, _DIMENSION)
            owed = await transaction.vectors.owed(_FINGERPRINT, limit=count)  # the newest first
            await transaction.vectors.put(_FINGERPRINT, owed[::-1], vectors)
        embedded_s += time.perf_counter() - started
    await store.close()
    return {"record_per_s": size / recorded_s, "put_per_s": size / embedded_s}


def _message(number: int) -> MessageDraft:
    return MessageDraft(
        role=Role.USER,
        text=f"m{number}",
        name=None,
        created_at=START_MS + number,
        importance=0.5,
        tokens=1,
        model_id=None,
        token_usage=None,
        client_key=None,
        indexed=index_text(f"m{number}"),
    )


async def _asked(database: Path, size: int, count: int) -> dict[str, Any]:
    drawn = Drawn()
    queries = drawn.vectors(count, _QUERIES)
    store = await SqliteStore.open(database, may_write=False)
    before = _rss_mb()
    started = time.process_time()
    await _nearest(store, Scope(), queries[0])
    figures: dict[str, Any] = {"cold_ms": 1000 * (time.process_time() - started)}
    found: list[list[int]] = []

    async def agent(number: int) -> None:
        found.append(await _nearest(store, Scope(), queries[number]))

    async def session(number: int) -> None:
        first = number * _OF_SESSION % size // _OF_SESSION * _OF_SESSION
        assert len(await _nearest(store, Scope(session=f"s{first}"), queries[number])) == _K

    async def project(number: int) -> None:
        among = np.arange(1 + number % _OF_PROJECT, size + 1, _OF_PROJECT, dtype=np.int64)
        assert len(await _nearest(store, Scope(), queries[number], among)) == min(_K, among.size)

    async def wordings(number: int) -> None:
        several = queries[np.arange(number, number + _WORDINGS) % count]
        assert len(await _nearest(store, Scope(), several.mean(axis=0))) == _K

    async def similarities(number: int) -> None:
        async with store.view() as view:
            assert len(await view.vectors.similarities(Scope(), _FINGERPRINT, queries[number], range(1, 301))) == 300

    figures["agent"] = await _measured(agent, count)
    figures["rss_mb"] = _rss_mb() - before
    for name, ask in (("session", session), ("project", project), ("wordings", wordings)):
        figures[name] = await _measured(ask, count)
    figures["similarities_of_300"] = await _measured(similarities, count)
    await store.close()
    return figures | _recalls(drawn, queries, found, size)


async def _measured(ask: Callable[[int], Awaitable[None]], count: int) -> dict[str, Any]:
    times: list[float] = []
    for number in range(count):
        started = time.process_time()
        await ask(number)
        times.append(time.process_time() - started)
    return latency(times)


def _recalls(drawn: Drawn, queries: NDArray[np.float32], found: list[list[int]], size: int) -> dict[str, float]:
    """The share of the nearest by float32 that was found. Only some thousand vectors are in memory at a time."""
    scores = np.concatenate(
        [drawn.vectors(min(_BATCH, size - start), start) @ queries.T for start in range(0, size, _BATCH)]
    )
    hits = {10: 0, _K: 0}
    for column, keys in zip(scores.T, found, strict=True):
        nearest = np.argsort(-column)[:_K] + 1
        for depth in hits:
            hits[depth] += len(set(nearest[:depth].tolist()) & set(keys[:depth]))
    return {f"recall_at_{depth}": hit / (depth * len(found)) for depth, hit in hits.items()}


async def _nearest(
    store: SqliteStore, scope: Scope, query: NDArray[np.float32], among: NDArray[np.int64] | None = None
) -> list[int]:
    async with store.view() as view:
        return [key for key, _ in await view.vectors.nearest(scope, _FINGERPRINT, query, k=_K, among=among)]


def _rss_mb() -> float:
    return rss_mb(multiprocessing.current_process().pid or 0) or 0.0


def asked(database: Path, size: int, count: int) -> dict[str, Any]:
    """The figures of searches in a filled database."""
    return anyio.run(_asked, database, size, count)


def main() -> None:
    """Run the benchmark."""
    parser = options(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", help="records (default 10000 100000; quick 10000 30000)")
    given = parser.parse_args()
    sizes = given.sizes or ([10_000, 30_000] if given.quick else [10_000, 100_000])
    count = 20 if given.quick else 50
    figures: dict[str, Any] = {
        "target_p50_ms": TARGET_P50_MS, "target_rss_mb": TARGET_RSS_MB, "target_recall_at_100": TARGET_RECALL
    }  # fmt: skip
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as fresh:
        for size in sizes:
            with tempfile.TemporaryDirectory() as folder:
                database = Path(folder) / "memory.db"
                filled = anyio.run(fill, database, size)
                progress(f"vectors: {size} records")
                of_size = fresh.submit(asked, database, size, count).result()
                figures[str(size)] = filled | of_size | {"database_mb": database.stat().st_size / 1e6}
    emit("vectors", figures)


if __name__ == "__main__":
    main()
