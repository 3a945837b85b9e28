"""Completes a stored message of which the source has more now: an answer that was still being written, or a text of an
attachment that an earlier export lacked. It is an edit, which can be undone."""

from typing import Final

from kalito_mcp.domain.imports import IMPORTED_BY
from kalito_mcp.domain.memory_records import Editor, EditorType, EditType
from kalito_mcp.errors import Conflict, InvalidInput, NotFound
from kalito_mcp.memory import Memory

_IMPORT: Final = Editor(EditorType.SYSTEM, IMPORTED_BY)


async def complete(memory: Memory, number: int, text: str) -> bool:
    """Give the message with this number its longer text. False, and nothing is changed, if somebody edited or forgot
    it."""
    try:
        record = await memory.records.get(str(number))
        edits = await memory.records.history(record.id) if record.revision > 1 else []
        is_ours = all(edit.get("editor_id") == IMPORTED_BY for edit in edits if edit["edit_type"] != EditType.CREATE)
        if record.is_deleted or not is_ours:
            return False
        await memory.update_memory(record.id, {"text": text}, expected_revision=record.revision, editor=_IMPORT)
    except (Conflict, InvalidInput, NotFound):
        return False
    return True
