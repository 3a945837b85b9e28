"""Finds the record with exactly these words, so that they are stored once. Reads only.

Only equal words count: a similar note is another note. Forgotten records are not found.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from kalito_mcp.domain.memory_records import MemoryRecord, RecordDraft
from kalito_mcp.domain.records import NOTE_SOURCE, Reach, RecordType
from kalito_mcp.domain.request_keys import chosen_part
from kalito_mcp.domain.scope import Scope
from kalito_mcp.ports.records import RecordReader

_FINISHED: Final = frozenset({"completed", "failed"})


async def known_already(records: RecordReader, place: Scope, drafts: Sequence[RecordDraft]) -> MemoryRecord | None:
    """The note, task or thought of this place with the same words, marked as known, or None. A document with a source
    is replaced, not repeated; a task that is due at another time is another one."""
    draft = drafts[0]
    content = draft.content
    if len(drafts) > 1 or (draft.type is RecordType.DOCUMENT and not _is_note(content)):
        return None
    found = await same_words(records, place, draft.type, str(content["text"]), content.get("scope"))
    if found is None or is_sent_again(draft.client_key, found):
        return None
    if found.type is RecordType.DOCUMENT and not _is_note(found.content):
        return None
    is_due_then = content.get("due_date") in (None, found.content.get("due_date"))
    is_other_task = found.content.get("status") in _FINISHED or not is_due_then
    return None if draft.type is RecordType.TASK and is_other_task else replace(found, is_known=True)


def is_sent_again(client_key: str | None, known: MemoryRecord) -> bool:
    """Whether the key of a call settles what it repeats: the known record has it, or it names a request as a whole."""
    return client_key is not None and (known.client_key == client_key or chosen_part(client_key) is not None)


async def same_words(
    records: RecordReader, place: Scope, record_type: RecordType, text: str, reach: str | None
) -> MemoryRecord | None:
    """The record with exactly this text: a pin or a note if it is known beyond its session, else of this type and in
    this session, or in none."""
    if reach in (Reach.PROJECT, Reach.PERSON):
        return await records.same_known(place, Reach(reach), text)
    return await records.same_words(place, record_type, text)


def _is_note(content: Mapping[str, Any]) -> bool:
    return str(content.get("source", "")).startswith(NOTE_SOURCE)
