"""The fields of each type: what may be sent, what is stored, and how a record is shown."""

import json
import re
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.memory_records import DELETED_AT, MemoryRecord, with_changes
from kalito_mcp.domain.records import RecordType
from kalito_mcp.errors import Conflict, InvalidInput
from kalito_mcp.records.fields import FIELDS
from kalito_mcp.records.schemas import checked_changes, checked_content
from tests.records.builders import LEAST, record
from tests.scripted import START_MS

MESSAGE, THOUGHT, DOCUMENT, TASK, PIN, SUMMARY = RecordType
NOISE: Final = re.compile(r"pydantic|Input should|validation error|Field required|Value error|type=|Traceback", re.I)
LATER: Final = START_MS + 60_000
NOW: Final = "2026-03-04T05:06:07.089Z"


def optional_fields(record_type: RecordType) -> list[str]:
    """The fields that can be taken away."""
    return [name for name, field in FIELDS[record_type].model_fields.items() if not field.is_required()]


def test_the_least_that_can_be_sent_is_kept_without_what_says_nothing() -> None:
    for record_type in RecordType:
        content = checked_content(record_type, LEAST[record_type])
        assert not {"tags", "critical", "caused_by", "attachments", "related_to"} & set(content)
        assert ("visibility" in content) is (record_type is THOUGHT)
        assert content["text"] == LEAST[record_type]["text"]


def test_the_score_is_what_was_sent_or_what_is_usual() -> None:
    """None is for the recorder to score."""
    for record_type, fields, score in (
        (MESSAGE, {}, None),
        (DOCUMENT, {}, 0.5),
        (TASK, {}, 0.5),
        (TASK, {"priority": "high"}, 0.8),
        (TASK, {"priority": "critical"}, 0.95),
        (TASK, {"priority": "critical", "importance_score": 0.1}, 0.1),
        (PIN, {}, 0.8),
        (SUMMARY, {}, 0.7),
        (PIN, {"importance_score": 0}, 0.0),
        (PIN, {"importance_score": 7}, 1.0),
        (PIN, {"importance": "low"}, 0.2),
        (PIN, {"importance": "critical", "importance_score": 0.93}, 0.93),
    ):
        assert checked_content(record_type, {**LEAST[record_type], **fields}).get("importance_score") == score


def test_tags_are_stripped_and_distinct_in_their_order() -> None:
    assert checked_content(TASK, {"text": "x", "tags": [" b ", "a", "b"]})["tags"] == ["b", "a"]


def test_a_cause_is_kept_as_the_id_of_its_record() -> None:
    for cause in ("msg_45", 45, "45", {"record_id": "msg_45"}, {"record_id": 45}, " msg_45 "):
        assert checked_content(TASK, {"text": "x", "caused_by": cause})["caused_by"] == "msg_45"


def test_a_due_date_stays_a_date_and_a_moment_becomes_utc() -> None:
    for sent, kept in (
        ("2026-03-04", "2026-03-04"),
        ("20260304", "2026-03-04"),
        ("2026-03-04T05:06:07", "2026-03-04T05:06:07.000Z"),
        ("2026-03-04T05:06:07.089+02:00", "2026-03-04T03:06:07.089Z"),
    ):
        assert checked_content(TASK, {"text": "x", "dueDate": sent})["due_date"] == kept


def test_a_task_made_as_completed_was_so_now_unless_it_says_when() -> None:
    assert checked_content(TASK, {"text": "x", "status": "completed"}, now_ms=START_MS)["completed_at"] == NOW
    said = checked_content(TASK, {"text": "x", "status": "completed", "completed_at": "2026-01-02"}, now_ms=START_MS)
    assert said["completed_at"] == "2026-01-02T00:00:00.000Z"


def test_a_task_has_its_time_of_completion_from_when_it_is_completed() -> None:
    task = record(TASK)
    content = checked_changes(task, {"status": "completed"}, now_ms=LATER)
    assert content["completed_at"] == "2026-03-04T05:07:07.089Z"
    done = replace(task, content=content)
    assert checked_changes(done, {"status": "completed", "tags": []}, now_ms=LATER + 9) == content
    assert checked_changes(done, {"completed_at": "2026-03-04"}, now_ms=LATER)["completed_at"][:10] == "2026-03-04"
    with pytest.raises(Conflict, match="pending"):
        checked_changes(done, {"status": "pending"}, now_ms=LATER)


def test_the_importance_of_a_task_follows_its_priority_until_it_is_set() -> None:
    assert checked_changes(record(TASK), {"priority": "high"}, now_ms=LATER)["importance_score"] == 0.8
    own = record(TASK, {"importance_score": 0.11})
    assert checked_changes(own, {"priority": "high"}, now_ms=LATER)["importance_score"] == 0.11
    both = checked_changes(record(TASK), {"priority": "high", "importance": "low"}, now_ms=LATER)
    assert both["importance_score"] == 0.2


def test_the_level_that_a_record_has_already_leaves_its_score() -> None:
    pin = record(PIN, {"importance_score": 0.77})
    assert checked_changes(pin, {"importance": "high"}, now_ms=LATER) == pin.content
    assert checked_changes(pin, {"importance": "low"}, now_ms=LATER)["importance_score"] == 0.2
    assert checked_changes(pin, {"importance_score": None}, now_ms=LATER)["importance_score"] == 0.8


