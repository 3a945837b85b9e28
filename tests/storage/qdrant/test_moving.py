"""Vectors move to Qdrant and leave it again, whatever is killed, erased, lost, copied or shared meanwhile."""

import shutil
import sqlite3
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, closing
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.to_thread
import numpy as np
import pytest

from kalito_mcp.domain.findings import Verdict
from kalito_mcp.domain.memory_records import DELETED_AT
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.ports.embedder import VectorPolicy
from kalito_mcp.ports.vector_points import VectorPoint
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.qdrant.collections import MODULE
from kalito_mcp.storage.qdrant.points import QdrantPoints
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.storage.sqlite.inspection import inspect
from kalito_mcp.storage.vector_rows import packed
from kalito_mcp.upkeep.vector_worker import VectorWorker
from tests import drafts
from tests.contract.test_vectors import (
    HASHED,
    TRIP,
    append,
    change,
    nearest,
    opened,
    owed_keys,
    pay,
    purge,
)
from tests.qdrant import NAME, LocalClient, SharedCollections, needs_qdrant, points_of, stored_rows
from tests.qdrant_server import serving
from tests.scripted import START_MS
from tests.scripted_embedder import ScriptedEmbedder, hashed_vector
from tests.server import prepared
from tests.server.wire import clean_environment
from tests.storage.conftest import ROOT

pytestmark = [pytest.mark.anyio, needs_qdrant]
PROGRAM: Final = Path(__file__).with_name("move_until_killed.py")


@pytest.fixture
def client() -> LocalClient:
    return LocalClient()


@asynccontextmanager
async def store_of(path: Path, points: QdrantPoints | None) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(path, points=points)
    try:
        yield store
    finally:
        await store.close()


