"""An import's notes about the files that it read, and the sessions that it writes to."""

from dataclasses import dataclass
from typing import Final

from kalito_mcp.domain.records import Role

IMPORTED_BY: Final = "import"
"""The client of the messages that an import records."""


@dataclass(frozen=True, slots=True)
class FileRead:
    """A file that was imported. `place` is its path.

    `size` in bytes and `modified_ns`, in nanoseconds since 1970, describe the file when it was read. Its first
    `read_to` bytes were read, and `fingerprint` is made of some of them.
    """

    source: str
    place: str
    size: int
    modified_ns: int
    read_to: int
    fingerprint: str


@dataclass(frozen=True, slots=True)
class SourceRead:
    """What was imported of a program: how many files, the bytes that were read of them, and when the last one was
    read, in milliseconds since 1970."""

    source: str
    files: int
    read_bytes: int
    read_at: int


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """A message of a session, forgotten or not, as what comes by another way is compared with it. It was said at
    `created_at`, and recorded at `recorded_at` by the client."""

    seq: int
    client_key: str | None
    role: Role
    text: str
    number: int
    created_at: int
    recorded_at: int
    client: str | None
