"""The result of reading a file: conversations and their turns."""

import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Protocol

from kalito_mcp.domain.records import Origin, Role
from kalito_mcp.domain.time import NEWEST_MS, OLDEST_MS

MOST_BYTES: Final = 524_288
"""Of the text of a turn. One that is longer is left out."""
_FIRST_MS: Final = 100_000_000_000
"""Numbers from here on are milliseconds since 1970, smaller ones seconds: 1973 in one, 5138 in the other."""


@dataclass(slots=True)
class Turn:
    """A message of one side. `key` is its id in the source, `at` in milliseconds since 1970 if the source says when.
    The words of `SYSTEM` are ascribed to neither side. `origin` is the conversation that it was copied from, if the
    source says so."""

    role: Role
    text: str
    key: str
    at: int | None = None
    model: str | None = None
    is_typed: bool = False
    """Whether the source says that the user typed it."""
    origin: str | None = None
    has_id: bool = True
    """Whether `key` is an id, and not a hash of the words, which are others while they are being written."""
    also: str | None = None
    """Another key, under which it may be stored."""


@dataclass(slots=True)
class Conversation:
    """One conversation of a source, its turns in order. `folder` is where it was held, if the source says so; `project`
    is the name of that folder, if that is all it says."""

    session_id: str
    turns: Iterable[Turn]
    folder: str | None = None
    started_at: int | None = None
    """In milliseconds since 1970: for turns that do not say when."""
    project: str | None = None


@dataclass(slots=True)
class Note:
    """A text that is not a conversation, such as a file of instructions. `name` is its own, and never changes; that of
    a note, and of no other document, begins with `note:`. `at` is when it was last written, in milliseconds since 1970,
    if the source says so. `origin` is `IMPORT` for what another memory program kept. `folder` and `project` are as of a
    conversation."""

    name: str
    title: str
    text: str
    folder: str | None = None
    at: int | None = None
    origin: Origin = Origin.DOCUMENT
    project: str | None = None

    @property
    def is_document(self) -> bool:
        """Whether it is not a note, so that lists of notes leave it out."""
        return not self.name.startswith("note:")


@dataclass(slots=True)
class Reading:
    """The reading of one file. `start` is the byte where it begins. The reader sets `read_to`, the byte where the next
    reading begins, and counts in `skipped` what it leaves out, by reason. It sets `is_whole` to False if the same file
    may be read to its end another time."""

    path: Path
    start: int = 0
    read_to: int = 0
    is_whole: bool = True
    skipped: Counter[str] = field(default_factory=Counter[str])


def without_copies(
    turns: Iterator[Turn], others: Iterator[Turn], reading: Reading, *, origin: str | None = None
) -> Iterator[Turn]:
    """The turns from the first on that is not, in its place, the other conversation's. If there is nothing of the other
    one, its name is given to the turns, so that what is stored of it is recognised."""
    other = next(others, None)
    named = origin if other is None else None
    for turn in turns:
        if other is None or (other.role, other.text) != (turn.role, turn.text):
            turn.origin = named
            yield turn
            break
        reading.skipped["copy of a message of another session"] += 1
        other = next(others, None)
    for turn in turns:
        turn.origin = named
        yield turn


class Source(Protocol):
    """A program that keeps conversations in files."""

    @property
    def name(self) -> str:
        """As in `kalito-mcp import NAME`. The client keys of its messages begin with it."""

    @property
    def title(self) -> str:
        """Its name for people."""

    @property
    def is_appended(self) -> bool:
        """Whether its files only grow, line by line."""

    def find(self, home: "Home") -> Iterable[Path]:
        """Its files on this machine."""

    def within(self, folder: Path) -> Iterable[Path]:
        """Its files in a folder that a person named."""

    def read(self, reading: Reading) -> Iterator[Conversation | Note]:
        """The content of a file. It raises only OSError, whatever the file contains; unreadable parts are counted."""


@dataclass(frozen=True, slots=True)
class Home:
    """Where a person's programs keep their files."""

    folder: Path
    environment: "dict[str, str]"

    @classmethod
    def current(cls) -> "Home":
        """The home folder and environment of the person who runs this process."""
        return cls(Path.home(), dict(os.environ))

    def of(self, variable: str, default: str) -> Path:
        """The folder that a variable names, or else `default` in the home folder."""
        named = self.environment.get(variable)
        return Path(named).expanduser() if named else self.folder / default

    def applications(self) -> Iterator[Path]:
        """Where applications keep their files, on Linux, macOS and Windows."""
        yield self.of("XDG_CONFIG_HOME", ".config")
        yield self.folder / "Library" / "Application Support"
        if self.environment.get("APPDATA"):
            yield Path(self.environment["APPDATA"])

    def shares(self) -> Iterator[Path]:
        """Where programs keep their data, on Linux, macOS and Windows."""
        yield self.of("XDG_DATA_HOME", ".local/share")
        yield self.folder / "Library" / "Application Support"
        if self.environment.get("LOCALAPPDATA"):
            yield Path(self.environment["LOCALAPPDATA"])


def moment(value: Any) -> int | None:
    """Milliseconds since 1970 of a time in ISO 8601, or of a number of seconds or milliseconds; None if it is not a
    time, or outside the years 1 to 9999. A time without a zone is in UTC."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str):
        try:
            read = datetime.fromisoformat(value.strip())
            if read.tzinfo is None:
                read = read.replace(tzinfo=UTC)
            found = int(read.timestamp() * 1000)
        except (ValueError, OverflowError):
            try:
                value = float(value)
            except ValueError:
                return None
        else:
            return found if OLDEST_MS <= found <= NEWEST_MS else None
    if not isinstance(value, int | float) or not -1e15 < value < 1e15 or not math.isfinite(value) or not value:  # noqa: PLR2004 - far outside
        return None
    found = int(value) if abs(value) >= _FIRST_MS else int(value * 1000)
    return found if OLDEST_MS <= found <= NEWEST_MS else None
