"""memory-schemas through a whole memory: edits, forgetting, use, causes, thoughts, documents, tasks."""

from typing import Any

import pytest

from kalito_mcp import CreatePinRequest, Memory, NewMessage, Role, SearchRequest
from kalito_mcp.domain.context import Include
from kalito_mcp.domain.memory_records import Editor, EditorType, MemoryRecord
from kalito_mcp.domain.records import RecordType, Visibility
from kalito_mcp.domain.search import SearchFilters
from kalito_mcp.errors import Conflict, InvalidInput
from tests.scripted import ScriptedClock
from tests.spec.talk import SESSION

pytestmark = pytest.mark.anyio

ANN = Editor(EditorType.HUMAN, "ann")
HOST = Editor(EditorType.AGENT, "a host")
STARTED = "2026-03-04T05:06:07.089Z"
A_DAY_S = 86_400.0
BOILER = "The boiler is serviced by Mr Weber."


async def remembered(memory: Memory, record_type: str, text: str, **fields: Any) -> MemoryRecord:
    """The one record that this makes."""
    [record] = await memory.remember(record_type, {"text": text, **fields})
    return record


async def found(memory: Memory, query: str, *types: RecordType, agent: str | None = None) -> list[str]:
    """The ids that a search finds, best first."""
    request = SearchRequest(query, filters=SearchFilters(types=frozenset(types)))
    return [hit.record_id for hit in (await memory.search_memory(request, agent_id=agent)).hits]


async def context(memory: Memory, query: str | None = None, *include: Include) -> str:
    """What a context of the session says."""
    return (await memory.build_context(SESSION, 3000, query=query, include=include)).text


async def edited_five_ways(memory: Memory, clock: ScriptedClock) -> MemoryRecord:
    """A task that was made, corrected, forgotten, restored and taken back to its first version, a minute each."""
    task = await remembered(memory, "task", "Book the hut.")
    clock.advance(60)
    await memory.update_memory(task.id, {"text": "Book the cabin."}, expected_revision=1, editor=ANN)
    clock.advance(60)
    await memory.forget(task.id, editor=HOST)
    clock.advance(60)
    await memory.restore(task.id, editor=ANN)
    clock.advance(60)
    return await memory.records.revert(task.id, 1, editor=HOST)


def paragraphs(*numbers: int) -> str:
    """A document of several parts; each number has a part of its own."""
    return "".join(f"# Chapter {number}\n\n" + f"Of chapter {number}. " * 100 + "\n\n" for number in numbers)


async def parts(memory: Memory, *numbers: int, source: str = "book.md", agent: str | None = None) -> list[MemoryRecord]:
    """The parts that the document of these paragraphs has once it has been remembered."""
    fields = {"text": paragraphs(*numbers), "source": source}
    return list(await memory.remember("document", fields, agent_id=agent))


async def test_every_change_of_a_record_is_an_edit_in_its_history(memory: Memory, clock: ScriptedClock) -> None:
    """memory-schemas, Memory Edit Record, `edit_type`: create, update, delete; restore and revert beside them."""
    task = await edited_five_ways(memory, clock)
    history = await memory.records.history(task.id)
    assert [edit["edit_type"] for edit in history] == ["create", "update", "delete", "restore", "revert"]
    assert {edit["original_memory_id"] for edit in history} == {task.id}
    assert {edit["original_type"] for edit in history} == {"task"}
    assert {edit["original_timestamp"] for edit in history} == {STARTED}
    assert history[4]["timestamp"] == "2026-03-04T05:10:07.089Z"
    assert task.text == "Book the hut."


async def test_one_edit_is_current_and_each_other_is_named_by_the_next(memory: Memory, clock: ScriptedClock) -> None:
    """memory-schemas, Memory Edit Record: `current`, `previous_version_id`."""
    task = await edited_five_ways(memory, clock)
    history = await memory.records.history(task.id)
    assert [edit["current"] for edit in history] == [False, False, False, False, True]
    assert "previous_version_id" not in history[0]
    assert [edit["previous_version_id"] for edit in history[1:]] == [edit["id"] for edit in history[:-1]]


async def test_people_agents_and_the_memory_itself_are_editors(memory: Memory) -> None:
    """memory-schemas, Memory Edit Record: `editor_type` human, agent, system, and `editor_id`."""
    by_ann = await remembered(memory, "task", "Book the hut.")
    await memory.update_memory(by_ann.id, {"status": "completed"}, expected_revision=1, editor=ANN)
    await memory.forget(by_ann.id, editor=HOST)
    made = [(edit["editor_type"], edit.get("editor_id")) for edit in await memory.records.history(by_ann.id)]
    assert made == [("agent", "python"), ("human", "ann"), ("agent", "a host")]
    await memory.record_messages(SESSION, [NewMessage(Role.USER, BOILER)])
    [summary] = await memory.conversations.summarize(SESSION)
    [created] = await memory.records.history(summary.id)
    assert (created["editor_type"], created["editor_id"]) == ("system", "kalito")


