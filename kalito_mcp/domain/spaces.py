"""Spaces: memories that several people share. Pure."""

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from kalito_mcp.domain.scope import DEFAULT_AGENT, Limits, Scope
from kalito_mcp.domain.time import to_iso
from kalito_mcp.domain.validation import checked_name
from kalito_mcp.errors import InvalidInput

_PREFIX: Final = "space:"


class Role(StrEnum):
    """What a member may do in a space. Each one includes the ones before it.

    A reader sees what is in it. A writer shares records there, and corrects and removes those. A curator corrects and
    removes what anybody shared.
    """

    READER = "reader"
    WRITER = "writer"
    CURATOR = "curator"

    def includes(self, other: "Role") -> bool:
        """Whether this one may do everything that the other may."""
        order = list(Role)
        return order.index(self) >= order.index(other)


@dataclass(frozen=True, slots=True)
class Space:
    """A shared memory: of a project, if it names one, else of a team. `created_at` is in milliseconds since 1970."""

    name: str
    project: str | None
    created_at: int

    @property
    def owner(self) -> str:
        """Whose the records in it are: the store keeps a space as the memory of an owner of its own."""
        return space_owner(self.name)


@dataclass(frozen=True, slots=True)
class Membership:
    """Who is in a space, as what, and since when (milliseconds since 1970)."""

    space: Space
    user: str
    role: Role
    since: int

    def may_change(self, sharers: Iterable[str]) -> bool:
        """Whether the member may correct, forget, restore and erase what these people shared: a writer what is their
        own, and a curator everything."""
        return self.role.includes(Role.WRITER if set(sharers) <= {self.user} else Role.CURATOR)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "space": self.space.name,
            "project": self.space.project,
            "user": self.user,
            "role": str(self.role),
            "since": to_iso(self.since),
        }


@dataclass(frozen=True, slots=True)
class SharedCopy:
    """A record in a space, and what it is a copy of: the record `source_id` of the user who shared it. `shared_at` is
    in milliseconds since 1970. It stays when that user leaves."""

    space: str
    record_id: str
    user: str
    source_id: str
    shared_at: int


def seen_in_spaces(scope: Scope, memberships: Iterable[Membership]) -> Iterator[tuple[Membership, Scope]]:
    """The memberships that count for a read of this scope, and what it finds of each space: what is of the scope's
    project, and what is of none; of the space of another project nothing. A session is the member's own, and a caller
    who is limited to an agent sees no more than that agent's part."""
    if scope.session is not None or scope.limits.agent is not None:
        return
    limits = Limits(project=scope.limits.project)
    for one in memberships:
        if one.space.project is None or {scope.project, limits.project} <= {None, one.space.project}:
            yield one, Scope(one.space.owner, DEFAULT_AGENT, project=scope.project, limits=limits)


def space_owner(name: str) -> str:
    """Whose the records of the space of this name are."""
    return f"{_PREFIX}{name}"


def space_of(owner: str) -> str | None:
    """The name of the space that is kept as this owner's memory; None if the owner is a person or a program."""
    return owner.removeprefix(_PREFIX) if owner.startswith(_PREFIX) else None


def checked_user(owner: str, field: str) -> str:
    """The name of an owner who is a person or a program, unchanged.

    Raises:
        InvalidInput: it is not acceptable as a name, or it is a space, or looks like one.
    """
    if space_of(unicodedata.normalize("NFKC", checked_name(owner, field)).casefold()) is not None:
        raise InvalidInput(f"the owner {owner!r} is a space; name a person, and make them a member of it")
    return owner
