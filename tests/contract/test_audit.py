"""`ports.audit`: a transaction says what it changed."""

from collections.abc import Sequence

import pytest

from kalito_mcp.domain.audit import Change
from kalito_mcp.domain.memory_records import DELETED_AT, MemoryRecord
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import LOCAL_OWNER, Scope
from kalito_mcp.ports.store import Store, WriteTransaction
from tests import drafts
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio


async def note(transaction: WriteTransaction, text: str) -> MemoryRecord:
    draft = drafts.record(RecordType.THOUGHT, text, record_id=text)
    [added] = await transaction.records.add_records(Scope(), [draft], now_ms=START_MS)
    return added


async def test_what_was_done_to_each_record_is_told_apart_and_counts_once(store: Store) -> None:
    async def changed(transaction: WriteTransaction) -> tuple[str, Sequence[Change]]:
        edited, forgotten, restored, erased, _ = [await note(transaction, text) for text in "abcde"]
        restored = await transaction.records.change(restored, drafts.edit(restored, {DELETED_AT: START_MS}))

        async def work() -> str:
            once = await transaction.records.change(edited, drafts.edit(edited, {"text": "Bees."}))
            await transaction.records.change(once, drafts.edit(once, {"text": "Wasps."}))
            await transaction.records.change(forgotten, drafts.edit(forgotten, {DELETED_AT: START_MS}))
            await transaction.records.change(restored, drafts.edit(restored, {DELETED_AT: None}))
            await transaction.records.purge(erased, now_ms=START_MS)
            new = await note(transaction, "new")
            await transaction.records.change(new, drafts.edit(new, {"text": "Newer."}))
            return "done"

        return await transaction.audit.changes_of(work)

    result, changes = await store.write(changed)
    assert result == "done"
    assert {one.what: (one.count, one.ids) for one in changes} == {
        "added": (1, ("new",)),
        "changed": (1, ("a",)),
        "forgotten": (1, ("b",)),
        "restored": (1, ("c",)),
        "erased": (1, ("d",)),
    }


async def test_only_the_changes_of_the_work_are_noticed(store: Store) -> None:
    async def two_notices(transaction: WriteTransaction) -> list[Sequence[Change]]:
        await note(transaction, "before")
        _, first = await transaction.audit.changes_of(lambda: note(transaction, "first"))
        await note(transaction, "between")
        _, second = await transaction.audit.changes_of(lambda: note(transaction, "second"))
        return [first, second]

    async def nothing(transaction: WriteTransaction) -> Sequence[Change]:
        await note(transaction, "alone")
        return (await transaction.audit.changes_of(lambda: transaction.records.has_forgotten_values(LOCAL_OWNER)))[1]

    assert await store.write(two_notices) == [[Change("added", 1, ("first",))], [Change("added", 1, ("second",))]]
    assert await store.write(nothing) == []
