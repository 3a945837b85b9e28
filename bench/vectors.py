"""What vectors cost and find: the exact scan over 384-d vectors of records, compared with float32 in numpy.

The vectors are drawn around centres, with noise of 32 directions. `recall_at_10` is how many of the ten nearest by
float32 are among ours. `cold` is the first question, which loads the vectors. `session` searches one of the sessions.
Above 100,000 records, `approximate` searches the usearch file, if usearch is installed. The database is filled through
the storage layer. It is searched in a fresh process, so that its memory is its own.
"""

import multiprocessing
import tempfile
import time
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
from kalito_mcp.storage.sqlite.database import EXACT_VECTORS, SqliteStore
from kalito_mcp.storage.sqlite.vector_files import all_files, is_installed

TARGET_P50_MS: Final = 25.0
TARGET_RSS_MB: Final = 60.0
TARGET_RECALL: Final = 0.98
_DIMENSION: Final = 384
_CENTRES, _DIRECTIONS, _NOISE = 1_000, 32, 0.7
_OF_SESSION: Final = 500
_BATCH: Final = 5_000
_K: Final = 10
_QUERIES: Final = 1 << 30
_FINGERPRINT: Final = "bench:384"


class Drawn:
    """Random vectors, the same in every process."""

    def __init__(self) -> None:
        chance = np.random.default_rng(1)
        self._centres = chance.normal(size=(_CENTRES, _DIMENSION))
        self._basis = chance.normal(size=(_DIRECTIONS, _DIMENSION)) / _DIRECTIONS**0.5

    def vectors(self, count: int, seed: int) -> NDArray[np.float32]:
        """Vectors of shape (count, 384) and unit length."""
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
            async with store.write() as transaction:
                session = await transaction.sessions.ensure(Scope(session=f"s{first}"), now_ms=START_MS)
                await transaction.conversations.append_messages(session, batch, now_ms=START_MS)
        recorded_s += time.perf_counter() - started
        vectors = drawn.vectors(count, start)
        started = time.perf_counter()
        async with store.write() as transaction:
            index = await transaction.vectors.open_index(_FINGERPRINT, _DIMENSION)
            owed = sorted(await transaction.vectors.owed(index, limit=count), key=lambda one: one.record_key)
            await transaction.vectors.put(index, owed, vectors)
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
        terms=(f"m{number}",),
        origin=None,
        client=None,
        details=None,
    )


async def _asked(database: Path, size: int, count: int) -> dict[str, Any]:
    drawn = Drawn()
    queries = drawn.vectors(count, _QUERIES)
    store = await SqliteStore.open(database, may_write=False)
    before = _rss_mb()
    started = time.perf_counter()
    await _nearest(store, Scope(), queries[0])
    figures: dict[str, Any] = {"cold_ms": 1000 * (time.perf_counter() - started)}
    times, found = [], []
    for query in queries:
        started = time.perf_counter()
        found.append(await _nearest(store, Scope(), query))
        times.append(time.perf_counter() - started)
    figures |= {"rss_mb": _rss_mb() - before, "agent": latency(times)}
    times = []
    for number, query in enumerate(queries):
        session = number * _OF_SESSION % size // _OF_SESSION * _OF_SESSION
        started = time.perf_counter()
        assert len(await _nearest(store, Scope(session=f"s{session}"), query)) == _K
        times.append(time.perf_counter() - started)
    figures["session"] = latency(times)
    times = []
    for query in queries:
        started = time.perf_counter()
        async with store.read() as view:
            await view.vectors.similarities(_FINGERPRINT, query, range(1, 301))
        times.append(time.perf_counter() - started)
    figures["similarities_of_300"] = latency(times)
    await store.close()
    vectors = np.concatenate([drawn.vectors(min(_BATCH, size - start), start) for start in range(0, size, _BATCH)])
    hits, times = 0, []
    for query, keys in zip(queries, found, strict=True):
        started = time.perf_counter()
        exact = np.argpartition(-(vectors @ query), _K)[:_K] + 1
        times.append(time.perf_counter() - started)
        hits += len(set(exact.tolist()) & set(keys))
    return figures | {"float32_in_numpy": latency(times), "recall_at_10": hits / (_K * count)}


async def _nearest(store: SqliteStore, scope: Scope, query: NDArray[np.float32]) -> list[int]:
    async with store.read() as view:
        return [key for key, _ in await view.vectors.nearest(scope, _FINGERPRINT, query, k=_K)]


async def _approximated(database: Path) -> dict[str, Any]:
    store = await SqliteStore.open(database)
    started = time.perf_counter()
    is_built = await store.build_ann_index()
    await store.close()
    files = sum(path.stat().st_size for path in all_files(database))
    return {"is_built": is_built, "build_s": time.perf_counter() - started, "file_mb": files / 1e6}


def approximated(database: Path) -> dict[str, Any]:
    """Build the approximate index. Returns the costs."""
    return anyio.run(_approximated, database)


def _rss_mb() -> float:
    return rss_mb(multiprocessing.current_process().pid or 0) or 0.0


def asked(database: Path, size: int, count: int) -> dict[str, Any]:
    """The figures of searches in a filled database."""
    return anyio.run(_asked, database, size, count)


def main() -> None:
    """Run the benchmark."""
    parser = options(__doc__)
    parser.add_argument(
        "--sizes", type=int, nargs="+", help="records (default 10000 100000 300000; quick 10000 100000)"
    )
    given = parser.parse_args()
    sizes = given.sizes or ([10_000, 100_000] if given.quick else [10_000, 100_000, 300_000])
    count = 50 if given.quick else 200
    figures: dict[str, Any] = {
        "target_p50_ms": TARGET_P50_MS, "target_rss_mb": TARGET_RSS_MB, "target_recall_at_10": TARGET_RECALL
    }  # fmt: skip
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as fresh:
        for size in sizes:
            with tempfile.TemporaryDirectory() as folder:
                database = Path(folder) / "memory.db"
                filled = anyio.run(fill, database, size)
                progress(f"vectors: {size} records")
                of_size = fresh.submit(asked, database, size, count).result()
                if size > EXACT_VECTORS and is_installed():
                    progress("vectors: the approximate index")
                    built = fresh.submit(approximated, database).result()
                    of_size["approximate"] = built | fresh.submit(asked, database, size, count).result()
                figures[str(size)] = filled | of_size | {"database_mb": database.stat().st_size / 1e6}
    emit("vectors", figures)


if __name__ == "__main__":
    main()
