"""The refusals of each type: wrong types, values out of range and unknown values, field by field."""

import re
from collections.abc import Mapping
from typing import Any, Final

import pytest

from kalito_mcp.domain.records import RecordType
from kalito_mcp.errors import InvalidInput
from kalito_mcp.records.fields import FIELDS
from kalito_mcp.records.schemas import checked_changes, checked_content
from tests.records.builders import LEAST, RANGE, record
from tests.scripted import START_MS

MESSAGE, THOUGHT, DOCUMENT, TASK, PIN, SUMMARY = RecordType
NOISE: Final = re.compile(r"pydantic|Input should|validation error|Field required|Value error|type=|Traceback", re.I)
LATER: Final = START_MS + 60_000

WRONG: Final[list[tuple[RecordType, Mapping[str, Any], str]]] = [
    (TASK, {"text": 1}, "text must be a string, not 1"),
    (TASK, {"text": ""}, "text is empty; send the text to remember"),
    (TASK, {"text": None}, "text is missing"),
    (TASK, {"text": "\ud800"}, "text has an unpaired surrogate"),
    (PIN, {"text": None}, "text is missing"),
    (TASK, {"importance_score": "0.5"}, "importance_score must be a number, not '0.5'"),
    (TASK, {"importance_score": True}, "importance_score must be a number, not True"),
    (TASK, {"importance_score": float("nan")}, "importance_score is NaN"),
    (TASK, {"importance_score": 10**5000}, "importance_score must be a number, not a very large number"),
    (TASK, {"importance": "huge"}, "importance must be 'low', 'medium', 'high' or 'critical', not 'huge'"),
    (TASK, {"importance": ["low"]}, "importance must be 'low'"),
    (TASK, {"importance": "low", "importance_score": 0.8}, "contradicts importance_score=0.8, which is 'high'"),
    (TASK, {"importance": "low", "importance_score": 10**5000}, "contradicts importance_score=a very large number"),
    (TASK, {"tags": "lake"}, "tags must be a list, not 'lake'"),
    (TASK, {"tags": ["lake", 1]}, r"tags\[1\] must be a string, not 1"),
    (TASK, {"tags": [" "]}, r"tags\[0\] is empty"),
    (TASK, {"tags": ["x" * 101]}, r"tags\[0\] has 101 characters; send at most 100"),
    (TASK, {"tags": ["a\x00b"]}, r"tags\[0\] has line breaks, control characters"),
    (TASK, {"tags": [str(one) for one in range(33)]}, "tags has 33 items; send at most 32"),
    (TASK, {"critical": "yes"}, "critical must be true or false, not 'yes'"),
    (TASK, {"critical": 1}, "critical must be true or false, not 1"),
    (TASK, {"visibility": "secret"}, "visibility must be 'chat' or 'internal', not 'secret'"),
    (TASK, {"visibility": ["chat"]}, "visibility must be 'chat' or 'internal'"),
    (TASK, {"is_internal_message": "no"}, "is_internal_message must be true or false, not 'no'"),
    (TASK, {"not_for_chat": 1}, "not_for_chat must be true or false, not 1"),
    (TASK, {"visibility": "chat", "notForChat": True}, "not_for_chat and visibility contradict each other"),
    (TASK, {"isInternalMessage": False, "notForChat": True}, "is_internal_message, not_for_chat and visibility"),
    (TASK, {"caused_by": {"id": "msg_1"}}, "caused_by must be a record's id such as 'msg_45'"),
    (TASK, {"caused_by": "the first"}, "caused_by must be a record's id"),
    (TASK, {"caused_by": -1}, "caused_by must be a record's id"),
    (TASK, {"caused_by": True}, "caused_by must be a record's id"),
    (TASK, {"caused_by": 10**5000}, "caused_by must be a record's id such as 'msg_45', not a very large number"),
    (MESSAGE, {"role": None}, "role is missing"),
    (MESSAGE, {"role": "tool"}, "role must be 'user', 'assistant' or 'system', not 'tool'"),
    (MESSAGE, {"role": 1}, "role must be 'user'"),
    (MESSAGE, {"name": "a\nb"}, "name has line breaks"),
    (MESSAGE, {"name": 1}, "name must be a string"),
    (MESSAGE, {"message_type": "x" * 51}, "message_type has 51 characters; send at most 50"),
    (MESSAGE, {"message_type": 1}, "message_type must be a string"),
    (MESSAGE, {"attachments": "a.png"}, "attachments must be a list"),
    (MESSAGE, {"attachments": [1]}, "attachments must contain only strings and JSON objects"),
    (MESSAGE, {"attachments": [{"size": float("inf")}]}, "attachments has a value that JSON cannot represent"),
    (MESSAGE, {"attachments": [{"bytes": b"x"}]}, "attachments has a value that JSON cannot represent"),
    (MESSAGE, {"attachments": ["\ud800"]}, "attachments has a value that JSON cannot represent"),
    (MESSAGE, {"attachments": ["x" * 65_536]}, "attachments has 65,540 bytes of JSON and the limit is 65,536"),
    (MESSAGE, {"attachments": ["x"] * 33}, "attachments has 33 items; send at most 32"),
    (MESSAGE, {"vision_response_for": [1]}, "vision_response_for must be a record's id"),
    (MESSAGE, {"model_id": ""}, "model_id is empty"),
    (MESSAGE, {"token_usage": -1}, "token_usage must be at least 0, not -1"),
    (MESSAGE, {"token_usage": 1.5}, "token_usage must be a whole number, not 1.5"),
    (MESSAGE, {"token_usage": 10**5000}, "token_usage must be at most 1000000000, not a very large number"),
    (THOUGHT, {"message_type": "doubt"}, "message_type must be 'thought', 'reflection' or 'planning', not 'doubt'"),
    (THOUGHT, {"visibility": "chat"}, "visibility of a thought is always 'internal'"),
    (THOUGHT, {"isInternalMessage": False}, "visibility of a thought is always 'internal'"),
    (THOUGHT, {"notForChat": False}, "visibility of a thought is always 'internal'"),
    (THOUGHT, {"agent_id": ""}, "agent_id is empty"),
    (THOUGHT, {"related_to": "msg_1"}, "related_to must be a list"),
    (THOUGHT, {"related_to": ["msg_1", "no id"]}, r"related_to\[1\] must be a record's id"),
    (THOUGHT, {"related_to": [f"msg_{one}" for one in range(1, 102)]}, "related_to has 101 items; send at most 100"),
    (DOCUMENT, {"source": None}, "source is missing"),
    (DOCUMENT, {"source": " "}, "source is empty"),
    (DOCUMENT, {"source": "x" * 2001}, "source has 2001 characters"),
    (DOCUMENT, {"title": "x" * 201}, "title has 201 characters"),
    (
        DOCUMENT,
        {"content_type": "markdown"},
        "content_type must be a MIME type such as 'text/markdown', not 'markdown'",
    ),
    (DOCUMENT, {"content_type": 1}, "content_type must be a string"),
    (DOCUMENT, {"file_type": "a/b"}, "file_type must be a file's extension such as 'md', not 'a/b'"),
    (DOCUMENT, {"chunk_index": 0}, "chunk_index and total_chunks come together"),
    (DOCUMENT, {"chunk_index": 2, "total_chunks": 2}, "chunk_index=2 must be below total_chunks=2"),
    (DOCUMENT, {"chunk_index": -1, "total_chunks": 2}, "chunk_index must be at least 0"),
    (DOCUMENT, {"chunk_index": 0, "total_chunks": 0}, "total_chunks must be at least 1"),
    (DOCUMENT, {"chunk_index": "0", "total_chunks": 1}, "chunk_index must be a whole number"),
    (DOCUMENT, {"document_id": "document_1"}, "document_id cannot be set: it depends on how the document was split"),
    (TASK, {"supersedes": "msg_1"}, "supersedes must be a list"),
    (TASK, {"supersedes": ["msg_1", "no id"]}, r"supersedes\[1\] must be a record's id"),
    (TASK, {"status": "done"}, "status must be 'pending', 'in_progress', 'completed' or 'failed', not 'done'"),
    (TASK, {"priority": "urgent"}, "priority must be 'low', 'medium', 'high' or 'critical', not 'urgent'"),
    (TASK, {"due_date": "tomorrow"}, "due_date must be an ISO 8601 date or time such as '2026-03-04'"),
    (TASK, {"due_date": "2026-02-30"}, "due_date must be an ISO 8601 date or time"),
    (TASK, {"due_date": 20260304}, "due_date must be a string"),
    (TASK, {"assigned_to": {}}, "assigned_to must be a string"),
    (TASK, {"status": "completed", "completed_at": "yesterday"}, "completed_at must be an ISO 8601 time"),
    (TASK, {"completed_at": "2026-03-04"}, "completed_at does not go with status='pending'"),
    (PIN, {"pin_type": "sticky"}, "pin_type must be 'manual', 'auto', 'code', 'concept' or 'system', not 'sticky'"),
    (PIN, {"scope": "galaxy"}, "scope must be 'session', 'project' or 'person', not 'galaxy'"),
    (DOCUMENT, {"scope": "galaxy"}, "scope must be 'session', 'project' or 'person', not 'galaxy'"),
    (PIN, {"source_message_id": "pin_1"}, "source_message_id must be a message's id such as 'msg_45', not 'pin_1'"),
    (PIN, {"content": "Something else."}, "text was sent twice, with two values"),
    (TASK, {"colour": "red"}, "unknown field 'colour'; use one of text, "),
    (DOCUMENT, {"colour": "red"}, "title, content_type, file_type, scope, importance, "),
    (TASK, {"priorty": "low"}, "unknown field 'priorty'; did you mean 'priority'?"),
    (TASK, {"assignedTO": "me"}, "unknown field 'assignedTO'; did you mean 'assigned_to'?"),
    (MESSAGE, {"status": "pending"}, "unknown field 'status'"),
    (TASK, {"\ud800" * 500: 1}, "unknown field "),
    (TASK, {"dueDate": "2026-03-04", "due_date": "2026-03-05"}, "due_date was sent twice, with two values"),
]


