"""More vectors than are compared one by one: one bit a number suggests the nearest, and the stored vectors decide."""

import random
import sqlite3
import zlib
from collections.abc import Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

from kalito_mcp.domain.memory_records import DELETED_AT
from kalito_mcp.domain.scope import Scope
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite import vector_cache, vectors
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.storage.sqlite.sign_codes import bits, codes, distances
from kalito_mcp.storage.sqlite.sweeping import remove_old_vector_files
from kalito_mcp.storage.vector_rows import packed
from tests import drafts
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio
EVERYTHING: Final = Scope()
HOME: Final = Scope(session="home")
WORDS: Final = "apple pear plum quince fig ferry harbour ticket Oslo Moss train window seven red blue night".split()
DIMENSION: Final = 64
Found = Sequence[tuple[int, float]]


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that some hundred vectors are very many."""
    monkeypatch.setattr(vectors, "EXACT_UP_TO", 200)
    monkeypatch.setattr(vector_cache, "_LEAST_NEAR", 150)
    monkeypatch.setattr(vector_cache, "_LEAST_SUGGESTED", 60)


def texts(count: int, *, seed: int = 1) -> list[str]:
    chance = random.Random(seed)
    return [f"{' '.join(chance.choices(WORDS, k=4))} {number}" for number in range(count)]


async def remember(store: SqliteStore, *said: str, scope: Scope = HOME) -> list[int]:
    """Messages with their vectors."""
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, scope, now_ms=START_MS)
        batch = [drafts.message(text) for text in said]
        appended = await transaction.conversations.append_messages(session, batch, now_ms=START_MS)
        await transaction.vectors.open_index("hashed", DIMENSION)
        owed = await transaction.vectors.owed("hashed", limit=10_000)
        await transaction.vectors.put("hashed", owed, leaning(*(one.text for one in owed)))
        return [one.id for one in appended]


def leaning(*said: str) -> NDArray[np.float32]:
    """Vectors that all point to about one side, as those of many models do. Texts with the same words are similar."""
    drawn = np.stack([_drawn("") * 8 + sum(_drawn(word) for word in text.split()) for text in said])
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)


@cache
def _drawn(word: str) -> NDArray[np.float64]:
    return np.random.default_rng(zlib.crc32(word.encode())).normal(size=DIMENSION)


async def change(store: SqliteStore, key: int, **changes: Any) -> None:
    async with store.transaction() as transaction:
        record = await transaction.records.record(Scope(), f"msg_{key}")
        assert record is not None
        await transaction.records.change(record, drafts.edit(record, changes))


async def nearest(
    store: SqliteStore,
    query: str,
    *,
    scope: Scope = EVERYTHING,
    k: int = 10,
    among: Sequence[int] | None = None,
) -> Found:
    [vector] = leaning(query)
    keys = None if among is None else np.array(among, np.int64)
    async with store.view() as view:
        found = await view.vectors.nearest(scope, "hashed", vector, k=k, among=keys)
        exact = await view.vectors.similarities(scope, "hashed", vector, [key for key, _ in found])
    assert dict(found) == exact
    assert found == sorted(found, key=lambda one: (-one[1], -one[0]))
    return found


def centre(database: Path) -> NDArray[np.float32] | None:
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
        [[stored]] = connection.execute("SELECT centre FROM vector_indexes").fetchall()
    return None if stored is None else np.frombuffer(stored, "<f2").astype(np.float32)


async def test_an_index_gets_a_centre_when_it_has_too_many_vectors_and_keeps_it(store: SqliteStore) -> None:
    said = texts(260)
    await remember(store, *said[:200])
    assert centre(store.path) is None
    await nearest(store, "apple")
    await remember(store, said[200])
    first = centre(store.path)
    assert first is not None
    assert first == pytest.approx(leaning(*said[:201]).mean(axis=0), abs=0.003)
    await remember(store, *said[201:])
    assert (centre(store.path) == first).all()
    await nearest(store, "apple")
    cache = store._vectors._cache
    assert cache is not None
    assert [block.vectors.size for block in cache._blocks] == [0]


async def test_the_bits_suggest_nearly_all_that_an_exact_scan_finds(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await SqliteStore.open(database)
    monkeypatch.setattr(vectors, "EXACT_UP_TO", 10_000)
    monkeypatch.setattr(vector_cache, "_LEAST_NEAR", 1_000)
    monkeypatch.setattr(vector_cache, "_LEAST_SUGGESTED", 500)
    queries = texts(40, seed=2)
    await remember(store, *texts(2_999))
    exact = [await nearest(store, query) for query in queries]
    assert centre(database) is None
    monkeypatch.setattr(vectors, "EXACT_UP_TO", 2_999)
    await remember(store, "one more")
    assert centre(database) is not None
    shares = [
        len({key for key, _ in found} & {key for key, _ in await nearest(store, query)}) / 10
        for query, found in zip(queries, exact, strict=True)
    ]
    assert sum(shares) / len(shares) >= 0.97
    await store.close()


async def test_the_answer_depends_on_what_is_stored_not_on_who_read_it_when(database: Path) -> None:
    writing = await SqliteStore.open(database)
    watching = await SqliteStore.open(database, may_write=False)
    chance = random.Random(8)
    keys = await remember(writing, *texts(150))
    for step in range(6):
        await nearest(watching, "apple")
        keys += await remember(writing, *texts(60, seed=step))
        for key in chance.sample(keys, 12):
            await change(writing, key, text=f"seven red windows {step}")
        for key in chance.sample(keys, 9):
            await change(writing, key, **{DELETED_AT: START_MS})
        await remember(writing, "the last of this step")
        fresh = await SqliteStore.open(database, may_write=False)
        for query in (*texts(4, seed=90 + step), "seven red windows"):
            for k in (5, 40):
                asked = [await nearest(store, query, k=k) for store in (writing, watching, fresh)]
                assert asked[0] == asked[1] == asked[2]
        await fresh.close()
    assert centre(database) is not None
    await watching.close()
    await writing.close()


async def test_agents_sessions_and_admissible_records_are_searched_among_many(store: SqliteStore) -> None:
    coach = await remember(store, *texts(5), scope=Scope(agent="coach", session="gym"))
    trip = await remember(store, *texts(7, seed=2), scope=Scope(session="trip"))
    home = await remember(store, *texts(900, seed=3))
    assert centre(store.path) is not None
    for scope, among, expected in [
        (Scope(agent="coach"), None, coach),
        (Scope(agent="coach", session="gym"), home, []),
        (Scope(session="trip"), None, trip),
        (Scope(owner="ann"), None, []),
        (Scope(), [*coach, *trip[:3], *home[-2:]], [*trip[:3], *home[-2:]]),
        (Scope(), home[::100], home[::100]),
    ]:
        found = await nearest(store, "apple", scope=scope, among=among, k=50)
        assert sorted(key for key, _ in found) == expected
    assert len(await nearest(store, "apple", k=1_000)) == 907


async def test_what_was_erased_is_in_no_file_and_in_no_memory_of_the_process(database: Path) -> None:
    store = await SqliteStore.open(database)
    [key] = await remember(store, "the canary sings")
    await remember(store, *texts(300))
    [canary] = packed(leaning("the canary sings"))
    assert (await nearest(store, "the canary sings"))[0][0] == key
    old = database.with_name("memory.db.vectors-1-60")
    old.write_bytes(canary)
    async with store.transaction() as transaction:
        record = await transaction.records.record(Scope(), f"msg_{key}")
        assert record is not None
        await transaction.records.purge(record, now_ms=START_MS)
    await store.maintenance.finish_erasures()
    assert [path.name for path in database.parent.iterdir() if canary in path.read_bytes()] == []
    cache = store._vectors._cache
    assert cache is not None
    assert not cache._blocks[0].codes[:, 0].any()
    assert cache._blocks[0].codes[:, 1].any()
    assert key not in dict(await nearest(store, "the canary sings", k=400))
    await store.close()


@pytest.mark.parametrize("name", ["memory.db", "odd [name]*?.db"])
async def test_files_of_vectors_that_earlier_versions_made_are_removed(tmp_path: Path, name: str) -> None:
    database = tmp_path / name
    old = [database.with_name(f"{name}.vectors-{end}") for end in ("1-2000", "1-77.building", "1-77.new", "12-9")]
    others = [tmp_path / f"another{name}.vectors-1-5", database.with_name(f"{name}.vectors.md")]
    for path in (*old, *others):
        path.touch()
    store = await SqliteStore.open(database)
    assert not [path for path in old if path.exists()]
    assert all(path.exists() for path in others)
    await store.close()
    old[0].touch()
    remove_old_vector_files(database)
    assert not old[0].exists()


def test_codes_have_a_bit_for_each_positive_number() -> None:
    chance = np.random.default_rng(5)
    for dimension in (1, 8, 63, 64, 65, 384):
        vectors = chance.normal(size=(50, dimension)).astype(np.float32)
        coded = codes(vectors)
        assert coded.shape == (-(-dimension // 64), 50)
        assert (bits(coded, dimension) == (vectors > 0)).all()
        differing = ((vectors > 0) != (vectors[7] > 0)).sum(axis=1)
        assert (distances(coded, coded[:, 7]) == differing).all()