async def test_an_edit_sums_up_what_it_changed(memory: Memory, clock: ScriptedClock) -> None:
    """memory-schemas, Memory Edit Record, `diff_summary`: in words, for every edit."""
    task = await edited_five_ways(memory, clock)
    sums = [edit["diff_summary"] for edit in await memory.records.history(task.id)]
    assert sums[0] == "created"
    assert "hut" in sums[1]
    assert "cabin" in sums[1]
    assert sums[2:4] == ["forgotten", "restored"]
    assert "hut" in sums[4]


async def test_what_is_forgotten_is_hidden_everywhere_until_it_is_restored(memory: Memory) -> None:
    """memory-schemas, Base Memory Record Structure, `is_deleted`: out of contexts, searches and lists, and back."""
    await memory.record_messages(SESSION, [NewMessage(Role.USER, BOILER), NewMessage(Role.ASSISTANT, "Noted.")])
    pin = await memory.create_pin(CreatePinRequest(SESSION, "The boiler is in the cellar."))
    task = await remembered(memory, "task", "Call about the boiler.")
    ids = {"msg_1", pin.id, task.id}
    for record_id in ids:
        await memory.forget(record_id)
    assert "boiler" not in await context(memory, "boiler")
    assert await found(memory, "boiler") == []
    assert await memory.records.tasks() == []
    assert (await memory.records.get(task.id)).to_dict()["is_deleted"] is True
    for record_id in ids:
        await memory.restore(record_id)
    assert (await context(memory)).count("boiler") == 2
    assert set(await found(memory, "boiler")) == ids
    assert [one.id for one in await memory.records.tasks()] == [task.id]


async def test_a_record_that_a_search_returns_is_counted(memory: Memory, clock: ScriptedClock) -> None:
    """memory-schemas, Common Metadata Fields: `usage_count`, `last_used`, after searches."""
    task = await remembered(memory, "task", BOILER)
    assert task.to_dict().keys().isdisjoint({"last_used"})
    assert task.usage_count == 0
    clock.advance(60)
    await found(memory, "boiler")
    await found(memory, "boiler")
    await memory.settled()
    fields = (await memory.records.get(task.id)).to_dict()
    assert (fields["usage_count"], fields["last_used"]) == (2, "2026-03-04T05:07:07.089Z")


async def test_a_record_that_a_context_returns_is_counted(memory: Memory) -> None:
    """memory-schemas, Common Metadata Fields: `usage_count`, `last_used`, after contexts: pins, summaries, hits."""
    await memory.record_messages(SESSION, [NewMessage(Role.USER, "Hello.")])
    pin = await memory.create_pin(CreatePinRequest(SESSION, "Allergic to nuts."))
    [summary] = await memory.conversations.summarize(SESSION)
    task = await remembered(memory, "task", BOILER)
    await context(memory, "boiler")
    await memory.settled()
    assert [(await memory.records.get(one)).usage_count for one in (pin.id, summary.id, task.id)] == [1, 1, 1]


async def test_neither_use_nor_age_changes_what_is_found(memory: Memory, clock: ScriptedClock) -> None:
    """memory-schemas, Common Metadata Fields, `critical`: exempt from decay. Nothing decays."""
    used = await remembered(memory, "task", BOILER, tags=["used"], critical=True)
    other = await remembered(memory, "note", BOILER)
    request = SearchRequest("boiler")
    before = (await memory.search_memory(request)).hits
    for _ in range(5):
        assert await found(memory, "boiler", RecordType.TASK) == [used.id]
    await memory.settled()
    clock.advance(2000 * A_DAY_S)
    assert (await memory.search_memory(request)).hits == before
    assert [hit.record_id for hit in before] == [other.id, used.id]


async def test_a_cause_and_what_it_led_to_name_each_other(memory: Memory) -> None:
    """memory-schemas, Common Metadata Fields: `caused_by`, and `led_to` that follows from it, across types."""
    await memory.record_messages(SESSION, [NewMessage(Role.USER, "The boiler is broken.")])
    task = await remembered(memory, "task", "Call Mr Weber.", caused_by="msg_1")
    thought = await remembered(memory, "thought", "They need heat soon.", causedBy={"record_id": "msg_1"})
    assert task.to_dict()["caused_by"] == {"record_id": "msg_1"}
    cause = (await memory.records.get("msg_1")).to_dict()
    assert cause["led_to"] == [{"record_id": task.id}, {"record_id": thought.id}]
    await memory.update_memory(task.id, {"caused_by": None}, expected_revision=1)
    assert (await memory.records.get("msg_1")).led_to == (thought.id,)


