"""Reads records: as they are now, in each version, and as they were at a moment."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from kalito_mcp.domain.files import MAX_PATH_CHARS, ROOT, source_of
from kalito_mcp.domain.memory_records import Derived, MemoryRecord, StoredEdit, versions
from kalito_mcp.domain.records import RecordType, full_record_id, short_record_id
from kalito_mcp.domain.scope import PERSONAL, Scope
from kalito_mcp.domain.tasks import TaskStatus
from kalito_mcp.domain.time import to_iso
from kalito_mcp.errors import InvalidInput, RecordErased, RecordNotFound, StorageDamaged, damage_note
from kalito_mcp.ports.records import RecordReader
from kalito_mcp.ports.store import ReadView, Store
from kalito_mcp.records.diffs import diff
from kalito_mcp.records.reached import NAMED, NAMED_LISTS, look_up, reached
from kalito_mcp.records.schemas import edit_as_shown
from kalito_mcp.runtime.long_texts import read_aside
from kalito_mcp.text.sentences import cut

_PAGE: Final = 200
_SHOWN_PARTS: Final = 20
_LOOKED_AT_ONCE: Final = 100
"""Records in one view. While a view is open, the log of the database cannot be cut."""
_DONE: Final = (TaskStatus.COMPLETED, TaskStatus.FAILED)
_SHORT_ID: Final = re.compile(
    rf"({'|'.join(one for one in RecordType if one is not RecordType.MESSAGE)})_"
    r"([0-9a-z]{4,8}|[0-9a-z]{9}(?:\.[0-9]+)?)"
)
_LISTED_CHARS: Final = 60

Versions = Sequence[tuple[StoredEdit, Mapping[str, Any]]]


class Historian:
    """Reads records and their edits. It never writes."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def record(self, scope: Scope, record_id: str) -> MemoryRecord:
        """The record as it is now, forgotten or not.

        Raises:
            RecordNotFound: the owner has no record of this id. RecordErased: it was erased.
            InvalidInput: the id names a document with several parts; the message lists their ids.
            StorageDamaged: its row is not as it was written.
        """

        async def look(view: ReadView) -> MemoryRecord:
            record = await _intact(view.records, scope, record_id)
            return (await look_up(view, scope, [record])).record(record)

        return await self._store.read(look)

    async def records(self, scope: Scope, record_id: str) -> Sequence[MemoryRecord]:
        """The record of this id, or all parts of the document of this id. Raises as `get_records`."""
        found = await self._store.read(lambda view: get_records(view.records, scope, record_id))
        return await reached(self._store, scope, found)

    async def derived_from(self, scope: Scope, record_id: str) -> tuple[Sequence[MemoryRecord], Sequence[MemoryRecord]]:
        """The pins that were made from a message, and the summaries that cover it; empty for other records.

        Leaves out forgotten pins and pins whose text the message still contains. Raises as `get_records`."""

        async def look(view: ReadView) -> tuple[Sequence[MemoryRecord], Sequence[MemoryRecord]]:
            [record, *_] = await get_records(view.records, scope, record_id)
            return await _derived_from(view.records, record)

        pins, summaries = await self._store.read(look)
        return await reached(self._store, scope, pins), await reached(self._store, scope, summaries)

    async def derived_from_all(self, scope: Scope, records: Sequence[MemoryRecord]) -> Derived:
        """As `derived_from`, for any number of records. They are not read again."""
        summary_ids: dict[str, None] = {}
        made: list[tuple[MemoryRecord, str]] = []

        async def look(view: ReadView) -> None:
            for record in batch:
                pins, summaries = await _derived_from(view.records, record)
                summary_ids.update(dict.fromkeys(one.id for one in summaries))
                made.extend((pin, record.id) for pin in pins)

        messages = [one for one in records if one.type is RecordType.MESSAGE]
        for first in range(0, len(messages), _LOOKED_AT_ONCE):
            batch = messages[first : first + _LOOKED_AT_ONCE]
            await self._store.read(look)
        shown = await reached(self._store, scope, [pin for pin, _ in made])
        return Derived(list(summary_ids), [(pin, made_from) for pin, (_, made_from) in zip(shown, made, strict=True)])

    async def history(self, scope: Scope, record_id: str) -> list[dict[str, Any]]:
        """Every edit of the record, oldest first, JSON-ready: the specification's memory edits. Raises as `record`."""
        record, made = await self._versions(scope, record_id)
        contents: list[Mapping[str, Any]] = [{}, *(content for _, content in made)]
        return [
            edit_as_shown(record, edit, before=before, after=after)
            for (edit, after), before in zip(made, contents, strict=False)
        ]

    async def version(self, scope: Scope, record_id: str, number: int) -> MemoryRecord:
        """The record as it was in one version. Raises as `record`, and InvalidInput if there is no such version."""
        record, made = await self._versions(scope, record_id)
        return at_version(record, made, number)

    async def as_of(self, scope: Scope, record_id: str, moment_ms: int) -> MemoryRecord:
        """The record as it was at a moment.

        Raises:
            RecordNotFound: it was not recorded yet; other errors as `record`.
        """
        record, made = await self._versions(scope, record_id)
        known = [edit.version for edit, _ in made if edit.edited_at <= moment_ms]
        if not known:
            raise RecordNotFound(
                f"{record.id} did not exist on {to_iso(moment_ms)}: "
                f"it was recorded on {to_iso(record.recorded_at)}; ask for that time or later"
            )
        return at_version(record, made, known[-1])

    async def diff(self, scope: Scope, record_id: str, old: int, new: int) -> list[str]:
        """The lines that differ between two versions. Raises as `version`."""
        record, made = await self._versions(scope, record_id)
        before, after = at_version(record, made, old).content, at_version(record, made, new).content
        return await read_aside(len(str(before["text"])) + len(str(after["text"])), lambda: diff(before, after))

    async def list_records(
        self, scope: Scope, types: frozenset[RecordType], *, limit: int = _PAGE, after: str | None = None
    ) -> Sequence[MemoryRecord]:
        """Thoughts, documents, tasks, pins or summaries that are not forgotten, newest first."""
        found = await self._store.read(lambda view: view.records.list_records(scope, types, after=after, limit=limit))
        return await reached(self._store, scope, found)

    async def tasks(self, scope: Scope, *, is_done: bool | None = None) -> list[MemoryRecord]:
        """The tasks, earliest due date first; without a due date the newest first. `is_done` None means all tasks."""
        found: list[MemoryRecord] = []
        after = None
        while page := await self.list_records(scope, frozenset({RecordType.TASK}), after=after):
            found += page
            after = page[-1].id
        kept = [one for one in found if is_done is None or (one.content["status"] in _DONE) is is_done]
        return sorted(kept, key=lambda one: (str(one.content.get("due_date", "9999")), -one.created_at))

    async def _versions(self, scope: Scope, record_id: str) -> tuple[MemoryRecord, Versions]:
        async def look(view: ReadView) -> tuple[MemoryRecord, Versions]:
            record = await _intact(view.records, scope, record_id)
            made = versions(record, await view.records.edits(record))
            found = await look_up(view, scope, [record], [one for _, one in made], [edit for edit, _ in made])
            return found.record(record), [(found.edit(edit), found.content(content)) for edit, content in made]

        return await self._store.read(look)


