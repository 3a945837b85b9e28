"""What a new record, or an edit, is refused for, because of other records."""

from collections.abc import Sequence
from typing import Any

import pytest

from kalito_mcp.domain.memory_records import EditType, MemoryRecord, RecordDraft
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import Limits, Scope
from kalito_mcp.editing.plans import planned_erasure
from kalito_mcp.editing.writing import add_new_records, change_record, erase_record
from kalito_mcp.errors import ClientKeyReused, Conflict, InvalidInput, RecordNotFound
from kalito_mcp.records.sessions import ensure_session
from kalito_mcp.storage.sqlite.database import SqliteStore
from tests import drafts
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio
TRIP = Scope(session="trip")
REQUEST = "request:" + "a" * 24 + ":"


async def add(store: SqliteStore, *batch: RecordDraft, scope: Scope = TRIP) -> Sequence[MemoryRecord]:
    async with store.transaction() as transaction:
        if scope.session is not None:
            await ensure_session(transaction.sessions, scope, now_ms=START_MS)
        return await add_new_records(transaction.records, scope, batch, now_ms=START_MS)


async def change(store: SqliteStore, record: MemoryRecord, **changes: Any) -> MemoryRecord:
    async with store.transaction() as transaction:
        return await change_record(transaction.records, "local", record, drafts.edit(record, changes))


async def read(store: SqliteStore, record_id: str) -> MemoryRecord | None:
    async with store.view() as view:
        return await view.records.record(Scope(), record_id)


def task(text: str, **fields: Any) -> RecordDraft:
    return drafts.record(RecordType.TASK, text, **fields)


@pytest.mark.parametrize("scope", [TRIP, Scope()])
async def test_a_known_client_key_gives_its_record_back(store: SqliteStore, scope: Scope) -> None:
    [one] = await add(store, task("pack", client_key="k"), scope=scope)
    again = await add(store, task("pack", record_id="x", client_key="k"), task("go"), scope=scope)
    assert [again[0], again[1].id] == [one, "task_go"]
    with pytest.raises(ClientKeyReused):
        await add(store, task("other", client_key="k"), scope=scope)
    assert [await read(store, "x"), await read(store, "task_other")] == [None, None]


@pytest.mark.parametrize("scope", [TRIP, Scope()])
async def test_the_key_of_a_request_is_chosen_for_one_request(store: SqliteStore, scope: Scope) -> None:
    first, other = (REQUEST + letter * 16 + ":0" for letter in "bc")
    [one] = await add(store, task("pack", client_key=first), scope=scope)
    assert list(await add(store, task("in other words", client_key=first), scope=scope)) == [one]
    with pytest.raises(ClientKeyReused):
        await add(store, task("other", client_key=other), scope=scope)


async def test_a_cause_that_the_owner_does_not_have_is_refused(store: SqliteStore) -> None:
    await add(store, task("theirs"), scope=Scope("eve"))
    [own] = await add(store, task("own"))
    for unknown in ("task_theirs", "msg_999", "nothing"):
        with pytest.raises(RecordNotFound, match=f"no record '{unknown}' for caused_by"):
            await change(store, own, caused_by=unknown)
        with pytest.raises(RecordNotFound):
            await add(store, task("never", caused_by=unknown))
    assert await read(store, own.id) == own
    assert await read(store, "task_never") is None


async def test_a_cause_may_be_an_earlier_draft(store: SqliteStore) -> None:
    one, two = task("one"), task("two", caused_by="task_one")
    with pytest.raises(RecordNotFound):
        await add(store, two, one)
    assert (await add(store, one, two))[1].content["caused_by"] == "task_one"


async def test_a_cause_beyond_the_limits_does_not_exist(store: SqliteStore) -> None:
    await add(store, task("dig"), scope=Scope(project="garden"))
    shop = Scope(project="shop", limits=Limits(project="shop"))
    with pytest.raises(RecordNotFound, match="no record 'task_dig' for caused_by"):
        await add(store, task("sell", caused_by="task_dig"), scope=shop)


async def test_a_cause_that_closes_a_circle_is_refused(store: SqliteStore) -> None:
    [first, _, last] = await add(store, task("first"), task("second", caused_by="task_first"), task("third"))
    await change(store, last, caused_by="task_second")
    for effect in ("task_first", "task_second", "task_third"):
        with pytest.raises(Conflict, match=f"task_first led to {effect}, so {effect} cannot be its cause"):
            await change(store, first, caused_by=effect)


async def test_only_records_of_the_same_agent_and_project_are_superseded(store: SqliteStore) -> None:
    for scope in (Scope(), Scope(agent="coach"), Scope(project="shop")):
        await add(store, task(f"{scope.agent} {scope.project}"), scope=scope)
    for named in ("task_coach None", "task_None shop", "nothing", "task_new"):
        with pytest.raises(RecordNotFound, match=f"record '{named}' does not exist"):
            await add(store, task("new", supersedes=[named]), scope=Scope())
    [new] = await add(store, task("new", supersedes=["task_None None"]), scope=Scope())
    with pytest.raises(RecordNotFound):
        await change(store, new, supersedes=["task_None None", "nothing"])
    assert await read(store, new.id) == new


async def test_the_same_part_of_a_source_is_refused_in_words(store: SqliteStore) -> None:
    def part(text: str) -> RecordDraft:
        return drafts.record(RecordType.DOCUMENT, text, source="a.md", chunk_index=0)

    await add(store, part("one"), scope=Scope(project="shop"))
    with pytest.raises(Conflict, match="this part of the source, is stored already"):
        await add(store, part("two"), scope=Scope(project="shop"))
    [elsewhere] = await add(store, part("three"), scope=Scope())
    with pytest.raises(Conflict, match=r"has a document of the source 'a\.md' already"):
        await change(store, elsewhere, project="shop")
    assert await read(store, elsewhere.id) == elsewhere


@pytest.mark.parametrize("scope", [TRIP, Scope()])
async def test_what_is_for_a_whole_project_needs_one(store: SqliteStore, scope: Scope) -> None:
    with pytest.raises(InvalidInput, match="needs a project"):
        await add(store, task("never", scope="project"), scope=scope)
    [plain] = await add(store, task("plain"), scope=scope)
    with pytest.raises(InvalidInput, match="needs a project"):
        await change(store, plain, scope="project")
    assert await read(store, plain.id) == plain


async def test_an_earlier_version_comes_back_without_its_project(store: SqliteStore) -> None:
    [kept] = await add(store, task("kept", scope="project"), scope=Scope(project="shop"))
    edit = drafts.edit(kept, {"project": None}, edit_type=EditType.REVERT)
    async with store.transaction() as transaction:
        assert (await change_record(transaction.records, "local", kept, edit)).project is None


async def test_a_text_of_its_type_that_was_erased_is_refused(store: SqliteStore) -> None:
    [secret] = await add(store, task("secret"))
    async with store.transaction() as transaction:
        await erase_record(transaction.records, "local", secret, planned_erasure(secret, []), now_ms=START_MS + 9)
    with pytest.raises(Conflict, match=r"a task with this text \(6 characters\) was erased for good on 2026-03-04"):
        await add(store, task("boots"), task("secret"))
    assert await read(store, "task_boots") is None
    assert len(await add(store, drafts.record(RecordType.THOUGHT, "secret"))) == 1
    assert len(await add(store, task("secret", record_id="t"), scope=Scope("eve"))) == 1
