"""Looks up the current texts of records."""

from collections.abc import Iterable

from kalito_mcp.domain.records import Visibility
from kalito_mcp.domain.scope import Scope
from kalito_mcp.ports.records import RecordReader


async def record_texts(records: RecordReader, scope: Scope, record_ids: Iterable[str]) -> dict[str, str]:
    """The texts by record id, without forgotten, erased, internal and unknown records."""
    texts: dict[str, str] = {}
    for record_id in sorted(record_ids):
        record = await records.record(scope, record_id)
        if record is not None and not record.is_deleted and record.visibility is Visibility.CHAT:
            texts[record_id] = record.text
    return texts