async def _intact(reader: RecordReader, scope: Scope, record_id: str) -> MemoryRecord:
    record = await get_record(reader, scope, record_id)
    if damaged := await reader.damaged(scope, [record.id]):
        raise StorageDamaged(damage_note(damaged))
    return record


def at_version(record: MemoryRecord, made: Versions, number: int) -> MemoryRecord:
    """The record with the content of one of its versions. Raises InvalidInput if there is no such version."""
    content = next((content for edit, content in made if edit.version == number), None)
    if content is None:
        raise InvalidInput(f"{record.id} has no version {number}; its newest is {made[-1][0].version}")
    return replace(record, content=content, revision=number)


async def get_record(reader: RecordReader, scope: Scope, record_id: str) -> MemoryRecord:
    """The record of this id, forgotten or not. A document of one part is that part.

    Raises:
        RecordNotFound: the owner has no record of this id. RecordErased: it was erased.
        InvalidInput: the id names a document with several parts, or is the short form of several; the message lists
            their ids.
    """
    record_id = await whole_id(reader, scope, record_id)
    record = await reader.record(scope, record_id)
    if record is not None:
        return record
    [part, *others] = current_parts(await get_records(reader, scope, record_id))
    if others:
        ids = ", ".join(one.id for one in (part, *others)[:_SHOWN_PARTS])
        raise InvalidInput(f"{record_id[:80]} is a document of {len(others) + 1} parts; name one of them: {ids}")
    return part


async def _derived_from(
    records: RecordReader, record: MemoryRecord
) -> tuple[Sequence[MemoryRecord], Sequence[MemoryRecord]]:
    """The pins that still say what a message no longer does, and the summaries over it; empty for other records."""
    if record.type is not RecordType.MESSAGE:
        return (), ()
    said = "" if record.is_deleted else record.text
    pins = [pin for pin in await records.pins_of(record) if not pin.is_deleted and pin.text not in said]
    return pins, await records.summaries_over(record)


