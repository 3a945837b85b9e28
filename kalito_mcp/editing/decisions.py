"""What a person decides on statements: to keep one, to replace one by another, to keep two that disagree. Pure.

Each gives the whole new content of a record. To take a decision back, the record is reverted.
"""

from collections.abc import Mapping
from typing import Any

from kalito_mcp.domain.memory_records import MemoryRecord, with_changes
from kalito_mcp.domain.records import PIN_IMPORTANCE, Reach, RecordType
from kalito_mcp.domain.statements import HOLDS_WITH, KEPT_AT
from kalito_mcp.errors import Conflict, InvalidInput
from kalito_mcp.records.named import SUPERSEDES


def kept(record: MemoryRecord, reach: Reach | None, now_ms: int) -> Mapping[str, Any]:
    """A pin or a note as if a person had asked for it, with this reach, or the one it has. A pin no longer follows its
    message.

    Raises:
        InvalidInput: it is of another type, or a document of several parts. Conflict: it is forgotten.
    """
    _check_stands(record)
    content = record.content
    if record.type not in (RecordType.PIN, RecordType.DOCUMENT) or content.get("total_chunks", 1) > 1:
        raise InvalidInput(f"{record.id} is of type {record.type}; only pins and short notes are kept")
    changes = {
        KEPT_AT: content.get(KEPT_AT, now_ms),
        "importance_score": max(content["importance_score"], PIN_IMPORTANCE),
        "scope": content.get("scope") if reach is None else None if reach is Reach.SESSION else str(reach),
    }
    if record.session_id is None and reach is Reach.PERSON:
        changes["project"] = None
    return with_changes(content, changes)


def replacing(record: MemoryRecord, replaced: MemoryRecord) -> Mapping[str, Any]:
    """A record that supersedes another.

    Raises:
        Conflict: it is forgotten, or the other supersedes it.
    """
    _check_stands(record)
    if record.id in replaced.content.get(SUPERSEDES, ()):
        raise Conflict(f"{replaced.id} replaces {record.id} already; take that back first")
    return _with_named(record, SUPERSEDES, replaced.id)


def holding_with(record: MemoryRecord, other: MemoryRecord) -> Mapping[str, Any]:
    """A record that holds together with another. Raises Conflict if it is forgotten."""
    _check_stands(record)
    return _with_named(record, HOLDS_WITH, other.id)


def _with_named(record: MemoryRecord, field: str, named: str) -> Mapping[str, Any]:
    if named == record.id:
        raise InvalidInput(f"{named} is named twice; name two records")
    before = record.content.get(field, ())
    return with_changes(record.content, {field: list(dict.fromkeys((*before, named)))})


def _check_stands(record: MemoryRecord) -> None:
    if record.is_deleted:
        raise Conflict(f"{record.id} is forgotten; restore it first")