@pytest.mark.parametrize(("record_type", "fields", "words"), WRONG)
def test_what_is_wrong_is_refused_by_its_field_in_plain_words(
    record_type: RecordType, fields: Mapping[str, Any], words: str
) -> None:
    with pytest.raises(InvalidInput, match=words) as refused:
        checked_content(record_type, {**LEAST[record_type], **fields})
    assert not NOISE.search(str(refused.value))
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize(("record_type", "fields", "words"), [one for one in WRONG if "role" not in one[1]])
def test_a_change_is_refused_as_a_new_record_is(record_type: RecordType, fields: Mapping[str, Any], words: str) -> None:
    if {"source", "chunk_index"} & set(fields):
        words = "cannot be set"
    if "content" in fields:
        fields = {"text": "One.", **fields}
    if fields.get("importance") == "low" and "importance_score" not in fields:
        pytest.skip("a level alone is right")
    with pytest.raises(InvalidInput, match=words):
        checked_changes(record(record_type), fields, now_ms=LATER)


def test_every_field_of_every_type_is_refused_somewhere() -> None:
    refused = {(record_type, name) for record_type, fields, _ in WRONG for name in fields}
    shared = {"text", "importance_score", "tags", "critical", "visibility", "caused_by", "supersedes"}
    for record_type, schema in FIELDS.items():
        for name in set(schema.model_fields) - {"project"}:  # no field of a new record
            assert (TASK if name in shared else record_type, name) in refused, (record_type, name)


