"""Spaces: what several people share."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from kalito_mcp.access.users import check_user
from kalito_mcp.domain.arguments import checks_arguments
from kalito_mcp.domain.memory_records import PROGRAM, Editor, MemoryRecord
from kalito_mcp.domain.records import Visibility
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.spaces import Membership, Role, SharedCopy, Space, space_of
from kalito_mcp.errors import AccessDenied, Conflict, InvalidInput, NotFound, RecordNotFound
from kalito_mcp.memory.part import Part
from kalito_mcp.memory.sharing import Sharing, labelled
from kalito_mcp.ports.store import ReadView
from kalito_mcp.runtime.acting import acting_as_host
from kalito_mcp.safety.redaction import checked_handle
from kalito_mcp.text.look_alikes import alike
from kalito_mcp.upkeep.store_layers import no_new_words

_LONGEST_NAME: Final = 60
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
        return await self.place.store.read(Sharing(self.place, self._services).mine)

    async def with_members(self) -> Sequence[tuple[Membership, Sequence[Membership]]]:
        """The same, each with who is in the space, by name: members know each other."""
        sharing = Sharing(self.place, self._services)

        async def look(view: ReadView) -> list[tuple[Membership, Sequence[Membership]]]:
            return [(one, await view.spaces.members(one.space.name)) for one in await sharing.mine(view)]

        return await self.place.store.read(look)

    async def fixed(self, records: Mapping[str, str | None], same: Collection[str] = ()) -> frozenset[str]:
        """Of these records, by id with the space that each is in, those which the owner's role there does not let them
        correct and forget. None of what is in no space. Of the `same`, each may be in any of the owner's spaces."""
        named = {space for space in records.values() if space is not None}
        if not named and not same:
            return frozenset()
        sharing = Sharing(self.place, self._services)

        async def look(view: ReadView) -> frozenset[str]:
            mine = {one.space.name: one for one in await sharing.mine(view)}
            fixed: set[str] = set()
            for space in named | mine.keys() if same else named:
                ids = {one for one, of in records.items() if of == space}
                copies = await view.spaces.shared(space, [*ids, *same])
                may = mine[space].may_change if space in mine else lambda _: False
                fixed |= {one for one in ids | copies.keys() if not may([copies[one].user] if one in copies else [])}
            return frozenset(fixed)

        return await self.place.store.read(look)

    async def share(
        self, record_id: str, space: str | None = None, *, editor: Editor = PROGRAM
    ) -> tuple[MemoryRecord, SharedCopy]:
        """Copy a record into a space; without a name, into the only one in which the owner may write. What was shared
        there before is brought up to date. Somebody else's copy of the same words is another one. A copy is a note:
        short words of a person or an assistant are known to all members, others are found by their searches. Returns
        the copy, or the first part of a long one, and what is noted of it, with the id of all parts.

        Raises:
            RecordNotFound: no such record, or it was erased.
            AccessDenied: the owner is no member of the space, or a reader.
            InvalidInput: no space is named, and the owner may share in none, or in several; or the record is a document
                of several parts.
            Conflict: the record is forgotten, or internal, as thoughts are; or what was forgotten or erased in the
                space says the same.
        """
        self.place.check_remembered()
        where = await self.writable(space)
        try:
            source = await self._services.historian.record(self.place.scope(), record_id)
        except RecordNotFound:
            if (space := space_of((await self.place.holding(record_id)).owner)) is None:
                raise
            raise RecordNotFound(f"{record_id} is in the space {space!r}; share a record of your own instead") from None
        if source.is_deleted:
            raise Conflict(f"{source.id} is forgotten; restore it first")
        if source.visibility is Visibility.INTERNAL:
            raise Conflict(f"{source.id} is internal; share a note of what others should know instead")
        again = await self._shared_again(where.space, source, editor)
        copy = await Sharing(self.place, self._services).copied(where.space, source, editor) if again is None else again
        noted = await self.place.store.read(lambda view: view.spaces.shared(where.space.name, [copy.id]))
        if copy.id not in noted:
            raise RecordNotFound(f"{copy.id} was shared, and erased again meanwhile")
        shared = labelled(where.space.owner, copy)
        return shared, replace(noted[copy.id], record_id=copy.content["document_id"])

    async def writable(self, name: str | None) -> Membership:
        """The membership by which the owner may share in a space; without a name, in the only one where they may.
        Raises AccessDenied and InvalidInput as `share`."""
        mine = await self.mine()
        writable = [one for one in mine if one.role.includes(Role.WRITER)]
        named = [one for one in writable if name in (None, one.space.name)]
        if len(named) == 1:
            return named[0]
        known = ", ".join(f"{one.space.name} ({one.role})" for one in mine)
        if name is not None:
            raise AccessDenied(f"you cannot share in {name!r}; you are a member of: {known or 'no space'}")
        raise InvalidInput(f"say in which space to share; you are a member of: {known or 'no space'}")

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
            InvalidInput: the name is not acceptable, or looks like the one of another space.
            Conflict: there is one of this name.
        """
        self.place.limits.check_none("making a space")
        checked_handle(name, "the name of a space")
        if len(name) > _LONGEST_NAME:
            raise InvalidInput(f"the name of a space has {len(name)} characters; take at most {_LONGEST_NAME}")
        other = alike(name, [one.name for one in await self.all()])
        if other is not None:
            raise InvalidInput(f"there is a space {other!r} already, which looks the same; take another name")
        of_project = None if project is None else await self.place.target(project)
        space = Space(name, of_project, self.place.clock.now_ms())
        with no_new_words(), acting_as_host("create_space"):
            is_new = await self.place.store.write(lambda transaction: transaction.spaces.add_space(space))
        if not is_new:
            raise Conflict(f"there is a space {name!r} already; take another name, or add members to it")
        return space

    async def set_member(self, name: str, user: str, role: Role) -> Membership:
        """Let somebody into a space, or give a member another role. Raises NotFound without such a space, and
        InvalidInput if nobody should get that name, or it looks like somebody else's."""
        self.place.limits.check_none("the members of a space")
        membership = Membership(await self._existing(name), user, role, self.place.clock.now_ms())
        await check_user(self.place.store, user)
        with no_new_words(), acting_as_host("set_member"):
            is_there = await self.place.store.write(lambda transaction: transaction.spaces.set_member(membership))
        if not is_there:
            raise NotFound(f"the space {name!r} was removed meanwhile")
        return membership

    async def remove_member(self, name: str, user: str) -> None:
        """Let somebody leave a space. What they shared stays. Raises NotFound if they are not in it."""
        self.place.limits.check_none("the members of a space")
        with no_new_words(), acting_as_host("remove_member"):
            was_in = await self.place.store.write(lambda transaction: transaction.spaces.remove_member(name, user))
        if not was_in:
            raise NotFound(f"{user!r} is not in a space {name!r}; `kalito-mcp space list` shows who is")

    async def remove(self, name: str) -> int:
        """Erase all that was shared in a space, and the space; how many records were erased. It may be called again if
        it was interrupted. Raises NotFound."""
        self.place.limits.check_none("removing a space")
        with no_new_words(), acting_as_host("remove_space"):
            for member in await self.members(name):  # nobody shares any more while it is erased
                await self.remove_member(name, member.user)
            return await self._services.people.erase_space(name)

    async def _existing(self, name: str) -> Space:
        found = await self.place.store.read(lambda view: view.spaces.spaces())
        for one in found:
            if one.name == name:
                return one
        other = alike(name, [one.name for one in found])
        meant = "`kalito-mcp space list` shows them" if other is None else f"did you mean {other!r}?"
        raise NotFound(f"no space {name!r}; {meant}")

    async def _shared_again(self, space: Space, source: MemoryRecord, editor: Editor) -> MemoryRecord | None:
        """The copy that was made of this record before, with the words that the record has now; None without one."""
        copies = await self.place.store.read(lambda view: view.spaces.copies(self.place.owner, [source.id]))
        sharing, scope = Sharing(self.place, self._services), Scope(space.owner)
        for copy in copies:
            if copy.space == space.name:
                with suppress(RecordNotFound):
                    document = (await self._services.historian.record(scope, copy.record_id)).content["document_id"]
                    parts = await self._services.editor.restore(scope, document, editor=sharing.signed(editor))
                    return await sharing.rewritten(space, parts, source, editor)
        return None
