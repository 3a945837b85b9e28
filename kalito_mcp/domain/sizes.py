"""How much of a memory belongs where. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PartSize:
    """What one agent has in one project, or of no project: sessions, messages that are shown, and records outside any
    session, with a document's parts one by one. `newest_at` is when one of the sessions last changed, in milliseconds
    since 1970."""

    agent: str
    project: str | None
    sessions: int = 0
    messages: int = 0
    records: int = 0
    newest_at: int | None = None


@dataclass(frozen=True, slots=True)
class VectorCounts:
    """The vectors of the active embedder, of all owners, and how many records wait for theirs."""

    made_by: str
    count: int
    waiting: int


@dataclass(frozen=True, slots=True)
class StoredFiles:
    """The files and folders of a memory on disk with their sizes in bytes, and how much of the database is free for
    new records."""

    sizes: tuple[tuple[str, int], ...]
    free_bytes: int
