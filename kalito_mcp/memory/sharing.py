"""Changes of records that are in a space, or have copies in one."""

from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Protocol

from kalito_mcp.domain.erasing import PurgeReport
from kalito_mcp.domain.memory_records import Editor, EditorType, MemoryRecord, scope_of, texts_ever
from kalito_mcp.domain.records import NOTE, NOTE_SOURCE, PIN_IMPORTANCE, Origin, Reach, RecordType
from kalito_mcp.domain.scope import DEFAULT_AGENT, PERSONAL, Scope
from kalito_mcp.domain.spaces import Membership, Role, SharedCopy, Space, seen_in_spaces, space_of
from kalito_mcp.editing.editor import Adding
from kalito_mcp.errors import AccessDenied, Conflict, InvalidInput, KalitoError, RecordNotFound
from kalito_mcp.kinds.shared_words import LONGEST_FACT
from kalito_mcp.memory.part import Part
from kalito_mcp.pins.found import is_found_pin
from kalito_mcp.ports.store import ReadView, WriteTransaction
from kalito_mcp.projects import is_path
from kalito_mcp.records.historian import current_parts, get_record, get_records, whole_id
from kalito_mcp.upkeep.store_layers import no_new_words


def labelled(owner: str, record: MemoryRecord) -> MemoryRecord:
    """A record of this owner, with the space that it is in, if the owner is one."""
    return replace(record, space=space_of(owner))


class Hiding(Protocol):
    """A method of the editor that hides records, or brings them back."""

    def __call__(
        self, scope: Scope, record_id: str, *, editor: Editor, expected_revision: int | None
    ) -> Awaitable[Sequence[MemoryRecord]]: ...


