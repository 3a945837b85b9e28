"""Runs a whole reading on the thread of its connection, instead of sending each statement there.

Sending a statement to the thread and waiting for its rows costs 0.15 ms of processor time; a context needs twenty.
The reading is a coroutine over a view, as everywhere. Its statements run when they are awaited, so that it never
suspends, and its first step is its last.
"""

import sqlite3
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, cast

import aiosqlite

T = TypeVar("T")


class _Direct:
    """What a view uses of `aiosqlite.Connection`, on the connection's own thread."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._conn = connection

    async def execute_fetchall(self, sql: str, parameters: Any = ()) -> list[Any]:
        """All rows of the statement."""
        return self._conn.execute(sql, parameters).fetchall()

    async def _execute(self, work: Callable[..., Any], *parameters: Any) -> Any:
        return work(*parameters)


async def in_one_trip(
    connection: aiosqlite.Connection, work: Callable[[aiosqlite.Connection], Coroutine[Any, Any, T]]
) -> T:
    """The result of `work` on this connection, within a transaction that only reads. Cancelled, the thread ends it
    before it does anything else.

    Raises:
        RuntimeError: `work` awaits something else than the connection.
    """

    def run() -> T:
        raw: sqlite3.Connection = connection._conn
        raw.execute("BEGIN")
        try:
            return _only_step(work(cast("aiosqlite.Connection", _Direct(raw))))
        finally:
            raw.rollback()

    trip: Any = connection._execute  # the driver's own way to run a function on its thread
    result: T = await trip(run)
    return result


def _only_step(reading: Coroutine[Any, Any, T]) -> T:
    try:
        reading.send(None)
    except StopIteration as ended:
        result: T = ended.value
        return result
    reading.close()
    raise RuntimeError("a reading in one trip awaited something else than its view")
