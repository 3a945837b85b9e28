"""`ports.records`: records of every type are read, changed, forgotten and erased."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import anyio
import pytest

from kalito_mcp.domain.memory_records import (
    DELETED_AT,
    SYSTEM_EDITOR,
    Editor,
    EditorType,
    EditType,
    MemoryRecord,
    RecordDraft,
    versions,
)
from kalito_mcp.domain.records import Origin, RecordType, Role, SummaryMethod, Visibility
from kalito_mcp.domain.scope import LOCAL_OWNER, PERSONAL, Scope
from kalito_mcp.domain.search import Candidate, SearchFilters
from kalito_mcp.domain.sessions import Session
from kalito_mcp.domain.validation import message_number
from kalito_mcp.errors import RecordNotFound, RevisionConflict
from kalito_mcp.ports.conversations import AppendedMessage, MessageDraft, PinDraft, SummaryDraft
from kalito_mcp.ports.records import AlreadyStored, ErasedText, ForgottenValue
from kalito_mcp.ports.store import Store
from kalito_mcp.records.sessions import ensure_session
from tests import drafts
from tests.contract.conftest import Backend
from tests.index_reads import record_count, shown
from tests.scripted import START_MS

pytestmark = pytest.mark.anyio
TRIP = Scope(session="trip")
FORGET = {DELETED_AT: START_MS + 5}
RESTORE = {DELETED_AT: None}
OWN_TYPES = [RecordType.THOUGHT, RecordType.DOCUMENT, RecordType.TASK]
FIELDS: Mapping[RecordType, Mapping[str, Any]] = {
    RecordType.THOUGHT: {"visibility": "internal", "message_type": "planning", "related_to": ["msg_1"]},
    RecordType.DOCUMENT: {
        "title": "Guide",
        "source": "guide.md",
        "content_type": "text/markdown",
        "file_type": "md",
        "chunk_index": 0,
        "total_chunks": 2,
        "document_id": "document_1",
    },
    RecordType.TASK: {"status": "pending", "priority": "high", "due_date": "2026-03-05", "assigned_to": "Ann"},
}


async def session_of(store: Store, scope: Scope = TRIP) -> Session:
    async with store.transaction() as transaction:
        return await ensure_session(transaction.sessions, scope, now_ms=START_MS)


async def append(store: Store, *batch: MessageDraft, scope: Scope = TRIP) -> Sequence[AppendedMessage]:
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, scope, now_ms=START_MS)
        return await transaction.conversations.append_messages(session, batch, now_ms=START_MS)


async def add(store: Store, *batch: RecordDraft, scope: Scope = TRIP) -> Sequence[MemoryRecord]:
    async with store.transaction() as transaction:
        if scope.session is not None:
            await ensure_session(transaction.sessions, scope, now_ms=START_MS)
        return await transaction.records.add_records(scope, batch, now_ms=START_MS)


async def add_pin(store: Store, draft: PinDraft, scope: Scope = TRIP) -> MemoryRecord:
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, scope, now_ms=START_MS)
        await transaction.conversations.add_pins(session, [draft])
        found = await transaction.records.record(scope, draft.id)
    assert found is not None
    return found


async def add_summaries(store: Store, *batch: SummaryDraft) -> None:
    session = await session_of(store)
    async with store.transaction() as transaction:
        for draft in batch:
            await transaction.conversations.add_summaries(session, [draft])


async def read(store: Store, record_id: str, scope: Scope = TRIP) -> MemoryRecord:
    async with store.view() as view:
        found = await view.records.record(scope, record_id)
    assert found is not None
    return found


async def message(store: Store, text: str, **fields: Any) -> MemoryRecord:
    [appended] = await append(store, drafts.message(text, **fields))
    return await read(store, f"msg_{appended.id}")


async def change(store: Store, record: MemoryRecord, changes: Mapping[str, Any], **how: Any) -> MemoryRecord:
    async with store.transaction() as transaction:
        return await transaction.records.change(record, drafts.edit(record, changes, **how))


async def purge(store: Store, *records: MemoryRecord) -> None:
    async with store.transaction() as transaction:
        for record in records:
            await transaction.records.purge(record, now_ms=START_MS + 9, texts=[record.text])


async def found(store: Store, term: str, scope: Scope = TRIP, **filters: Any) -> list[Candidate]:
    async with store.view() as view:
        return list(await shown(view, scope, term, filters=SearchFilters(**filters)))


# Reading one


async def test_a_message_comes_back_whole_with_every_field(store: Store) -> None:
    details = {
        "message_type": "note",
        "attachments": [{"name": "map.png"}],
        "vision_response_for": "msg_1",
        "tags": ["travel", "ø"],
        "visibility": "internal",
        "critical": True,
    }
    record = await message(
        store,
        "We fly to Oslo.",
        role=Role.ASSISTANT,
        name="Ann",
        created_at=START_MS - 10,
        importance=0.65,
        model_id="llama3.2",
        token_usage=17,
        client_key="k1",
        origin=Origin.IMPORT,
        client="editor",
        details=details,
    )
    assert record.content == {
        **details,
        "text": "We fly to Oslo.",
        "importance_score": 0.65,
        "name": "Ann",
        "model_id": "llama3.2",
        "token_usage": 17,
    }
    assert (record.type, record.role, record.seq, record.client_key) == (RecordType.MESSAGE, Role.ASSISTANT, 1, "k1")
    assert (record.origin, record.client) == (Origin.IMPORT, "editor")
    assert (record.created_at, record.recorded_at, record.revision) == (START_MS - 10, START_MS, 1)
    assert (record.agent_id, record.session_id, record.usage_count, record.led_to) == ("default", "trip", 0, ())


@pytest.mark.parametrize(
    ("role", "origin"), [(Role.USER, Origin.USER), (Role.ASSISTANT, Origin.ASSISTANT), (Role.SYSTEM, Origin.TOOL)]
)
async def test_the_origin_of_a_message_is_its_roles_unless_it_is_said(store: Store, role: Role, origin: Origin) -> None:
    assert (await message(store, "a", role=role)).origin is origin
    assert (await message(store, "b", role=role, origin=origin)).origin is origin
    assert (await message(store, "c", role=role, origin=Origin.DOCUMENT)).origin is Origin.DOCUMENT
    async with store.view() as view:
        session = await view.sessions.get(TRIP)
        assert session is not None
        shown = await view.conversations.messages(session, first_seq=1, last_seq=3)
    assert [one.origin for one in shown] == [origin, origin, Origin.DOCUMENT]


async def test_a_pin_and_a_summary_come_back_whole(store: Store) -> None:
    source = await message(store, "We fly to Oslo.")
    draft = drafts.pin("Oslo", source_message_id=source.id, origin=Origin.TOOL, client="editor", client_key="k")
    pin = await add_pin(store, draft)
    assert pin.content == {
        "text": "Oslo",
        "importance_score": 0.8,
        "pin_type": "manual",
        "source_message_id": source.id,
    }
    assert (pin.origin, pin.client, pin.client_key, pin.seq) == (Origin.TOOL, "editor", "k", None)
    await add_summaries(store, drafts.summary(1, 1, text="Oslo.", model_id="llama3.2"))
    summary = await read(store, "summary_0_1_1")
    assert summary.content == {
        "text": "Oslo.",
        "importance_score": 0.7,
        "method": SummaryMethod.MODEL,
        "model_id": "llama3.2",
        "level": 0,
        "start_seq": 1,
        "end_seq": 1,
        "start_message_id": "msg_1",
        "end_message_id": "msg_1",
        "started_at": START_MS,
        "ended_at": START_MS,
    }


@pytest.mark.parametrize("scope", [TRIP, Scope(), Scope(agent="other")])
@pytest.mark.parametrize("kind", OWN_TYPES)
async def test_a_thought_document_or_task_comes_back_whole(store: Store, kind: RecordType, scope: Scope) -> None:
    common = {"tags": ["a", "b"], "critical": True, "importance_score": 0.25}
    fields = {**common, **FIELDS[kind]}
    draft = drafts.record(kind, "pack the boots", origin=Origin.DOCUMENT, client="editor", client_key="k", **fields)
    [added] = await add(store, draft, scope=scope)
    assert added == await read(store, draft.id, scope)
    assert added.content == {"text": "pack the boots", **fields}
    assert (added.id, added.type, added.role, added.seq) == (draft.id, kind, None, None)
    assert (added.session_id, added.agent_id) == (scope.session, scope.agent or "default")
    assert (added.origin, added.client, added.client_key, added.revision) == (Origin.DOCUMENT, "editor", "k", 1)


async def test_a_thought_is_internal_whatever_is_said(store: Store) -> None:
    [thought] = await add(store, drafts.record(RecordType.THOUGHT, "hm", visibility="chat"))
    assert thought.visibility is Visibility.INTERNAL
    assert (await change(store, thought, {"visibility": None})).visibility is Visibility.INTERNAL


async def test_records_go_to_the_scopes_session_or_to_its_agent_as_a_whole(store: Store) -> None:
    await add(store, drafts.record(RecordType.TASK, "pack"))
    await add(store, drafts.record(RecordType.TASK, "plan"), scope=Scope(agent="default"))
    assert [one.session_id for one in await found(store, "pack", Scope())] == ["trip"]
    assert [one.session_id for one in await found(store, "plan", Scope())] == [None]
    assert await found(store, "plan", TRIP) == []
    async with store.view() as view:
        assert await record_count(view, Scope()) == 2


async def test_another_owners_agents_or_sessions_record_does_not_exist(store: Store) -> None:
    mine = await message(store, "We fly to Oslo.")
    [task] = await add(store, drafts.record(RecordType.TASK, "pack"), scope=Scope())
    pin = await add_pin(store, drafts.pin("Oslo", source_message_id=mine.id))
    await session_of(store, Scope(session="other"))
    strangers = [Scope("eve"), Scope("eve", session="trip"), Scope(agent="other"), Scope(session="other")]
    async with store.view() as view:
        for scope in strangers:
            for record_id in (mine.id, task.id, pin.id, "msg_999", "none"):
                assert await view.records.record(scope, record_id) is None
        assert await view.records.record(Scope("local", "default", "trip"), mine.id) == mine
        assert await view.records.record(Scope(), task.id) == task


async def test_what_is_no_id_names_no_record(store: Store) -> None:
    await message(store, "We fly to Oslo.")
    for record_id in ("", "msg_", "msg_0", "msg_-1", "msg_01", "1", "MSG_1", "msg_" + "9" * 40, "%", "'"):
        async with store.view() as view:
            assert await view.records.record(Scope(), record_id) is None, record_id


# Reading many


async def test_records_are_listed_newest_first_page_by_page_without_the_forgotten(store: Store) -> None:
    tasks = [(await add(store, drafts.record(RecordType.TASK, f"t{n}"), scope=Scope()))[0] for n in range(5)]
    [thought] = await add(store, drafts.record(RecordType.THOUGHT, "hm"))
    await message(store, "not listed")
    await change(store, tasks[2], FORGET)
    kinds = frozenset({RecordType.TASK, RecordType.THOUGHT})
    async with store.view() as view:
        first = await view.records.list_records(Scope(), kinds, limit=3)
        second = await view.records.list_records(Scope(), kinds, after=first[-1].id, limit=3)
        of_session = await view.records.list_records(TRIP, kinds, limit=9)
        everything = await view.records.list_records(Scope(), frozenset(), limit=9)
        assert not await view.records.list_records(Scope("eve"), kinds, limit=9)
        with pytest.raises(RecordNotFound):
            await view.records.list_records(Scope(), kinds, after="none", limit=3)
    assert [one.id for one in first] == [thought.id, tasks[4].id, tasks[3].id]
    assert [one.id for one in second] == [tasks[1].id, tasks[0].id]
    assert [one.id for one in of_session] == [thought.id]
    assert [one.id for one in everything] == [one.id for one in (*first, *second)]


async def test_a_document_is_found_by_its_source_and_by_the_id_of_its_parts_in_order(store: Store) -> None:
    parts = [
        drafts.record(
            RecordType.DOCUMENT, f"part {n}", source="a.md", chunk_index=n, total_chunks=12, document_id="document_a"
        )
        for n in reversed(range(12))
    ]
    await add(store, *parts, drafts.record(RecordType.DOCUMENT, "b", source="b.md", chunk_index=0))
    await add(store, drafts.record(RecordType.DOCUMENT, "theirs", source="a.md", chunk_index=0), scope=Scope("eve"))
    await change(store, await read(store, "document_part 3"), FORGET)
    async with store.view() as view:
        for found in (await view.records.document(TRIP, "a.md"), await view.records.parts(Scope(), "document_a")):
            assert [one.text for one in found] == [f"part {n}" for n in range(12)]
            assert [one.is_deleted for one in found] == [n == 3 for n in range(12)]
        assert [one.text for one in await view.records.document(Scope("eve"), "a.md")] == ["theirs"]
        assert not await view.records.parts(Scope("eve"), "document_a")
        assert not await view.records.document(Scope(agent="other"), "a.md")


async def test_a_part_of_a_source_is_stored_once(store: Store) -> None:
    await add(store, drafts.record(RecordType.DOCUMENT, "one", source="a.md", chunk_index=0))
    with pytest.raises(AlreadyStored):
        await add(store, drafts.record(RecordType.DOCUMENT, "two", source="a.md", chunk_index=0))
    assert await found(store, "two") == []


async def test_the_pins_of_a_message_and_the_summaries_over_it_are_found(store: Store) -> None:
    texts = [drafts.message(f"m{n}") for n in range(60)]
    appended = await append(store, *texts)
    for start in (1, 16, 31, 46):
        await add_summaries(store, drafts.summary(start, start + 14))
    await add_summaries(store, drafts.summary(1, 45, level=1))
    source = await read(store, f"msg_{appended[19].id}")
    pin = await add_pin(store, drafts.pin("one", source_message_id=source.id))
    await add_pin(store, drafts.pin("two"))
    await change(store, pin, FORGET)
    async with store.view() as view:
        assert [one.id for one in await view.records.pins_of(source)] == [pin.id]
        over = await view.records.summaries_over(source)
        assert [one.id for one in over] == ["summary_0_16_30", "summary_1_1_45"]
        assert [over[0].content[name] for name in ("level", "start_seq", "end_seq")] == [0, 16, 30]
        assert [one.id for one in await view.records.summaries_over(over[0])] == ["summary_0_16_30", "summary_1_1_45"]
        last = await view.records.record(TRIP, f"msg_{appended[-1].id}")
        assert last is not None
        assert [one.id for one in await view.records.summaries_over(last)] == ["summary_0_46_60"]
        assert not await view.records.pins_of(last)
        assert not await view.records.summaries_over(pin)


# Changing one


CHANGES: list[Mapping[str, Any]] = [
    {"text": "We fly to Bergen."},
    {"importance_score": 1.0},
    {"importance_score": -0.0},
    {"tags": ["x"], "critical": True},
    {"visibility": "internal"},
    {"name": "Ben", "model_id": "other", "token_usage": None, "attachments": [{"a": [1, 2.5, None, "ø"]}]},
    FORGET,
]


@pytest.mark.parametrize("changes", CHANGES)
async def test_a_change_gives_the_new_content_and_keeps_what_was_before(
    store: Store, changes: Mapping[str, Any]
) -> None:
    before = await message(store, "We fly to Oslo.", name="Ann", model_id="m", token_usage=3, client_key="k")
    editor = Editor(EditorType.AGENT, "editor")
    after = await change(store, before, changes, editor=editor, edited_at=START_MS + 7)
    assert after == await read(store, before.id)
    assert after.content == {name: v for name, v in {**before.content, **changes}.items() if v is not None}
    assert (after.revision, after.seq, after.client_key, after.created_at) == (2, 1, "k", START_MS)
    async with store.view() as view:
        [edit] = await view.records.edits(after)
        [first, second] = versions(after, [edit])
    assert (edit.version, edit.type, edit.editor, edit.edited_at) == (2, EditType.UPDATE, editor, START_MS + 7)
    assert set(edit.before) == set(changes)
    assert (first[1], second[1]) == (before.content, after.content)


@pytest.mark.parametrize("kind", OWN_TYPES)
async def test_every_version_of_a_record_follows_from_its_edits(store: Store, kind: RecordType) -> None:
    [record] = await add(store, drafts.record(kind, "v1", **FIELDS[kind]))
    contents = [record.content]
    for number in range(2, 7):
        changes = {"text": f"v{number}", "tags": ["t"] * (number % 2) or None, "assigned_to": f"p{number}"}
        record = await change(store, record, changes, edit_type=EditType.REVERT)
        contents.append(record.content)
    async with store.view() as view:
        history = versions(record, await view.records.edits(record))
    assert [content for _, content in history] == contents
    assert [edit.version for edit, _ in history] == [1, 2, 3, 4, 5, 6]


async def test_a_summarys_place_cannot_be_changed(store: Store) -> None:
    await append(store, drafts.message("a"))
    await add_summaries(store, drafts.summary(1, 1))
    summary = await read(store, "summary_0_1_1")
    changed = await change(store, summary, {"text": "new", "level": 4, "start_seq": 9, "end_seq": 10})
    assert [changed.content[name] for name in ("text", "level", "start_seq", "end_seq")] == ["new", 0, 1, 1]
    async with store.view() as view:
        [edit] = await view.records.edits(changed)
    assert set(edit.before) == {"text"}


async def test_a_change_of_a_stale_revision_writes_nothing(store: Store) -> None:
    stale = await message(store, "We fly to Oslo.")
    current = await change(store, stale, {"text": "We fly to Bergen."})
    with pytest.raises(RevisionConflict, match="expected_revision=2") as refusal:
        await change(store, stale, {"text": "We stay."})
    assert refusal.value.current == 2
    assert await read(store, stale.id) == current
    assert len(await found(store, "bergen")) == 1
    assert await found(store, "stay") == []


async def test_of_two_stores_that_change_one_record_at_once_one_is_refused(backend: Backend) -> None:
    stores = [await backend.open(), await backend.open()]
    record = await message(stores[0], "We fly to Oslo.")
    outcomes: list[str] = []

    async def edit(store: Store, text: str) -> None:
        try:
            outcomes.append((await change(store, record, {"text": text})).text)
        except RevisionConflict:
            outcomes.append("conflict")

    async with anyio.create_task_group() as tasks:
        for store, text in zip(stores, ("We go by boat.", "We go by train."), strict=True):
            tasks.start_soon(edit, store, text)
    assert outcomes.count("conflict") == 1
    assert (await read(stores[0], record.id)).text in outcomes


async def test_a_change_that_is_rolled_back_leaves_nothing(store: Store) -> None:
    record = await message(store, "We fly to Oslo.")
    with pytest.raises(ZeroDivisionError):
        async with store.transaction() as transaction:
            changed = await transaction.records.change(record, drafts.edit(record, {"text": "We fly to Bergen."}))
            await transaction.records.purge(changed, now_ms=START_MS)
            await transaction.records.add_records(TRIP, [drafts.record(RecordType.TASK, "pack")], now_ms=START_MS)
            raise ZeroDivisionError
    assert await read(store, record.id) == record
    assert await found(store, "bergen") == await found(store, "pack") == []
    async with store.view() as view:
        assert not await view.records.edits(record)
        assert await view.records.tombstone(TRIP, record.id) is None


async def test_search_follows_a_change_at_once(store: Store) -> None:
    record = await message(store, "We fly to Oslo.", name="Ann")
    record = await change(store, record, {"text": "We sail to Bergen.", "name": "Ben"})
    assert [one.text for one in await found(store, "bergen")] == ["We sail to Bergen."]
    assert [len(await found(store, term)) for term in ("oslo", "ann", "ben", "sail", "we")] == [0, 0, 1, 1, 1]
    record = await change(store, record, FORGET)
    assert [len(await found(store, term)) for term in ("bergen", "ben", "we")] == [0, 0, 0]
    await change(store, record, RESTORE)
    assert [len(await found(store, term)) for term in ("bergen", "ben", "we", "oslo")] == [1, 1, 1, 0]


# Forgetting


async def test_what_is_forgotten_is_in_no_context_and_no_count_until_it_is_restored(store: Store) -> None:
    one = await message(store, "one", importance=0.2)
    two = await message(store, "two", importance=0.6)
    pin = await add_pin(store, drafts.pin("pin"))
    await add_summaries(store, drafts.summary(1, 2))
    summary = await read(store, "summary_0_1_2")
    before = (await session_of(store)).stats()
    hidden = [await change(store, record, FORGET, edit_type=EditType.DELETE) for record in (two, pin, summary)]
    async with store.view() as view:
        session = await view.sessions.get(TRIP)
        assert session is not None
        parts = await view.conversations.view(session, tail=9, pins=9)
        places = await view.conversations.messages(session, first_seq=1, last_seq=9)
        [place] = await view.conversations.messages_by_number(session, [message_number(two.id)])
        assert await view.conversations.message(TRIP, message_number(two.id)) == place
        [uncovered] = await view.conversations.uncovered_summaries(session)
        assert (await view.sessions.totals(Scope()))["messages"] == 1
        assert await record_count(view, Scope()) == 1
    assert ([m.id for m in parts.tail], parts.pins, parts.summaries) == ([message_number(one.id)], (), ())
    assert [(m.seq, m.text, m.is_hidden) for m in places] == [(1, "one", False), (2, "", True)]
    assert (place.text, place.is_hidden) == ("", True)
    assert (uncovered.summary, uncovered.end_seq) == ("", 2)
    stats = session.stats()
    assert (stats.total_messages, stats.total_pins, stats.total_summaries) == (1, 0, 0)
    assert stats.average_importance_score == 0.2
    assert stats.summarized_messages == 1
    for record in hidden:
        assert record.is_deleted
        await change(store, record, RESTORE, edit_type=EditType.RESTORE)
    assert (await session_of(store)).stats() == before


async def test_a_tail_reaches_back_behind_what_is_forgotten(store: Store) -> None:
    appended = await append(store, *[drafts.message(f"m{n}") for n in range(10)])
    for one in appended[5:9]:
        await change(store, await read(store, f"msg_{one.id}"), FORGET)
    session = await session_of(store)
    async with store.view() as view:
        parts = await view.conversations.view(session, tail=3, pins=0)
    assert [m.text for m in parts.tail] == ["m3", "m4", "m9"]


async def test_what_is_internal_is_in_a_context_and_a_search_only_when_asked_for(store: Store) -> None:
    await append(store, drafts.message("open word"), drafts.message("hidden word", details={"visibility": "internal"}))
    [thought] = await add(store, drafts.record(RecordType.THOUGHT, "thought word"))
    session = await session_of(store)
    async with store.view() as view:
        plain = await view.conversations.view(session, tail=9, pins=9)
        whole = await view.conversations.view(session, tail=9, pins=9, include_internal=True)
        places = await view.conversations.messages(session, first_seq=1, last_seq=2)
    assert [m.text for m in plain.tail] == ["open word"]
    assert [(m.text, m.is_hidden) for m in whole.tail] == [("open word", False), ("hidden word", False)]
    assert [(m.text, m.is_hidden) for m in places] == [("open word", False), ("", True)]
    assert [one.text for one in await found(store, "word")] == ["open word"]
    assert len(await found(store, "word", include_internal=True)) == 3
    asked = frozenset({RecordType.THOUGHT, RecordType.MESSAGE})
    assert {one.text for one in await found(store, "word", types=asked)} == {"open word", thought.text}


async def test_new_importance_is_an_edit_by_the_memory_itself_and_passes_over_the_forgotten(store: Store) -> None:
    one, two, three = [await message(store, text) for text in ("one", "two", "three")]
    await change(store, three, FORGET)
    session = await session_of(store)
    async with store.transaction() as transaction:
        scores = [(message_number(one.id), 0.9), (message_number(two.id), 0.5), (message_number(three.id), 0.9)]
        await transaction.conversations.set_importance(session, scores, now_ms=START_MS + 3)
    changed = await read(store, one.id)
    async with store.view() as view:
        [edit] = await view.records.edits(changed)
        assert (edit.editor, edit.before, edit.edited_at) == (SYSTEM_EDITOR, {"importance_score": 0.5}, START_MS + 3)
        assert not await view.records.edits(two)
    assert changed.revision == 2
    assert (await read(store, two.id)).revision == 1
    assert (await read(store, three.id)).content["importance_score"] == 0.5
    assert (await session_of(store)).stats().average_importance_score == 0.7


# Causes


async def test_both_ends_show_a_cause(store: Store) -> None:
    cause = await message(store, "The bridge is closed.")
    effects = await add(
        store,
        drafts.record(RecordType.TASK, "take the ferry", caused_by=cause.id),
        drafts.record(RecordType.TASK, "book it", caused_by="task_take the ferry"),
        scope=Scope(),
    )
    assert [one.content["caused_by"] for one in effects] == [cause.id, "task_take the ferry"]
    assert (await read(store, cause.id)).led_to == ("task_take the ferry",)
    later = await change(store, await message(store, "ok"), {"caused_by": cause.id})
    assert (await read(store, cause.id)).led_to == ("task_take the ferry", later.id)
    assert "caused_by" not in (await change(store, later, {"caused_by": None})).content
    assert (await read(store, cause.id)).led_to == ("task_take the ferry",)


async def test_the_causes_of_a_record_are_its_cause_and_what_that_was_caused_by(store: Store) -> None:
    first = await message(store, "first")
    second = await change(store, await message(store, "second"), {"caused_by": first.id})
    [third] = await add(store, drafts.record(RecordType.TASK, "third", caused_by=second.id))
    async with store.view() as view:
        causes = [await view.records.causes(one) for one in (first, second, third)]
    assert causes == [set(), {first.id}, {first.id, second.id}]


async def test_at_most_a_hundred_effects_are_shown(store: Store) -> None:
    cause = await message(store, "cause")
    await add(store, *[drafts.record(RecordType.TASK, f"t{n}", caused_by=cause.id) for n in range(120)])
    assert (await read(store, cause.id)).led_to == tuple(f"task_t{n}" for n in range(100))


# Use


async def test_uses_add_up_and_pass_over_what_is_gone(store: Store) -> None:
    one, two = await message(store, "word one"), await message(store, "word two")
    await purge(store, two)
    for used_at, uses in ((5, {one.id: 2, two.id: 1, "msg_999": 1, "pin_gone": 1}), (4, {one.id: 1})):
        async with store.transaction() as transaction:
            await transaction.records.count_uses(LOCAL_OWNER, uses, used_at=used_at)
    used = await read(store, one.id)
    assert (used.usage_count, used.last_used, used.revision) == (3, 5, 1)
    [hit] = await found(store, "word")
    assert (hit.usage_count, hit.last_used, hit.importance, hit.is_critical) == (3, 5, 0.5, False)


async def test_a_use_of_another_owners_record_is_not_counted(store: Store) -> None:
    mine = await message(store, "word")
    [task] = await add(store, drafts.record(RecordType.TASK, "word"))
    await append(store, drafts.message("word"), scope=Scope("eve", session="trip"))
    async with store.transaction() as transaction:
        await transaction.records.count_uses("eve", {mine.id: 1, task.id: 1, "msg_3": 2}, used_at=5)
        await transaction.records.count_uses("nobody", {mine.id: 1}, used_at=5)
    assert [(await read(store, one.id)).usage_count for one in (mine, task)] == [0, 0]
    async with store.view() as view:
        theirs = await view.records.record(Scope("eve"), "msg_3")
    assert theirs is not None and theirs.usage_count == 2


# Erasing


@pytest.mark.parametrize("is_forgotten", [False, True])
async def test_an_erased_message_leaves_its_place_and_no_word(store: Store, is_forgotten: bool) -> None:
    before = await message(store, "first")
    record = await message(store, "secret words", name="Ann", client_key="k", importance=0.9)
    record = await change(store, record, {"text": "other secret", "tags": ["secret"], "caused_by": before.id})
    effect = await change(store, await message(store, "effect"), {"caused_by": record.id})
    if is_forgotten:
        record = await change(store, record, FORGET)
    await purge(store, record)
    async with store.view() as view:
        assert await view.records.record(TRIP, record.id) is None
        assert not await view.records.edits(record)
        stone = await view.records.tombstone(TRIP, record.id)
        assert stone is not None
        assert (stone.record_id, stone.purged_at) == (record.id, START_MS + 9)
        assert await view.records.tombstone(Scope("eve"), record.id) is None
        assert await view.records.erased(Scope(), [record.id, before.id, "none"]) == {record.id}
        assert await view.records.erased(Scope("eve"), [record.id]) == set()
        session = await view.sessions.get(TRIP)
        assert session is not None
        places = await view.conversations.messages(session, first_seq=1, last_seq=9)
    assert [(m.seq, m.text, m.is_hidden) for m in places] == [(1, "first", False), (2, "", True), (3, "effect", False)]
    assert (places[1].name, places[1].client_key) == (None, None)
    assert (session.message_count, session.stats().total_messages) == (3, 2)
    assert session.stats().average_importance_score == 0.5
    assert (await read(store, before.id)).led_to == ()
    freed = await read(store, effect.id)
    assert (freed.content.get("caused_by"), freed.revision) == (None, effect.revision)
    assert [len(await found(store, term)) for term in ("secret", "word", "ann", "effect")] == [0, 0, 0, 1]


async def test_ids_by_their_last_part_are_of_the_type_and_the_owner_and_of_erased_records_too(store: Store) -> None:
    names = ["task_1700000000000_ab12cd34e", "task_1700000000001_ab12x0000", "thought_1700000000000_ab12cd34f"]
    for name in names:
        await add(store, drafts.record(RecordType(name.partition("_")[0]), name, record_id=name))
    await add(
        store, drafts.record(RecordType.TASK, "Eve's", record_id="task_1700000000002_ab12cd34g"), scope=Scope("eve")
    )
    await purge(store, await read(store, names[0]))
    async with store.view() as view:
        for tail, found in (("ab12", names[:2]), ("ab12cd34e", names[:1]), ("b12c", []), ("1700", [])):
            assert await view.records.ids_by_tail(Scope(), RecordType.TASK, tail) == found


async def test_what_the_own_clock_stamped_is_in_the_order_in_which_it_was_stored(store: Store) -> None:
    for text, created_at, now_ms in (
        ("ahead", START_MS + 9, START_MS + 9),
        ("right", START_MS, START_MS),
        ("named", 5, 9),
    ):
        async with store.transaction() as transaction:
            session = await ensure_session(transaction.sessions, TRIP, now_ms=START_MS)
            drafted = [drafts.message(text, created_at=created_at)]
            await transaction.conversations.append_messages(session, drafted, now_ms=now_ms)
    async with store.view() as view:
        messages = await view.conversations.messages(session, first_seq=1, last_seq=9)
        ids = {one.record_id: one.text for one in reversed(messages)}
        assert [ids[one] for one in await view.records.said_in_order(TRIP, list(ids))] == ["ahead", "right"]
        assert await view.records.said_in_order(Scope("eve"), list(ids)) == []


async def test_an_erased_summary_leaves_its_range_so_that_no_gap_appears(store: Store) -> None:
    await append(store, *[drafts.message(f"m{n}") for n in range(4)])
    await add_summaries(store, drafts.summary(1, 2, text="secret"))
    await purge(store, await read(store, "summary_0_1_2"))
    await add_summaries(store, drafts.summary(3, 4))
    session = await session_of(store)
    async with store.view() as view:
        uncovered = await view.conversations.uncovered_summaries(session)
        shown = (await view.conversations.view(session, tail=0, pins=0)).summaries
        assert await view.records.record(TRIP, "summary_0_1_2") is None
    assert [(one.summary, one.start_seq, one.end_seq) for one in uncovered] == [("", 1, 2), ("What was said.", 3, 4)]
    assert [one.start_seq for one in shown] == [3]
    assert (session.summarized_seq, session.stats().total_summaries) == (4, 1)


@pytest.mark.parametrize("kind", [*OWN_TYPES, RecordType.PIN])
async def test_an_erased_record_of_another_type_is_gone(store: Store, kind: RecordType) -> None:
    if kind is RecordType.PIN:
        record = await add_pin(store, drafts.pin("secret"))
    else:
        [record] = await add(store, drafts.record(kind, "secret", **FIELDS[kind]))
    record = await change(store, record, {"tags": ["x"]})
    await purge(store, record)
    async with store.view() as view:
        assert await view.records.record(TRIP, record.id) is None
        assert await view.records.tombstone(TRIP, record.id) is not None
        assert await record_count(view, Scope()) == 0
    assert (await session_of(store)).stats().total_pins == 0
    assert await found(store, "secret", include_internal=True) == []


async def test_what_is_erased_can_be_neither_changed_nor_erased_again(store: Store) -> None:
    record = await message(store, "secret")
    pin = await add_pin(store, drafts.pin("secret"))
    await purge(store, record, pin)
    for gone in (record, pin):
        with pytest.raises(RecordNotFound, match="erased"):
            await change(store, gone, {"text": "back"})
        with pytest.raises(RecordNotFound, match="erased"):
            await purge(store, gone)


async def test_erased_texts_are_those_of_the_owner_and_the_type_and_say_where_they_were(store: Store) -> None:
    record = await message(store, "secret", client_key="k", created_at=START_MS - 5)
    [task] = await add(store, drafts.record(RecordType.TASK, "secret"), scope=Scope())
    await purge(store, record, task)
    of_message = ErasedText("secret", message_number(record.id), 1, "k", START_MS - 5, START_MS + 9)
    asked = {"secret", "boots"}
    async with store.view() as view:
        erased = view.records.erased_texts
        assert list(await erased(Scope(), RecordType.MESSAGE, asked, {"k", "other"})) == [of_message]
        assert list(await erased(Scope(), RecordType.MESSAGE, asked)) == [replace(of_message, client_key=None)]
        [of_task] = await erased(Scope(), RecordType.TASK, asked)
        assert (of_task.text, of_task.number, of_task.seq) == ("secret", 0, 0)
        assert not await erased(Scope(), RecordType.PIN, asked)
        assert not await erased(Scope("eve"), RecordType.MESSAGE, asked)


async def test_a_dropped_history_makes_the_record_as_it_is_its_first_version(store: Store) -> None:
    stale = await message(store, "secret")
    record = await change(store, stale, {"text": "fine"})
    with pytest.raises(RevisionConflict):
        async with store.transaction() as transaction:
            await transaction.records.drop_history(stale)
    async with store.transaction() as transaction:
        kept = await transaction.records.drop_history(record)
    assert kept == record
    later = await change(store, kept, {"text": "finer"})
    async with store.view() as view:
        history = versions(later, await view.records.edits(later))
    assert [(edit.version, edit.type, content["text"]) for edit, content in history] == [
        (2, EditType.CREATE, "fine"),
        (3, EditType.UPDATE, "finer"),
    ]
    with pytest.raises(RevisionConflict):
        await change(store, stale, {"text": "lost"})


async def test_records_as_they_were_written_are_not_damaged(store: Store) -> None:
    async with store.transaction() as transaction:
        session = await ensure_session(transaction.sessions, Scope(session="trip"), now_ms=START_MS)
        await transaction.conversations.append_messages(session, [drafts.message("one")], now_ms=START_MS)
    async with store.view() as view:
        assert await view.records.damaged(Scope(), ["msg_1", "msg_2", "doc_unknown"]) == []
        assert await view.records.damaged(Scope("eve"), ["msg_1"]) == []


async def test_a_scan_reads_every_record_of_the_agent_and_project_once(store: Store) -> None:
    await append(store, *(drafts.message(f"Line {n}.") for n in range(5)))
    await append(store, drafts.message("Elsewhere."), scope=Scope(session="other", agent="ann"))
    await append(store, drafts.message("In a project."), scope=Scope(session="work", project="harbour"))
    async with store.transaction() as transaction:
        [first, *_] = await transaction.records.scan(Scope(), after=None, limit=1)
        record = await transaction.records.record(Scope(), first.id)
        assert record is not None
        await transaction.records.change(record, drafts.edit(record, {"text": "Another line."}))
        changed = await transaction.records.record(Scope(), first.id)
        assert changed is not None
        await transaction.records.change(changed, drafts.edit(changed, FORGET, edit_type=EditType.DELETE))
    async with store.view() as view:

        async def scanned(scope: Scope, **asked: bool) -> list[str]:
            found: list[str] = []
            after = None
            while page := await view.records.scan(scope, after=after, limit=2, **asked):
                found += [one.text for one in page]
                after = page[-1].cursor
            return found

        lines = ["Line 1.", "Line 2.", "Line 3.", "Line 4."]
        assert await scanned(Scope()) == [*lines, "In a project."]
        assert await scanned(Scope(project="harbour")) == [*lines, "In a project."]
        assert await scanned(Scope(project="quay")) == await scanned(Scope(project=PERSONAL)) == lines
        assert await scanned(Scope(agent="ann")) == ["Elsewhere."]
        assert await scanned(Scope(agent="bob")) == []
        assert await scanned(Scope(), has_forgotten=True) == ["Another line.", *lines, "In a project."]
        [whole, *_] = await view.records.scan(Scope(), after=None, limit=1, has_forgotten=True)
        assert (whole.earlier_texts, whole.revision) == ("Line 0.", 3)


async def test_forgotten_values_are_of_an_agent_and_a_project_until_they_are_brought_back(store: Store) -> None:
    await session_of(store)
    await session_of(store, Scope(session="other", agent="ann"))
    await session_of(store, Scope(session="work", project="harbour"))
    harbour, quay, personal = Scope(project="harbour"), Scope(project="quay"), Scope(project=PERSONAL)
    async with store.transaction() as transaction:
        records = transaction.records
        assert await records.erased_texts(harbour, RecordType.MESSAGE, ["boat"]) == []
        assert not await records.has_forgotten_values(LOCAL_OWNER)
        await records.forget_values(harbour, {"boat"}, now_ms=START_MS)
        assert await records.has_forgotten_values(LOCAL_OWNER)
        await records.forget_values(Scope(), {"oar"}, now_ms=START_MS)
        await records.forget_values(Scope(), {"oar"}, now_ms=START_MS + 5, is_erased=True)
        await records.forget_values(Scope(), {"oar"}, now_ms=START_MS + 9)
    async with store.view() as view:
        known = view.records.forgotten_values
        asked = {"boat", "oar", "sail"}
        assert await view.records.has_forgotten_values(LOCAL_OWNER)
        for scope in (harbour, personal, Scope()):
            assert set(await known(scope, asked)) == {"boat", "oar"}
        assert await known(quay, asked) == {"oar": ForgottenValue(START_MS + 9, is_erased=True)}
        assert await known(Scope(agent="ann"), asked) == await known(Scope(owner="eve"), asked) == {}
        assert await known(Scope(), ()) == {}
    async with store.transaction() as transaction:
        await transaction.records.bring_back_values(quay, asked)
        assert set(await transaction.records.forgotten_values(harbour, asked)) == {"boat"}
        await transaction.records.bring_back_values(personal, asked)
        assert not await transaction.records.has_forgotten_values(LOCAL_OWNER)
