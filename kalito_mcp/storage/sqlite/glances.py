"""Reads a row or two on the event loop's own thread, in 20 microseconds. A trip to the thread of a reader takes 100,
and waits there for a search to end.
"""

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import anyio

from kalito_mcp.errors import StorageBusy
from kalito_mcp.storage.sqlite.failures import explained
from kalito_mcp.storage.sqlite.opening import READER_PRAGMAS, open_connection

_AGAIN_S: Final = 0.01
T = TypeVar("T")


class Glances:
    """A connection that cannot write, opened by the first glance."""

    def __init__(self, path: Path, *, timeout_s: float) -> None:
        self._path = path
        self._timeout_s = timeout_s
        self._connection: sqlite3.Connection | None = None

    async def run(self, look: Callable[[sqlite3.Connection], T], mode: str) -> T:
        """The result of `look`, which is called again while another program has the database for itself: the event loop
        must not wait for SQLite's locks. Raises StorageError, StorageBusy after the timeout.
        """
        ends_s = time.monotonic() + self._timeout_s
        while True:
            try:
                with explained(self._path):
                    if self._connection is None:
                        self._connection = open_connection(self._path, mode, timeout_s=0, pragmas=READER_PRAGMAS)
                    return look(self._connection)
            except StorageBusy:
                if time.monotonic() >= ends_s:
                    raise
            await anyio.sleep(_AGAIN_S)

    def close(self) -> None:
        """Close the connection; the next glance opens another one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
