"""Every type, field, table row and inconsistency of memory-schemas: what is accepted, kept and shown."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from kalito_mcp.domain.memory_records import (
    DELETED_AT,
    SYSTEM_EDITOR,
    Editor,
    EditorType,
    EditType,
    MemoryRecord,
    StoredEdit,
    versions,
)
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.tasks import TaskPriority, TaskStatus
from kalito_mcp.errors import Conflict, InvalidInput
from kalito_mcp.records.fields import FIELDS, ThoughtType
from kalito_mcp.records.schemas import checked_changes, checked_content, edit_as_shown
from tests.records.builders import LEAST, record
from tests.scripted import START_MS

MESSAGE, THOUGHT, DOCUMENT, TASK, _, _ = RecordType
NOW = "2026-03-04T05:06:07.089Z"
A_MINUTE_LATER = "2026-03-04T05:07:07.089Z"
ANN = Editor(EditorType.HUMAN, "ann")


def shown(record_type: RecordType, fields: Mapping[str, Any] | None = None, **noted: Any) -> dict[str, Any]:
    """The record of these fields as a caller sees it."""
    return (record(record_type, fields, **noted)).to_dict(owner="ann")


def edits(changed: MemoryRecord, made: list[StoredEdit]) -> list[dict[str, Any]]:
    """The record's history as a caller sees it."""
    found = versions(changed, made)
    contents: list[Mapping[str, Any]] = [{}, *(content for _, content in found)]
    return [
        edit_as_shown(changed, edit, before=before, after=after)
        for (edit, after), before in zip(found, contents, strict=False)
    ]


def edited(edit_type: EditType = EditType.UPDATE, editor: Editor = ANN) -> list[dict[str, Any]]:
    """The history of a document, whose title was corrected a minute after it was made."""
    document = record(DOCUMENT, {"title": "Rivers"}, revision=2)
    return edits(document, [StoredEdit(2, edit_type, editor, START_MS + 60_000, {"title": "Lakes"})])


@pytest.mark.parametrize("name", ["message", "thought", "document", "task"])
def test_each_memory_type_has_its_schema_and_its_name(name: str) -> None:
    """memory-schemas, Current Memory Types: the first four rows."""
    assert shown(RecordType(name))["type"] == name
    assert RecordType(name) in FIELDS


def test_the_history_of_a_record_is_of_the_type_memory_edits() -> None:
    """memory-schemas, Current Memory Types: the row `memory_edits`."""
    assert [one["type"] for one in edited()] == ["memory_edits", "memory_edits"]


def test_there_is_no_seventh_type() -> None:
    """memory-schemas, Current Memory Types: a closed list, which pins and summaries belong to."""
    assert [str(one) for one in FIELDS] == ["message", "thought", "document", "task", "pin", "summary"]
    with pytest.raises(ValueError, match="goal"):
        RecordType("goal")


@pytest.mark.parametrize("record_type", RecordType)
def test_every_record_has_the_base_structure(record_type: RecordType) -> None:
    """memory-schemas, Base Memory Record Structure: `id`, `text`, `timestamp`, `type`, `is_deleted`."""
    fields = shown(record_type)
    assert fields["id"].endswith("_7")
    assert fields["text"] == LEAST[record_type]["text"]
    assert fields["timestamp"] == NOW
    assert fields["type"] == record_type
    assert fields["is_deleted"] is False


def test_metadata_is_fields_next_to_the_text_and_no_object() -> None:
    """memory-schemas, Base Memory Record Structure, `metadata`: flat, and refused as an object."""
    assert shown(TASK, {"assigned_to": "planner"})["assigned_to"] == "planner"
    assert "metadata" not in shown(TASK)
    with pytest.raises(InvalidInput, match="metadata cannot be set: there is no such object; send its fields where"):
        checked_content(TASK, {"text": "x", "metadata": {"assigned_to": "planner"}})


