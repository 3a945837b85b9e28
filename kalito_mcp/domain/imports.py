"""What an import knows of the files that it read, and of the sessions that it writes to."""

from dataclasses import dataclass

from kalito_mcp.domain.records import Role


@dataclass(frozen=True, slots=True)
class FileRead:
    """A file that was imported. `place` is its path.

    `size` in bytes and `modified_ns`, in nanoseconds since 1970, are those of the file when it was read. Its first
    `read_to` bytes were read, and `fingerprint` is made of some of them.
    """

    source: str
    place: str
    size: int
    modified_ns: int
    read_to: int
    fingerprint: str


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """A message of a session, forgotten or not, as an import compares it."""

    seq: int
    client_key: str | None
    role: Role
    text: str
