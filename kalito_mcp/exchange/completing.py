"""Completes a stored message of which the source has more now: an answer that was still being written, or a text of an
attachment that an earlier export lacked. It is an edit, which can be undone."""

from typing import Final

from kalito_mcp.domain.imports import IMPORTED_BY
from kalito_mcp.domain.memory_records import Editor, EditorType, EditType
from kalito_mcp.errors import Conflict, InvalidInput, NotFound
from kalito_mcp.exchange.conversation import Turn
from kalito_mcp.exchange.stored import Stored, keys_of
from kalito_mcp.safety.redaction import redact

_IMPORT: Final = Editor(EditorType.SYSTEM, IMPORTED_BY)


async def stored_key(stored: Stored, turn: Turn, source: str) -> str:
    """The client key under which a turn is stored, or will be. An answer without an id may have grown: then it is that
    of the stored answer in its place, if the text begins with what that one says or once said."""
    keys = keys_of(source, turn)
    key = next((one for one in keys if stored.has_key(one)), keys[0])
    found = stored.in_place(turn, key)
    if found is None or stored.memory is None:
        return key
    other, number = found
    text = redact(turn.text).text
    try:
        record = await stored.memory.records.get(str(number))
        for version in range(1, record.revision + 1):
            before = (await stored.memory.records.version(record.id, version)).text
            if before and text.startswith(before):
                return stored.now_in_place(other)
    except (InvalidInput, NotFound):
        pass
    return key


async def complete(stored: Stored, turn: Turn, key: str) -> bool:
    """Give the message that is stored with this key the text of the turn, if that is longer. False, and nothing is
    changed, if it is not, or if somebody edited or forgot the message."""
    number = stored.to_complete(turn, key)
    if number is None or stored.memory is None:
        return False
    try:
        record = await stored.memory.records.get(str(number))
        edits = await stored.memory.records.history(record.id) if record.revision > 1 else []
        is_ours = all(edit.get("editor_id") == IMPORTED_BY for edit in edits if edit["edit_type"] != EditType.CREATE)
        if record.is_deleted or not is_ours:
            return False
        fields = {"text": turn.text}
        await stored.memory.update_memory(record.id, fields, expected_revision=record.revision, editor=_IMPORT)
    except (Conflict, InvalidInput, NotFound):
        return False
    return True