async def test_nothing_is_its_own_cause_however_far_around(memory: Memory) -> None:
    """memory-schemas, Common Metadata Fields, `caused_by`: no circles."""
    first = await remembered(memory, "task", "First.")
    second = await remembered(memory, "task", "Second.", caused_by=first.id)
    third = await remembered(memory, "task", "Third.", caused_by=second.id)
    for cause in (first, second, third):
        with pytest.raises(Conflict, match=f"{cause.id} cannot be its cause; leave caused_by out"):
            await memory.update_memory(first.id, {"caused_by": cause.id}, expected_revision=1)
    assert await memory.records.get(first.id) == await memory.records.version(first.id, 1)


async def test_thoughts_are_in_no_context_and_no_search_unless_asked_for(memory: Memory) -> None:
    """memory-schemas, Thought Memory: `isInternalMessage` and `notForChat`, always true."""
    await memory.record_messages(SESSION, [NewMessage(Role.USER, "Hello.")])
    [thought] = await memory.remember("thought", {"text": "They are fond of ferries."}, session_id=SESSION)
    assert thought.visibility is Visibility.INTERNAL
    assert "fond" not in await context(memory)
    assert "fond" not in await context(memory, "ferries")
    assert "fond" in await context(memory, "ferries", Include.INTERNAL)
    assert await found(memory, "ferries") == []
    assert await found(memory, "ferries", RecordType.THOUGHT) == [thought.id]


async def test_a_document_is_kept_in_parts_that_know_their_place(memory: Memory) -> None:
    """memory-schemas, Document Memory: `chunkIndex`, `totalChunks`."""
    made = await parts(memory, 1, 2, 3)
    assert [(one.content["chunk_index"], one.content["total_chunks"]) for one in made] == [(0, 3), (1, 3), (2, 3)]
    assert "".join(one.text for one in made) == paragraphs(1, 2, 3)
    assert await memory.records.get_all(made[0].content["document_id"]) == made
    with pytest.raises(InvalidInput, match="are set by the memory"):
        await memory.remember("document", {"text": "b", "source": "book.md", "chunkIndex": 1, "totalChunks": 3})


async def test_a_document_that_comes_again_keeps_what_reads_the_same(memory: Memory) -> None:
    """memory-schemas, Document Memory, `source`: the same one is the same document, brought up to date."""
    before = await parts(memory, 1, 2, 3)
    after = await parts(memory, 1, 4, 3)
    assert [one.id for one in after] == [one.id for one in before]
    assert [one.revision for one in after] == [1, 2, 1]
    assert (after[0], after[2]) == (before[0], before[2])
    assert await found(memory, "chapter 4") == [after[1].id, after[2].id, after[0].id]
    assert (await memory.records.version(after[1].id, 1)).text == before[1].text


async def test_a_document_that_grows_or_shrinks_adds_parts_or_forgets_them(memory: Memory) -> None:
    """memory-schemas, Document Memory, `totalChunks`: it follows the document, and so do its parts."""
    first, second = await parts(memory, 1, 2)
    grown = await parts(memory, 1, 2, 3, 4)
    assert [one.id for one in grown[:2]] == [first.id, second.id]
    assert {one.content["total_chunks"] for one in grown} == {4}
    [shrunk] = await parts(memory, 1)
    assert (shrunk.id, shrunk.content["total_chunks"]) == (first.id, 1)
    document = first.content["document_id"]
    assert [one.is_deleted for one in await memory.records.get_all(document)] == [False, True, True, True]
    assert await found(memory, "chapter") == [first.id]
    again = await parts(memory, 1, 2)
    assert [(one.id, one.is_deleted) for one in again] == [(first.id, False), (second.id, False)]


async def test_the_same_source_is_another_document_for_another_agent(memory: Memory) -> None:
    """memory-schemas, Document Memory, `source`: it names a document of one agent."""
    mine = await parts(memory, 1)
    theirs = await parts(memory, 2, agent="researcher")
    assert {one.agent_id for one in theirs} == {"researcher"}
    assert mine[0].content["document_id"] != theirs[0].content["document_id"]
    assert await memory.records.get(mine[0].id) == mine[0]
    assert await found(memory, "chapter", agent="researcher") == [theirs[0].id]


