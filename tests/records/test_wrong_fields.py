"""The refusals of each type: wrong types, values out of range and unknown values, field by field."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest

from kalito_mcp.domain.records import RecordType
from kalito_mcp.errors import InvalidInput
from kalito_mcp.records.fields import FIELDS
from kalito_mcp.records.schemas import checked_changes, checked_content
from tests.records.builders import LEAST, RANGE, record
from tests.scripted import START_MS
from tests.wordings import approve

MESSAGE, THOUGHT, DOCUMENT, TASK, PIN, SUMMARY = RecordType
NOISE: Final = re.compile(r"pydantic|Input should|validation error|Field required|Value error|type=|Traceback", re.I)
LATER: Final = START_MS + 60_000

WRONG: Final[list[tuple[RecordType, Mapping[str, Any], str]]] = [
    (TASK, {"text": 1}, "text"),
    (TASK, {"text": ""}, "text"),
    (TASK, {"text": None}, "text"),
    (TASK, {"text": "\ud800"}, "text"),
    (TASK, {"importance_score": "0.5"}, "importance_score"),
    (TASK, {"importance_score": float("nan")}, "importance_score"),
    (TASK, {"importance_score": 10**5000}, "importance_score"),
    (TASK, {"importance": "huge"}, "importance"),
    (TASK, {"importance": ["low"]}, "importance"),
    (TASK, {"importance": "low", "importance_score": 0.8}, "importance"),
    (TASK, {"tags": "lake"}, "tags"),
    (TASK, {"tags": ["lake", 1]}, "tags[1]"),
    (TASK, {"tags": ["x" * 101]}, "tags[0]"),
    (TASK, {"tags": ["a\x00b"]}, "tags[0]"),
    (TASK, {"tags": [str(one) for one in range(33)]}, "tags"),
    (TASK, {"critical": "yes"}, "critical"),
    (TASK, {"visibility": "secret"}, "visibility"),
    (TASK, {"is_internal_message": "no"}, "is_internal_message"),
    (TASK, {"not_for_chat": 1}, "not_for_chat"),
    (TASK, {"visibility": "chat", "notForChat": True}, "not_for_chat"),
    (TASK, {"isInternalMessage": False, "notForChat": True}, "is_internal_message"),
    (TASK, {"caused_by": {"id": "msg_1"}}, "caused_by"),
    (TASK, {"caused_by": "the first"}, "caused_by"),
    (TASK, {"caused_by": 10**5000}, "caused_by"),
    (MESSAGE, {"role": None}, "role"),
    (MESSAGE, {"role": "tool"}, "role"),
    (MESSAGE, {"name": "a\nb"}, "name"),
    (MESSAGE, {"message_type": "x" * 51}, "message_type"),
    (MESSAGE, {"attachments": "a.png"}, "attachments"),
    (MESSAGE, {"attachments": [{"size": float("inf")}]}, "attachments"),
    (MESSAGE, {"attachments": ["\ud800"]}, "attachments"),
    (MESSAGE, {"attachments": ["x" * 65_536]}, "attachments"),
    (MESSAGE, {"attachments": ["x"] * 33}, "attachments"),
    (MESSAGE, {"vision_response_for": [1]}, "vision_response_for"),
    (MESSAGE, {"model_id": " "}, "model_id"),
    (MESSAGE, {"token_usage": -1}, "token_usage"),
    (MESSAGE, {"token_usage": 10**5000}, "token_usage"),
    (THOUGHT, {"message_type": "doubt"}, "message_type"),
    (THOUGHT, {"visibility": "chat"}, "visibility"),
    (THOUGHT, {"notForChat": False}, "visibility"),
    (THOUGHT, {"agent_id": " "}, "agent_id"),
    (THOUGHT, {"related_to": "msg_1"}, "related_to"),
    (THOUGHT, {"related_to": ["msg_1", "no id"]}, "related_to[1]"),
    (THOUGHT, {"related_to": [f"msg_{one}" for one in range(1, 102)]}, "related_to"),
    (DOCUMENT, {"source": None}, "source"),
    (DOCUMENT, {"source": "x" * 2001}, "source"),
    (DOCUMENT, {"title": "x" * 201}, "title"),
    (DOCUMENT, {"content_type": "markdown"}, "content_type"),
    (DOCUMENT, {"file_type": "a/b"}, "file_type"),
    (DOCUMENT, {"chunk_index": 0}, "chunk_index"),
    (DOCUMENT, {"chunk_index": 2, "total_chunks": 2}, "chunk_index"),
    (DOCUMENT, {"chunk_index": -1, "total_chunks": 2}, "chunk_index"),
    (DOCUMENT, {"chunk_index": 0, "total_chunks": 0}, "total_chunks"),
    (DOCUMENT, {"document_id": "document_1"}, "document_id"),
    (TASK, {"supersedes": "msg_1"}, "supersedes"),
    (TASK, {"supersedes": ["msg_1", "no id"]}, "supersedes[1]"),
    (TASK, {"status": "done"}, "status"),
    (TASK, {"priority": "urgent"}, "priority"),
    (TASK, {"due_date": "tomorrow"}, "due_date"),
    (TASK, {"due_date": 20260304}, "due_date"),
    (TASK, {"assigned_to": {}}, "assigned_to"),
    (TASK, {"status": "completed", "completed_at": "yesterday"}, "completed_at"),
    (TASK, {"completed_at": "2026-03-04"}, "completed_at"),
    (PIN, {"pin_type": "sticky"}, "pin_type"),
    (PIN, {"scope": "galaxy"}, "scope"),
    (PIN, {"kind": "chatter"}, "kind"),
    (DOCUMENT, {"scope": "galaxy"}, "scope"),
    (PIN, {"source_message_id": "pin_1"}, "source_message_id"),
    (PIN, {"content": "Something else."}, "text"),
    (TASK, {"colour": "red"}, "unknown field"),
    (DOCUMENT, {"colour": "red"}, "unknown field"),
    (TASK, {"priorty": "low"}, "unknown field"),
    (MESSAGE, {"status": "pending"}, "unknown field"),
    (TASK, {"\ud800" * 500: 1}, "unknown field"),
    (TASK, {"dueDate": "2026-03-04", "due_date": "2026-03-05"}, "due_date"),
]


SETTLED: Final = {"source", "chunk_index", "total_chunks"}
"""What is wrong in a change however it is written."""
DERIVED: Final = (
    "id type metadata timestamp createdAt session_id userId origin revision led_to usageCount last_used isDeleted "
    "deleted_at"
).split()
"""What the memory notes itself."""
FIXED: Final = [
    (MESSAGE, "role"),
    (DOCUMENT, "source"),
    (DOCUMENT, "chunk_index"),
    (DOCUMENT, "total_chunks"),
    (PIN, "agent_id"),
    *[(SUMMARY, name) for name in RANGE],
    (SUMMARY, "model_id"),
]
"""What is settled when a record is made."""


def refusal(check: Callable[[], object]) -> str:
    """What the caller reads. Nothing of the library that checks is in it."""
    with pytest.raises(InvalidInput) as refused:
        check()
    assert refused.value.code == "invalid_input"
    said = str(refused.value)
    assert not NOISE.search(said)
    assert len(said) < 400
    return said


def of_new(record_type: RecordType, fields: Mapping[str, Any]) -> str:
    return refusal(lambda: checked_content(record_type, {**LEAST[record_type], **fields}))


def of_change(record_type: RecordType, fields: Mapping[str, Any]) -> str:
    return refusal(lambda: checked_changes(record(record_type), fields, now_ms=LATER))


def test_what_is_wrong_is_refused_by_its_field_in_plain_words() -> None:
    for record_type, fields, named in WRONG:
        assert of_new(record_type, fields).startswith(named), (record_type, fields)


def test_a_change_is_refused_as_a_new_record_is() -> None:
    for record_type, fields, named in WRONG:
        if "role" in fields or fields == {"colour": "red"}:
            continue  # a role is fixed; of unknown fields, those that can be set are listed
        if SETTLED & set(fields):
            assert " cannot be set: " in of_change(record_type, fields)
        elif fields.get("importance") != "low" or "importance_score" in fields:
            sent = {"text": "One.", **fields} if "content" in fields else fields
            assert of_change(record_type, sent) == of_new(record_type, fields), (record_type, named)


def test_the_refusals_are_as_approved() -> None:
    derived = {name: of_new(TASK, {name: "x"}) for name in DERIVED}
    fixed = {f"{kind}.{name}": of_change(kind, {name: "x"}) for kind, name in FIXED}
    wrong: dict[str, list[str]] = {}
    for record_type, fields, _ in WRONG:
        wrong.setdefault(f"{record_type}: {ascii(', '.join(fields))[:60]}", []).append(of_new(record_type, fields))
    approve("fields of records", {"derived": derived, "fixed": fixed, "wrong": wrong})


def test_every_field_of_every_type_is_refused_somewhere() -> None:
    refused = {(record_type, name) for record_type, fields, _ in WRONG for name in fields}
    shared = {"text", "importance_score", "tags", "critical", "visibility", "caused_by", "supersedes"}
    for record_type, schema in FIELDS.items():
        for name in set(schema.model_fields) - {"project"}:  # no field of a new record
            assert (TASK if name in shared else record_type, name) in refused, (record_type, name)


def test_what_the_memory_notes_is_refused_in_every_type() -> None:
    for record_type in RecordType:
        for name in DERIVED:
            said = {of_new(TASK, {name: "x"}), of_new(record_type, {name: "x"}), of_change(record_type, {name: "x"})}
            assert len(said) == 1, (record_type, name)


def test_what_is_settled_when_a_record_is_made_cannot_change() -> None:
    for record_type, name in FIXED:
        assert of_change(record_type, {name: "x"}).startswith(f"{name} cannot be set: "), (record_type, name)


def test_one_refusal_tells_every_fault_and_at_most_five() -> None:
    wrong = {"id": 1, "text": 1, "tags": [1, 2], "critical": 1, "status": "x", "priority": "x"}
    with pytest.raises(InvalidInput) as refused:
        checked_content(TASK, wrong)
    told = str(refused.value).split("; ")
    fields = [one.split()[0] for one in told if not one.startswith("leave it out")]
    assert fields == ["id", "text", "tags[0]", "tags[1]", "critical", "and"]
    assert told[-1] == "and 2 more"
