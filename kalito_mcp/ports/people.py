"""Whose memories a store has, and the end of one."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from kalito_mcp.domain.people import OwnerCounts


class PeopleReader(Protocol):
    """Reads of one consistent view."""

    async def names(self) -> Sequence[str]:
        """The name of every owner that has anything or is a member of a space, in order; spaces, too."""

    async def owners(self) -> Sequence[OwnerCounts]:
        """The same owners, with how much they have."""


class PeopleWriter(PeopleReader, Protocol):
    """Writes of one transaction."""

    async def has(self, owner: str) -> bool:
        """Whether the owner has anything, or is a member of a space. Unlike a write, this makes nobody an owner: after
        an erasure, it is False."""

    async def erase(self, owner: str, *, most: int) -> Mapping[str, int]:
        """Erase what an owner has: the keys first, then their memory, about `most` rows. Call it again, each time in a
        transaction of its own, until nothing was left to erase: then it is empty. Until then their conversations are
        closed, so that nothing is added to them.

        Returns the number of rows by table. Notes that the files must be swept. The audit log stays, and so do the
        owner's memberships in spaces.
        """

    async def drop_empty_projects(self, owner: str) -> None:
        """Drop the projects in which the owner has no session and no record, and what was forgotten in them: their
        names may be words of somebody who was erased."""
