"""Spaces, their members, and which of their records is a copy of what. No words are in here: the records of a space are
those of its `Space.owner`, which every other port reads and writes."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from kalito_mcp.domain.spaces import Membership, SharedCopy, Space


class SpaceReader(Protocol):
    """Reads of one consistent view."""

    async def space(self, name: str) -> Space | None:
        """The space of this name."""

    async def spaces(self) -> Sequence[Space]:
        """All spaces, by name."""

    async def members(self, space: str) -> Sequence[Membership]:
        """Who is in a space, by name."""

    async def memberships(self, user: str) -> Sequence[Membership]:
        """The spaces that somebody is a member of, by name."""

    async def copies(self, user: str, source_ids: Sequence[str] | None = None) -> Sequence[SharedCopy]:
        """The copies in spaces of these records of a user, or of all; by space and id. A user may have left the
        space."""

    async def shared(self, space: str, record_ids: Sequence[str]) -> Mapping[str, SharedCopy]:
        """What these records of a space are copies of, by id."""


class SpaceWriter(SpaceReader, Protocol):
    """Writes of one transaction. They change what `Store.revision` says of the members, too. Nobody else changes
    the members, memberships and copies that it read until it ends. `members` comes before everything else in it."""

    async def add_space(self, space: Space) -> bool:
        """Make a space. False, and nothing is changed, if there is one of this name."""

    async def remove_space(self, name: str) -> None:
        """Remove a space, its members, and what is known of its copies. Its records are erased before."""

    async def set_member(self, membership: Membership) -> bool:
        """Let somebody into a space, or give a member another role; `since` stays then. False, and nothing is changed,
        if there is no space of this name."""

    async def remove_member(self, space: str, user: str) -> bool:
        """Let somebody leave a space; whether they were in it."""

    async def add_copy(self, copy: SharedCopy) -> None:
        """Note that a record of a space is a copy. If it is noted already, the first note stays."""

    async def remove_copies(self, space: str, record_ids: Sequence[str]) -> None:
        """Forget what these records of a space are copies of, because they are erased."""
