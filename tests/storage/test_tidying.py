"""The text index gets a segment with each write. Tidying merges them, and changes nothing that is found."""

from pathlib import Path

import anyio
import pytest

from kalito_mcp import NewMessage, Role, open_memory
from kalito_mcp.domain.scope import LOCAL_OWNER, Scope
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.storage.sqlite.maintenance import MaintenanceOfSqlite
from kalito_mcp.storage.sqlite.segments import FEW_SEGMENTS, SELECT_SEGMENT_COUNT
from kalito_mcp.upkeep import owed_worker
from tests import drafts
from tests.index_reads import counts_of
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio
TRIP = Scope(session="trip")
FRUIT = ("apple", "pear", "plum", "fig")


async def _write(store: SqliteStore, count: int) -> None:
    for number in range(count):
        async with store.transaction() as transaction:
            session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
            text = f"{FRUIT[number % 4]} {FRUIT[number % 3]} {number}"
            await transaction.conversations.append_messages(session, [drafts.message(text)], now_ms=START_MS)


async def _segments(store: SqliteStore) -> int:
    async with store.view() as view:
        [[count]] = await view.connection.execute_fetchall(SELECT_SEGMENT_COUNT)
    return int(count)


async def _found(store: SqliteStore) -> list[list[tuple[int, int]]]:
    async with store.view() as view:
        return [await counts_of(view, Scope(), term) for term in (*FRUIT, "quince")]


@pytest.mark.parametrize("pages", [1, 250])
async def test_few_segments_are_left_and_they_find_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pages: int
) -> None:
    monkeypatch.setattr("kalito_mcp.storage.sqlite.text_index._MERGED_PAGES", pages)
    store = await SqliteStore.open(tmp_path / "memory.db")
    await _write(store, 30)
    before = await _found(store)
    assert await _segments(store) > FEW_SEGMENTS
    await store.maintenance.tidy()
    assert await _segments(store) <= FEW_SEGMENTS
    assert await _found(store) == before
    await store.close()


async def test_what_is_tidy_is_left_alone(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "memory.db")
    await _write(store, 30)
    await store.maintenance.tidy()
    written = await store.revision(LOCAL_OWNER)
    await store.maintenance.tidy()
    assert await store.revision(LOCAL_OWNER) == written
    await store.close()


async def test_a_store_for_reading_is_left_alone(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "memory.db")
    await _write(store, 30)
    await store.close()
    store = await SqliteStore.open(tmp_path / "memory.db", may_write=False)
    split = await _segments(store)
    await store.maintenance.tidy()
    assert await _segments(store) == split > FEW_SEGMENTS
    await store.close()


async def test_a_memory_is_tidied_when_nothing_is_left_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tidied = anyio.Event()
    tidy = MaintenanceOfSqlite.tidy

    async def reported(chores: MaintenanceOfSqlite) -> None:
        await tidy(chores)
        async with chores._reading() as connection:
            [[count]] = await connection.execute_fetchall(SELECT_SEGMENT_COUNT)
        if count <= FEW_SEGMENTS:
            tidied.set()

    monkeypatch.setattr(owed_worker, "_QUIET_S", 0.05)
    async with open_memory(tmp_path / "memory.db") as memory:
        for number in range(12):
            await memory.record_messages("trip", [NewMessage(Role.USER, f"The fig tree of garden {number}.")])
        monkeypatch.setattr(MaintenanceOfSqlite, "tidy", reported)
        with anyio.fail_after(20):
            await tidied.wait()


async def test_a_failure_to_tidy_stops_no_later_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failed = anyio.Event()

    async def fail(_: MaintenanceOfSqlite) -> None:
        failed.set()
        raise OSError("the disk is gone")

    monkeypatch.setattr(owed_worker, "_QUIET_S", 0.0)
    monkeypatch.setattr(MaintenanceOfSqlite, "tidy", fail)
    async with open_memory(tmp_path / "memory.db") as memory:
        with anyio.fail_after(20):
            await failed.wait()
        await memory.record_messages("trip", [NewMessage(Role.USER, "The deploy key always stays in the safe.")])
        await memory.settled()
        assert "the text index was not merged" in caplog.text
        async with memory.place.store.view() as view:
            session = await view.sessions.get(TRIP)
        assert session is not None
        assert session.pinned_seq == 1
