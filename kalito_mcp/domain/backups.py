"""A copy of a database."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup: its file, its size in bytes, when it was made (0 if unknown), and how many sessions and records it has
    (-1 if not counted)."""

    path: Path
    size_bytes: int
    made_at_ms: int
    sessions: int = -1
    records: int = -1
