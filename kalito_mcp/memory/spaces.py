"""Spaces: what several people share."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from kalito_mcp.domain.arguments import checks_arguments
from kalito_mcp.domain.memory_records import PROGRAM, Editor, EditorType, MemoryRecord, scope_of
from kalito_mcp.domain.records import PIN_IMPORTANCE, Origin, Reach, RecordType
from kalito_mcp.domain.scope import DEFAULT_AGENT, PERSONAL, Scope
from kalito_mcp.domain.spaces import Membership, Role, SharedCopy, Space, checked_user, seen_in_spaces, space_owner
from kalito_mcp.domain.validation import checked_name
from kalito_mcp.editing.editor import Adding
from kalito_mcp.editing.new_record import NOTE
from kalito_mcp.errors import AccessDenied, Conflict, InvalidInput, NotFound, RecordNotFound
from kalito_mcp.memory.part import Part
from kalito_mcp.memory.sharing import Sharing
from kalito_mcp.ports.records import ScannedRecord
from kalito_mcp.ports.store import ReadView, WriteTransaction
from kalito_mcp.projects import is_path
from kalito_mcp.records.same_words import NOTE_SOURCE
from kalito_mcp.safety.redaction import checked_handle
from kalito_mcp.upkeep.store_layers import no_new_words

_LONGEST_NAME: Final = 60
_LONGEST_KNOWN: Final = 1_000
"""Characters of what is shared as a fact that all contexts of the members show. Longer words are found by a search."""
_PAGE: Final = 100


@checks_arguments
class Spaces(Part):
    """Shares records with other people of the same database.

    A record that is shared is copied into the space, and every member's searches and contexts find it there. The copy
    follows the record: a correction reaches it unless somebody has changed it there, and erasing the record erases it.
    It stays when the one who shared it leaves. `forget`, `update_memory` and `purge` of a copy ask for a role, see
    `Role`.

    `create`, `remove`, `set_member` and `remove_member` are for who runs the server; they look at nobody's role.
    """

    async def mine(self) -> Sequence[Membership]:
        """The spaces that the owner of this memory is a member of, within its limits."""
        found = await self.place.store.read(lambda view: view.spaces.memberships(self.place.owner))
        limit = self.place.limits.project
        seen = (one for one, _ in seen_in_spaces(self.place.scope().anywhere(), found))
        return [one for one in seen if limit is None or one.space.project in (None, limit)]

    async def share(
        self, record_id: str, space: str | None = None, *, editor: Editor = PROGRAM
    ) -> tuple[MemoryRecord, SharedCopy]:
        """Copy a record into a space; without a name, into the only one in which the owner may write. What was shared
        there before is brought up to date. A copy is a note: short words of a person or an assistant are known to all
        members, others are found by their searches. Returns the copy, and what is noted of it.

        Raises:
            RecordNotFound: no such record, or it was erased.
            AccessDenied: the owner is no member of the space, or a reader.
            InvalidInput: no space is named, and there is none or more than one; or it is a document of several parts.
            Conflict: the record is forgotten, or what was forgotten or erased in the space says the same.
        """
        self.place.check_remembered()
        where = await self._writable(space)
        source = await self._services.historian.record(self.place.scope(), record_id)
        if source.is_deleted:
            raise Conflict(f"{source.id} is forgotten; restore it first")
        again = await self._shared_again(where.space, source, editor)
        copy = await self._copied(where.space, source, editor) if again is None else again
        noted = await self.place.store.read(lambda view: view.spaces.shared(where.space.name, [copy.id]))
        return copy, noted[copy.id]

    async def all(self) -> Sequence[Space]:
        """All spaces of the database, by name."""
        self.place.limits.check_none("the list of spaces")
        return await self.place.store.read(lambda view: view.spaces.spaces())

    async def members(self, name: str) -> Sequence[Membership]:
        """Who is in a space, by name. Raises NotFound."""
        self.place.limits.check_none("the members of a space")
        await self._existing(name)
        return await self.place.store.read(lambda view: view.spaces.members(name))

    async def create(self, name: str, project: str | None = None) -> Space:
        """Make a space: of a project, as `Memory.in_project` names it, or of a team. It has no members yet.

        Raises:
            InvalidInput: the name is not acceptable. Conflict: there is one of this name.
        """
        self.place.limits.check_none("making a space")
        checked_handle(name, "the name of a space")
        if len(name) > _LONGEST_NAME:
            raise InvalidInput(f"the name of a space has {len(name)} characters; take at most {_LONGEST_NAME}")
        of_project = None if project is None else await self.place.target(project)
        space = Space(name, of_project, self.place.clock.now_ms())
        with no_new_words():
            is_new = await self.place.store.write(lambda transaction: transaction.spaces.add_space(space))
        if not is_new:
            raise Conflict(f"there is a space {name!r} already; take another name, or add members to it")
        return space

    async def set_member(self, name: str, user: str, role: Role) -> Membership:
        """Let somebody into a space, or give a member another role. Raises NotFound without such a space."""
        self.place.limits.check_none("the members of a space")
        checked_user(checked_name(user, "user"))
        membership = Membership(await self._existing(name), user, role, self.place.clock.now_ms())
        with no_new_words():
            is_there = await self.place.store.write(lambda transaction: transaction.spaces.set_member(membership))
        if not is_there:
            raise NotFound(f"the space {name!r} was removed meanwhile")
        return membership

    async def remove_member(self, name: str, user: str) -> None:
        """Let somebody leave a space. What they shared stays. Raises NotFound if they are not in it."""
        self.place.limits.check_none("the members of a space")
        with no_new_words():
            was_in = await self.place.store.write(lambda transaction: transaction.spaces.remove_member(name, user))
        if not was_in:
            raise NotFound(f"{user!r} is not in a space {name!r}; `kalito-mcp space list` shows who is")

    async def remove(self, name: str) -> int:
        """Erase all that was shared in a space, and the space; how many records were erased. It may be called again if
        it was interrupted. Raises NotFound."""
        self.place.limits.check_none("removing a space")
        scope, erased = Scope(space_owner(name), DEFAULT_AGENT), 0
        with no_new_words():
            for member in await self.members(name):  # nobody shares any more while it is erased
                await self.remove_member(name, member.user)
            while ids := await self._all_in(scope):
                erased += len((await self._services.eraser.purge(scope, ids)).erased)
            await self.place.store.write(lambda transaction: transaction.spaces.remove_space(name))
        return erased

    async def _existing(self, name: str) -> Space:
        found = await self.place.store.read(lambda view: view.spaces.space(name))
        if found is None:
            raise NotFound(f"no space {name!r}; `kalito-mcp space list` shows them")
        return found

    async def _writable(self, name: str | None) -> Membership:
        """The membership by which the owner may write in a space."""
        mine = await self.mine()
        writable = [one for one in mine if one.role.includes(Role.WRITER)]
        named = [one for one in writable if name in (None, one.space.name)]
        if len(named) == 1:
            return named[0]
        known = ", ".join(f"{one.space.name} ({one.role})" for one in mine)
        if name is not None:
            raise AccessDenied(f"you cannot share in {name!r}; you are a member of: {known or 'no space'}")
        raise InvalidInput(f"say in which space to share; you are a member of: {known or 'no space'}")

    async def _shared_again(self, space: Space, source: MemoryRecord, editor: Editor) -> MemoryRecord | None:
        """The copy that was made of this record before, with the words that the record has now; None without one."""
        copies = await self.place.store.read(lambda view: view.spaces.copies(self.place.owner, [source.id]))
        scope, who = Scope(space.owner), Sharing(self.place, self._services).signed(editor)
        for copy in copies:
            if copy.space == space.name:
                with suppress(RecordNotFound):
                    [shared] = await self._services.editor.restore(scope, copy.record_id, editor=who)
                    return await self._services.editor.update(
                        *(scope, shared.id, {"text": source.text}), expected_revision=shared.revision, editor=who
                    )
        return None

    async def _copied(self, space: Space, source: MemoryRecord, editor: Editor) -> MemoryRecord:
        now_ms = self.place.clock.now_ms()

        async def share(transaction: WriteTransaction, add: Adding) -> Sequence[MemoryRecord]:
            # The record is looked at first: whoever changes two memories changes the person's before the space's.
            if await transaction.records.record(scope_of(self.place.owner, source), source.id) is None:
                raise RecordNotFound(f"{source.id} was erased meanwhile")
            mine = await transaction.spaces.memberships(self.place.owner)
            if not any(one.space == space and one.role.includes(Role.WRITER) for one in mine):
                raise AccessDenied(f"you cannot share in {space.name!r} any more")
            copies = await add()
            for one in copies:
                copy = SharedCopy(space.name, one.id, self.place.owner, source.id, now_ms)
                await transaction.spaces.add_copy(copy)
            return copies

        project = space.project or (None if source.project is None or is_path(source.project) else source.project)
        [copy, *_] = await self._services.editor.remember(
            Scope(space.owner, DEFAULT_AGENT, project=project or PERSONAL),
            RecordType.DOCUMENT,
            self._fields(source, project),
            # As an agent's it is the client of the copy, by which the history names who shared it.
            editor=replace(Sharing(self.place, self._services).signed(editor), type=EditorType.AGENT),
            origin=source.origin,
            around=share,
        )
        return copy

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

    async def _all_in(self, scope: Scope) -> Sequence[str]:
        """The ids of records of a space, also of forgotten ones."""

        async def look(view: ReadView) -> Sequence[ScannedRecord]:
            return await view.records.scan(scope, after=None, limit=_PAGE, has_forgotten=True)

        return [one.id for one in await self.place.store.read(look)]
