"""Opens connections to the database file. Only SQLite opens it: closing another descriptor of it would drop SQLite's
locks."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import aiosqlite
import anyio
import anyio.to_thread

from kalito_mcp.storage.sqlite.search import CREATE_VOCABULARY
from kalito_mcp.storage.sqlite.side_files import WAL_LIMIT_BYTES

READ_WRITE: Final = "?mode=rw"
READ_ONLY: Final = "?mode=ro"
IMMUTABLE: Final = "?immutable=1"
WRITER_PRAGMAS: Final = (
    "PRAGMA synchronous = FULL",
    "PRAGMA secure_delete = ON",
    f"PRAGMA journal_size_limit = {WAL_LIMIT_BYTES}",
    "PRAGMA wal_autocheckpoint = 1000",
)
_COMMON_PRAGMAS: Final = (
    "PRAGMA foreign_keys = ON",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA mmap_size = 0",
    "PRAGMA temp_store = MEMORY",
)


async def connect(path: Path, mode: str, *, timeout_s: float, pragmas: Sequence[str] = ()) -> aiosqlite.Connection:
    """A new connection, after these pragmas. A statement waits so many seconds for SQLite's own locks."""
    # Shielded: an abandoned connection would keep its thread, and so the process, alive for ever.
    with anyio.CancelScope(shield=True):
        connection = aiosqlite.connect(
            _uri(path, mode), uri=True, isolation_level=None, timeout=timeout_s, cached_statements=64
        )
        try:
            await connection
            for statement in (*_COMMON_PRAGMAS, CREATE_VOCABULARY, *pragmas):
                await connection.execute_fetchall(statement)
        except BaseException:
            await connection.close()
            # `close` of an unopened connection does not wait for its thread, which needs this event loop to end.
            await anyio.to_thread.run_sync(connection._thread.join)
            raise
    return connection


def _uri(path: Path, mode: str) -> str:
    return path.absolute().as_uri() + mode
