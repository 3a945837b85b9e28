"""The approximate index: a file that suggests candidates, and is trusted for nothing else."""

import random
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from kalito_mcp.domain.memory_records import DELETED_AT
from kalito_mcp.domain.scope import Scope
from kalito_mcp.errors import StorageError
from kalito_mcp.storage.sqlite import vector_caches, vectors
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.storage.sqlite.vector_cache import packed
from kalito_mcp.storage.sqlite.vector_files import all_files, file_of, is_installed, newest_key
from tests import drafts
from tests.scripted import START_MS
from tests.scripted_embedder import hashed_vector

pytestmark = pytest.mark.anyio
with_library = pytest.mark.skipif(not is_installed(), reason="the approximate index needs usearch")
TRIP: Final = Scope(session="trip")
WORDS: Final = "apple pear plum quince fig ferry harbour ticket Oslo Moss train window seven red blue night".split()


def texts(count: int, *, seed: int = 1) -> list[str]:
    chance = random.Random(seed)
    return [f"{' '.join(chance.choices(WORDS, k=4))} {number}" for number in range(count)]


async def remember(store: SqliteStore, *said: str, scope: Scope = TRIP) -> list[int]:
    """Messages with their vectors."""
    async with store.write() as transaction:
        session = await transaction.sessions.ensure(scope, now_ms=START_MS)
        batch = [drafts.message(text) for text in said]
        appended = await transaction.conversations.append_messages(session, batch, now_ms=START_MS)
        index = await transaction.vectors.open_index("hashed", 64)
        owed = await transaction.vectors.owed(index, limit=10_000)
        await transaction.vectors.put(index, owed, np.stack([hashed_vector(one.text) for one in owed]))
        return [one.id for one in appended]


async def change(store: SqliteStore, key: int, **changes: Any) -> None:
    async with store.write() as transaction:
        record = await transaction.records.record(Scope(), f"msg_{key}")
        assert record is not None
        await transaction.records.change(record, drafts.edit(record, changes))


