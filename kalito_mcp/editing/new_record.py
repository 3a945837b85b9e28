"""From a call of `remember` to a record: its type, its fields, and its origin. Pure."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from kalito_mcp.domain.files import FILE
from kalito_mcp.domain.memory_records import Editor, EditorType
from kalito_mcp.domain.records import NOTE, PIN_IMPORTANCE, Origin, Reach, RecordType
from kalito_mcp.errors import InvalidInput

"""A short document without a source."""

_IMPORTANCE_NAMES: Final = frozenset({"importance", "importance_score", "importanceScore"})


def as_record(
    kind: str, fields: Mapping[str, Any], editor: Editor, *, reach: Reach | None, new_source: Callable[[], str]
) -> tuple[RecordType, Mapping[str, Any], Origin]:
    """The type, fields and origin of a record of this kind.

    A note is a document. Without a source it gets a new one, and is known within its `reach`. A document was read
    somewhere; anything else is in the editor's own words.

    Raises:
        InvalidInput: the kind is unknown, or the source belongs to a file of the memory tool.
    """
    if str(fields.get("source", "")).startswith(FILE):
        raise InvalidInput(f"a source that begins with {FILE!r} belongs to a file in /memories; use another")
    own_words = Origin.USER if editor.type is EditorType.HUMAN else Origin.ASSISTANT
    if kind == NOTE:
        if "source" not in fields:
            fields = {**_with_reach(fields, reach), "source": new_source()}
        return RecordType.DOCUMENT, fields, own_words
    if kind not in set(RecordType):
        raise InvalidInput(f"type={kind[:40]!r} is unknown; use note, task, document or thought")
    record_type = RecordType(kind)
    return record_type, fields, Origin.DOCUMENT if record_type is RecordType.DOCUMENT else own_words


def _with_reach(fields: Mapping[str, Any], reach: Reach | None) -> Mapping[str, Any]:
    """The fields of a note. One with a reach gets that scope and the weight of a pin, unless others are sent."""
    if reach is None or "scope" in fields:
        return fields
    weighed = {} if _IMPORTANCE_NAMES & fields.keys() else {"importance_score": PIN_IMPORTANCE}
    return {**fields, "scope": str(reach), **weighed}
