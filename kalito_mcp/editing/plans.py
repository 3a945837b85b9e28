"""What a change of a record takes of its texts, made before the transaction: long texts take long.

A plan is for the record as it was seen: if its revision has moved since, the change is planned again.
"""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

from kalito_mcp.domain.memory_records import DELETED_AT, MemoryRecord, StoredEdit, texts_ever
from kalito_mcp.domain.records import RecordType
from kalito_mcp.errors import Conflict
from kalito_mcp.graph.canonical import canonical_key
from kalito_mcp.ports.records import IndexedPair
from kalito_mcp.ports.store import Overtaken
from kalito_mcp.text.analysis import IndexedText, index_text
from kalito_mcp.text.repetition import keys_of, keys_to_forget

T = TypeVar("T")
P = ParamSpec("P")
_MOST_ATTEMPTS: Final = 10


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """What a version of a record has in the text index, and what the next one will have; and the keys of
    `text.repetition` that count: of what is forgotten, of what comes back, or of what is new in its text."""

    version_id: str
    indexed: IndexedPair
    keys: frozenset[str]


@dataclass(frozen=True, slots=True)
class PlannedErasure:
    """What a record has in the text index, and by what it is recognised later: the texts of all its versions, newest
    first, their keys of `text.repetition`, and their canonical keys."""

    indexed: IndexedText | None
    texts: Sequence[str]
    keys: frozenset[str]
    canonical_keys: Sequence[str]


def planned_change(record: MemoryRecord, content: Mapping[str, Any]) -> PlannedChange:
    """The plan for giving the record this content."""
    indexed = _indexed(record.type, record.content), _indexed(record.type, content)
    return PlannedChange(record.version_id, indexed, _keys(record, content))


def planned_erasure(record: MemoryRecord, edits: Sequence[StoredEdit]) -> PlannedErasure:
    """The plan for erasing the record, which has these stored edits."""
    texts = texts_ever(record, edits)
    keys = frozenset[str]().union(*(keys_to_forget(text, record.type) for text in texts))
    canonical_keys = list(dict.fromkeys(map(canonical_key, texts)))
    return PlannedErasure(_indexed(record.type, record.content), texts, keys, canonical_keys)


def _keys(record: MemoryRecord, content: Mapping[str, Any]) -> frozenset[str]:
    text = str(content["text"])
    if content.get(DELETED_AT) is not None:
        return frozenset() if record.is_deleted else keys_to_forget(record.text, record.type)
    if record.is_deleted:
        return keys_of(text)
    return frozenset() if text == record.text else keys_of(text) - keys_of(record.text)


def _indexed(record_type: RecordType, content: Mapping[str, Any]) -> IndexedText | None:
    if content.get(DELETED_AT) is not None:
        return None
    return index_text(str(content["text"]), content.get("title" if record_type is RecordType.DOCUMENT else "name"))


def again_if_overtaken(method: Callable[P, Awaitable[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """A decorator: the method is called again whenever it is overtaken.

    Raises:
        Conflict: it always was; nothing was written.
    """

    @wraps(method)
    async def call(*given: P.args, **named: P.kwargs) -> T:
        for _ in range(_MOST_ATTEMPTS):
            with suppress(Overtaken):
                return await method(*given, **named)
        raise Conflict("what this record says is being changed elsewhere; nothing was written. Call again")

    return call
