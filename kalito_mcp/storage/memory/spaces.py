"""Spaces, their members, and which of their records is a copy of what, in memory. Implements `ports.spaces`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kalito_mcp.domain.spaces import Membership, SharedCopy, Space
from kalito_mcp.storage.memory.state import Tables, drop


class Spaces(Tables):
    """`ports.spaces.SpaceWriter`."""

    async def space(self, name: str) -> Space | None:
        return self._state.spaces.get(name)

    async def spaces(self) -> Sequence[Space]:
        return [one for _, one in sorted(self._state.spaces.items())]

    async def members(self, space: str) -> Sequence[Membership]:
        return [one for (of, _), one in sorted(self._state.space_members.items()) if of == space]

    async def memberships(self, user: str) -> Sequence[Membership]:
        return [one for (_, member), one in sorted(self._state.space_members.items()) if member == user]

    async def copies(self, user: str, source_ids: Sequence[str] | None = None) -> Sequence[SharedCopy]:
        return [
            one
            for _, one in sorted(self._state.shared_copies.items())
            if one.user == user and (source_ids is None or one.source_id in source_ids)
        ]

    async def shared(self, space: str, record_ids: Sequence[str]) -> Mapping[str, SharedCopy]:
        found = {one: self._state.shared_copies.get((space, one)) for one in record_ids}
        return {record_id: copy for record_id, copy in found.items() if copy is not None}

    async def add_space(self, space: Space) -> bool:
        if space.name in self._state.spaces:
            return False
        self._state.spaces[space.name] = space
        return True

    async def remove_space(self, name: str) -> None:
        self._state.spaces.pop(name, None)
        drop(self._state.space_members, lambda one: one.space.name == name)
        drop(self._state.shared_copies, lambda one: one.space == name)

    async def set_member(self, membership: Membership) -> bool:
        place = membership.space.name, membership.user
        if (space := self._state.spaces.get(membership.space.name)) is None:
            return False
        since = self._state.space_members.get(place, membership).since
        self._state.space_members[place] = replace(membership, space=space, since=since)
        return True

    async def remove_member(self, space: str, user: str) -> bool:
        return self._state.space_members.pop((space, user), None) is not None

    async def add_copy(self, copy: SharedCopy) -> None:
        self._state.shared_copies.setdefault((copy.space, copy.record_id), copy)

    async def remove_copies(self, space: str, record_ids: Sequence[str]) -> None:
        drop(self._state.shared_copies, lambda one: one.space == space and one.record_id in record_ids)
