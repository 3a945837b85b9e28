"""Keeps note of what is forgotten, so that it does not come back by itself, and refuses records that repeat it."""

from collections.abc import Sequence

from kalito_mcp.domain.memory_records import (
    DELETED_AT,
    EditDraft,
    EditorType,
    EditType,
    MemoryRecord,
    RecordDraft,
    scope_of,
)
from kalito_mcp.domain.records import Origin, RecordType
from kalito_mcp.domain.scope import Scope
from kalito_mcp.long_texts import read_aside
from kalito_mcp.pins.found import is_found_pin
from kalito_mcp.ports.clock import Clock
from kalito_mcp.ports.records import RecordReader, RecordWriter
from kalito_mcp.records.repetitions import repetition_refused
from kalito_mcp.text.repetition import keys_of, keys_to_forget


class ForgottenNotes:
    """Called in the transaction of each change."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def follow(self, records: RecordWriter, owner: str, record: MemoryRecord, edit: EditDraft) -> None:
        """Note that the record is about to be forgotten, or no longer, or get other words. Call it before that.

        Raises:
            Conflict: an assistant or a program writes what was forgotten; nothing was written.
        """
        content = edit.content
        scope, is_forgotten = scope_of(owner, record), content.get(DELETED_AT) is not None
        if is_forgotten and not record.is_deleted:
            keys = await read_aside(len(record.text), lambda: keys_to_forget(record.text, record.type))
            for pin in await _found_pins(records, record):
                keys |= keys_to_forget(pin.text, pin.type)
            await records.forget_values(scope, keys, now_ms=self._clock.now_ms())
        elif record.is_deleted and not is_forgotten:
            pins = await _found_pins(records, record)
            texts = [str(content["text"]), *(pin.text for pin in pins)]
            await records.bring_back_values(scope, await _keys_of(texts))
        elif content["text"] != record.text:
            new = await _keys_of([str(content["text"])]) - await _keys_of([record.text])
            if edit.type is not EditType.UPDATE or edit.editor.type is EditorType.HUMAN:
                await records.bring_back_values(scope, new)
            elif await records.forgotten_values(scope, new):
                raise repetition_refused()

    async def repeated(self, records: RecordWriter, scope: Scope, drafts: Sequence[RecordDraft]) -> frozenset[str]:
        """The texts of the drafts that repeat what was forgotten. The user's own words bring it back instead."""
        if not await records.has_forgotten_values():
            return frozenset()
        found = set[str]()
        for draft in drafts:
            text = str(draft.content["text"])
            keys = await _keys_of([text, *_labels(draft)])
            if draft.origin is Origin.USER:
                await records.bring_back_values(scope, keys)
            elif await records.forgotten_values(scope, keys):
                found.add(text)
        return frozenset(found)


async def _keys_of(texts: Sequence[str]) -> frozenset[str]:
    """The keys of all the texts."""
    return await read_aside(sum(map(len, texts)), lambda: frozenset[str]().union(*map(keys_of, texts)))


def _labels(draft: RecordDraft) -> list[str]:
    """The other words by which a record is known: its title and its tags."""
    return [one for one in (draft.content.get("title"), *(draft.content.get("tags") or ())) if one]


async def _found_pins(records: RecordReader, record: MemoryRecord) -> list[MemoryRecord]:
    """The automatic pins of a message."""
    if record.type is not RecordType.MESSAGE:
        return []
    return [pin for pin in await records.pins_of(record) if is_found_pin(pin)]
