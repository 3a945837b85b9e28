"""A store that reports each commit made through it, and otherwise behaves like the store behind it."""

import math

import anyio
import anyio.lowlevel
import pytest

from kalito_mcp.domain.scope import Scope
from kalito_mcp.errors import Conflict, InvalidInput
from kalito_mcp.ports.store import WriteTransaction
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.upkeep import watched_store
from kalito_mcp.upkeep.watched_store import WatchedStore, background_work, no_new_words
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio


async def test_each_commit_is_reported_after_it_and_nothing_else_is(store: SqliteStore) -> None:
    reported: list[int] = []
    watched = WatchedStore(store)
    watched.watch(lambda: reported.append(1))
    async with watched.write() as transaction:
        await transaction.sessions.ensure(Scope(session="trip"), now_ms=START_MS)
        assert reported == []
    assert reported == [1]
    with pytest.raises(InvalidInput):
        async with watched.write() as transaction:
            await transaction.sessions.ensure(Scope(session="tax"), now_ms=START_MS)
            raise InvalidInput("no")
    async with watched.view() as view:
        assert await view.sessions.get(Scope(session="trip")) is not None
        assert await view.sessions.get(Scope(session="tax")) is None
    assert reported == [1]


async def test_a_write_in_one_trip_is_reported_after_its_commit(store: SqliteStore) -> None:
    reported: list[int] = []
    watched = WatchedStore(store)
    watched.watch(lambda: reported.append(1))

    async def opens(transaction: WriteTransaction) -> int:
        return (await transaction.sessions.ensure(Scope(session="trip"), now_ms=START_MS)).message_count

    async def refuses(transaction: WriteTransaction) -> None:
        await transaction.sessions.ensure(Scope(session="tax"), now_ms=START_MS)
        raise InvalidInput("no")

    assert await watched.write_trip(opens) == 0
    with pytest.raises(InvalidInput):
        await watched.write_trip(refuses)
    assert reported == [1]


async def _write_in_background(watched: WatchedStore, events: list[str]) -> None:
    with background_work():
        async with watched.write():
            events.append("background")


async def test_background_work_waits_while_a_call_has_a_transaction(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched_store, "MOST_WAIT_S", math.inf)
    watched, events = WatchedStore(store), list[str]()
    async with anyio.create_task_group() as tasks, watched.view():
        tasks.start_soon(_write_in_background, watched, events)
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        events.append("call")
    assert events == ["call", "background"]


async def test_background_work_does_not_wait_for_ever(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched_store, "MOST_WAIT_S", 0.001)
    watched, events = WatchedStore(store), list[str]()
    async with watched.view():
        await _write_in_background(watched, events)
        events.append("call")
    assert events == ["background", "call"]


async def test_calls_do_not_wait_for_each_other(store: SqliteStore) -> None:
    watched = WatchedStore(store)
    async with watched.view(), watched.view(), watched.write() as transaction:
        await transaction.sessions.ensure(Scope(session="trip"), now_ms=START_MS)


async def test_everything_else_is_passed_through(store: SqliteStore) -> None:
    reported: list[int] = []
    watched = WatchedStore(store)
    watched.watch(lambda: reported.append(1))
    assert await watched.secret() == await store.secret()
    assert await watched.revision() == await store.revision()
    assert reported == []
    assert (await watched.sweep()).remaining == {}
    assert reported == [1], "the file of fast vector search must be built again"


async def test_a_write_that_the_check_refuses_is_not_begun(store: SqliteStore) -> None:
    def refuse() -> None:
        raise Conflict("paused")

    async def open_trip(transaction: WriteTransaction) -> None:
        await transaction.sessions.ensure(Scope(session="trip"), now_ms=START_MS)

    watched = WatchedStore(store, refuse)
    with pytest.raises(Conflict, match="paused"):
        await watched.write_trip(open_trip)
    with pytest.raises(Conflict, match="paused"):
        async with watched.write():
            pytest.fail("the transaction was begun")
    async with watched.view() as view:
        assert await view.sessions.get(Scope(session="trip")) is None
    with background_work():
        await watched.write_trip(open_trip)
    with no_new_words():
        await watched.write_trip(open_trip)
    with pytest.raises(Conflict, match="paused"):
        await watched.write_trip(open_trip)
