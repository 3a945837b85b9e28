"""The audit log: who did what to which ids, and never what was in them. Pure.

Each entry has a hash over the one before it and over itself, so that a changed, removed or moved entry is seen. The
number and the hash of the newest entry are kept apart from the entries, so that a cut end is seen, too. Who can write
the file can forge a whole log; an earlier head that was noted elsewhere shows that as well.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Final

NO_HASH: Final = bytes(32)
"""The hash before the first entry."""
MOST_IDS: Final = 50
"""Ids kept of each kind of change. All are counted."""
_LONGEST_ACTION: Final = 100
_ACTION: Final = re.compile(rf"[ -~]{{1,{_LONGEST_ACTION}}}")


class Outcome(StrEnum):
    """How a call ended."""

    DONE = "done"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Change:
    """What was done to some ids: `added`, `changed`, `forgotten`, `restored`, `erased` or `revoked`. `count` is of all
    of them, `ids` are the first ones."""

    what: str
    count: int
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NewEntry:
    """An entry before it has its place in the log. `count` says how many equal calls it stands for."""

    at: int
    principal: str
    owner: str
    action: str
    client: str | None = None
    outcome: Outcome = Outcome.DONE
    count: int = 1
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """An entry of the log. `number` counts from 1 without gaps."""

    number: int
    said: NewEntry
    hash: bytes


@dataclass(frozen=True, slots=True)
class AuditHead:
    """How many entries there are, and the hash of the newest."""

    count: int = 0
    hash: bytes = NO_HASH

    def __str__(self) -> str:
        return f"{self.count}:{self.hash.hex()}"


def action_name(action: str) -> str:
    """The action as it is logged. A name that no route and no tool of ours has may be words of a caller."""
    return action if _ACTION.fullmatch(action) else "other"


def changes_json(changes: Sequence[Change]) -> str:
    """The changes as they are stored and hashed: equal changes are equal texts."""
    return json.dumps([[one.what, one.count, *one.ids] for one in changes], separators=(",", ":"))


def changes_from(stored: str) -> tuple[Change, ...]:
    """The changes of `changes_json`. Raises ValueError or TypeError if it is not valid."""
    return tuple(Change(what, count, tuple(ids)) for what, count, *ids in json.loads(stored))


def entry_hash(before: bytes, number: int, columns: Sequence[str | int | None]) -> bytes:
    """The hash of an entry: over the hash before it, its number and its other columns as they are stored."""
    return sha256(before + json.dumps([number, *columns], separators=(",", ":")).encode()).digest()


def columns_of(entry: NewEntry) -> dict[str, str | int | None]:
    """The entry as it is stored and hashed, by column."""
    return {
        "at": entry.at,
        "principal": entry.principal,
        "owner": entry.owner,
        "client": entry.client,
        "action": entry.action,
        "outcome": str(entry.outcome),
        "count": entry.count,
        "changes": changes_json(entry.changes),
    }


def next_entry(head: AuditHead, entry: NewEntry) -> AuditEntry:
    """The entry after the newest one."""
    number = head.count + 1
    return AuditEntry(number, entry, entry_hash(head.hash, number, [*columns_of(entry).values()]))


class Chain:
    """Follows the entries of a log, in order, and finds the first that is not as it was written.

    `noted` is a head of an earlier time: the log must still go through it.
    """

    def __init__(self, noted: AuditHead | None = None) -> None:
        self.last = AuditHead()
        self._noted = noted
        self._has_noted = noted in (None, self.last)

    def fault(self, number: int, columns: Sequence[str | int | None], stored: bytes) -> str | None:
        """What is wrong with the next entry; None if nothing is. After a fault, follow no more."""
        if number != self.last.count + 1:
            return f"entry {self.last.count + 1} is missing"
        self.last = AuditHead(number, entry_hash(self.last.hash, number, columns))
        self._has_noted = self._has_noted or self.last == self._noted
        return None if self.last.hash == stored else f"entry {number} is not as it was written"

    def fault_at_end(self, head: AuditHead) -> str | None:
        """What is wrong with the whole log, after its last entry; `head` is what was kept of the newest."""
        if self.last.count < head.count:
            return f"it ends with entry {self.last.count}, but {head.count} were written"
        if self.last != head:
            return "its newest entry is not the one that was kept apart"
        if self._noted is not None and not self._has_noted:
            return f"entry {self._noted.count} is not the one that was noted, or is missing"
        return None
