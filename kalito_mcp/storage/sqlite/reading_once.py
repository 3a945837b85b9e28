"""Reads a database once, on the caller's thread. Needs no event loop, whose import takes longer than the reading.

It reads and refuses the same as a store opened with `may_write=False`, and like it changes no file.
"""

from collections.abc import Callable, Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from kalito_mcp.storage.sqlite import sessions
from kalito_mcp.storage.sqlite.direct import Direct, only_step
from kalito_mcp.storage.sqlite.failures import explained
from kalito_mcp.storage.sqlite.opening import (
    READER_PRAGMAS,
    check_schema,
    first_reader,
    open_connection,
    refuse_folder,
    refuse_missing,
    refuse_old_sqlite,
    unreadable,
)
from kalito_mcp.storage.sqlite.queries import Transaction
from kalito_mcp.storage.sqlite.schema import migrations
from kalito_mcp.storage.sqlite.sessions import SessionQueries
from kalito_mcp.storage.sqlite.side_files import SideFiles
from kalito_mcp.storage.sqlite.vector_indexes import VectorIndexQueries

if TYPE_CHECKING:
    import sqlite3

    import aiosqlite

T = TypeVar("T")


class CountsOfSqlite:
    """The readers of one read transaction that say what there is, and how much."""

    def __init__(self, connection: "aiosqlite.Connection") -> None:
        self.sessions = SessionQueries(Transaction(connection, SimpleNamespace(sessions=sessions)))
        self.vectors = VectorIndexQueries(connection)


def read_once(path: Path, work: Callable[[CountsOfSqlite], Coroutine[Any, Any, T]], *, timeout_s: float) -> T:
    """The result of `work` on a consistent view of the database. It awaits nothing but the view.

    A statement waits `timeout_s` seconds for SQLite's own locks.

    Raises:
        ConfigurationError, StorageError: as `SqliteStore.open`.
    """
    refuse_old_sqlite()
    with explained(path):
        return only_step(_read(path, work, timeout_s))


async def _read(path: Path, work: Callable[[CountsOfSqlite], Coroutine[Any, Any, T]], timeout_s: float) -> T:
    async def connect(mode: str) -> "sqlite3.Connection":
        return open_connection(path, mode, timeout_s=timeout_s, pragmas=READER_PRAGMAS)

    refuse_folder(path)
    refuse_missing(path)
    opened = await first_reader(SideFiles(path), connect)
    if opened is None:
        raise unreadable(path)
    reader, _ = opened
    try:
        connection = cast("aiosqlite.Connection", Direct(reader))
        await check_schema(connection, migrations(), path)
        reader.execute("BEGIN")
        return await work(CountsOfSqlite(connection))
    finally:
        reader.close()