def test_a_forgotten_record_says_so_and_since_when() -> None:
    """memory-schemas, Base Memory Record Structure, `is_deleted`: the soft deletion flag."""
    task = record(TASK)
    forgotten = replace(task, content={**task.content, DELETED_AT: START_MS}).to_dict()
    assert (forgotten["is_deleted"], forgotten["deleted_at"]) == (True, NOW)


@pytest.mark.parametrize(
    ("sent", "field", "expected"),
    [
        ({"role": "assistant"}, "role", "assistant"),
        ({}, "user_id", "ann"),
        ({}, "message_type", "text"),
        ({"messageType": "image"}, "message_type", "image"),
        ({"importance": "high"}, "importance", "high"),
        ({"importance_score": 0.72}, "importance_score", 0.72),
        ({"isInternalMessage": True}, "visibility", "internal"),
        ({"notForChat": True}, "visibility", "internal"),
        ({"notForChat": False}, "visibility", "chat"),
        (
            {"attachments": ["https://example.org/a.png", {"name": "b.pdf", "size": 3}]},
            "attachments",
            ["https://example.org/a.png", {"name": "b.pdf", "size": 3}],
        ),
        ({"visionResponseFor": "msg_3"}, "vision_response_for", "msg_3"),
        ({"tags": ["lake", "summer"]}, "tags", ["lake", "summer"]),
    ],
)
def test_a_message_has_each_field_of_its_schema(sent: Mapping[str, Any], field: str, expected: object) -> None:
    """memory-schemas, Message Memory: every field, one at a time."""
    assert shown(MESSAGE, sent)[field] == expected


@pytest.mark.parametrize("role", ["user", "assistant", "system"])
def test_a_message_has_one_of_three_roles(role: str) -> None:
    """memory-schemas, Message Memory, `role`: its three values, and no other."""
    assert shown(MESSAGE, {"role": role})["role"] == role
    with pytest.raises(InvalidInput, match="role must be 'user', 'assistant' or 'system', not 'tool'"):
        checked_content(MESSAGE, {"text": "x", "role": "tool"})


@pytest.mark.parametrize(
    ("sent", "field", "expected"),
    [
        ({}, "message_type", "thought"),
        ({"messageType": "planning"}, "message_type", "planning"),
        ({"importance": "low"}, "importance", "low"),
        ({"importance_score": 0.31}, "importance_score", 0.31),
        ({}, "agent_id", "default"),
        ({"agentId": "researcher"}, "agent_id", "default"),
        ({"agentId": "researcher"}, "thought_by", "researcher"),
        ({"relatedTo": ["msg_1", "task_2"]}, "related_to", ["msg_1", "task_2"]),
        ({"tags": ["plan"]}, "tags", ["plan"]),
    ],
)
def test_a_thought_has_each_field_of_its_schema(sent: Mapping[str, Any], field: str, expected: object) -> None:
    """memory-schemas, Thought Memory: every field but the two flags, one at a time."""
    assert shown(THOUGHT, sent)[field] == expected


@pytest.mark.parametrize("message_type", ["thought", "reflection", "planning"])
def test_a_thought_is_of_one_of_three_kinds(message_type: str) -> None:
    """memory-schemas, Thought Memory, `messageType`: its three values, and no other."""
    assert shown(THOUGHT, {"message_type": message_type})["message_type"] == message_type
    assert len(ThoughtType) == 3


@pytest.mark.parametrize("sent", [{}, {"isInternalMessage": True}, {"notForChat": True}, {"visibility": "internal"}])
def test_a_thought_is_internal_whatever_is_sent(sent: Mapping[str, Any]) -> None:
    """memory-schemas, Thought Memory, `isInternalMessage` and `notForChat`: always true for thoughts."""
    assert record(THOUGHT, sent).content["visibility"] == "internal"
    assert checked_changes(record(THOUGHT), sent, now_ms=START_MS)["visibility"] == "internal"