async def get_records(reader: RecordReader, scope: Scope, record_id: str) -> Sequence[MemoryRecord]:
    """The record of this id, or all parts of the document of this id, including parts it no longer has. A file of the
    memory tool may also be named by its path.

    Raises:
        RecordNotFound: the owner has neither. RecordErased: they were erased.
        InvalidInput: files of several projects have the path, or it is the short form of several ids; the message lists
            their ids.
    """
    if record_id.startswith(f"{ROOT}/"):
        return [await _file(reader, scope, record_id)]
    record_id = await whole_id(reader, scope, record_id)
    record = await reader.record(scope, record_id)
    # A document that grew from one part to several has the same id as its first part.
    if record is not None and record.content.get("document_id") != record_id:
        return [record]
    if parts := await reader.parts(scope, record_id):
        return parts
    erased = await reader.tombstone(scope, record_id) or await reader.tombstone(scope, f"{record_id}.0")
    if erased is not None:
        raise RecordErased(erased.record_id, to_iso(erased.purged_at)[:10])
    raise RecordNotFound(f"no record {record_id[:80]!r}; use an id that a search returned, such as msg_45")


async def whole_id(reader: RecordReader, scope: Scope, record_id: str) -> str:
    """The id that a caller means: itself, a message's by its number, or the only one within the limits with this short
    form (`domain.records.short_record_id`) or a beginning of it, of four letters and digits or more. An id that means
    nothing is returned as it is.

    Raises:
        InvalidInput: several ids begin like this; the message lists them, with their texts.
    """
    short = _SHORT_ID.fullmatch(record_id)
    if short is None or await reader.record(scope, record_id) is not None:
        return full_record_id(record_id)
    is_part = "." in record_id
    found: dict[str, str] = {}
    for one in await reader.ids_by_tail(scope, RecordType(short[1]), short[2]):
        named = one if is_part else one.partition(".")[0]
        if named not in found and (not is_part or short_record_id(one) == record_id):
            try:
                [first, *_] = await get_records(reader, scope, named)
                found[named] = (
                    "(forgotten)" if first.is_deleted else repr(cut(" ".join(first.text.split()), _LISTED_CHARS))
                )
            except RecordErased:
                found[named] = "(erased)"
            except RecordNotFound:  # beyond the limits
                continue
    if len(found) > 1:
        listed = ", ".join(f"{one} {text}" for one, text in found.items())
        raise InvalidInput(f"several ids begin with {record_id}; name one of them: {listed}")
    return next(iter(found), record_id)


async def with_whole_ids(store: Store, scope: Scope, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields with whole ids of the records that they name. Raises InvalidInput as `whole_id`."""

    async def look(view: ReadView) -> dict[str, Any]:
        whole = dict(fields)
        for name in (*NAMED, *NAMED_LISTS):
            match whole.get(name):
                case str(one):
                    whole[name] = await whole_id(view.records, scope, one)
                case list(named):
                    whole[name] = [
                        await whole_id(view.records, scope, one) if isinstance(one, str) else one for one in named
                    ]
        return whole

    return await store.read(look) if any(fields.get(name) for name in (*NAMED, *NAMED_LISTS)) else dict(fields)


async def records_ever(reader: RecordReader, scope: Scope, record_id: str) -> Sequence[MemoryRecord] | None:
    """As `get_records`; none if they were erased, and None if the owner never had any."""
    try:
        return await get_records(reader, scope, record_id)
    except RecordErased:
        return ()
    except RecordNotFound:
        return None


async def _file(reader: RecordReader, scope: Scope, path: str) -> MemoryRecord:
    found = await reader.of_source(scope, source_of(path))
    if not found:
        raise RecordNotFound(f"no file {path[:MAX_PATH_CHARS]!r}; `view` of the memory tool lists them")
    if len(found) > 1:
        ids = ", ".join(f"{one.id} of {one.project or PERSONAL}" for one in found[:_SHOWN_PARTS])
        raise InvalidInput(f"{path} is a file in several projects; name one of them by its id: {ids}")
    return found[0]


def current_parts(parts: Sequence[MemoryRecord]) -> Sequence[MemoryRecord]:
    """The parts that the document still has, in order. A shorter new version drops the others."""
    total = parts[0].content.get("total_chunks", len(parts))
    return [one for one in parts if one.content.get("chunk_index", 0) < total]
