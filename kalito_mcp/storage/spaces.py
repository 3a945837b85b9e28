"""Spaces, their members, and which of their records is a copy of what.

Their tables are read to know whose memories somebody may read.

A user's revision follows the spaces that they are in, so a change of who is in a space is written as each of these
users, which moves theirs. Where that takes locks, every write takes them in this order, so that no two wait for each
other: rows of `spaces`, users by name, owners of spaces by name. A share is a write of the user first, and then of the
space.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from kalito_mcp.domain.spaces import Membership, SharedCopy, Space, space_owner
from kalito_mcp.storage.queries import Queries, SqlTransaction
from kalito_mcp.storage.space_rows import (
    columns_of_copy,
    columns_of_membership,
    columns_of_space,
    copy_of,
    membership_of,
    space_of,
)

_SPACE: Final = "name, project, created_at"
_MEMBERSHIP: Final = f"{_SPACE}, member, role, since"
COPY: Final = "space, record_id, member, source_id, shared_at"
SELECT_SPACE: Final = f"SELECT {_SPACE} FROM spaces WHERE name = :name"
SELECT_SPACES: Final = f"SELECT {_SPACE} FROM spaces ORDER BY name"
SELECT_MEMBERS: Final = f"""
SELECT {_MEMBERSHIP} FROM space_members JOIN spaces ON name = space WHERE space = :space ORDER BY member
"""
SELECT_MEMBERSHIPS: Final = f"""
SELECT {_MEMBERSHIP} FROM space_members JOIN spaces ON name = space WHERE member = :member ORDER BY space
"""
SELECT_ALL_COPIES: Final = f"SELECT {COPY} FROM shared_copies WHERE member = :member ORDER BY space, record_id"
INSERT_SPACE: Final = """
INSERT INTO spaces (name, project, created_at) VALUES (:name, :project, :created_at)
ON CONFLICT (name) DO NOTHING RETURNING name
"""
SELECT_MEMBER: Final = "SELECT 1 FROM space_members WHERE space = :space AND member = :member"
UPSERT_MEMBER: Final = """
INSERT INTO space_members (space, member, role, since) VALUES (:space, :member, :role, :since)
ON CONFLICT (space, member) DO UPDATE SET role = excluded.role WHERE space_members.role <> excluded.role
"""
DELETE_MEMBER: Final = "DELETE FROM space_members WHERE space = :space AND member = :member"
INSERT_COPY: Final = """
INSERT INTO shared_copies (space, record_id, member, source_id, shared_at)
VALUES (:space, :record_id, :member, :source_id, :shared_at)
ON CONFLICT (space, record_id) DO NOTHING
"""
DELETE_MEMBERS_OF_SPACE: Final = "DELETE FROM space_members WHERE space = :name"
DELETE_COPIES_OF_SPACE: Final = "DELETE FROM shared_copies WHERE space = :name"
DELETE_SPACE: Final = "DELETE FROM spaces WHERE name = :name"


class SpaceQueries(Queries):
    """`ports.spaces.SpaceReader`."""

    def __init__(self, transaction: SqlTransaction) -> None:
        super().__init__(transaction)
        self._known: dict[str, Sequence[Membership]] = {}
        """The memberships of users who were asked for in this view."""

    async def space(self, name: str) -> Space | None:
        for row in await self._all(SELECT_SPACE, name=name):
            return space_of(row)
        return None

    async def spaces(self) -> Sequence[Space]:
        return [space_of(row) for row in await self._all(SELECT_SPACES)]

    async def members(self, space: str) -> Sequence[Membership]:
        return [membership_of(row) for row in await self._all(SELECT_MEMBERS, space=space)]

    async def memberships(self, user: str) -> Sequence[Membership]:
        if user not in self._known:
            await self._transaction.of(user)  # what comes next is of the same owner: it begins in one round trip so
            self._known[user] = await self._memberships(user)
        return self._known[user]

    async def copies(self, user: str, source_ids: Sequence[str] | None = None) -> Sequence[SharedCopy]:
        if source_ids is None:
            return [copy_of(row) for row in await self._all(SELECT_ALL_COPIES, member=user)]
        found = await self._all(self._sql.spaces.SELECT_COPIES, member=user, ids=list(source_ids))
        return [copy_of(row) for row in found]

    async def shared(self, space: str, record_ids: Sequence[str]) -> Mapping[str, SharedCopy]:
        found = await self._all(self._sql.spaces.SELECT_SHARED, space=space, ids=list(record_ids))
        return {copy.record_id: copy for copy in map(copy_of, found)}

    async def _memberships(self, user: str) -> Sequence[Membership]:
        return [membership_of(row) for row in await self._all(SELECT_MEMBERSHIPS, member=user)]


class SpaceStatements(SpaceQueries):
    """`ports.spaces.SpaceWriter`."""

    async def members(self, space: str) -> Sequence[Membership]:
        # To come in takes the lock of the row, and to leave the member's own: after this, both wait.
        await self._all(self._sql.spaces.SELECT_SPACE_LOCKED, name=space)
        await self._lock(*(one.user for one in await super().members(space)), space=space)
        return await super().members(space)

    async def memberships(self, user: str) -> Sequence[Membership]:
        await self._lock(user)
        return await self._memberships(user)

    async def copies(self, user: str, source_ids: Sequence[str] | None = None) -> Sequence[SharedCopy]:
        await self._lock(user)
        return await super().copies(user, source_ids)

    async def shared(self, space: str, record_ids: Sequence[str]) -> Mapping[str, SharedCopy]:
        await self._lock(space=space)
        return await super().shared(space, record_ids)

    async def add_space(self, space: Space) -> bool:
        if not await self._all(INSERT_SPACE, **columns_of_space(space)):
            return False
        await self._lock(space=space.name)
        return True

    async def remove_space(self, name: str) -> None:
        await self.members(name)
        for statement in (DELETE_MEMBERS_OF_SPACE, DELETE_COPIES_OF_SPACE, DELETE_SPACE):
            await self._all(statement, name=name)

    async def set_member(self, membership: Membership) -> bool:
        space = membership.space.name
        if not await self._all(self._sql.spaces.SELECT_SPACE_LOCKED, name=space):
            return False
        await self._lock(membership.user, space=space)
        await self._all(UPSERT_MEMBER, **columns_of_membership(membership))
        return True

    async def remove_member(self, space: str, user: str) -> bool:
        if not await self._all(SELECT_MEMBER, space=space, member=user):
            return False
        await self._lock(user, space=space)
        return bool(await self._count_changed(DELETE_MEMBER, space=space, member=user))

    async def add_copy(self, copy: SharedCopy) -> None:
        await self._lock(copy.user, space=copy.space)
        await self._all(INSERT_COPY, **columns_of_copy(copy))

    async def remove_copies(self, space: str, record_ids: Sequence[str]) -> None:
        await self._lock(space=space)
        await self._all(self._sql.spaces.DELETE_COPIES, space=space, ids=list(record_ids))

    async def _lock(self, *users: str, space: str | None = None) -> None:
        """Go on as each of these owners, in order: nobody else changes what is theirs then."""
        for owner in (*sorted(users), *([] if space is None else [space_owner(space)])):
            await self._transaction.of(owner)
