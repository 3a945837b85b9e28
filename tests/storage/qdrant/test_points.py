"""What is asked of a server, and what happens if it refuses, hangs, is gone or comes back. The server is no Qdrant."""

import logging
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from kalito_mcp.domain.findings import Verdict
from kalito_mcp.errors import ConfigurationError, VectorsUnreachable
from kalito_mcp.ports.embedder import VectorPolicy
from kalito_mcp.ports.vector_points import FoundPoint
from kalito_mcp.storage.qdrant import points
from kalito_mcp.storage.qdrant.collections import MODULE, best_first
from kalito_mcp.storage.qdrant.points import QdrantPoints, configured_points
from kalito_mcp.storage.sqlite.database import SqliteStore
from tests.contract.test_vectors import HASHED, TRIP, append, change, nearest, opened, pay, purge
from tests.qdrant import needs_qdrant, stored_rows
from tests.qdrant_server import QdrantServer, serving
from tests.scripted import ScriptedClock
from tests.scripted_embedder import hashed_vector

pytestmark = [pytest.mark.anyio, needs_qdrant]
KEY: Final = "a-key-that-nobody-may-see"


@pytest.fixture
def server() -> Iterator[QdrantServer]:
    with serving() as one:
        yield one


@pytest.fixture
def clock() -> ScriptedClock:
    return ScriptedClock()


def points_at(url: str, clock: ScriptedClock, *, key_in: str = "", timeout_s: float = 20.0) -> QdrantPoints:
    policy = VectorPolicy(qdrant=url, qdrant_api_key_env=key_in, qdrant_timeout_s=timeout_s)
    found = configured_points(policy, clock.steady_s)
    assert found is not None
    return found


async def outage(store: SqliteStore) -> str | None:
    async with store.view() as view:
        found = await view.vectors.nearest(TRIP, HASHED, hashed_vector("apple"), k=5)
        assert not (found and view.vectors.outage)
        return view.vectors.outage


async def test_over_http_vectors_are_moved_found_compared_and_removed(
    database: Path, server: QdrantServer, clock: ScriptedClock
) -> None:
    models: Any = import_module(f"{MODULE}.models")
    server.client.create_collection("messages", vectors_config=models.VectorParams(size=3, distance="Dot"))
    server.client.upsert("messages", points=[models.PointStruct(id=1, vector=[1.0, 2.0, 3.0], payload={"row": 1})])
    store = await SqliteStore.open(database, points=points_at(server.url, clock))
    keys = await append(store, "apple", "pear", "plum")
    await pay(store, await opened(store))
    assert not await store.maintenance.move_vectors()
    found = await nearest(store, "apple")
    assert (found[0], len(found)) == (keys[0], 3)
    await change(store, keys[1], text="ferry")
    await purge(store, keys[0])
    assert dict(await store.maintenance.finish_erasures()) == {}
    assert await nearest(store, "plum") == [keys[2]]
    await store.close()
    assert len(stored_rows(server.client)) == 2, "and the point of somebody else's collection"
    assert server.keys == {None}
    filters = [body["filter"]["must"] for _, path, body in server.asked if path.endswith(("/query", "/count"))]
    named = [{one["key"]: one["match"]["value"] for one in must if "key" in one} for must in filters]
    assert len({one["database"] for one in named}) == 1
    assert {"database", "index", "owner", "agent", "session"} in [set(one) for one in named]
    changing = [path for method, path, _ in server.asked if path.partition("?")[0].endswith(("/points", "/delete"))]
    assert changing and all("wait=true" in path for path in changing)
    assert all(body["params"]["exact"] for _, path, body in server.asked if path.endswith("/query"))


async def test_without_an_answer_nothing_is_lost_and_no_writer_waits(
    database: Path, server: QdrantServer, clock: ScriptedClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kalito.qdrant")
    store = await SqliteStore.open(database, points=points_at(server.url, clock))
    keys = await append(store, "apple", "pear")
    index = await opened(store)
    await pay(store, index)
    await store.maintenance.move_vectors()
    server.status = 503
    assert f"Qdrant at {server.url} answered with status 503" in str(await outage(store))
    keys += await append(store, "apple pie")
    await pay(store, index)
    await purge(store, keys[1])
    asked = len(server.asked)
    with pytest.raises(VectorsUnreachable):
        await store.maintenance.move_vectors()
    assert await outage(store) is not None
    assert len(server.asked) == asked, "it is not asked again so soon"
    remaining = await store.maintenance.finish_erasures()
    assert list(remaining) == [f"Qdrant at {server.url}"]
    assert "may still have vectors of what was erased" in remaining[f"Qdrant at {server.url}"]
    server.status = 200
    assert await outage(store) is not None
    clock.advance(5.1)
    assert await outage(store) is None
    assert set(await nearest(store, "apple")) == {keys[0], keys[2]}
    assert not await store.maintenance.move_vectors()
    assert len(stored_rows(server.client)) == 2
    assert dict(await store.maintenance.finish_erasures()) == {}
    await store.close()
    lines = [record.getMessage() for record in caplog.records if record.name == "kalito.qdrant"]
    assert [line.split(":")[0] for line in lines] == ["search goes on by words only", "Qdrant at http"]
    assert lines[1].endswith("answers again")


async def test_a_search_waits_no_longer_than_the_setting(
    database: Path, server: QdrantServer, clock: ScriptedClock
) -> None:
    store = await SqliteStore.open(database, points=points_at(server.url, clock, timeout_s=0.1))
    await append(store, "apple")
    await pay(store, await opened(store))
    await store.maintenance.move_vectors()
    server.is_hanging = True
    assert str(await outage(store)) == f"Qdrant at {server.url} did not answer within 0.1 s"
    assert await append(store, "pear")
    server.goes_on.set()
    await store.close()


async def test_while_qdrant_takes_its_time_others_write_and_read(
    database: Path, server: QdrantServer, clock: ScriptedClock
) -> None:
    store = await SqliteStore.open(database, points=points_at(server.url, clock))
    await append(store, "apple")
    index = await opened(store)
    await pay(store, index)
    server.is_hanging = True
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.maintenance.move_vectors)
        while not server.asked:
            await anyio.lowlevel.checkpoint()
        keys = await append(store, "pear")
        await pay(store, index)
        assert len(await nearest(store, "pear")) == 2
        await purge(store, keys[0])
        server.is_hanging = False
        server.goes_on.set()
    assert len(await nearest(store, "pear")) == 1
    await store.close()
    assert len(stored_rows(server.client)) == 1


