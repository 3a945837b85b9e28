"""Owed vectors are made, whatever fails meanwhile; another embedder's index waits for a rebuild."""

import logging
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Final

import anyio
import pytest

from kalito_mcp.domain.scope import Scope
from kalito_mcp.errors import Conflict, ModelReplyInvalid, ModelUnavailable
from kalito_mcp.ports.embedder import VectorPolicy
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.upkeep import vector_worker
from kalito_mcp.upkeep.vector_worker import VectorWorker
from tests import drafts
from tests.scripted import START_MS
from tests.scripted_embedder import ScriptedEmbedder, hashed_vector, refusing
from tests.server import prepared

pytestmark = pytest.mark.anyio
TRIP: Final = Scope(session="trip")
ROOT: Final = Path(__file__).parents[2]
PROGRAM: Final = Path(__file__).with_name("rebuild_until_killed.py")


async def append(store: SqliteStore, *texts: str) -> list[int]:
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
        batch = [drafts.message(text) for text in texts]
        appended = await transaction.conversations.append_messages(session, batch, now_ms=START_MS)
        return [one.id for one in appended]


def worker_of(store: SqliteStore, embedder: ScriptedEmbedder, *, batch: int = 4) -> VectorWorker:
    return VectorWorker(store, embedder, VectorPolicy(batch=batch))


@asynccontextmanager
async def running(worker: VectorWorker) -> AsyncIterator[None]:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker.run)
        yield
        tasks.cancel_scope.cancel()


async def indexes(store: SqliteStore) -> dict[str, tuple[bool, int]]:
    """By fingerprint: whether the index is active, and how many vectors it has."""
    async with store.view() as view:
        return {
            one.fingerprint: (one.is_active, await view.vectors.count(one.fingerprint))
            for one in await view.vectors.indexes()
        }


async def nearest(store: SqliteStore, query: str, fingerprint: str = "scripted:64") -> list[int]:
    async with store.view() as view:
        found = await view.vectors.nearest(TRIP, fingerprint, hashed_vector(query), k=100)
    return [key for key, _ in found]


def vectors(database: Path) -> list[tuple[object, ...]]:
    """Every vector, and what is kept of the indexes."""
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
        return connection.execute(
            "SELECT i.fingerprint, i.state, v.record_key, v.agent_key, v.session_key, v.vector "
            "FROM vector_indexes i JOIN record_vectors v ON v.index_key = i.key ORDER BY i.state, v.record_key"
        ).fetchall()


async def test_what_an_earlier_process_owed_is_paid_in_batches_newest_first(store: SqliteStore) -> None:
    keys = await append(store, *(f"text {n}" for n in range(10)))
    sizes: list[int] = []
    embedder = ScriptedEmbedder(before=lambda texts: sizes.append(len(texts)))
    worker = worker_of(store, embedder)
    async with running(worker):
        await worker.settled()
    assert sizes == [4, 4, 2]
    assert embedder.asked == [f"text {n}" for n in range(9, -1, -1)]
    assert sorted(await nearest(store, "text")) == keys


async def test_a_nudge_pays_what_is_new(store: SqliteStore) -> None:
    embedder = ScriptedEmbedder()
    worker = worker_of(store, embedder)
    async with running(worker):
        await worker.settled()
        assert (embedder.asked, await indexes(store)) == ([], {})
        for text in ("apple", "pear"):
            keys = await append(store, text)
            worker.nudge()
            await worker.settled()
            assert (await nearest(store, text))[0] == keys[0]
    assert embedder.asked == ["apple", "pear"]


