"""Sessions and records with the keys of their rows, which nothing above a store sees."""

import re
from dataclasses import dataclass, field
from typing import Final

from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.domain.sessions import Session
from kalito_mcp.domain.validation import MESSAGE_ID_PREFIX

_MESSAGE_ID: Final = re.compile(rf"{MESSAGE_ID_PREFIX}([1-9][0-9]{{0,17}})")


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedSession(Session):
    """A session with the key of its row."""

    key: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedRecord(MemoryRecord):
    """A record with the key of its row."""

    key: int
    owner: str = field(default="", compare=False)
    """Whose it is, if the store needs that to find its row again."""


def key_of(stored: Session | MemoryRecord) -> int:
    """The key of its row; 0, which no row has, for one that this store did not return."""
    return stored.key if isinstance(stored, NumberedSession | NumberedRecord) else 0


def owner_of(stored: MemoryRecord) -> str:
    """Whose record it is, if the store that returned it says so; empty otherwise."""
    return stored.owner if isinstance(stored, NumberedRecord) else ""


def message_key(record_id: str) -> int | None:
    """The number in a message's id, which is the key of its row; None if the id is not a message's."""
    number = _MESSAGE_ID.fullmatch(record_id)
    return None if number is None else int(number[1])
