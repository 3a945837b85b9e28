"""Vectors on disk and in memory: an erased one is in no byte of any file, and a scan sees the stored ones."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from kalito_mcp.domain.findings import Verdict
from kalito_mcp.domain.memory_records import DELETED_AT
from kalito_mcp.domain.scope import Scope
from kalito_mcp.errors import InvalidInput, StorageDamaged
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite import vector_cache, vector_caches
from kalito_mcp.storage.sqlite import vectors as statements
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.storage.sqlite.inspection import inspect
from kalito_mcp.storage.sqlite.vector_cache import Admissible, VectorCache
from kalito_mcp.storage.sqlite.vector_caches import SELECT_LAST_REMOVAL
from kalito_mcp.storage.sqlite.vector_indexes import SELECT_ACTIVE_INDEX, ActiveIndex
from kalito_mcp.storage.vector_rows import cosines, packed, unpacked
from tests import drafts
from tests.scripted import START_MS
from tests.scripted_embedder import hashed_vector

pytestmark = pytest.mark.anyio
TRIP: Final = Scope(session="trip")


async def append(store: SqliteStore, *texts: str) -> list[int]:
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
        batch = [drafts.message(text) for text in texts]
        appended = await transaction.conversations.append_messages(session, batch, now_ms=START_MS)
        return [one.id for one in appended]


async def embed_everything(store: SqliteStore) -> None:
    async with store.transaction() as transaction:
        await transaction.vectors.open_index("hashed", 64)
        while owed := await transaction.vectors.owed("hashed", limit=500):
            await transaction.vectors.put("hashed", owed, np.stack([hashed_vector(one.text) for one in owed]))


async def change(store: SqliteStore, key: int, **changes: Any) -> None:
    async with store.transaction() as transaction:
        record = await transaction.records.record(TRIP, f"msg_{key}")
        assert record is not None
        await transaction.records.change(record, drafts.edit(record, changes))


async def purge(store: SqliteStore, key: int) -> None:
    async with store.transaction() as transaction:
        record = await transaction.records.record(TRIP, f"msg_{key}")
        assert record is not None
        await transaction.records.purge(record, now_ms=START_MS)


def files_with(folder: Path, text: str) -> list[str]:
    """The files that hold the text's vector."""
    [vector] = packed(hashed_vector(text)[np.newaxis])
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and vector in path.read_bytes())


def query(path: Path, statement: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        return connection.execute(statement).fetchall()


async def test_the_vector_of_an_erased_text_is_in_no_file(database: Path) -> None:
    store = await SqliteStore.open(database)
    before = await append(store, *(f"ordinary message {n}" for n in range(300)))
    secrets = ["the canary sings", "the canary in other words", "forgotten canary", "canary of a dropped index"]
    keys = await append(store, *secrets)
    await append(store, *(f"ordinary reply {n}" for n in range(300)))
    await embed_everything(store)
    assert all(files_with(database.parent, text) for text in secrets)
    await change(store, keys[1], text="harmless")
    await change(store, keys[2], **{DELETED_AT: START_MS})
    async with store.transaction() as transaction:
        await transaction.vectors.drop("hashed")
    for key in keys:
        await purge(store, key)
    owed = await store.maintenance.owed_erasures()
    assert dict(await store.maintenance.finish_erasures(owed)) == {}
    assert [files_with(database.parent, text) for text in [*secrets, "harmless"]] == [[]] * 5
    assert files_with(database.parent, "ordinary message 7")
    await store.close()
    assert [files_with(database.parent, text) for text in secrets] == [[]] * 4
    assert query(database, "SELECT count(*) FROM record_vectors") == [(len(before) * 2,)]
    assert {finding.verdict for finding in inspect(database, is_deep=True)} == {Verdict.OK}


async def test_without_an_index_no_write_leaves_anything_behind(database: Path) -> None:
    store = await SqliteStore.open(database)
    keys = await append(store, "a", "b", "c")
    await change(store, keys[0], text="d")
    await change(store, keys[1], **{DELETED_AT: START_MS})
    await change(store, keys[1], **{DELETED_AT: None})
    await purge(store, keys[2])
    await store.close()
    for table in ("vector_indexes", "record_vectors", "vector_debts"):
        assert query(database, f"SELECT count(*) FROM {table}") == [(0,)]


def test_no_trigger_runs_when_a_record_is_inserted(copy: Path) -> None:
    triggers = query(copy, "SELECT sql FROM sqlite_schema WHERE type = 'trigger'")
    assert len(triggers) == 9
    assert not [sql for [sql] in triggers if "INSERT ON records\n" in sql or "INSERT ON records " in sql]


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        (statements.SELECT_NEW, "INTEGER PRIMARY KEY"),
        (statements.SELECT_OLDER, "INTEGER PRIMARY KEY"),
        (statements.SELECT_DEBTS, "PRIMARY KEY"),
        (vector_caches.SELECT_VECTORS, "INTEGER PRIMARY KEY"),
        (statements.SELECT_VECTORS_OF_RECORDS, "record_vectors_of_records"),
        (statements.SELECT_VECTORS_OF_ROWS, "INTEGER PRIMARY KEY"),
        (statements.SELECT_TOO_MANY, "COVERING INDEX record_vectors_of_records"),
        (vector_caches.SELECT_REMOVALS, "INTEGER PRIMARY KEY"),
        (statements.INSERT_DEBTS, "record_vectors_of_records (index_key=? AND record_key=?)"),
        (statements.DELETE_PAID_DEBTS, "record_vectors_of_records (index_key=? AND record_key=?)"),
        (statements.DELETE_PAID_DEBTS, "PRIMARY KEY (index_key=? AND record_key=?)"),
        (statements.DELETE_VECTORS, "COVERING INDEX record_vectors_of_records"),
        ("DELETE FROM record_vectors WHERE index_key IN (SELECT key FROM vector_indexes) AND record_key = 1",
         "record_vectors_of_records (index_key=? AND record_key=?)"),
        ("DELETE FROM vector_debts WHERE index_key IN (SELECT key FROM vector_indexes) AND record_key = 1",
         "PRIMARY KEY (index_key=? AND record_key=?)"),
    ],
)  # fmt: skip
def test_what_is_asked_often_is_found_by_an_index_and_in_its_order(copy: Path, statement: str, index: str) -> None:
    with closing(sqlite3.connect(copy)) as connection:
        names = dict.fromkeys(
            ("done_key", "first_key", "limit", "index_key", "after_key", "from_key", "to_key", "most", "last_removal"),
            1,
        )
        steps = [
            row[3]
            for row in connection.execute(
                f"EXPLAIN QUERY PLAN {statement}", {**names, "owner": "local", "record_keys": "[1]", "keys": "[1]"}
            )
        ]
    assert any(index in step for step in steps), steps
    assert not [step for step in steps if "TEMP B-TREE" in step or step.startswith("SCAN r")], steps


