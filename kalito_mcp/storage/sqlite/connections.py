"""Opens connections whose statements run on a thread of their own, for an event loop."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

import aiosqlite
import anyio
import anyio.to_thread

from kalito_mcp.storage.sqlite.opening import open_connection
from kalito_mcp.storage.sqlite.side_files import WAL_LIMIT_BYTES

WRITER_PRAGMAS: Final = (
    "PRAGMA synchronous = FULL",
    "PRAGMA secure_delete = ON",
    f"PRAGMA journal_size_limit = {WAL_LIMIT_BYTES}",
    "PRAGMA wal_autocheckpoint = 1000",
)


async def connect(path: Path, mode: str, *, timeout_s: float, pragmas: Sequence[str] = ()) -> aiosqlite.Connection:
    """As `open_connection`."""
    # Shielded: an abandoned connection would keep its thread, and so the process, alive for ever.
    with anyio.CancelScope(shield=True):
        connection = aiosqlite.Connection(
            partial(open_connection, path, mode, timeout_s=timeout_s, pragmas=pragmas), iter_chunk_size=64
        )
        try:
            await connection
        except BaseException:
            # The driver tells its thread to end, but does not wait, and the thread needs this event loop to end.
            await anyio.to_thread.run_sync(connection._thread.join)
            raise
    return connection
