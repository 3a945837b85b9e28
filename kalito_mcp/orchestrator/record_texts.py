"""What records say now, by their ids."""

from collections.abc import Iterable

from kalito_mcp.domain.records import Visibility
from kalito_mcp.domain.scope import Scope
from kalito_mcp.ports.records import RecordReader


async def record_texts(edits: RecordReader, scope: Scope, record_ids: Iterable[str]) -> dict[str, str]:
    """The texts of those of the scope's records that are neither forgotten, erased nor internal."""
    texts: dict[str, str] = {}
    for record_id in sorted(record_ids):
        record = await edits.record(scope, record_id)
        if record is not None and not record.is_deleted and record.visibility is Visibility.CHAT:
            texts[record_id] = record.text
    return texts