async def test_a_question_that_is_cancelled_is_no_outage(server: QdrantServer, clock: ScriptedClock) -> None:
    points = points_at(server.url, clock)
    server.is_hanging = True
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:

            async def cancel_when_asked() -> None:
                while not server.asked:
                    await anyio.lowlevel.checkpoint()
                scope.cancel()

            tasks.start_soon(cancel_when_asked)
            await points.count("x")
    server.is_hanging = False
    server.goes_on.set()
    assert await points.count("x") == 0
    await points.aclose()


async def test_nobody_at_the_address_is_said_with_what_to_do(database: Path, clock: ScriptedClock) -> None:
    with serving() as gone:
        url = gone.url
    points = points_at(url, clock)
    with pytest.raises(VectorsUnreachable, match=r"cannot be reached \(ConnectError: .*\); check that it runs"):
        await points.count("x")
    await points.aclose()
    found = points_at(url, clock).inspect(database)
    assert found.verdict is Verdict.WARNING
    assert "cannot be reached" in found.detail and "words only" in found.detail


@pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")
async def test_the_key_comes_from_the_variable_and_is_in_no_message(
    server: QdrantServer, clock: ScriptedClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    points = points_at(server.url, clock, key_in="KALITO_TEST_KEY")
    with pytest.raises(VectorsUnreachable, match="set the environment variable KALITO_TEST_KEY"):
        await points.count("x")
    monkeypatch.setenv("KALITO_TEST_KEY", KEY)
    clock.advance(6)
    assert await points.count("x") == 0
    assert server.keys == {KEY}
    server.status = 401
    with pytest.raises(VectorsUnreachable, match=r"refuses the key \(status 401\)") as refused:
        await points.count("x")
    assert KEY not in f"{refused.value!r}{refused.value.__cause__!r}{caplog.text}"
    await points.aclose()


async def test_a_collection_that_was_deleted_there_is_made_and_filled_again(
    database: Path, server: QdrantServer, clock: ScriptedClock
) -> None:
    store = await SqliteStore.open(database, points=points_at(server.url, clock))
    await append(store, "apple", "pear")
    index = await opened(store)
    await pay(store, index)
    await store.maintenance.move_vectors()
    server.client.delete_collection("kalito_messages_64")
    assert "status 404" in str(await outage(store))
    for _ in range(2):  # after each failure, Qdrant is left alone for longer
        clock.advance(4.9)
        asked = len(server.asked)
        assert await outage(store) is not None
        assert len(server.asked) == asked
        clock.advance(0.2)
        assert "status 404" in str(await outage(store))
        clock.advance(5)
    clock.advance(60)
    assert await store.maintenance.move_vectors(), "some are missing"
    await pay(store, index)
    assert not await store.maintenance.move_vectors()
    assert len(await nearest(store, "apple")) == 2
    await store.close()


def test_the_newest_of_equals_comes_first_although_their_last_digits_differ() -> None:
    found = [FoundPoint(bytes([row]), row, cosine) for row, cosine in ((1, 0.5), (2, 0.5 - 2e-7), (3, 0.5 - 9e-7))]
    assert [(one.row_key, one.cosine) for one in best_first(found)] == [(2, 0.5), (1, 0.5), (3, 0.5 - 9e-7)]


@pytest.mark.parametrize(
    ("url", "variable"),
    [
        *((url, "") for url in ("http://ann:secret@host:6333", "https://host?key=secret", "ftp://secret", "~/secret")),
        ("http://host", "sk-secret!"),
    ],
)
def test_wrong_settings_are_refused_without_repeating_them(url: str, variable: str) -> None:
    with pytest.raises(ConfigurationError, match=r"models\.qdrant") as refused:
        configured_points(VectorPolicy(qdrant=url, qdrant_api_key_env=variable))
    assert "secret" not in str(refused.value)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(points, "find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=r"install kalito-mcp\[qdrant\]"):
        configured_points(VectorPolicy(qdrant="http://localhost:6333"))
