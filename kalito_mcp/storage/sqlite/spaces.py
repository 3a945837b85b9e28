"""Spaces, their members, and which of their records is a copy of what."""

import json
from collections.abc import Mapping, Sequence
from typing import Final

from kalito_mcp.domain.spaces import Membership, SharedCopy, Space
from kalito_mcp.storage.space_rows import (
    columns_of_copy,
    columns_of_membership,
    columns_of_space,
    copy_of,
    membership_of,
    space_of,
)
from kalito_mcp.storage.sqlite.queries import Queries

_SPACE: Final = "name, project, created_at"
_MEMBERSHIP: Final = f"{_SPACE}, member, role, since"
_COPY: Final = "space, record_id, member, source_id, shared_at"
SELECT_SPACE: Final = f"SELECT {_SPACE} FROM spaces WHERE name = :name"
SELECT_SPACES: Final = f"SELECT {_SPACE} FROM spaces ORDER BY name"
SELECT_MEMBERS: Final = f"""
SELECT {_MEMBERSHIP} FROM space_members JOIN spaces ON name = space WHERE space = :space ORDER BY member
"""
SELECT_MEMBERSHIPS: Final = f"""
SELECT {_MEMBERSHIP} FROM space_members JOIN spaces ON name = space WHERE member = :member ORDER BY space
"""
SELECT_ALL_COPIES: Final = f"SELECT {_COPY} FROM shared_copies WHERE member = :member ORDER BY space, record_id"
SELECT_COPIES: Final = f"""
SELECT {_COPY} FROM shared_copies WHERE member = :member AND source_id IN (SELECT value FROM json_each(:ids))
ORDER BY space, record_id
"""
SELECT_SHARED: Final = (
    f"SELECT {_COPY} FROM shared_copies WHERE space = :space AND record_id IN (SELECT value FROM json_each(:ids))"
)
INSERT_SPACE: Final = """
INSERT INTO spaces (name, project, created_at) VALUES (:name, :project, :created_at)
ON CONFLICT (name) DO NOTHING RETURNING name
"""
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
DELETE_COPIES: Final = (
    "DELETE FROM shared_copies WHERE space = :space AND record_id IN (SELECT value FROM json_each(:ids))"
)
DELETE_MEMBERS_OF_SPACE: Final = "DELETE FROM space_members WHERE space = :name"
DELETE_COPIES_OF_SPACE: Final = "DELETE FROM shared_copies WHERE space = :name"
DELETE_SPACE: Final = "DELETE FROM spaces WHERE name = :name"


class SpaceQueries(Queries):
    """`ports.spaces.SpaceReader`."""

    async def space(self, name: str) -> Space | None:
        for row in await self._all(SELECT_SPACE, name=name):
            return space_of(row)
        return None

    async def spaces(self) -> Sequence[Space]:
        return [space_of(row) for row in await self._all(SELECT_SPACES)]

    async def members(self, space: str) -> Sequence[Membership]:
        return [membership_of(row) for row in await self._all(SELECT_MEMBERS, space=space)]

    async def memberships(self, user: str) -> Sequence[Membership]:
        return [membership_of(row) for row in await self._all(SELECT_MEMBERSHIPS, member=user)]

    async def copies(self, user: str, source_ids: Sequence[str] | None = None) -> Sequence[SharedCopy]:
        if source_ids is None:
            return [copy_of(row) for row in await self._all(SELECT_ALL_COPIES, member=user)]
        return [copy_of(row) for row in await self._all(SELECT_COPIES, member=user, ids=json.dumps(list(source_ids)))]

    async def shared(self, space: str, record_ids: Sequence[str]) -> Mapping[str, SharedCopy]:
        found = await self._all(SELECT_SHARED, space=space, ids=json.dumps(list(record_ids)))
        return {copy.record_id: copy for copy in map(copy_of, found)}


class SpaceStatements(SpaceQueries):
    """`ports.spaces.SpaceWriter`."""

    async def add_space(self, space: Space) -> bool:
        return bool(await self._all(INSERT_SPACE, **columns_of_space(space)))

    async def remove_space(self, name: str) -> None:
        for statement in (DELETE_MEMBERS_OF_SPACE, DELETE_COPIES_OF_SPACE, DELETE_SPACE):
            await self._all(statement, name=name)

    async def set_member(self, membership: Membership) -> bool:
        if await self.space(membership.space.name) is None:
            return False
        await self._all(UPSERT_MEMBER, **columns_of_membership(membership))
        return True

    async def remove_member(self, space: str, user: str) -> bool:
        return bool(await self._count_changed(DELETE_MEMBER, space=space, member=user))

    async def add_copy(self, copy: SharedCopy) -> None:
        await self._all(INSERT_COPY, **columns_of_copy(copy))

    async def remove_copies(self, space: str, record_ids: Sequence[str]) -> None:
        await self._all(DELETE_COPIES, space=space, ids=json.dumps(list(record_ids)))
