"""Changes of records that are in a space, or have copies in one."""

from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Protocol

from kalito_mcp.domain.erasing import PurgeReport
from kalito_mcp.domain.memory_records import Editor, MemoryRecord
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.spaces import Role, SharedCopy, space_owner
from kalito_mcp.errors import InvalidInput, KalitoError
from kalito_mcp.memory.part import Part
from kalito_mcp.ports.store import ReadView
from kalito_mcp.upkeep.store_layers import no_new_words


class Hiding(Protocol):
    """A method of the editor that hides records, or brings them back."""

    def __call__(
        self, scope: Scope, record_id: str, *, editor: Editor, expected_revision: int | None
    ) -> Awaitable[Sequence[MemoryRecord]]: ...


class Sharing(Part):
    """Finds where a record is to be changed, and lets its copies follow."""

    def signed(self, editor: Editor) -> Editor:
        """The editor of a change in a space: its history says whose it was."""
        return replace(editor, id=f"{self.place.owner} by {editor.id}" if editor.id else self.place.owner)

    @asynccontextmanager
    async def changing(self, record_id: str, editor: Editor) -> AsyncIterator[tuple[Scope, Editor]]:
        """The scope in which a record is to be changed, and by whom. After the block, copies in spaces that said what
        the record said before say what it says now.

        Raises:
            AccessDenied: it is in a space, and the owner may not change it there.
        """
        place = await self.place.holding(record_id, Role.CURATOR)
        if place is not self.place:
            yield place.scope(), self.signed(editor)
            return
        copied = await self._copied(record_id)
        yield place.scope(), editor
        for copy, before in copied:
            with suppress(KalitoError):  # the change is made; what somebody changed there meanwhile stays as it is
                await self._follow(copy, before, editor)

    async def changed(
        self, change: Hiding, record_id: str, editor: Editor, expected_revision: int | None
    ) -> Sequence[MemoryRecord]:
        """The records after a change that takes no new words."""
        with no_new_words():
            async with self.changing(record_id, editor) as (scope, who):
                records = await change(scope, record_id, editor=who, expected_revision=expected_revision)
            return await self.place.reached(records)

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

    async def _copied(self, record_id: str) -> Sequence[tuple[SharedCopy, MemoryRecord]]:
        """The copies of a record where its owner may still write, each with the record as it is now."""
        owner = self.place.owner

        async def look(view: ReadView) -> list[SharedCopy]:
            mine = await view.spaces.memberships(owner)
            writable = {one.space.name for one in mine if one.role.includes(Role.WRITER)}
            copies = await view.spaces.copies(owner, [record_id]) if writable else ()
            return [one for one in copies if one.space in writable]

        copies = await self.place.store.read(look)
        if not copies:
            return ()
        record = await self._services.historian.record(self.place.scope(), record_id)
        return [(copy, record) for copy in copies]

    async def _follow(self, copy: SharedCopy, before: MemoryRecord, editor: Editor) -> None:
        now = await self._services.historian.record(self.place.scope(), before.id)
        scope = Scope(space_owner(copy.space))
        shared = await self._services.historian.record(scope, copy.record_id)
        if shared.text == before.text != now.text:
            await self._services.editor.update(
                *(scope, shared.id, {"text": now.text}), expected_revision=shared.revision, editor=self.signed(editor)
            )