def test_a_flag_is_compared_with_what_is_sent_with_it_not_with_what_was() -> None:
    message = record(MESSAGE)
    hidden = replace(message, content=checked_changes(message, {"notForChat": True}, now_ms=LATER))
    assert hidden.content["visibility"] == "internal"
    assert checked_changes(hidden, {"isInternalMessage": False}, now_ms=LATER) == message.content


def test_null_takes_an_optional_field_away_and_not_the_text() -> None:
    for record_type in RecordType:
        least = record(record_type)
        settled = {"role", "source", "chunk_index", "total_chunks", "project"}
        full = replace(least, content={**least.content, "tags": ["a"], "critical": True, "caused_by": "msg_1"})
        changes = dict.fromkeys(name for name in optional_fields(record_type) if name not in settled)
        assert checked_changes(full, changes, now_ms=LATER) == least.content
        with pytest.raises(InvalidInput, match="text is missing"):
            checked_changes(full, {"text": None}, now_ms=LATER)


def test_a_change_of_nothing_gives_the_same_content() -> None:
    for record_type in RecordType:
        full = record(record_type, {"tags": ["a"], "critical": True, "caused_by": "msg_1", "importance_score": 0.61})
        sent = {
            name: value for name, value in full.to_dict().items() if name in ("text", "tags", "critical", "caused_by")
        }
        for changes in ({}, sent, {"importance": "medium", "visibility": full.visibility}):
            assert checked_changes(full, changes, now_ms=LATER) == full.content


def test_what_is_not_named_stays_as_it_is() -> None:
    """Also what only the memory sets, and what no caller could send."""
    document = record(DOCUMENT, {"title": "Lakes"})
    kept = {**document.content, "document_id": "document_7", DELETED_AT: 5, "visibility": "internal"}
    content = checked_changes(replace(document, content=kept), {"title": "Rivers"}, now_ms=LATER)
    assert content == {**kept, "title": "Rivers"}


def test_what_was_stored_under_other_rules_does_not_stand_in_the_way() -> None:
    message = record(MESSAGE)
    old = replace(message, content={**message.content, "token_usage": -1, "name": "x" * 300})
    assert checked_changes(old, {"tags": ["a"]}, now_ms=LATER) == {**old.content, "tags": ["a"]}


def test_only_the_text_and_what_all_records_have_can_change_in_a_summary() -> None:
    summary = record(SUMMARY)
    content = checked_changes(summary, {"summary": "They swam.", "tags": ["lake"]}, now_ms=LATER)
    assert content == {**summary.content, "text": "They swam.", "tags": ["lake"]}


def test_a_record_shows_what_the_memory_notes_of_it() -> None:
    message = record(
        MESSAGE,
        {"caused_by": "msg_1"},
        seq=3,
        usage_count=2,
        last_used=LATER,
        led_to=("task_1", "pin_2"),
        recorded_at=LATER,
        revision=4,
        client_key="k",
    )
    forgotten = replace(message, content={**message.content, DELETED_AT: LATER})
    assert (forgotten).to_dict(owner="ann") == {
        "id": "msg_7",
        "type": "message",
        "text": "At the lake.",
        "timestamp": NOW,
        "recorded_at": "2026-03-04T05:07:07.089Z",
        "agent_id": "default",
        "session_id": "session_123",
        "role": "user",
        "user_id": "ann",
        "seq": 3,
        "message_type": "text",
        "importance_score": 0.5,
        "importance": "medium",
        "tags": [],
        "critical": False,
        "visibility": "chat",
        "usage_count": 2,
        "last_used": "2026-03-04T05:07:07.089Z",
        "caused_by": {"record_id": "msg_1"},
        "led_to": [{"record_id": "task_1"}, {"record_id": "pin_2"}],
        "origin": "user",
        "client": "a host",
        "client_key": "k",
        "revision": 4,
        "is_deleted": True,
        "deleted_at": "2026-03-04T05:07:07.089Z",
    }


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["low", "chat"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)
NAMES = st.sampled_from(
    sorted(
        {name for schema in FIELDS.values() for name in schema.model_fields} | {"importance", "notForChat", "dueDate"}
    )
)


@given(st.sampled_from(RecordType), st.dictionaries(NAMES | st.text(max_size=8), VALUES, max_size=5))
def test_anything_is_either_refused_in_words_or_kept_as_json_that_checks_to_itself(
    record_type: RecordType, fields: dict[str, Any]
) -> None:
    try:
        content = checked_content(record_type, {**LEAST[record_type], **fields})
    except InvalidInput as refused:
        assert not NOISE.search(str(refused))
        return
    assert json.loads(json.dumps(content)) == content
    assert checked_content(record_type, content) == content


@given(st.sampled_from(RecordType), st.dictionaries(NAMES, VALUES, max_size=3))
def test_a_change_changes_only_the_fields_that_it_names(record_type: RecordType, changes: dict[str, Any]) -> None:
    before = record(record_type)
    try:
        content = checked_changes(before, changes, now_ms=LATER)
    except (InvalidInput, Conflict):
        return
    named = {*changes, "importance_score", "visibility", "due_date", "completed_at"}
    untouched = {name: value for name, value in before.content.items() if name not in named}
    assert untouched.items() <= content.items()
    again: MemoryRecord = replace(before, content=content)
    assert checked_changes(again, changes, now_ms=LATER) == content
    assert with_changes(content, {}) == content
    json.dumps(again.to_dict())