async def nearest(store: SqliteStore, query: str, *, scope: Scope = Scope(), k: int = 10) -> list[int]:  # noqa: B008
    async with store.read() as view:
        found = await view.vectors.nearest(scope, "hashed", hashed_vector(query), k=k)
        exact = await view.vectors.similarities("hashed", hashed_vector(query), [key for key, _ in found])
    assert dict(found) == pytest.approx(exact, abs=1e-6)
    assert found == sorted(found, key=lambda one: (-one[1], -one[0]))
    return [key for key, _ in found]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a hundred vectors are very many."""
    monkeypatch.setattr(vector_caches, "_LEAST_NEW", 20)


def names(database: Path) -> list[str]:
    return sorted(path.name for path in all_files(database))


async def test_few_vectors_have_no_file(database: Path) -> None:
    store = await SqliteStore.open(database, exact_vectors=100)
    assert not await store.build_ann_index()
    await remember(store, *texts(100))
    assert not await store.build_ann_index()
    assert names(database) == []
    await store.close()


@with_library
async def test_the_file_finds_what_the_scan_finds(database: Path) -> None:
    store = await SqliteStore.open(database, exact_vectors=500)
    await remember(store, *texts(2_000))
    queries = texts(40, seed=2)
    exact = [await nearest(store, query) for query in queries]
    assert await store.build_ann_index()
    assert names(database) == ["memory.db.vectors-1-2000"]
    other = await SqliteStore.open(database, may_write=False)
    hits = [len({*found} & {*await nearest(other, query)}) for query, found in zip(queries, exact, strict=True)]
    assert sum(hits) / (10 * len(hits)) >= 0.98
    assert list(other._vectors._caches) == [2_000]
    await other.close()
    await store.close()


@with_library
async def test_what_came_after_the_file_is_found_and_what_went_is_not(database: Path) -> None:
    store = await SqliteStore.open(database, exact_vectors=100)
    keys = await remember(store, *texts(300))
    assert await store.build_ann_index()
    assert not await store.build_ann_index()
    [new] = await remember(store, "the night ferry to Moss")
    assert (await nearest(store, "the night ferry to Moss"))[0] == new
    best = await nearest(store, "apple pear plum fig", k=5)
    for key in best[:2]:
        await change(store, key, **{DELETED_AT: START_MS})
    await change(store, best[2], text="apple pear plum fig, in other words")
    await remember(store, "one more")
    assert set(best[:2]).isdisjoint(found := await nearest(store, "apple pear plum fig", k=300))
    assert (await nearest(store, "apple pear plum fig, in other words"))[0] == best[2]
    assert len(found) == len(set(found)) == len(keys)
    await store.close()


@with_library
@pytest.mark.parametrize("most", [100, 20_000])
async def test_agents_and_sessions_find_their_own_few_vectors_among_many(
    database: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(vectors, "_MOST_SUGGESTED", most)
    store = await SqliteStore.open(database, exact_vectors=100)
    few = await remember(store, *texts(5), scope=Scope(agent="coach", session="gym"))
    own = await remember(store, *texts(7), scope=Scope(session="home"))
    many = await remember(store, *texts(2_000))
    assert await store.build_ann_index()
    for scope, expected in [
        (Scope(agent="coach"), few),
        (Scope(agent="coach", session="gym"), few),
        (Scope(session="home"), own),
        (Scope(owner="ann"), []),
    ]:
        assert sorted(await nearest(store, "apple", scope=scope)) == expected
    assert set(await nearest(store, "apple", k=3_000)) == {*own, *many}
    await store.close()


@with_library
async def test_a_file_grows_by_what_is_new_and_replaces_the_one_before(database: Path, few: None) -> None:
    store = await SqliteStore.open(database, exact_vectors=50)
    await remember(store, *texts(60))
    assert await store.build_ann_index()
    await remember(store, *texts(25, seed=3))
    assert not await store.build_ann_index()
    await remember(store, *texts(25, seed=4))
    assert await store.build_ann_index()
    assert names(database) == ["memory.db.vectors-1-110"]
    assert len(await nearest(store, "apple", k=200)) == 110
    await store.close()


@with_library
async def test_a_sweep_removes_the_file_and_with_it_what_was_erased(database: Path) -> None:
    store = await SqliteStore.open(database, exact_vectors=50)
    keys = await remember(store, "the canary sings", *texts(60))
    [canary] = packed(hashed_vector("the canary sings")[None])
    assert await store.build_ann_index()
    await nearest(store, "canary")

    def holding() -> list[str]:
        return [path.name for path in database.parent.iterdir() if canary in path.read_bytes()]

    assert "memory.db.vectors-1-61" in holding()
    async with store.write() as transaction:
        record = await transaction.records.record(Scope(), f"msg_{keys[0]}")
        assert record is not None
        await transaction.records.purge(record, now_ms=START_MS)
    await store.sweep()
    assert names(database) == []
    assert holding() == []
    assert keys[0] not in await nearest(store, "the canary sings", k=100)
    assert await store.build_ann_index()
    assert holding() == []
    await store.close()


@with_library
async def test_a_sweep_while_a_file_is_built_leaves_nothing_of_it(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kalito_mcp.storage.sqlite.ann_file import AnnFileBuilder  # noqa: PLC0415 - only where the library is

    store = await SqliteStore.open(database, exact_vectors=50)
    await remember(store, *texts(60))
    save = AnnFileBuilder.save

    def swept_then_saved(builder: AnnFileBuilder) -> None:
        for path in all_files(database):
            path.unlink()
        save(builder)

    def saved_then_swept(builder: AnnFileBuilder) -> None:
        save(builder)
        for path in all_files(database):
            path.unlink()

    for either in (swept_then_saved, saved_then_swept):
        monkeypatch.setattr(AnnFileBuilder, "save", either)
        assert not await store.build_ann_index()
        assert names(database) == []
    await store.close()


@with_library
@pytest.mark.parametrize("content", [b"", b"no index at all" * 1_000])
async def test_an_invalid_vector_file_is_ignored(database: Path, content: bytes) -> None:
    store = await SqliteStore.open(database, exact_vectors=50)
    keys = await remember(store, *texts(60))
    file_of(database, 1, 60).write_bytes(content)
    assert sorted(await nearest(store, "apple", k=100)) == keys
    await store.close()


@with_library
async def test_a_file_that_knows_more_than_the_database_is_passed_over(database: Path) -> None:
    store = await SqliteStore.open(database, exact_vectors=50)
    keys = await remember(store, *texts(60))
    assert await store.build_ann_index()
    file_of(database, 1, 60).rename(file_of(database, 1, 61))
    assert sorted(await nearest(store, "apple", k=100)) == keys
    await store.close()


async def test_without_the_library_the_scan_serves_any_number(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_caches, "is_installed", lambda: False)
    store = await SqliteStore.open(database, exact_vectors=10)
    keys = await remember(store, *texts(60))
    assert not await store.build_ann_index()
    assert sorted(await nearest(store, "apple", k=100)) == keys
    await store.close()


def test_a_file_is_named_after_its_index_and_its_last_row(tmp_path: Path) -> None:
    database = tmp_path / "odd [name]*?.db"
    assert newest_key(database, 1) is None
    for last in (9, 10, "7.new", "12.building"):
        file_of(database, 1, last).touch()
    file_of(database, 2, 99).touch()
    file_of(tmp_path / "odd nname.db", 1, 50).touch()
    assert newest_key(database, 1) == 10
    assert len(list(all_files(database))) == 5


@with_library
async def test_a_read_only_process_builds_nothing(database: Path) -> None:
    store = await SqliteStore.open(database, exact_vectors=50)
    await remember(store, *texts(60))
    await store.close()
    reading = await SqliteStore.open(database, exact_vectors=50, may_write=False)
    assert not await reading.build_ann_index()
    assert names(database) == []
    await reading.close()


@with_library
async def test_what_was_scanned_is_let_go_when_a_file_takes_its_place(database: Path) -> None:
    store = await SqliteStore.open(database, exact_vectors=50)
    await remember(store, *texts(60), scope=Scope(session="home"))
    await nearest(store, "apple")
    assert list(store._vectors._caches) == [0]
    assert await store.build_ann_index()
    await nearest(store, "apple")
    assert list(store._vectors._caches) == [60]
    await store.close()


@with_library
@pytest.mark.parametrize("error", [OSError("no space left"), RuntimeError("failed to write")])
async def test_a_file_that_cannot_be_written_is_said_so_and_nothing_of_it_stays(
    database: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    from kalito_mcp.storage.sqlite.ann_file import AnnFileBuilder  # noqa: PLC0415 - only where the library is

    def fail(builder: AnnFileBuilder) -> None:
        raise error

    monkeypatch.setattr(AnnFileBuilder, "save", fail)
    store = await SqliteStore.open(database, exact_vectors=50)
    keys = await remember(store, *texts(60))
    with pytest.raises(StorageError, match="free some space"):
        await store.build_ann_index()
    assert names(database) == []
    assert sorted(await nearest(store, "apple", k=100)) == keys
    await store.close()