@pytest.mark.parametrize("sent", [{"isInternalMessage": False}, {"notForChat": False}, {"visibility": "chat"}])
def test_a_thought_cannot_be_made_visible_in_a_chat(sent: Mapping[str, Any]) -> None:
    """memory-schemas, Thought Memory, `isInternalMessage` and `notForChat`: never false."""
    with pytest.raises(InvalidInput, match="visibility of a thought is always 'internal'"):
        checked_content(THOUGHT, {"text": "x", **sent})
    with pytest.raises(InvalidInput, match="visibility of a thought is always 'internal'"):
        checked_changes(record(THOUGHT), sent, now_ms=START_MS)


@pytest.mark.parametrize(
    ("sent", "field", "expected"),
    [
        ({"title": "Lakes"}, "title", "Lakes"),
        ({"source": "https://example.org/lakes"}, "source", "https://example.org/lakes"),
        ({"contentType": "text/markdown; charset=utf-8"}, "content_type", "text/markdown; charset=utf-8"),
        ({"fileType": ".MD"}, "file_type", "md"),
        ({"importance": "critical"}, "importance", "critical"),
        ({"importance_score": 0.4}, "importance_score", 0.4),
        ({"tags": ["geography"]}, "tags", ["geography"]),
        ({"chunkIndex": 0, "totalChunks": 2}, "chunk_index", 0),
        ({"chunkIndex": 1, "totalChunks": 2}, "total_chunks", 2),
    ],
)
def test_a_document_has_each_field_of_its_schema(sent: Mapping[str, Any], field: str, expected: object) -> None:
    """memory-schemas, Document Memory: every field, one at a time."""
    assert shown(DOCUMENT, sent)[field] == expected


def test_a_document_has_a_source_and_may_lack_everything_else() -> None:
    """memory-schemas, Document Memory: `source` alone is required."""
    assert "title" not in shown(DOCUMENT)
    with pytest.raises(InvalidInput, match="source is missing"):
        checked_content(DOCUMENT, {"text": "x"})


@pytest.mark.parametrize(
    ("sent", "field", "expected"),
    [
        ({}, "status", "pending"),
        ({"status": "in_progress"}, "status", "in_progress"),
        ({}, "priority", "medium"),
        ({"priority": "high"}, "priority", "high"),
        ({"dueDate": "2026-04-01"}, "due_date", "2026-04-01"),
        ({"assignedTo": "planner"}, "assigned_to", "planner"),
        ({"status": "completed", "completedAt": NOW}, "completed_at", NOW),
        ({"importance": "low"}, "importance", "low"),
        ({"importance_score": 0.9}, "importance_score", 0.9),
        ({"tags": ["trip"]}, "tags", ["trip"]),
    ],
)
def test_a_task_has_each_field_of_its_schema(sent: Mapping[str, Any], field: str, expected: object) -> None:
    """memory-schemas, Task Memory: every field, one at a time."""
    assert shown(TASK, sent)[field] == expected


@pytest.mark.parametrize("status", ["pending", "in_progress", "completed", "failed"])
def test_a_task_has_one_of_four_states(status: str) -> None:
    """memory-schemas, Task Memory, `status`: its four values, and no other."""
    assert shown(TASK, {"status": status})["status"] == status
    assert len(TaskStatus) == 4


@pytest.mark.parametrize("priority", ["low", "medium", "high", "critical"])
def test_a_task_has_one_of_four_priorities_and_is_as_important(priority: str) -> None:
    """memory-schemas, Task Memory, `priority`: its four values, and no other."""
    fields = shown(TASK, {"priority": priority})
    assert (fields["priority"], fields["importance"]) == (priority, priority)
    assert len(TaskPriority) == 4


def test_a_task_moves_forwards_only_and_notes_when_it_was_completed() -> None:
    """memory-schemas, Task Memory, `status` and `completedAt`: the memory sets the one with the other."""
    task = record(TASK)
    for status in ("in_progress", "completed"):
        content = checked_changes(task, {"status": status}, now_ms=START_MS + 60_000)
        task = replace(task, content=content)
    assert task.content["completed_at"] == A_MINUTE_LATER
    with pytest.raises(Conflict, match="a task that is completed cannot become pending"):
        checked_changes(task, {"status": "pending"}, now_ms=START_MS)


