"""Which pins are new to a session."""

import pytest

from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import NO_LIMITS, Limits, Scope
from kalito_mcp.editing.plans import planned_erasure
from kalito_mcp.editing.writing import erase_record
from kalito_mcp.errors import RecordNotFound
from kalito_mcp.pins.adding import add_new_pins
from kalito_mcp.ports.conversations import PinDraft
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite.database import SqliteStore
from tests import drafts
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio
TRIP = Scope(session="trip")


async def add(store: SqliteStore, *batch: PinDraft, scope: Scope = TRIP, limits: Limits = NO_LIMITS) -> int:
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, scope, now_ms=START_MS)
        return await add_new_pins(transaction, session, batch, limits=limits)


async def pinned(store: SqliteStore) -> list[str]:
    async with store.view() as view:
        found = await view.records.list_records(TRIP, frozenset({RecordType.PIN}), limit=9)
    return sorted(one.id for one in found)


async def test_a_client_key_is_pinned_once(store: SqliteStore) -> None:
    first = drafts.pin("a", record_id="pin_1", client_key="k")
    twice = [drafts.pin("a", record_id=f"pin_{n}", client_key="k2") for n in (2, 3)]
    assert await add(store, first) == 1
    assert await add(store, drafts.pin("a", record_id="pin_4", client_key="k"), *twice) == 1
    assert await add(store, drafts.pin("a", record_id="pin_5"), drafts.pin("a", record_id="pin_6")) == 2
    assert await pinned(store) == ["pin_1", "pin_2", "pin_5", "pin_6"]


async def test_what_was_erased_or_forgotten_is_not_pinned_again(store: SqliteStore) -> None:
    await add(store, drafts.pin("secret"))
    async with store.transaction() as transaction:
        record = await transaction.records.record(Scope(), "pin_secret")
        assert record is not None
        await erase_record(transaction.records, "local", record, planned_erasure(record, []), now_ms=START_MS)
        await transaction.records.forget_values(Scope(), {"boat"}, now_ms=START_MS)
    batch = [drafts.pin(text, record_id=f"again {text}") for text in ("secret", "Boat!", "boots")]
    assert await add(store, *batch) == 1
    assert await pinned(store) == ["again boots"]


async def test_what_was_forgotten_beyond_the_limits_may_be_pinned(store: SqliteStore) -> None:
    await add(store, scope=Scope(session="garden", project="garden"))
    async with store.transaction() as transaction:
        await transaction.records.forget_values(Scope(project="garden"), {"boat"}, now_ms=START_MS)
    assert await add(store, drafts.pin("boat", record_id="one")) == 0
    assert await add(store, drafts.pin("boat", record_id="two"), limits=Limits(project="shop")) == 1


async def test_a_pin_that_supersedes_what_does_not_exist_is_refused(store: SqliteStore) -> None:
    await add(store, drafts.pin("old"))
    with pytest.raises(RecordNotFound, match="record 'pin_none' does not exist"):
        await add(store, drafts.pin("new", supersedes=("pin_old", "pin_none")))
    assert await pinned(store) == ["pin_old"]
    assert await add(store, drafts.pin("new", supersedes=("pin_old",))) == 1
