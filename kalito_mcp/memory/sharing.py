"""Changes of records that are in a space, or have copies in one."""

from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, Final, Protocol

from kalito_mcp.domain.erasing import PurgeReport
from kalito_mcp.domain.memory_records import Editor, EditorType, MemoryRecord, scope_of, texts_ever
from kalito_mcp.domain.records import PIN_IMPORTANCE, Origin, Reach, RecordType
from kalito_mcp.domain.scope import DEFAULT_AGENT, PERSONAL, Scope
from kalito_mcp.domain.spaces import Membership, Role, SharedCopy, Space, seen_in_spaces, space_of
from kalito_mcp.editing.editor import Adding
from kalito_mcp.editing.new_record import NOTE
from kalito_mcp.errors import AccessDenied, InvalidInput, KalitoError, RecordNotFound
from kalito_mcp.memory.part import Part
from kalito_mcp.ports.store import ReadView, WriteTransaction
from kalito_mcp.projects import is_path
from kalito_mcp.records.historian import current_parts, get_record, get_records
from kalito_mcp.records.same_words import NOTE_SOURCE
from kalito_mcp.upkeep.store_layers import no_new_words

_LONGEST_KNOWN: Final = 1_000
"""Characters of what is shared as a fact that all contexts of the members show. Longer words are found by a search."""


def labelled(scope: Scope, record: MemoryRecord) -> MemoryRecord:
    """The record with the space that it is in, if the scope is one."""
    return replace(record, space=space_of(scope.owner))


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
        return replace(editor, id=f"{self.place.owner} by {editor.id}" if editor.id else self.place.owner)

    @asynccontextmanager
    async def changing(self, record_id: str, editor: Editor) -> AsyncIterator[tuple[Scope, Editor]]:
        """The scope in which a record is to be changed, and by whom. If the block gives it other words, copies in
        spaces that say what it once said get them, too.

        Raises:
            AccessDenied: it is in a space, and the owner may not change it there.
        """
        place = await self.place.holding(record_id, Role.CURATOR)
        if place is not self.place:
            yield place.scope(), self.signed(editor)
            return
        copied = await self._copied(record_id)
        said = (await self._services.historian.record(place.scope(), record_id)).text if copied else ""
        yield place.scope(), editor
        for space, document in copied:
            with suppress(KalitoError):  # the change is made; the next one of its words brings this up to date
                await self._follow(space, document, record_id, said, editor)

    async def changed(
        self, change: Hiding, record_id: str, editor: Editor, expected_revision: int | None
    ) -> Sequence[MemoryRecord]:
        """The records after a change that takes no new words."""
        with no_new_words():
            async with self.changing(record_id, editor) as (scope, who):
                records = await change(scope, record_id, editor=who, expected_revision=expected_revision)
            return [labelled(scope, one) for one in await self.place.reached(records)]

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
        if len(source.text) <= _LONGEST_KNOWN and source.origin.distrust < Origin.TOOL.distrust:
            fields["scope"] = str(Reach.PERSON if project is None else Reach.PROJECT)
        return fields

    async def _copied(self, record_id: str) -> Sequence[tuple[Space, str]]:
        """The copies of a record where its owner may still write, within the limits: the space, and the id there."""

        async def look(view: ReadView) -> Sequence[tuple[Space, str]]:
            writable = {one.space.name: one.space for one in await self.mine(view) if one.role.includes(Role.WRITER)}
            copies = await view.spaces.copies(self.place.owner, [record_id]) if writable else ()
            found: dict[tuple[Space, str], None] = {}
            for copy in copies:
                if (space := writable.get(copy.space)) is not None:
                    part = await get_record(view.records, Scope(space.owner), copy.record_id)
                    found[space, part.content["document_id"]] = None
            return [*found]

        return await self.place.store.read(look)

    async def _follow(self, space: Space, document: str, record_id: str, before: str, editor: Editor) -> None:
        """Bring a copy up to date if the record says something else than before, unless the copy says what the record
        never said: somebody has changed it."""

        async def look(view: ReadView) -> tuple[MemoryRecord, Sequence[str], Sequence[MemoryRecord]]:
            record = await get_record(view.records, self.place.scope(), record_id)
            ever = texts_ever(record, await view.records.edits(record))
            return record, ever, current_parts(await get_records(view.records, Scope(space.owner), document))

        now, ever, parts = await self.place.store.read(look)
        said = "".join(one.text for one in parts if not one.is_deleted)
        if now.text not in (before, said) and said in ever:
            await self.rewritten(space, parts, now, editor)
