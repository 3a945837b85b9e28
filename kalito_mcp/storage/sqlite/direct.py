"""Runs a coroutine over a transaction without an event loop.

Its statements run when they are awaited, on this thread. So it never suspends, and its first step is its last.
"""

import sqlite3
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


class Cancelled(BaseException):
    """Nobody waits for the transaction any more."""


class Direct:
    """The methods of `aiosqlite.Connection` that a transaction uses, on the connection's own thread."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._conn = connection
        self.is_cancelled = False
        """Whether each further statement raises Cancelled. Another thread may set it."""

    def check(self) -> None:
        """Raises Cancelled."""
        if self.is_cancelled:
            raise Cancelled

    async def execute_fetchall(self, sql: str, parameters: Any = ()) -> list[Any]:
        """All rows of the statement."""
        self.check()
        return self._conn.execute(sql, parameters).fetchall()

    async def executemany(self, sql: str, parameters: Iterable[Any]) -> None:
        """Run the statement for each of the parameters."""
        self.check()
        self._conn.executemany(sql, parameters)

    async def _execute(self, work: Callable[..., Any], *parameters: Any) -> Any:
        return work(*parameters)


def only_step(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`.

    Raises:
        RuntimeError: `work` awaits something else than a transaction over a `Direct`.
    """
    try:
        work.send(None)
    except StopIteration as ended:
        result: T = ended.value
        return result
    work.close()
    raise RuntimeError("what runs in one trip awaited something else than its transaction")