async def test_a_task_moves_on_and_never_back(memory: Memory, clock: ScriptedClock) -> None:
    """memory-schemas, Task Memory: `status`, and `completedAt` that goes with it."""
    task = await remembered(memory, "task", "Book the hut.", dueDate="2026-05-01", assignedTo="planner")
    begun = await memory.update_memory(task.id, {"status": "in_progress"}, expected_revision=1)
    assert "completed_at" not in begun.content
    with pytest.raises(Conflict, match="a task that is in_progress cannot become pending"):
        await memory.update_memory(task.id, {"status": "pending"}, expected_revision=2)
    clock.advance(60)
    done = await memory.update_memory(task.id, {"status": "completed"}, expected_revision=2)
    assert done.to_dict()["completed_at"] == "2026-03-04T05:07:07.089Z"
    with pytest.raises(Conflict, match="completed is final"):
        await memory.update_memory(task.id, {"status": "failed"}, expected_revision=3)
    assert [one.id for one in await memory.records.tasks(is_done=True)] == [task.id]
    assert await memory.records.tasks(is_done=False) == []


async def test_stored_records_have_one_visibility_for_the_two_flags(memory: Memory) -> None:
    """memory-schemas, Inconsistencies, 1: either flag hides a stored message, and neither is kept."""
    details = ({"isInternalMessage": True}, {"notForChat": True}, {"visibility": "internal"}, {"notForChat": False})
    messages = [NewMessage(Role.USER, f"Word {place}", details=one) for place, one in enumerate(details)]
    recorded = await memory.record_messages(SESSION, messages)
    shown = [(await memory.records.get(one)).to_dict() for one in recorded.message_ids]
    assert [one["visibility"] for one in shown] == ["internal", "internal", "internal", "chat"]
    assert all(one.keys().isdisjoint({"is_internal_message", "not_for_chat"}) for one in shown)
    assert [one for one in range(4) if f"Word {one}" in await context(memory)] == [3]


async def test_stored_records_are_in_snake_case_whatever_was_sent(memory: Memory) -> None:
    """memory-schemas, Inconsistencies, 2: camelCase is understood, also in an update, and one name is kept."""
    task = await remembered(memory, "task", "Book the hut.", dueDate="2026-05-01")
    moved = await memory.update_memory(task.id, {"dueDate": "2026-06-01"}, expected_revision=1)
    assert moved.content["due_date"] == "2026-06-01"
    assert all(name == name.lower() for name in moved.to_dict())
    assert all(name == name.lower() for edit in await memory.records.history(task.id) for name in edit)


@pytest.mark.parametrize(
    ("record_type", "fields", "words"),
    [
        ("task", {"text": "x", "status": "done"}, "status must be 'pending', 'in_progress', 'completed' or 'failed'"),
        ("task", {"text": "x", "asignee": "ann"}, "unknown field 'asignee'"),
        ("document", {"text": "x"}, "source is missing"),
        ("note", {"text": "x", "tag": ["a"]}, "did you mean 'tags'"),
    ],
)
async def test_nothing_is_stored_that_no_schema_has(
    memory: Memory, record_type: str, fields: dict[str, Any], words: str
) -> None:
    """memory-schemas, Inconsistencies, 3 and 4: one schema a type, checked before anything is written."""
    with pytest.raises(InvalidInput, match=words):
        await memory.remember(record_type, fields)
    assert await memory.records.tasks() == []
    assert await found(memory, "x") == []


async def test_a_stored_moment_is_kept_once(memory: Memory, clock: ScriptedClock) -> None:
    """memory-schemas, Inconsistencies, 5: an edit changes no moment, and none can be sent beside it."""
    task = await remembered(memory, "task", "Book the hut.")
    clock.advance(60)
    changed = await memory.update_memory(task.id, {"text": "Book the cabin."}, expected_revision=1)
    assert [name for name, value in changed.to_dict().items() if value == STARTED] == ["timestamp"]
    with pytest.raises(InvalidInput, match="timestamp cannot be set"):
        await memory.update_memory(task.id, {"timestamp": STARTED}, expected_revision=2)


async def test_a_stored_thought_never_becomes_a_message_nor_a_message_a_thought(memory: Memory) -> None:
    """memory-schemas, Inconsistencies, 6: the type decides, and `message_type` is no second way to say it."""
    await memory.record_messages(SESSION, [NewMessage(Role.USER, "Hm.", details={"messageType": "thought"})])
    assert (await memory.records.get("msg_1")).type is RecordType.MESSAGE
    assert "Hm." in await context(memory)
    thought = await remembered(memory, "thought", "They like lakes.")
    for changes in ({"type": "message"}, {"visibility": "chat"}, {"notForChat": False}, {"message_type": "text"}):
        with pytest.raises(InvalidInput):
            await memory.update_memory(thought.id, changes, expected_revision=1)