def query(path: Path, statement: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        return connection.execute(statement).fetchall()


def lengths(path: Path) -> list[int]:
    return [row[0] for row in query(path, "SELECT length(vector) FROM record_vectors ORDER BY key")]


async def test_vectors_leave_the_database_and_are_found_as_before(database: Path, client: LocalClient) -> None:
    async with store_of(database, None) as store:
        keys = await append(store, *(f"apple {n}" for n in range(300)), "the ferry to Moss")
        await pay(store, await opened(store), limit=300)
        before = await nearest(store, "the ferry to Moss", k=20)
    assert set(lengths(database)) == {64}
    async with store_of(database, points_of(client)) as store:
        assert await nearest(store, "the ferry to Moss", k=20) == before, "nothing was moved yet"
        assert not await store.maintenance.move_vectors()
        assert await nearest(store, "the ferry to Moss", k=20) == before
        assert set(lengths(database)) == {16}
        [vector] = packed(hashed_vector("the ferry to Moss")[np.newaxis])
        assert len(stored_rows(client)) == len(keys)
        new = await append(store, "a ferry to Horten")
        await pay(store, await opened(store))
        assert (await nearest(store, "a ferry to Horten"))[0] == new[0], "what waits to be moved is compared here"
        assert lengths(database)[-1] == 64
        await store.maintenance.finish_erasures()
    assert not [path for path in database.parent.rglob("*") if path.is_file() and vector in path.read_bytes()]
    assert {
        finding.verdict for finding in inspect(database, is_deep=True, embedder=ScriptedEmbedder(HASHED), place=NAME)
    } == {Verdict.OK}


async def test_each_type_has_its_collection_and_no_point_says_a_name_or_a_text(
    database: Path, client: LocalClient
) -> None:
    async with store_of(database, points_of(client)) as store:
        scope = Scope(owner="ann@example.org", agent="coach", session="gym")
        async with store.transaction() as transaction:
            session = await ensure_session(transaction.sessions, scope, now_ms=START_MS)
            await transaction.conversations.append_messages(session, [drafts.message("said")], now_ms=START_MS)
            await transaction.conversations.add_pins(session, [drafts.pin("pinned")])
            await transaction.conversations.add_summaries(session, [drafts.summary(1, 1, text="summed")])
            own = [
                drafts.record(RecordType.THOUGHT, "thought"),
                drafts.record(RecordType.DOCUMENT, "written", source="a.md", chunk_index=0, document_id="d"),
                drafts.record(RecordType.TASK, "to do"),
            ]
            await transaction.records.add_records(scope, own, now_ms=START_MS)
        await pay(store, await opened(store))
        await store.maintenance.move_vectors()
        async with store.view() as view:
            assert len(await view.vectors.nearest(scope, HASHED, hashed_vector("x"), k=9)) == 6
            other = Scope(owner="bob", agent="coach", session="gym")
            assert await view.vectors.nearest(other, HASHED, hashed_vector("x"), k=9) == []
        secret = (await store.secret()).hex()
    names = {f"kalito_{name}_64" for name in ("messages", "thoughts", "documents", "tasks", "pins", "summaries")}
    assert {one.name for one in client.get_collections().collections} == names
    for name in names:
        [point], _ = client.scroll(name, limit=9, with_payload=True)
        assert set(point.payload) <= {"database", "owner", "agent", "index", "session", "row"}
        told = f"{point.id} {point.payload}"
        assert not [word for word in ("ann", "coach", "gym", "said", secret) if word in told]


async def test_what_is_changed_forgotten_or_erased_leaves_qdrant(database: Path, client: LocalClient) -> None:
    async with store_of(database, points_of(client)) as store:
        keys = await append(store, "apple", "pear", "plum", "quince")
        await pay(store, await opened(store))
        await store.maintenance.move_vectors()
        await change(store, keys[0], text="ferry")
        await change(store, keys[1], **{DELETED_AT: START_MS})
        await purge(store, keys[2])
        assert await nearest(store, "apple") == [keys[3]], "a point without its row is no hit"
        assert len(stored_rows(client)) == 4
        assert (await store.maintenance.owed_erasures()).is_left_elsewhere
        await store.maintenance.move_vectors()
        assert len(stored_rows(client)) == 1
        assert not (await store.maintenance.owed_erasures()).is_left_elsewhere


class Interrupted(QdrantPoints):
    """Does something right after points were put, before the database notes it."""

    after_put: Callable[[], Awaitable[None]] | None = None

    async def put(self, points: Sequence[VectorPoint]) -> None:
        await super().put(points)
        if self.after_put is not None:
            await self.after_put()


async def test_what_is_erased_while_its_vector_is_on_the_way_leaves_qdrant(database: Path, client: LocalClient) -> None:
    points = Interrupted(NAME, SharedCollections(client), timeout_s=30)
    async with store_of(database, points) as store:
        keys = await append(store, "apple", "pear")
        await pay(store, await opened(store))
        points.after_put = lambda: purge(store, keys[0])
        await store.maintenance.move_vectors()
        points.after_put = None
        assert await nearest(store, "apple") == [keys[1]]
        await store.maintenance.move_vectors()
        assert len(stored_rows(client)) == 1
        assert dict(await store.maintenance.finish_erasures()) == {}


async def test_a_copy_that_goes_its_own_way_never_gets_the_others_vectors(database: Path, client: LocalClient) -> None:
    async with store_of(database, points_of(client)) as store:
        await append(store, "apple")
        await pay(store, await opened(store))
        await store.maintenance.move_vectors()
    copy = database.with_name("copy.db")
    shutil.copy(database, copy)
    async with store_of(database, points_of(client)) as store, store_of(copy, points_of(client)) as other:
        [mine] = await append(store, "the ferry to Moss")
        [theirs] = await append(other, "a harbour in Oslo")
        assert mine == theirs, "both give it the same number"
        for one in (store, other):
            await pay(one, await opened(one))
            await one.maintenance.move_vectors()
        asked = hashed_vector("the ferry to Moss")
        for one, text in ((store, "the ferry to Moss"), (other, "a harbour in Oslo")):
            own = {1: float(asked @ hashed_vector("apple")), mine: float(asked @ hashed_vector(text))}
            async with one.view() as view:
                found = dict(await view.vectors.nearest(TRIP, HASHED, asked, k=5))
                same = await view.vectors.similarities(TRIP, HASHED, asked, [1, mine])
            assert found == same == {key: pytest.approx(own[key], abs=0.01) for key in found}
            assert found, "one may have removed what it does not know, but nothing is found in the other's place"


async def test_points_that_belong_to_no_row_are_removed_and_missing_ones_owed(
    database: Path, client: LocalClient
) -> None:
    async with store_of(database, points_of(client)) as store:
        keys = await append(store, "apple", "pear", "plum", "fig")
        index = await opened(store)
        await pay(store, index)
        await store.maintenance.move_vectors()
        name = "kalito_messages_64"
        [gone, extra, *_], _ = client.scroll(name, limit=9, with_vectors=True)
        models = import_module(f"{MODULE}.models")
        strange = models.PointStruct(
            id="00000000-0000-0000-0000-000000000001", vector=extra.vector, payload=extra.payload
        )
        client.delete(name, points_selector=[gone.id])
        assert not await store.maintenance.move_vectors(is_whole=False)
        client.upsert(name, points=[strange, strange.model_copy(update={"id": strange.id[:-1] + "2"})])
        assert len(await nearest(store, "apple")) == 3, "a point that no row names is no hit"
        assert await store.maintenance.move_vectors(is_whole=True)
        assert len(await owed_keys(store, index)) == 1
        await pay(store, index)
        assert not await store.maintenance.move_vectors(is_whole=True)
        assert set(await nearest(store, "apple")) == set(keys)
        assert len(stored_rows(client)) == 4


async def test_without_the_setting_words_are_searched_and_reindex_brings_the_vectors_back(
    database: Path, client: LocalClient
) -> None:
    embedder = ScriptedEmbedder()
    async with store_of(database, points_of(client)) as store:
        keys = await append(store, "apple", "pear", "plum")
        await VectorWorker(store, embedder, VectorPolicy()).pay()
    async with store_of(database, None) as store:
        worker = VectorWorker(store, embedder, VectorPolicy())
        await worker.pay()
        async with store.view() as view:
            assert await view.vectors.nearest(TRIP, embedder.fingerprint, hashed_vector("apple"), k=5) == []
            assert await view.vectors.similarities(TRIP, embedder.fingerprint, hashed_vector("apple"), keys) == {}
            assert view.vectors.outage is not None and "models.qdrant is not set" in view.vectors.outage
        findings = list(inspect(database, is_deep=True, embedder=embedder))
        assert [one.detail for one in findings if one.verdict is Verdict.WARNING] == [
            f"kept in {NAME}, but models.qdrant is not set: search uses words only. To change that, set it, or run "
            "`kalito-mcp reindex --vectors` to keep them in the database again"
        ]
        await worker.rebuild(lambda done, total: None)
        assert (await nearest(store, "apple", fingerprint=embedder.fingerprint))[0] == keys[0]
        assert set(lengths(database)) == {64}
        remaining = await store.maintenance.finish_erasures()
        assert "has 3 vectors of what was erased or changed" in remaining[NAME]
    async with store_of(database, points_of(client)) as store:
        await store.maintenance.move_vectors()
        assert dict(await store.maintenance.finish_erasures()) == {}
        assert len(stored_rows(client)) == 3
        assert set(lengths(database)) == {16}


async def test_under_another_name_the_same_qdrant_is_recognised_and_another_is_filled(
    database: Path, client: LocalClient
) -> None:
    embedder = ScriptedEmbedder()
    async with store_of(database, points_of(client)) as store:
        await append(store, "apple", "pear", "plum")
        await VectorWorker(store, embedder, VectorPolicy()).pay()
        embedder.asked.clear()
        await purge(store, 1)
    async with store_of(database, points_of(client, "Qdrant at its other name")) as store:
        await VectorWorker(store, embedder, VectorPolicy()).pay()
        assert (embedder.asked, len(stored_rows(client))) == ([], 2)
    other = LocalClient()
    async with store_of(database, points_of(other, "Qdrant elsewhere")) as store:
        worker = VectorWorker(store, embedder, VectorPolicy())
        await worker.pay()
        assert sorted(embedder.asked) == ["pear", "plum"]
        assert len(stored_rows(other)) == 2
        await purge(store, 2)
        remaining = await store.maintenance.finish_erasures()
        assert list(remaining) == ["Qdrant at its other name"]
        assert "names another place" in remaining["Qdrant at its other name"]
        assert len(stored_rows(other)) == 1
    async with store_of(database, points_of(client, "Qdrant at its other name")) as store:
        await VectorWorker(store, embedder, VectorPolicy()).pay()
        assert len(stored_rows(client)) == 1


async def test_a_dropped_index_leaves_qdrant_when_it_is_cleared(database: Path, client: LocalClient) -> None:
    async with store_of(database, points_of(client)) as store:
        await append(store, "apple", "pear", "plum")
        first, second = ScriptedEmbedder(), ScriptedEmbedder("second", 32)
        await VectorWorker(store, first, VectorPolicy()).pay()
        await VectorWorker(store, second, VectorPolicy()).rebuild(lambda done, total: None)
        assert len(stored_rows(client)) == 3
        async with store.view() as view:
            found = await view.vectors.nearest(TRIP, "second", hashed_vector("apple", 32), k=5)
        assert len(found) == 3
    assert query(database, "SELECT count(*) FROM vector_moves") == [(1,)]


@pytest.mark.parametrize("point", ["vectors.put", "vectors.removed"])
async def test_what_was_killed_between_qdrant_and_the_database_is_finished_by_the_next_process(
    database: Path, point: str
) -> None:
    with serving() as server:
        command = [sys.executable, str(PROGRAM), str(database), server.url]
        environment = clean_environment(KALITO_CRASH_POINT=point)
        killed = await anyio.to_thread.run_sync(
            lambda: prepared.run(command, cwd=ROOT, env=environment, check=False, capture_output=True, timeout=60)
        )
        assert killed.returncode < 0, killed.stderr
        async with store_of(database, points_of(server.client, f"Qdrant at {server.url}")) as store:
            assert len(await nearest(store, "apple", k=99)) == (3 if point == "vectors.put" else 2)
            await purge(store, 2)
            assert dict(await store.maintenance.finish_erasures()) == {}
            await pay(store, await opened(store))
            assert not await store.maintenance.move_vectors(is_whole=True)
            assert {len(stored_rows(server.client)), len(lengths(database))} == {2}
    assert query(database, "SELECT count(*) FROM vector_leftovers") == [(0,)]
