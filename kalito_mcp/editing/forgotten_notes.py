"""Notes what is forgotten, so that it is not stored again automatically, and refuses records that repeat it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import anyio.to_thread

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
from kalito_mcp.pins.found import is_found_pin
from kalito_mcp.ports.clock import Clock
from kalito_mcp.ports.records import RecordReader, RecordWriter
from kalito_mcp.ports.store import Store
from kalito_mcp.records.repetitions import repetition_refused
from kalito_mcp.runtime.long_texts import LONG_CHARS, read_aside
from kalito_mcp.text.repetition import keys_of, keys_to_forget


class ForgottenNotes:
    """Called before the transaction of each change, for what takes long, and in it."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def follow(
        self, records: RecordWriter, caller: Scope, record: MemoryRecord, edit: EditDraft, keys: frozenset[str]
    ) -> None:
        """Note that the record is about to be forgotten, or no longer, or get other words. Call it before that, with
        the keys of its plan.

        Raises:
            Conflict: an assistant or a program writes what was forgotten; nothing was written.
        """
        content = edit.content
        scope, is_forgotten = scope_of(caller.owner, record, caller.limits), content.get(DELETED_AT) is not None
        if is_forgotten and not record.is_deleted:
            for pin in await _found_pins(records, record):
                keys |= keys_to_forget(pin.text, pin.type)
            await records.forget_values(scope, keys, now_ms=self._clock.now_ms())
        elif not await records.has_forgotten_values(caller.owner):
            return
        elif record.is_deleted and not is_forgotten:
            pins = await _found_pins(records, record)
            await records.bring_back_values(scope, keys.union(*(keys_of(pin.text) for pin in pins)))
        elif content["text"] != record.text:
            if edit.type is not EditType.UPDATE or edit.editor.type is EditorType.HUMAN:
                await records.bring_back_values(scope, keys)
            elif await records.forgotten_values(scope, keys):
                raise repetition_refused()

    async def keys_of_drafts(self, owner: str, drafts: Sequence[RecordDraft]) -> Mapping[str, frozenset[str]]:
        """The keys of all drafts by their ids, for `repeated`, if together they are long and anything was forgotten."""
        if sum(len(str(draft.content["text"])) for draft in drafts) <= LONG_CHARS:
            return {}
        if not await self._store.read(lambda view: view.records.has_forgotten_values(owner)):
            return {}
        return await anyio.to_thread.run_sync(lambda: {draft.id: _keys_of_draft(draft) for draft in drafts})

    async def repeated(
        self, records: RecordWriter, scope: Scope, drafts: Sequence[RecordDraft], keys: Mapping[str, frozenset[str]]
    ) -> frozenset[str]:
        """The texts of the drafts that repeat what was forgotten. The user's own words bring it back instead."""
        if not await records.has_forgotten_values(scope.owner):
            return frozenset()
        found = set[str]()
        for draft in drafts:
            text = str(draft.content["text"])
            of_draft = keys.get(draft.id)
            if of_draft is None:
                of_draft = await read_aside(len(text), partial(_keys_of_draft, draft))
            if draft.origin is Origin.USER:
                await records.bring_back_values(scope, of_draft)
            elif await records.forgotten_values(scope, of_draft):
                found.add(text)
        return frozenset(found)


def _keys_of_draft(draft: RecordDraft) -> frozenset[str]:
    """The keys of its text, its title and its tags."""
    content = draft.content
    labels: Iterable[str | None] = (content.get("title"), *(content.get("tags") or ()))
    return keys_of(str(content["text"])).union(*(keys_of(one) for one in labels if one))


async def _found_pins(records: RecordReader, record: MemoryRecord) -> list[MemoryRecord]:
    """The automatic pins of a message."""
    if record.type is not RecordType.MESSAGE:
        return []
    return [pin for pin in await records.pins_of(record) if is_found_pin(pin)]


def without_forgotten(drafts: Sequence[RecordDraft], gone: frozenset[str]) -> Sequence[RecordDraft]:
    """A document's parts, renumbered, without those that were erased for good or repeat what was forgotten.

    Raises:
        Conflict: no part is left.
    """
    left = [draft for draft in drafts if draft.content["text"] not in gone]
    if not left:
        raise repetition_refused()
    if len(left) == len(drafts):
        return drafts
    return [
        replace(draft, content={**draft.content, "chunk_index": place, "total_chunks": len(left)})
        for place, draft in enumerate(left)
    ]
