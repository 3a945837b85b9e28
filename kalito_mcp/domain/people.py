"""The people who share a database, and what is left of one who was erased. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kalito_mcp.domain.spaces import Membership
from kalito_mcp.domain.time import to_iso


@dataclass(frozen=True, slots=True)
class OwnerCounts:
    """How much an owner has. Forgotten records are not counted. `written_at` is when a conversation of theirs last
    changed, in milliseconds since 1970."""

    owner: str
    sessions: int = 0
    records: int = 0
    written_at: int | None = None


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody with a memory or a key. `keys` counts the tokens that are valid now, also of programs that were let in;
    `used_at` is when one was last used or a conversation last changed, in milliseconds since 1970."""

    name: str
    sessions: int
    records: int
    keys: int
    used_at: int | None
    memberships: tuple[Membership, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "name": self.name,
            "sessions": self.sessions,
            "records": self.records,
            "keys": self.keys,
            "used_at": None if self.used_at is None else to_iso(self.used_at),
            "spaces": {one.space.name: str(one.role) for one in self.memberships},
        }


@dataclass(frozen=True, slots=True)
class ErasedPerson:
    """What a call erased of a person, and where something of them still is.

    `rows` counts what went, by table. `spaces` maps the spaces that had copies of their records, or that they were a
    member of, to the number of copies erased there. `files` are those that were deleted. `kept` says what stays on
    purpose. `remaining` maps places that may still have their words to what to do there; `is_owed`: some of it failed,
    and the background tries again.
    """

    name: str
    rows: Mapping[str, int] = field(default_factory=dict)
    spaces: Mapping[str, int] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    remaining: Mapping[str, str] = field(default_factory=dict)
    is_owed: bool = False

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "name": self.name,
            "rows": dict(self.rows),
            "spaces": dict(self.spaces),
            "files": list(self.files),
            "kept": list(self.kept),
            "remaining": dict(self.remaining),
            "is_owed": self.is_owed,
        }
