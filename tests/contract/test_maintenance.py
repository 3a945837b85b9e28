"""`ports.maintenance`: erasures are owed until nothing is left of them."""

import math
from collections.abc import Coroutine
from typing import Any

import pytest

from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.domain.scope import Scope
from kalito_mcp.ports.maintenance import OwedErasures
from kalito_mcp.ports.store import Store, WriteTransaction
from kalito_mcp.records.sessions import ensure_session
from tests import drafts
from tests.contract.conftest import Backend
from tests.index_reads import shown
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio
TRIP = Scope(session="trip")


async def message(store: Store, text: str) -> MemoryRecord:
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
        [one] = await transaction.conversations.append_messages(session, [drafts.message(text)], now_ms=START_MS)
        found = await transaction.records.record(TRIP, f"msg_{one.id}")
    assert found is not None
    return found


async def purge(store: Store, record: MemoryRecord, *keys: str) -> None:
    async with store.transaction() as transaction:
        await transaction.records.purge(record, now_ms=START_MS, text_keys=keys)


async def owed(store: Store) -> OwedErasures:
    return await store.maintenance.owed_erasures()


async def test_an_erasure_is_owed_until_it_is_finished_by_who_knew_of_it(backend: Backend) -> None:
    one, other = await backend.open(), await backend.open()
    assert await owed(one) == OwedErasures()
    for text, keys in (("secret", ["a", "b"]), ("another", ["c"])):
        await purge(one, await message(one, text), *keys)
    seen = await owed(other)
    assert seen.is_owed
    assert seen.text_keys == {"a", "b", "c"}
    await purge(one, await message(one, "a third"))
    await one.maintenance.finish_erasures()
    assert await owed(other) == await owed(one)
    await other.maintenance.finish_erasures(seen)
    left = await owed(one)
    assert left.last > seen.last
    assert left.text_keys == frozenset()
    assert dict(await one.maintenance.finish_erasures(seen)) == {}
    assert await owed(one) == left
    await one.maintenance.finish_erasures(left)
    assert await owed(one) == OwedErasures()


async def test_an_erasure_that_is_rolled_back_is_not_owed(store: Store) -> None:
    record = await message(store, "secret")
    with pytest.raises(KeyError):
        async with store.transaction() as transaction:
            await transaction.records.purge(record, now_ms=START_MS, text_keys=["a"])
            raise KeyError
    assert not (await owed(store)).is_owed


async def test_chores_keep_everything_that_was_not_erased(backend: Backend) -> None:
    stores = [await backend.open(), await backend.open()]
    kept = await message(stores[0], "We fly to Bergen.")
    await purge(stores[0], await message(stores[0], "secret"))
    chores = stores[0].maintenance
    assert dict(await chores.finish_erasures()) == {}
    await chores.tidy()
    await chores.rebuild_derived()
    assert not await chores.move_vectors()
    for store in stores:
        async with store.view() as view:
            assert await view.records.record(TRIP, kept.id) == kept
            assert len(list(await shown(view, TRIP, "bergen"))) == 1
    assert (await message(stores[1], "after")).id == "msg_3"


async def test_who_wrote_works_for_the_owner_and_nobody_claims_that_besides(backend: Backend) -> None:
    one, other = await backend.open(), await backend.open()
    await message(one, "Hello.")
    assert list(one.maintenance.held({"local"})) == ["local"]
    assert await other.maintenance.claim_owed() == {}
    is_shared = not math.isinf(one.maintenance.lease_s)
    claimed = await one.maintenance.claim_owed()
    assert list(claimed) == ["local"] * is_shared
    await one.maintenance.settle_owed(claimed)
    assert await one.maintenance.claim_owed() == {}


async def test_a_note_is_stored_and_makes_no_work(backend: Backend) -> None:
    one, other = await backend.open(), await backend.open()
    said = await message(one, "Hello.")
    await one.maintenance.settle_owed(await one.maintenance.claim_owed())

    async def count_use(transaction: WriteTransaction) -> None:
        await transaction.records.count_uses("local", {said.id: 1}, used_at=START_MS)

    before = await one.revision("local")
    await other.note(count_use)
    assert await one.revision("local") != before
    async with one.view() as view:
        used = await view.records.record(TRIP, said.id)
    assert used is not None and used.usage_count == 1
    for store in (one, other):
        assert await store.maintenance.claim_owed() == {}
    with pytest.raises(ZeroDivisionError):
        await other.note(lambda transaction: fail_after(count_use(transaction)))
    async with one.view() as view:
        assert await view.records.record(TRIP, said.id) == used


async def fail_after(work: Coroutine[Any, Any, None]) -> None:
    await work
    raise ZeroDivisionError
