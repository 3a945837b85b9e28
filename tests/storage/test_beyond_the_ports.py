"""What SQLite does besides what the ports promise: it checks values, and lets other tasks go while it reads."""

import sqlite3
from contextlib import closing
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from kalito_mcp.domain.graph import GraphChanges
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.errors import InvalidInput, StorageError
from kalito_mcp.ports.store import Store
from kalito_mcp.records.sessions import ensure_session
from tests import drafts
from tests.contract.test_graphs import node
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio
TRIP = Scope(session="trip")


async def test_a_stage_that_there_is_not_is_refused_and_the_one_before_stays(store: Store) -> None:
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
        await transaction.sessions.set_stage(session, "sleep")
    with pytest.raises(StorageError):
        async with store.transaction() as transaction:
            await transaction.sessions.set_stage(session, "lunch")
    async with store.view() as view:
        kept = await view.sessions.get(TRIP)
    assert kept is not None
    assert kept.stage == "sleep"


async def test_a_damaged_record_is_reported_to_its_owner_alone(store: Store, database: Path) -> None:
    async with store.transaction() as transaction:
        for owner in ("local", "eve"):
            place = Scope(owner, session="trip")
            session = await ensure_session(transaction.sessions, place, now_ms=START_MS)
            await transaction.conversations.append_messages(session, [drafts.message("one")], now_ms=START_MS)
            task = drafts.record(RecordType.TASK, owner)
            await transaction.records.add_records(Scope(owner), [task], now_ms=START_MS)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE records SET hash = x'00'")
        connection.commit()
    everything = ["msg_1", "msg_3", "task_local", "task_eve"]
    async with store.view() as view:
        assert await view.records.damaged(Scope(), everything) == ["msg_1", "task_local"]
        assert await view.records.damaged(Scope("eve"), everything) == ["msg_3", "task_eve"]
        assert await view.records.damaged(Scope("nobody"), everything) == []


async def test_a_name_that_is_no_unicode_text_is_refused_in_words(store: Store) -> None:
    with pytest.raises(InvalidInput):
        async with store.view() as view:
            await view.sessions.get(Scope(session="\ud800"))
    with pytest.raises(InvalidInput):
        async with store.view() as view:
            await view.sessions.list_recent(Scope(), prefix="\ud800", limit=1)
    with pytest.raises(InvalidInput):
        async with store.transaction() as transaction:
            await ensure_session(transaction.sessions, Scope(session="\ud800"), now_ms=START_MS)
    async with store.transaction() as transaction:
        assert (await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)).message_count == 0


async def test_the_event_loop_goes_on_while_a_graph_is_loaded(store: Store) -> None:
    async with store.transaction() as transaction:
        many = GraphChanges(nodes=[node(f"n{number}") for number in range(3_000)])
        await transaction.graphs.save(Scope(), many, embedder="test")
    turns = 0

    async def turn() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(turn)
        async with store.view() as view:
            await view.graphs.load(Scope())
        tasks.cancel_scope.cancel()
    assert turns > 10
