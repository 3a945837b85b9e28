"""What a change of a record's row means for what is derived from it. Pure."""

import json
from typing import Final

from kalito_mcp.domain.records import RecordType
from kalito_mcp.storage.record_fields import packed
from kalito_mcp.storage.record_rows import StoredRow, content_of, hashed

SUPERSEDES: Final = "supersedes"

_SUMMARY_PLACE: Final = ("start_message_id", "end_message_id", "started_at", "ended_at", "method")


def named_in(attributes: str | None) -> list[str]:
    """The ids of the records that a record supersedes, by the attributes of its row."""
    return list(json.loads(attributes).get(SUPERSEDES) or ()) if attributes and SUPERSEDES in attributes else []


def importance_of(row: StoredRow | None) -> float:
    """What a row adds to the sum of importances. Nothing without a row."""
    return 0.0 if row is None else float(row["importance"])


def erased_stub(row: StoredRow, now_ms: int) -> StoredRow:
    """The row that remains of an erased message or summary: its place, without text."""
    attributes = None
    if row["type"] == RecordType.SUMMARY:
        content = content_of(row)
        attributes = packed({name: content[name] for name in _SUMMARY_PLACE})
    words = dict.fromkeys(("name", "client_key", "client", "tags", "caused_by"))
    deleted_at = now_ms if row["deleted_at"] is None else row["deleted_at"]
    return hashed(
        {
            **row,
            **words,
            "text": "",
            "tokens": 0,
            "attributes": attributes,
            "revision": 1,
            "is_critical": 0,
            "deleted_at": deleted_at,
            "purged_at": now_ms,
        }
    )