@pytest.mark.parametrize("record_type", RecordType)
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("id", "ids are assigned by the memory"),
        ("type", "a record keeps its type"),
        ("metadata", "send its fields next to text"),
        ("timestamp", "leave it out"),
        ("createdAt", "leave it out"),
        ("session_id", "a record stays where it was recorded"),
        ("userId", "it is who is logged in"),
        ("origin", "the memory records where the text came from"),
        ("revision", "send expected_revision next to the changes"),
        ("led_to", "it is derived from caused_by; set caused_by on the record that this one led to"),
        ("usageCount", "the memory counts how often"),
        ("last_used", "the memory counts how often"),
        ("isDeleted", "forget the record to hide it"),
        ("deleted_at", "forget the record to hide it"),
    ],
)
def test_what_the_memory_notes_is_refused_with_what_to_do_instead(
    record_type: RecordType, name: str, words: str
) -> None:
    with pytest.raises(InvalidInput, match=words):
        checked_content(record_type, {**LEAST[record_type], name: "x"})
    with pytest.raises(InvalidInput, match=words):
        checked_changes(record(record_type), {name: "x"}, now_ms=LATER)


@pytest.mark.parametrize(
    ("record_type", "name"),
    [
        (MESSAGE, "role"),
        (DOCUMENT, "source"),
        (DOCUMENT, "chunk_index"),
        (DOCUMENT, "total_chunks"),
        (PIN, "agent_id"),
        *[(SUMMARY, name) for name in RANGE],
        (SUMMARY, "model_id"),
    ],
)
def test_what_is_settled_when_a_record_is_made_cannot_change(record_type: RecordType, name: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{name} cannot be set: "):
        checked_changes(record(record_type), {name: "x"}, now_ms=LATER)


def test_one_refusal_tells_every_fault_and_at_most_five() -> None:
    wrong = {"id": 1, "text": 1, "tags": [1, 2], "critical": 1, "status": "x", "priority": "x"}
    with pytest.raises(InvalidInput) as refused:
        checked_content(TASK, wrong)
    told = str(refused.value).split("; ")
    fields = [one.split()[0] for one in told if not one.startswith("leave it out")]
    assert fields == ["id", "text", "tags[0]", "tags[1]", "critical", "and"]
    assert told[-1] == "and 2 more"
