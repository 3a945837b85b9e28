"""Records of every type as the memory stores them, built from what a caller sends."""

from collections.abc import Mapping
from typing import Any, Final

from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.domain.records import Origin, RecordType, Role
from kalito_mcp.records.schemas import checked_content
from tests.scripted import START_MS

LEAST: Final[Mapping[RecordType, Mapping[str, Any]]] = {
    RecordType.MESSAGE: {"text": "At the lake.", "role": "user"},
    RecordType.THOUGHT: {"text": "They like lakes."},
    RecordType.DOCUMENT: {"text": "# Lakes", "source": "notes/lakes.md"},
    RecordType.TASK: {"text": "Book the hut."},
    RecordType.PIN: {"text": "Allergic to penicillin."},
    RecordType.SUMMARY: {"text": "They were at a lake."},
}
"""The required fields of each type."""

RANGE: Final[Mapping[str, Any]] = {
    "method": "extractive",
    "level": 0,
    "message_count": 2,
    "start_message_id": "msg_1",
    "end_message_id": "msg_2",
    "start_seq": 1,
    "end_seq": 2,
    "started_at": START_MS,
    "ended_at": START_MS + 1000,
}
"""The fields that the memory adds to a summary."""


def record(record_type: RecordType, fields: Mapping[str, Any] | None = None, **others: Any) -> MemoryRecord:
    """A stored record with its required fields and these. `others` replace what the memory adds itself."""
    content = checked_content(record_type, {**LEAST[record_type], **(fields or {})}, now_ms=START_MS)
    role = content.pop("role", None)
    content.setdefault("importance_score", 0.5)
    if record_type is RecordType.SUMMARY:
        content |= RANGE
    noted = {
        "id": f"{'msg' if record_type is RecordType.MESSAGE else record_type}_7",
        "type": record_type,
        "agent_id": "default",
        "session_id": "session_123",
        "content": content,
        "origin": Origin.USER,
        "client": "a host",
        "created_at": START_MS,
        "recorded_at": START_MS,
        "revision": 1,
        "role": None if role is None else Role(role),
    }
    return MemoryRecord(**{**noted, **others})