def test_a_memory_edit_has_every_field() -> None:
    """memory-schemas, Memory Edit Record: all nine fields, as they leave the process."""
    assert edited()[1] == {
        "original_memory_id": "document_7",
        "edit_type": "update",
        "editor_type": "human",
        "editor_id": "ann",
        "diff_summary": "title: Lakes -> Rivers",
        "current": True,
        "previous_version_id": "document_7@1",
        "original_type": "document",
        "original_timestamp": NOW,
        # Beyond the specification: which version it made, and when.
        "id": "document_7@2",
        "type": "memory_edits",
        "version": 2,
        "timestamp": A_MINUTE_LATER,
    }


def test_the_creation_of_a_record_is_its_first_edit() -> None:
    """memory-schemas, Memory Edit Record, `edit_type: 'create'`, `previous_version_id?` and `current`."""
    first, second = edited()
    assert (first["edit_type"], first["diff_summary"], first["current"]) == ("create", "created", False)
    assert "previous_version_id" not in first
    assert second["current"] is True


@pytest.mark.parametrize("edit_type", ["update", "delete", "restore", "revert"])
def test_an_edit_has_one_of_five_types(edit_type: str) -> None:
    """memory-schemas, Memory Edit Record, `edit_type`: its three values, and those that undo."""
    assert edited(EditType(edit_type))[1]["edit_type"] == edit_type
    assert len(EditType) == 5


@pytest.mark.parametrize(
    ("editor", "editor_type", "editor_id"),
    [
        (ANN, "human", "ann"),
        (Editor(EditorType.AGENT, "a host"), "agent", "a host"),
        (Editor(EditorType.AGENT), "agent", None),
        (SYSTEM_EDITOR, "system", "kalito"),
    ],
)
def test_an_edit_says_who_made_it(editor: Editor, editor_type: str, editor_id: str | None) -> None:
    """memory-schemas, Memory Edit Record, `editor_type` and `editor_id?`: its three values, and an optional name."""
    edit = edited(editor=editor)[1]
    assert (edit["editor_type"], edit.get("editor_id")) == (editor_type, editor_id)


@pytest.mark.parametrize("record_type", RecordType)
@pytest.mark.parametrize(
    ("sent", "noted", "field", "expected"),
    [
        ({"importance": "high"}, {}, "importance", "high"),
        ({"importanceScore": 0.25}, {}, "importance_score", 0.25),
        ({"tags": [" lake ", "lake"]}, {}, "tags", ["lake"]),
        ({}, {"usage_count": 3}, "usage_count", 3),
        ({}, {"last_used": START_MS}, "last_used", NOW),
        ({}, {"led_to": ("task_1", "pin_2")}, "led_to", [{"record_id": "task_1"}, {"record_id": "pin_2"}]),
        ({"causedBy": "msg_3"}, {}, "caused_by", {"record_id": "msg_3"}),
        ({"caused_by": {"record_id": "msg_3"}}, {}, "caused_by", {"record_id": "msg_3"}),
        ({"critical": True}, {}, "critical", True),
    ],
)
def test_every_type_has_each_common_field(
    record_type: RecordType, sent: Mapping[str, Any], noted: Mapping[str, Any], field: str, expected: object
) -> None:
    """memory-schemas, Common Metadata Fields: all eight rows, in each type."""
    assert shown(record_type, sent, **noted)[field] == expected


@pytest.mark.parametrize(
    ("score", "level"),
    [
        (0.0, "low"),
        (0.39, "low"),
        (0.4, "medium"),
        (0.69, "medium"),
        (0.7, "high"),
        (0.89, "high"),
        (0.9, "critical"),
        (1.0, "critical"),
    ],
)
def test_the_level_follows_from_the_score(score: float, level: str) -> None:
    """memory-schemas, Common Metadata Fields, `importance` (its four levels) and `importance_score` (0.0 to 1.0)."""
    assert shown(TASK, {"importance_score": score})["importance"] == level
    assert shown(TASK, {"importance": level})["importance"] == level


