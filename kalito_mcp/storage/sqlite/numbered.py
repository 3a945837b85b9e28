"""Sessions and records as this store returns them: with the keys of their rows, which nothing above it sees."""

from dataclasses import dataclass

from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.domain.sessions import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedSession(Session):
    """A session with the key of its row."""

    key: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedRecord(MemoryRecord):
    """A record with the key of its row."""

    key: int


def key_of(stored: Session | MemoryRecord) -> int:
    """The key of its row; 0, which no row has, for one that this store did not return."""
    return stored.key if isinstance(stored, NumberedSession | NumberedRecord) else 0
