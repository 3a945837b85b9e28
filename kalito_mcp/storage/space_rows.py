"""Converts rows of spaces to values, and values to rows. Runs no SQL."""

from typing import Any

from kalito_mcp.domain.spaces import Membership, Role, SharedCopy, Space
from kalito_mcp.storage.intact_rows import intact_rows


def space_of(row: Any) -> Space:
    """The space of a row of name, project and moment."""
    return Space(*row)


def membership_of(row: Any) -> Membership:
    """The membership of a row of the space's columns, the member, the role and the moment."""
    *space, member, role, since = row
    with intact_rows():
        return Membership(space_of(space), member, Role(role), since)


def copy_of(row: Any) -> SharedCopy:
    """The copy of a row of space, record, member, source and moment."""
    return SharedCopy(*row)


def columns_of_space(space: Space) -> dict[str, Any]:
    """A space as it is stored."""
    return {"name": space.name, "project": space.project, "created_at": space.created_at}


def columns_of_membership(membership: Membership) -> dict[str, Any]:
    """A membership as it is stored."""
    return {
        "space": membership.space.name,
        "member": membership.user,
        "role": str(membership.role),
        "since": membership.since,
    }


def columns_of_copy(copy: SharedCopy) -> dict[str, Any]:
    """A copy as it is stored."""
    return {
        "space": copy.space,
        "record_id": copy.record_id,
        "member": copy.user,
        "source_id": copy.source_id,
        "shared_at": copy.shared_at,
    }