async def test_a_nudge_while_it_works_is_not_lost(store: SqliteStore) -> None:
    await append(store, "apple")
    is_asked, may_go_on = anyio.Event(), anyio.Event()

    class SlowEmbedder(ScriptedEmbedder):
        async def embed(self, texts: Sequence[str], *, is_query: bool = False):  # type: ignore[no-untyped-def]
            is_asked.set()
            await may_go_on.wait()
            return await super().embed(texts)

    worker = worker_of(store, SlowEmbedder())
    async with running(worker):
        await is_asked.wait()
        await append(store, "pear")
        worker.nudge()
        may_go_on.set()
        await worker.settled()
        assert await indexes(store) == {"scripted:64": (True, 2)}


async def test_an_unavailable_model_is_logged_once_and_asked_again_at_the_next_nudge(
    store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    def gone(texts: Sequence[str]) -> None:
        raise ModelUnavailable("start it")

    caplog.set_level(logging.INFO, "kalito.vectors")
    embedder = ScriptedEmbedder(before=gone)
    worker = worker_of(store, embedder)
    await append(store, "the password of the printer")
    async with running(worker):
        for _ in range(3):
            worker.nudge()
            await worker.settled()
        assert len(caplog.records) == 1
        embedder.before = lambda texts: None
        worker.nudge()
        await worker.settled()
    assert await indexes(store) == {"scripted:64": (True, 1)}
    assert len(caplog.records) == 2
    assert "start it" in caplog.text
    assert "printer" not in caplog.text


async def test_the_worker_survives_whatever_an_embedder_raises(
    store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(texts: Sequence[str]) -> None:
        raise ZeroDivisionError

    await append(store, "apple")
    embedder = ScriptedEmbedder(before=broken)
    worker = worker_of(store, embedder)
    async with running(worker):
        for _ in range(2):
            worker.nudge()
            await worker.settled()
        embedder.before = lambda texts: None
        worker.nudge()
        await worker.settled()
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert await indexes(store) == {"scripted:64": (True, 1)}


async def test_a_rebuild_from_scratch_makes_each_vector_again_and_keeps_another_embedders(
    store: SqliteStore,
) -> None:
    await append(store, "apple", "pear")
    await worker_of(store, ScriptedEmbedder("first")).pay()
    embedder = ScriptedEmbedder("second")
    await worker_of(store, embedder).rebuild(lambda done, total: None)
    grown = ScriptedEmbedder("second", dimension=96)
    await worker_of(store, grown).rebuild(lambda done, total: None, is_anew=True)
    assert grown.asked[1:] == ["pear", "apple"]
    assert await indexes(store) == {"second": (True, 2)}
    seen: list[dict[str, tuple[bool, int]]] = []

    class WatchedEmbedder(ScriptedEmbedder):
        async def embed(self, texts: Sequence[str], *, is_query: bool = False):  # type: ignore[no-untyped-def]
            seen.append(await indexes(store))
            return await super().embed(texts)

    await worker_of(store, WatchedEmbedder("third")).rebuild(lambda done, total: None, is_anew=True)
    assert [one["second"] for one in seen] == [(True, 2), (True, 2)]
    assert await indexes(store) == {"third": (True, 2)}


async def test_an_unavailable_model_is_asked_again_without_a_nudge(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_worker, "_RETRY_AFTER_S", 0.001)
    tries = 0
    is_back = anyio.Event()

    def gone_twice(texts: Sequence[str]) -> None:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise ModelUnavailable("start it")
        is_back.set()

    await append(store, "apple")
    async with running(worker_of(store, ScriptedEmbedder(before=gone_twice))):
        with anyio.fail_after(30):
            await is_back.wait()


async def test_pauses_grow_and_have_an_end(store: SqliteStore) -> None:
    worker = worker_of(store, ScriptedEmbedder())
    assert worker._pause_s() == float("inf")
    pauses = []
    for failures in (1, 2, 3, 10, 10_000):
        worker._failures = failures
        pauses.append(worker._pause_s())
    assert pauses == [5, 10, 20, 600, 600]


async def test_a_text_that_the_model_refuses_does_not_block_the_others(store: SqliteStore) -> None:
    keys = await append(store, "apple", "unspeakable", "pear")
    worker = worker_of(store, ScriptedEmbedder(before=refusing("unspeakable")))
    await worker.pay()
    async with store.view() as view:
        found = await view.vectors.similarities(Scope(), "scripted:64", hashed_vector("unspeakable"), keys)
    assert found[keys[1]] == 0
    assert await indexes(store) == {"scripted:64": (True, 3)}


async def test_a_model_that_refuses_everything_stores_nothing(store: SqliteStore) -> None:
    await append(store, "apple", "pear")
    for texts in (["apple", "pear"], ["pear"]):
        worker = worker_of(store, ScriptedEmbedder(before=refusing(*texts)), batch=len(texts))
        with pytest.raises(ModelReplyInvalid):
            await worker.pay()
    assert await indexes(store) == {}


async def test_another_embedders_index_is_neither_added_to_nor_replaced_until_a_rebuild(
    store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    keys = await append(store, "apple", "pear")
    await worker_of(store, ScriptedEmbedder("first")).pay()
    await append(store, "plum")
    embedder = ScriptedEmbedder("second")
    second = worker_of(store, embedder)
    for _ in range(2):
        await second.pay()
    assert embedder.asked == []
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "reindex" in caplog.text
    assert await nearest(store, "apple", "first") == keys
    reports: list[tuple[int, int]] = []
    await second.rebuild(lambda done, total: reports.append((done, total)))
    assert reports == [(0, 3), (3, 3)]
    assert await indexes(store) == {"second": (True, 3)}
    assert len(await nearest(store, "apple", "second")) == 3
    await append(store, "quince")
    await second.pay()
    assert await indexes(store) == {"second": (True, 4)}


async def test_the_old_index_is_served_and_kept_complete_while_the_new_one_is_built(store: SqliteStore) -> None:
    await append(store, "apple", "pear", "plum", "quince", "fig")
    first = worker_of(store, ScriptedEmbedder("first"))
    await first.pay()
    seen: list[dict[str, tuple[bool, int]]] = []

    class WatchedEmbedder(ScriptedEmbedder):
        async def embed(self, texts: Sequence[str], *, is_query: bool = False):  # type: ignore[no-untyped-def]
            if len(seen) == 2:
                await append(store, "late")
                await first.pay()
            seen.append(await indexes(store))
            return await super().embed(texts)

    await worker_of(store, WatchedEmbedder("second"), batch=2).rebuild(lambda done, total: None)
    assert [one["first"] for one in seen] == [(True, 5), (True, 5), (True, 6), (True, 6)]
    assert [one["second"] for one in seen[1:]] == [(False, 0), (False, 2), (False, 4)]
    assert await indexes(store) == {"second": (True, 6)}


async def test_the_index_of_an_embedder_that_this_one_replaces_gives_way_to_its_own(store: SqliteStore) -> None:
    await append(store, "We fly to Oslo.", "The cat sleeps.")
    await worker_of(store, ScriptedEmbedder()).pay()
    await worker_of(store, ScriptedEmbedder("better:64", replaces=("scripted",))).pay()
    assert await indexes(store) == {"better:64": (True, 2)}

    await worker_of(store, ScriptedEmbedder()).pay()
    assert await indexes(store) == {"better:64": (True, 2)}, "it does not go back by itself"


async def test_of_what_is_new_the_newest_is_embedded_first_and_nothing_is_skipped(store: SqliteStore) -> None:
    await append(store, "The first record opens the index.")
    embedder = ScriptedEmbedder()
    await worker_of(store, embedder, batch=2).pay()
    texts = [f"Message {number} of an import." for number in range(7)]
    await append(store, *texts)

    def killed(asked: Sequence[str]) -> None:
        if texts[3] in asked:
            raise ModelUnavailable("the process is killed here")

    embedder.before = killed
    with pytest.raises(ModelUnavailable):
        await worker_of(store, embedder, batch=2).pay()
    await append(store, "What is said meanwhile goes first.")
    embedder.before = lambda texts: None
    await worker_of(store, embedder, batch=2).pay()
    assert [*embedder.asked[1:]] == [texts[6], texts[5], "What is said meanwhile goes first.", *texts[4::-1]]
    assert await indexes(store) == {"scripted:64": (True, 9)}


async def test_each_batch_gives_way_to_calls_first(store: SqliteStore) -> None:
    await append(store, *"We fly to Oslo. The cat sleeps. It rains.".split(". "))
    done: list[str] = []

    async def give_way() -> None:
        done.append("calls")

    embedder = ScriptedEmbedder(before=lambda texts: done.append("batch"))
    await VectorWorker(store, embedder, VectorPolicy(batch=2), give_way).pay()
    assert done == ["calls", "batch"] * 2


async def test_a_rebuild_that_another_embedders_rebuild_overtook_says_so(store: SqliteStore) -> None:
    await append(store, "apple", "pear", "plum")
    await worker_of(store, ScriptedEmbedder("first")).pay()
    third = worker_of(store, ScriptedEmbedder("third"))

    class OvertakenEmbedder(ScriptedEmbedder):
        async def embed(self, texts: Sequence[str], *, is_query: bool = False):  # type: ignore[no-untyped-def]
            if "plum" in texts:
                await third.rebuild(lambda done, total: None)
            return await super().embed(texts)

    with pytest.raises(Conflict, match="again"):
        await worker_of(store, OvertakenEmbedder("second")).rebuild(lambda done, total: None)
    assert await indexes(store) == {"third": (True, 3)}


async def test_two_processes_that_embed_the_same_records_leave_one_vector_each(
    store: SqliteStore, database: Path
) -> None:
    await append(store, *(f"text {n}" for n in range(20)))
    other = await SqliteStore.open(database)
    async with anyio.create_task_group() as tasks:
        for side in (store, other):
            tasks.start_soon(worker_of(side, ScriptedEmbedder()).pay)
    assert await indexes(store) == {"scripted:64": (True, 20)}
    await other.close()


@pytest.mark.parametrize("batches", [0, 1, 3, 5])
async def test_a_killed_rebuild_resumes_and_ends_equal_to_a_fresh_one(
    store: SqliteStore, database: Path, tmp_path: Path, batches: int
) -> None:
    texts = [f"text {n}" for n in range(21)]
    keys = await append(store, *texts)
    await worker_of(store, ScriptedEmbedder("first")).pay()
    command = [sys.executable, str(PROGRAM), str(database), str(batches)]
    killed = prepared.run(command, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert (await indexes(store)).get("second", (False, 0)) == (False, 4 * batches)
    assert sorted(await nearest(store, "text", "first")) == keys
    embedder = ScriptedEmbedder("second")
    await worker_of(store, embedder).rebuild(lambda done, total: None)
    assert len(embedder.asked) == 1 + 21 - 4 * batches
    fresh = await SqliteStore.open(tmp_path / "fresh.db")
    await append(fresh, *texts)
    await worker_of(fresh, ScriptedEmbedder("second")).rebuild(lambda done, total: None)
    assert vectors(database) == vectors(tmp_path / "fresh.db")
    await fresh.close()


async def test_vectors_of_a_dropped_index_that_a_killed_rebuild_left_are_cleared(
    store: SqliteStore, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_worker, "_CLEARED_AT_ONCE", 2)
    await append(store, "apple", "pear", "plum")
    first = worker_of(store, ScriptedEmbedder("first"))
    await first.pay()
    async with store.transaction() as transaction:
        [index] = await transaction.vectors.indexes()
        await transaction.vectors.drop(index.fingerprint)
    assert len(vectors(database)) == 3
    await worker_of(store, ScriptedEmbedder("second")).pay()
    assert {row[0] for row in vectors(database)} == {"second"}
