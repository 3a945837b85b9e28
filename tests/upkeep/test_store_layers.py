"""The rules for every write of a memory. What else the store does, the layers pass on."""

import math

import anyio
import anyio.lowlevel
import pytest

from kalito_mcp.domain.scope import LOCAL_OWNER, Scope
from kalito_mcp.domain.sessions import Session
from kalito_mcp.errors import Conflict, InvalidInput
from kalito_mcp.ports.store import WriteTransaction
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.upkeep import store_layers
from kalito_mcp.upkeep.store_layers import CallsFirst, Pausing, Reporting, background_work, no_new_words
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio
TRIP, TAX = Scope(session="trip"), Scope(session="tax")


async def open_trip(transaction: WriteTransaction) -> Session:
    return await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)


async def refuse_tax(transaction: WriteTransaction) -> None:
    await ensure_session(transaction.sessions, TAX, now_ms=START_MS)
    raise InvalidInput("no")


@pytest.fixture
def reported() -> list[int]:
    return []


@pytest.fixture
def reporting(store: SqliteStore, reported: list[int]) -> Reporting:
    layer = Reporting(store)
    layer.watch(lambda: reported.append(1))
    return layer


async def test_each_commit_is_reported_after_it_and_nothing_else_is(reporting: Reporting, reported: list[int]) -> None:
    async def look(transaction: WriteTransaction) -> Session:
        assert reported == []
        return await open_trip(transaction)

    assert (await reporting.write(look)).message_count == 0
    assert reported == [1]
    with pytest.raises(InvalidInput):
        await reporting.write(refuse_tax)
    async with reporting.view() as view:
        assert await view.sessions.get(TRIP) is not None
        assert await view.sessions.get(TAX) is None
    assert reported == [1]


async def test_a_write_that_was_cancelled_is_reported_because_it_may_be_stored(
    reporting: Reporting, reported: list[int]
) -> None:
    async def cancel() -> None:
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        await reporting.write(open_trip, before=cancel)
    assert reported == [1]


async def _write_in_background(layer: CallsFirst, events: list[str]) -> None:
    async def note(_: WriteTransaction) -> None:
        events.append("background")

    with background_work():
        await layer.write(note)


async def test_background_work_waits_while_a_call_has_a_transaction(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_layers, "MOST_WAIT_S", math.inf)
    layer, events = CallsFirst(store), list[str]()
    async with anyio.create_task_group() as tasks, layer.view():
        tasks.start_soon(_write_in_background, layer, events)
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        events.append("call")
    assert events == ["call", "background"]


async def test_background_work_does_not_wait_for_ever(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_layers, "MOST_WAIT_S", 0.001)
    layer, events = CallsFirst(store), list[str]()
    async with layer.view():
        await _write_in_background(layer, events)
        events.append("call")
    assert events == ["background", "call"]


async def test_calls_do_not_wait_for_each_other(store: SqliteStore) -> None:
    layer = CallsFirst(store)
    async with layer.view(), layer.view():
        await layer.write(open_trip)


async def test_everything_else_is_passed_on(reporting: Reporting, store: SqliteStore, reported: list[int]) -> None:
    assert await reporting.secret() == await store.secret()
    assert await reporting.revision(LOCAL_OWNER) == await store.revision(LOCAL_OWNER)
    assert reported == []
    assert await reporting.maintenance.finish_erasures() == {}
    assert reported == [1], "the file of fast vector search must be built again"


async def test_a_write_that_the_check_refuses_is_not_begun(store: SqliteStore) -> None:
    def refuse() -> None:
        raise Conflict("paused")

    layer = Pausing(store, refuse)
    with pytest.raises(Conflict, match="paused"):
        await layer.write(open_trip)
    async with layer.view() as view:
        assert await view.sessions.get(TRIP) is None
    with background_work():
        await layer.write(open_trip)
    with no_new_words():
        await layer.write(open_trip)
    with pytest.raises(Conflict, match="paused"):
        await layer.write(open_trip)