async def test_a_vector_that_was_cut_short_is_damage(store: SqliteStore, database: Path) -> None:
    keys = await append(store, "apple")
    await embed_everything(store)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE record_vectors SET vector = x'0102'")
        connection.commit()
    for _ in range(2):
        with pytest.raises(StorageDamaged):
            async with store.view() as view:
                await view.vectors.nearest(TRIP, "hashed", hashed_vector("apple"), k=1)
    with pytest.raises(StorageDamaged):
        async with store.view() as view:
            await view.vectors.similarities(TRIP, "hashed", hashed_vector("apple"), keys)


async def test_a_centre_that_was_cut_short_is_damage(store: SqliteStore, database: Path) -> None:
    await append(store, "apple")
    await embed_everything(store)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE vector_indexes SET centre = x'0102'")
        connection.commit()
    with pytest.raises(StorageDamaged):
        async with store.view() as view:
            await view.vectors.nearest(TRIP, "hashed", hashed_vector("apple"), k=1)


async def test_nothing_is_loaded_before_somebody_asks_what_is_near(store: SqliteStore) -> None:
    await append(store, "apple")
    await embed_everything(store)
    assert store._vectors._cache is None
    async with store.view() as view:
        await view.vectors.similarities(TRIP, "hashed", hashed_vector("apple"), [1])
        assert store._vectors._cache is None
        await view.vectors.nearest(TRIP, "hashed", hashed_vector("apple"), k=1)
    assert store._vectors._cache is not None


async def test_rows_that_an_older_view_loads_late_are_removed_when_they_are_gone(store: SqliteStore) -> None:
    keys = await append(store, "apple", "pear", "plum")
    await embed_everything(store)
    async with store.view() as older:
        [active] = await older.connection.execute_fetchall(SELECT_ACTIVE_INDEX, {"fingerprint": "hashed"})
        await purge(store, keys[1])
        async with store.view() as newer:
            # A search that was cancelled before it had loaded a row.
            store._vectors._of(
                ActiveIndex(*active), (await newer.connection.execute_fetchall(SELECT_LAST_REMOVAL))[0][0]
            )
        found = await older.vectors.nearest(TRIP, "hashed", hashed_vector("pear"), k=9)
        assert {key for key, _ in found} == set(keys)
    async with store.view() as view:
        found = await view.vectors.nearest(TRIP, "hashed", hashed_vector("pear"), k=9)
    assert {key for key, _ in found} == {keys[0], keys[2]}


def rows(vectors: NDArray[np.float32], *, first_key: int = 1, agent: int = 1) -> Sequence[Sequence[Any]]:
    return [
        (key, 10 * key, agent, None if key % 3 == 0 else key % 3, vector)
        for key, vector in enumerate(packed(vectors), first_key)
    ]


