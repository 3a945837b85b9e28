"""What a caller asks to remember, as a record: its type, its fields, and whose words it has. Pure."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from kalito_mcp.domain.memory_records import Editor, EditorType
from kalito_mcp.domain.records import Origin, RecordType
from kalito_mcp.errors import InvalidInput

NOTE: Final = "note"
"""A short document without a source of its own."""


def as_record(
    kind: str, fields: Mapping[str, Any], editor: Editor, *, new_source: Callable[[], str]
) -> tuple[RecordType, Mapping[str, Any], Origin]:
    """The type, fields and origin of a record of this kind.

    A note is a document; without a source it gets a new one. A document was read somewhere; anything else is
    in the editor's own words.

    Raises:
        InvalidInput: the kind is unknown.
    """
    own_words = Origin.USER if editor.type is EditorType.HUMAN else Origin.ASSISTANT
    if kind == NOTE:
        sourced = fields if "source" in fields else {**fields, "source": new_source()}
        return RecordType.DOCUMENT, sourced, own_words
    if kind not in set(RecordType):
        raise InvalidInput(f"type={kind[:40]!r} is unknown; use note, task, document or thought")
    record_type = RecordType(kind)
    return record_type, fields, Origin.DOCUMENT if record_type is RecordType.DOCUMENT else own_words