@pytest.mark.parametrize("name", ["usage_count", "last_used", "led_to"])
def test_what_the_memory_counts_and_links_is_not_the_callers_to_set(name: str) -> None:
    """memory-schemas, Common Metadata Fields, `usage_count`, `last_used`, `led_to`: read-only."""
    with pytest.raises(InvalidInput, match=f"{name} cannot be set: "):
        checked_content(TASK, {"text": "x", name: []})


def test_the_two_flags_are_one_visibility() -> None:
    """memory-schemas, Inconsistencies and Issues, 1: `isInternalMessage` vs `notForChat`."""
    kept = [checked_content(TASK, {"text": "x", name: True}) for name in ("isInternalMessage", "notForChat")]
    assert kept[0] == kept[1] == checked_content(TASK, {"text": "x", "visibility": "internal"})
    with pytest.raises(InvalidInput, match="contradict each other; send only visibility"):
        checked_content(TASK, {"text": "x", "isInternalMessage": True, "notForChat": False})


@pytest.mark.parametrize("record_type", RecordType)
def test_names_come_in_either_case_and_leave_in_snake_case(record_type: RecordType) -> None:
    """memory-schemas, Inconsistencies and Issues, 2: camelCase and snake_case."""
    sent = {**LEAST[record_type], "importanceScore": 0.3, "causedBy": "msg_3", "notForChat": True}
    fields = replace(record(record_type), content=checked_content(record_type, sent)).to_dict()
    assert (fields["importance_score"], fields["caused_by"]) == (0.3, {"record_id": "msg_3"})
    assert all(name == name.lower() for name in fields)


@pytest.mark.parametrize("record_type", RecordType)
def test_every_type_is_checked_by_a_schema(record_type: RecordType) -> None:
    """memory-schemas, Inconsistencies and Issues, 3: schema validation."""
    with pytest.raises(InvalidInput, match=r"text must be a string, not 1; tags must be a list, not 'lake'"):
        checked_content(record_type, {**LEAST[record_type], "text": 1, "tags": "lake"})


@pytest.mark.parametrize("record_type", RecordType)
def test_arbitrary_fields_are_refused_by_the_nearest_name(record_type: RecordType) -> None:
    """memory-schemas, Inconsistencies and Issues, 4: one schema, in one place, without fields of one's own."""
    with pytest.raises(InvalidInput, match="unknown field 'visability'; did you mean 'visibility'"):
        checked_content(record_type, {**LEAST[record_type], "visability": "chat"})


@pytest.mark.parametrize("record_type", RecordType)
def test_a_moment_and_an_importance_are_kept_once(record_type: RecordType) -> None:
    """memory-schemas, Inconsistencies and Issues, 5: nothing is stored twice."""
    content = checked_content(record_type, {**LEAST[record_type], "importance": "high"})
    assert not {"importance", "timestamp", "created_at", "is_internal_message", "not_for_chat"} & set(content)
    assert [name for name, value in shown(record_type).items() if value == NOW][:1] == ["timestamp"]
    assert "created_at" not in shown(record_type)


def test_a_thought_is_a_type_and_not_a_kind_of_message() -> None:
    """memory-schemas, Inconsistencies and Issues, 6: `isInternalMessage` vs `messageType: 'thought'`.

    What kind of message it is says nothing of who sees it; that it is a thought does.
    """
    message = record(MESSAGE, {"messageType": "thought"})
    assert (message.type, str(message.visibility)) == (RecordType.MESSAGE, "chat")
    for kind in ("thought", "reflection", "planning"):
        assert str(record(THOUGHT, {"messageType": kind}).visibility) == "internal"
