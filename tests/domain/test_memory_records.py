"""Versions are derived from the record and its edits: nothing is stored twice, and nothing is lost."""

from collections.abc import Mapping
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.memory_records import (
    DELETED_AT,
    SYSTEM_EDITOR,
    Editor,
    EditorType,
    EditType,
    MemoryRecord,
    StoredEdit,
    changed_fields,
    versions,
    with_changes,
)
from kalito_mcp.domain.records import Origin, RecordType, Visibility
from kalito_mcp.pins.found import pin_key
from tests.scripted import START_MS

ANN: Final = Editor(EditorType.HUMAN, "ann")
VALUES: Final = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3), st.lists(st.integers()))
CHANGES: Final = st.dictionaries(st.sampled_from(["title", "tags", "critical", DELETED_AT]), VALUES)


def record(content: Mapping[str, Any] | None = None, **others: Any) -> MemoryRecord:
    """A task of an assistant, unless given otherwise."""
    fields = {
        "id": "task_7",
        "type": RecordType.TASK,
        "agent_id": "default",
        "session_id": None,
        "content": {"text": "Book the hut.", **(content or {})},
        "origin": Origin.ASSISTANT,
        "client": "a host",
        "created_at": START_MS,
        "recorded_at": START_MS + 1,
        "revision": 1,
    }
    return MemoryRecord(**{**fields, **others})


@given(steps=st.lists(CHANGES, max_size=8))
def test_every_version_is_as_it_was_however_it_was_changed(steps: list[dict[str, Any]]) -> None:
    contents: list[dict[str, Any]] = [{"text": "Book the hut."}]
    edits: list[StoredEdit] = []
    for number, step in enumerate(steps, 2):
        after = with_changes(contents[-1], step)
        edits.append(StoredEdit(number, EditType.UPDATE, ANN, START_MS + number, changed_fields(contents[-1], after)))
        contents.append(after)
    found = versions(record(contents[-1], revision=len(contents)), edits)
    assert [dict(content) for _, content in found] == contents
    assert [edit for edit, _ in found[1:]] == edits


@given(before=CHANGES, changes=CHANGES)
def test_undoing_what_changed_gives_what_was_there(before: dict[str, Any], changes: dict[str, Any]) -> None:
    old = with_changes({}, before)
    new = with_changes(old, changes)
    assert with_changes(new, changed_fields(old, new)) == old
    assert changed_fields(old, old) == {}


def test_none_and_nothing_are_the_same() -> None:
    assert with_changes({"text": "x", "title": "y"}, {"title": None, "tags": None}) == {"text": "x"}
    assert changed_fields({"text": "x"}, {"text": "x", "title": None}) == {}
    assert changed_fields({"b": 1}, {"a": 2}) == {"a": None, "b": 1}


def test_an_unedited_record_has_only_its_creation() -> None:
    [(creation, content)] = versions(record(), [])
    assert (creation.version, creation.type, creation.before) == (1, EditType.CREATE, {})
    assert creation.edited_at == START_MS + 1
    assert content == {"text": "Book the hut."}


def test_where_the_history_was_dropped_the_first_version_has_the_revision_that_is_left() -> None:
    [(creation, _)] = versions(record(revision=5), [])
    assert (creation.version, creation.type) == (5, EditType.CREATE)


AUTOMATIC: Final = {
    "type": RecordType.PIN, "origin": Origin.USER, "client": None, "client_key": pin_key("I live in Oslo.")
}  # fmt: skip


def test_the_origin_of_a_record_says_who_made_it() -> None:
    for content, noted, editor in (
        ({}, {}, Editor(EditorType.AGENT, "a host")),
        ({}, {"origin": Origin.USER, "client": "ann"}, ANN),
        ({}, {"origin": Origin.USER, "client": None}, Editor(EditorType.HUMAN)),
        ({}, {"origin": Origin.TOOL}, Editor(EditorType.AGENT, "a host")),
        ({}, AUTOMATIC, SYSTEM_EDITOR),
        ({}, AUTOMATIC | {"client": "a host"}, Editor(EditorType.HUMAN, "a host")),
        ({}, AUTOMATIC | {"client_key": "auto:mine"}, Editor(EditorType.HUMAN)),
        ({}, AUTOMATIC | {"type": RecordType.MESSAGE}, Editor(EditorType.HUMAN)),
        ({}, {"type": RecordType.PIN, "client_key": "3f"}, Editor(EditorType.AGENT, "a host")),
        ({"method": "extractive"}, {"type": RecordType.SUMMARY}, SYSTEM_EDITOR),
        ({"method": "model"}, {"type": RecordType.SUMMARY}, SYSTEM_EDITOR),
        ({"method": "caller"}, {"type": RecordType.SUMMARY}, Editor(EditorType.AGENT, "a host")),
    ):
        [(creation, _)] = versions(record(content, **noted), [])
        assert creation.editor == editor


def test_a_record_says_what_its_content_means() -> None:
    hidden = record({DELETED_AT: START_MS, "visibility": "internal"}, revision=3)
    assert (hidden.is_deleted, hidden.visibility, hidden.version_id) == (True, Visibility.INTERNAL, "task_7@3")
    assert (record().is_deleted, record().visibility, record().text) == (False, Visibility.CHAT, "Book the hut.")