class Sharing(Part):
    """Finds where a record is to be changed, and lets its copies follow."""

    async def mine(self, view: ReadView | WriteTransaction) -> list[Membership]:
        """The memberships of the owner, in the spaces that are within the limits."""
        found = await view.spaces.memberships(self.place.owner)
        return [one for one, _ in seen_in_spaces(self.place.scope().anywhere(), found)]

    def signed(self, editor: Editor) -> Editor:
        """The editor of a change in a space: its history says whose it was."""
        user = self.place.owner
        return replace(editor, id=f"{user} by {editor.id}" if editor.id else user, user=user)

    @asynccontextmanager
    async def changing(self, record_id: str, editor: Editor) -> AsyncIterator[tuple[Scope, Editor]]:
        """The scope in which a record is to be changed, and by whom. If the block gives it other words, copies in
        spaces that say what it once said get them, too; and so do copies of pins that were found in it.

        Raises:
            AccessDenied: it is in a space, and the owner may not change it there.
        """
        place = await self.place.holding(record_id, Role.CURATOR)
        if place is not self.place:
            yield place.scope(), self.signed(editor)
            return
        copied = await self._copied(record_id)
        yield place.scope(), editor
        for copy in copied.of_record:
            with suppress(KalitoError):  # the change is made; the next one of its words brings this up to date
                await self._follow(copy, copied.said, editor)
        if copied.of_pins:
            await self._follow_pins(record_id, copied, editor)

    async def changed(
        self, change: Hiding, record_id: str, editor: Editor, expected_revision: int | None
    ) -> Sequence[MemoryRecord]:
        """The records after a change that takes no new words."""
        with no_new_words():
            async with self.changing(record_id, editor) as (scope, who):
                records = await change(scope, record_id, editor=who, expected_revision=expected_revision)
            return [labelled(scope.owner, one) for one in await self.place.reached(records)]

    async def purge(self, record_ids: Sequence[str]) -> PurgeReport:
        """See `Memory.purge`."""
        if isinstance(record_ids, str):
            raise InvalidInput("record_ids is a string; send a list of ids")
        named: dict[Scope, list[str]] = {self.place.scope(): []}
        for record_id in record_ids:
            place = await self.place.holding(record_id, Role.CURATOR)
            named.setdefault(place.scope(), []).append(record_id)
        (own, ids), *in_spaces = named.items()
        return await self._services.eraser.purge(own, ids, in_spaces)

    async def copied(
        self, space: Space, source: MemoryRecord, editor: Editor, known: MemoryRecord | None = None
    ) -> MemoryRecord:
        """The new copy of a record in a space, or the first part of a long one. It takes the place of the one of which
        a part is `known`.

        Raises:
            RecordNotFound: the record was erased meanwhile.
            AccessDenied: the owner may not share there any more.
            Conflict: what was forgotten or erased in the space says the same.
        """
        now_ms = self.place.clock.now_ms()

        async def share(transaction: WriteTransaction, add: Adding) -> Sequence[MemoryRecord]:
            # The record is read first: a write to two memories locks the person's before the space's.
            if await transaction.records.record(scope_of(self.place.owner, source), source.id) is None:
                raise RecordNotFound(f"{source.id} was erased meanwhile")
            mine = await self.mine(transaction)
            if not any(one.space == space and one.role.includes(Role.WRITER) for one in mine):
                raise AccessDenied(f"you cannot share in {space.name!r} any more")
            if known is None and (made := await self._made(transaction, space, source)):
                return made
            copies = await add()
            for one in copies:
                copy = SharedCopy(space.name, one.id, self.place.owner, source.id, now_ms)
                await transaction.spaces.add_copy(copy)
            return copies

        project = space.project or (None if source.project is None or is_path(source.project) else source.project)
        fields = self._fields(source, project)
        if known is not None:
            project, fields = known.project, {**fields, "source": known.content["source"]}
        [copy, *_] = await self._services.editor.remember(
            Scope(space.owner, DEFAULT_AGENT, project=project or PERSONAL),
            RecordType.DOCUMENT,
            fields,
            # As an agent's it is the client of the copy, by which the history names who shared it.
            editor=replace(self.signed(editor), type=EditorType.AGENT),
            origin=source.origin,
            around=share,
        )
        return copy

    async def adopted(self, shared: MemoryRecord, reach: Reach | None, editor: Editor) -> MemoryRecord:
        """A note of the person's own with the words of a record in a space, known where that is or within `reach`. It
        does not follow what is changed there later.

        Raises:
            InvalidInput: it is a document of several parts, or for one session. Conflict: it is forgotten.
        """
        if shared.is_deleted:
            raise Conflict(f"{shared.id} is forgotten; ask a curator to restore it")
        if reach is Reach.SESSION or shared.content.get("total_chunks", 1) > 1:
            raise InvalidInput(f"{shared.id} is shared; short notes of a space are kept for a person or a project")
        of_project = shared.project is not None and reach is not Reach.PERSON
        fields = {
            "text": shared.text,
            "source": f"{NOTE_SOURCE}{self._services.ids.record_id(NOTE, self.place.clock.now_ms())}",
            "importance_score": PIN_IMPORTANCE,
            "scope": str(Reach.PROJECT if of_project else Reach.PERSON),
        }
        scope = replace(self.place.scope(), project=shared.project if of_project else PERSONAL)
        self.place.check_remembered()
        [note] = await self._services.editor.remember(
            scope, RecordType.DOCUMENT, fields, editor=editor, origin=shared.origin
        )
        return note

    async def _made(self, transaction: WriteTransaction, space: Space, source: MemoryRecord) -> list[MemoryRecord]:
        """The copy that somebody made of the record meanwhile, by its parts."""
        noted = await transaction.spaces.copies(self.place.owner, [source.id])
        found = [
            await transaction.records.record(Scope(space.owner), one.record_id)
            for one in noted
            if one.space == space.name
        ]
        return [one for one in found if one is not None]

    async def rewritten(
        self, space: Space, parts: Sequence[MemoryRecord], source: MemoryRecord, editor: Editor
    ) -> MemoryRecord:
        """The copy that these parts are, or the first part of it, with the words that its source has now."""
        [first, *others] = parts
        if others:
            return await self.copied(space, source, editor, first)
        return await self._services.editor.update(
            *(Scope(space.owner), first.id, {"text": source.text}),
            expected_revision=first.revision,
            editor=self.signed(editor),
        )

    def _fields(self, source: MemoryRecord, project: str | None) -> dict[str, Any]:
        """Those of a note that says what the record says."""
        fields = {
            "text": source.text,
            "source": f"{NOTE_SOURCE}{self._services.ids.record_id(NOTE, self.place.clock.now_ms())}",
            "importance_score": max(PIN_IMPORTANCE, float(source.content.get("importance_score", 0.0))),
        }
        if tags := source.content.get("tags"):
            fields["tags"] = tags
        if len(source.text) <= LONGEST_FACT and source.origin.distrust < Origin.TOOL.distrust:
            fields["scope"] = str(Reach.PERSON if project is None else Reach.PROJECT)
        return fields

    async def _copied(self, record_id: str) -> "_Copied":
        """The copies of a record where its owner may still write, within the limits, and those of its found pins."""

        async def look(view: ReadView) -> _Copied:
            writable = {one.space.name: one.space for one in await self.mine(view) if one.role.includes(Role.WRITER)}
            named = await whole_id(view.records, self.place.scope(), record_id) if writable else record_id
            record = await view.records.record(self.place.scope(), named) if writable else None
            if record is None:
                return _Copied()
            pins = [pin.id for pin in await _visible_pins(view, record)]
            found: dict[_Copy, None] = {}
            for copy in await view.spaces.copies(self.place.owner, [record.id, *pins]):
                if (space := writable.get(copy.space)) is not None:
                    part = await get_record(view.records, Scope(space.owner), copy.record_id)
                    found[_Copy(space, part.content["document_id"], copy.source_id)] = None
            of_pins = [one for one in found if one.source_id != record.id]
            return _Copied(record.text, [one for one in found if one not in of_pins], of_pins, frozenset(pins))

        return await self.place.store.read(look)

    async def _follow(self, copy: "_Copy", before: str, editor: Editor) -> None:
        """Bring a copy up to date if its record says something else than before, unless the copy says what the record
        never said: somebody has changed it."""
        now, ever, parts = await self.place.store.read(partial(self._compared, copy))
        said = _said(parts)
        if now.text not in (before, said) and said in ever:
            await self.rewritten(copy.space, parts, now, editor)

    async def _follow_pins(self, record_id: str, copied: "_Copied", editor: Editor) -> None:
        """Let the copies of pins that a corrected message no longer has say what the pin says that came instead; or
        forget them, as these pins were, if none came or several did."""
        scope = self.place.scope()

        async def look(view: ReadView) -> Sequence[MemoryRecord] | None:
            record = await get_record(view.records, scope, record_id)
            return None if record.is_deleted else await _visible_pins(view, record)

        pins = await self.place.store.read(look)
        if pins is None:  # what is forgotten stays where it was shared
            return
        held = {one.id for one in pins}
        new = [one for one in pins if one.id not in copied.pins]
        for copy in (one for one in copied.of_pins if one.source_id not in held):
            with suppress(KalitoError):
                _, ever, parts = await self.place.store.read(partial(self._compared, copy))
                if _said(parts) not in ever:
                    continue
                if len(new) == 1:
                    await self.rewritten(copy.space, parts, new[0], editor)
                    await self._note_source(copy.space, [one.id for one in parts], new[0].id)
                else:
                    await self._services.editor.forget(copy.scope, copy.document, editor=self.signed(editor))

    async def _note_source(self, space: Space, record_ids: Sequence[str], source_id: str) -> None:
        """Note that these copies are of another record by now."""
        now_ms = self.place.clock.now_ms()

        async def note(transaction: WriteTransaction) -> None:
            await self.mine(transaction)  # the person's lock comes before the space's
            await transaction.spaces.remove_copies(space.name, record_ids)
            for one in record_ids:
                await transaction.spaces.add_copy(SharedCopy(space.name, one, self.place.owner, source_id, now_ms))

        await self.place.store.write(note)

    async def _compared(
        self, copy: "_Copy", view: ReadView
    ) -> tuple[MemoryRecord, Sequence[str], Sequence[MemoryRecord]]:
        """A record, all that it ever said, and the parts of its copy."""
        record = await get_record(view.records, self.place.scope(), copy.source_id)
        ever = texts_ever(record, await view.records.edits(record))
        return record, ever, current_parts(await get_records(view.records, copy.scope, copy.document))


class _Copy(NamedTuple):
    """A copy in a space, by the id of all its parts, and of which record it is."""

    space: Space
    document: str
    source_id: str

    @property
    def scope(self) -> Scope:
        """Of its space."""
        return Scope(self.space.owner)


class _Copied(NamedTuple):
    """What a record said before a change, the copies of it and of its found pins, and the ids of these pins."""

    said: str = ""
    of_record: Sequence[_Copy] = ()
    of_pins: Sequence[_Copy] = ()
    pins: frozenset[str] = frozenset()


async def _visible_pins(view: ReadView, record: MemoryRecord) -> list[MemoryRecord]:
    """The pins that were found in a message and are not forgotten."""
    found = await view.records.pins_of(record) if record.type is RecordType.MESSAGE else ()
    return [pin for pin in found if is_found_pin(pin) and not pin.is_deleted]


def _said(parts: Sequence[MemoryRecord]) -> str:
    return "".join(one.text for one in parts if not one.is_deleted)
