"""Opens the database file. Only SQLite opens it: closing another descriptor of it would drop SQLite's locks.

Nothing here needs an event loop, so that `reading_once` does without.
"""

import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from kalito_mcp.errors import ConfigurationError, StorageDamaged, StorageReadOnly
from kalito_mcp.storage.sqlite.failures import is_not_writable
from kalito_mcp.storage.sqlite.index_version import REBUILD_STEP, warn_if_older
from kalito_mcp.storage.sqlite.schema import Migration, is_current
from kalito_mcp.storage.sqlite.side_files import SideFiles

if TYPE_CHECKING:
    import aiosqlite

OLDEST_SQLITE: Final = (3, 38, 0)  # built-in JSON functions, STRICT tables
READ_WRITE: Final = "?mode=rw"
READ_ONLY: Final = "?mode=ro"
IMMUTABLE: Final = "?immutable=1"
READER_PRAGMAS: Final = ("PRAGMA query_only = ON", "PRAGMA user_version")
"""The second one reads the file, so that one that cannot be read is refused here."""

_COMMON_PRAGMAS: Final = (
    "PRAGMA foreign_keys = ON",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA mmap_size = 0",
    "PRAGMA temp_store = MEMORY",
)
CREATE_VOCABULARY: Final = "CREATE VIRTUAL TABLE temp.terms USING fts5vocab('main', 'records_text', 'row')"
"""A connection needs this before it searches. The table stores nothing; it is a view of the text index."""

Reader = TypeVar("Reader")


def open_connection(path: Path, mode: str, *, timeout_s: float, pragmas: Sequence[str] = ()) -> sqlite3.Connection:
    """A new connection, after these pragmas. A statement waits this many seconds for SQLite's own locks."""
    uri = path.absolute().as_uri() + mode
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=timeout_s, cached_statements=64)
    try:
        for statement in (*_COMMON_PRAGMAS, CREATE_VOCABULARY, *pragmas):
            connection.execute(statement).fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def refuse_old_sqlite() -> None:
    """Raises ConfigurationError if this Python's SQLite is too old."""
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise ConfigurationError(
            f"SQLite {sqlite3.sqlite_version} is too old; use a Python built with SQLite 3.38 or newer"
        )


def refuse_folder(path: Path) -> None:
    """Raises StorageDamaged if the path is a folder."""
    if path.is_dir():
        raise StorageDamaged(f"{path} is a folder; name a file in it, such as {path / 'memory.db'}")


def refuse_missing(path: Path) -> None:
    """Raises StorageReadOnly if there is no file to read."""
    if not path.exists():
        raise StorageReadOnly(f"{path} does not exist yet; `kalito-mcp serve` creates it")


def has_wal(path: Path) -> bool:
    """Whether writes are in the -wal file that are not in the database yet."""
    wal = path.with_name(f"{path.name}-wal")
    return wal.exists() and wal.stat().st_size > 0


def unreadable(path: Path) -> StorageReadOnly:
    """The refusal of a file that can be opened in no way."""
    return StorageReadOnly(f"{path} cannot be read; make it readable")


async def first_reader(files: SideFiles, connect: Callable[[str], Awaitable[Reader]]) -> tuple[Reader, str] | None:
    """A connection for reading and its mode: with the -wal file, or without it if it cannot be opened. None if neither
    can be.

    Raises:
        StorageReplaced: the -wal belongs to another database.
    """
    for mode in (READ_ONLY, IMMUTABLE):
        files.refuse_foreign_wal()
        try:
            return await connect(mode), mode
        except sqlite3.Error as reason:
            if not is_not_writable(reason):
                raise
    return None


async def check_schema(reader: "aiosqlite.Connection", steps: Sequence[Migration], path: Path) -> None:
    """Refuse what this release cannot read, and log what it reads less well.

    Raises:
        StorageReadOnly: the database is empty or lacks steps.
        SchemaTooNew, SchemaUnknown, StorageDamaged: as `is_current`.
    """
    if not await is_current(reader, steps, path):
        raise StorageReadOnly(f"{path} is empty or of an older release; `kalito-mcp serve` updates it")
    if len(steps) >= REBUILD_STEP:
        await warn_if_older(reader)