def random_vectors(count: int, dimension: int = 24, *, seed: int = 5) -> NDArray[np.float32]:
    drawn = np.random.default_rng(seed).normal(size=(count, dimension))
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that some thousand rows are many blocks."""
    monkeypatch.setattr(vector_cache, "_BLOCK_ROWS", 1_000)


def test_the_nearest_over_many_blocks_are_those_of_all_rows_at_once(small_blocks: None) -> None:
    vectors = random_vectors(9_000)
    cache = VectorCache(ActiveIndex(1, 24, None, None))
    stored = rows(vectors)
    for start in range(0, 9_000, 1_700):
        cache.add(stored[start : start + 1_700])
    query = random_vectors(1, seed=6)[0]
    exact = cosines(unpacked([row[4] for row in stored], 24), query)
    for session, keys in [(None, range(1, 9_001)), (2, range(2, 9_001, 3)), (9, range(0))]:
        expected = sorted(keys, key=lambda key: -exact[key - 1])[:50]
        found = cache.nearest(query, Admissible(1, session, 9_000), k=50)
        assert [key for key, _ in found] == [10 * key for key in expected]
        assert [cosine for _, cosine in found] == [exact[key - 1] for key in expected]
    assert cache.nearest(query, Admissible(2, None, 9_000), k=50) == []
    assert max(cache.nearest(query, Admissible(1, None, 10), k=50))[0] == 100
    among = np.arange(50_000, 50_100, dtype=np.int64)
    assert len(cache.nearest(query, Admissible(1, None, 9_000, among), k=50)) == 10


def test_rows_that_are_removed_are_not_found_again_and_leave_memory(small_blocks: None) -> None:
    stored = rows(random_vectors(5_000))
    query = random_vectors(1, seed=6)[0]
    whole, coded = (
        VectorCache(ActiveIndex(1, 24, None, None)),
        VectorCache(ActiveIndex(1, 24, np.zeros(24, "<f2").tobytes(), None)),
    )
    for cache in (whole, coded):
        cache.add(stored)
    scope = Admissible(1, None, 5_000)
    best = [key // 10 for key, _ in whole.nearest(query, scope, k=5)]
    assert set(best) <= set(coded.suggested(query, scope, k=5))
    for cache in (whole, coded):
        cache.remove(best[:2])
    assert [key // 10 for key, _ in whole.nearest(query, scope, k=3)] == best[2:]
    assert not set(best[:2]) & set(coded.suggested(query, scope, k=5_000))
    assert len(coded.suggested(query, scope, k=5_000)) == 4_998
    for key in best[:2]:
        block, at = divmod(key - 1, 1_000)
        assert not whole._blocks[block].vectors[at].any()
        assert not coded._blocks[block].codes[:, at].any()


def test_equal_ones_at_the_edge_are_decided_by_the_newer_over_all_blocks(small_blocks: None) -> None:
    cache = VectorCache(ActiveIndex(1, 24, None, None))
    cache.add(rows(np.repeat(random_vectors(1), 10_000, axis=0)))
    found = cache.nearest(random_vectors(1)[0], Admissible(1, None, 10_000), k=3)
    assert [key for key, _ in found] == [100_000, 99_990, 99_980]


@given(st.lists(st.lists(st.floats(-(2.0**99), 2.0**99, width=32), min_size=8, max_size=8), min_size=1, max_size=5))
def test_a_packed_vector_points_where_it_pointed(values: list[list[float]]) -> None:
    vectors = np.array(values, np.float32)
    back = unpacked(packed(vectors), 8)
    for vector, small in zip(vectors.astype(np.float64), back, strict=True):
        length = np.linalg.norm(vector)
        if length == 0:
            assert not small.any()
        else:
            assert cosines(small[np.newaxis], (vector / length).astype(np.float32))[0] > 0.999


def test_a_vector_with_a_value_that_is_no_number_is_refused() -> None:
    for value in (np.nan, np.inf):
        with pytest.raises(InvalidInput):
            packed(np.array([[1, value]], np.float32))


def test_packed_vectors_find_what_the_vectors_find() -> None:
    chance = np.random.default_rng(7)
    centres, basis = chance.normal(size=(100, 384)), chance.normal(size=(32, 384)) / 32**0.5

    def drawn(count: int) -> NDArray[np.float32]:
        vectors = centres[chance.integers(0, 100, count)] + 0.7 * chance.normal(size=(count, 32)) @ basis
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)

    vectors, queries = drawn(5_000), drawn(50)
    small = unpacked(packed(vectors), 384)
    hits = [
        len(set(np.argsort(-vectors @ query)[:10]) & set(np.argsort(-cosines(small, query))[:10])) for query in queries
    ]
    assert sum(hits) / len(hits) >= 9.9
