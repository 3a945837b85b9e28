"""Opens a database and dies before it runs a statement for the so many-th time; prints how many records it analysed.

Usage: open_until_killed.py DATABASE open|reindex STATEMENT TIMES. STATEMENT is how a line of it begins; with TIMES 0
the process lives. Every batch is a piece.
"""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aiosqlite
import anyio

from kalito_mcp.storage.sqlite import text_rebuild
from kalito_mcp.storage.sqlite.database import SqliteStore
from kalito_mcp.storage.sqlite.text_index import IndexEntry

_connect, _entry_of_row = SqliteStore._connect, text_rebuild.entry_of_row
_analysed: list[int] = []


def _count(row: Sequence[Any]) -> IndexEntry:
    _analysed.append(row[0])
    return _entry_of_row(row)


async def run(path: Path, action: str, statement: str, times: int) -> None:
    """Open the database, and close it."""
    left = times

    def die(executed: str) -> None:
        nonlocal left
        if any(line.startswith(statement) for line in executed.splitlines()):
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    async def connect(store: SqliteStore, mode: str, pragmas: Sequence[str] = ()) -> aiosqlite.Connection:
        connection = await _connect(store, mode, pragmas)
        await connection.set_trace_callback(die)
        return connection

    vars(text_rebuild).update(entry_of_row=_count, _AT_ONCE=0, _PIECE_S=0)
    if times:
        SqliteStore._connect = connect  # type: ignore[method-assign]
    opened = await SqliteStore.open(path)
    if action == "reindex":
        await opened.reindex()
    await opened.close()
    sys.stdout.write(f"{len(_analysed)}\n")


if __name__ == "__main__":
    anyio.run(run, Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]))
