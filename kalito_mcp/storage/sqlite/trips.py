"""Runs a whole transaction on the thread of its connection, instead of sending each statement there.

Sending a statement to the thread and waiting for its rows costs up to 0.15 ms of processor time; a context needs
twenty. The work is a coroutine over a view or a write transaction, as everywhere, run as `direct` says.
"""

import sqlite3
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, cast

import aiosqlite
import anyio

from kalito_mcp.storage.sqlite.direct import Direct, only_step

T = TypeVar("T")


async def in_one_trip(
    connection: aiosqlite.Connection, work: Callable[[aiosqlite.Connection], Coroutine[Any, Any, T]]
) -> T:
    """The result of `work` on this connection, within a transaction that only reads. Cancelled, the thread ends it
    before it does anything else.

    Raises:
        RuntimeError: `work` awaits something else than the connection.
    """

    def run() -> T:
        return reading(connection._conn, work)

    trip: Any = connection._execute  # the driver's own way to run a function on its thread
    result: T = await trip(run)
    return result


def reading(raw: sqlite3.Connection, work: Callable[[aiosqlite.Connection], Coroutine[Any, Any, T]]) -> T:
    """The result of `work` within a transaction that only reads, on this thread.

    Raises:
        RuntimeError: `work` awaits something else than the connection.
    """
    raw.execute("BEGIN")
    try:
        return only_step(work(cast("aiosqlite.Connection", Direct(raw))))
    finally:
        raw.rollback()


async def write_in_one_trip(
    connection: aiosqlite.Connection, work: Callable[[aiosqlite.Connection], Coroutine[Any, Any, T]]
) -> T:
    """The result of `work` on this connection, within a write transaction: committed if it returns, rolled back if it
    raises. Cancelled, it is rolled back before its next statement, unless it was committed by then; this returns when
    that is done.

    Raises:
        RuntimeError: `work` awaits something else than the connection; nothing was written.
    """
    direct = Direct(connection._conn)

    def run() -> T:
        raw: sqlite3.Connection = connection._conn
        try:
            raw.execute("BEGIN IMMEDIATE")
            result = only_step(work(cast("aiosqlite.Connection", direct)))
            direct.check()
            raw.execute("COMMIT")
        except BaseException:
            raw.rollback()
            raise
        return result

    trip: Any = connection._execute  # as above
    try:
        result: T = await trip(run)
    except anyio.get_cancelled_exc_class():
        direct.is_cancelled = True
        with anyio.CancelScope(shield=True):
            await trip(lambda: None)  # the thread takes one trip after another
        raise
    return result
