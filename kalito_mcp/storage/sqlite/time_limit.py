"""Ends a search that computes for too long, so that one question takes no processor for itself."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kalito_mcp.errors import QueryTooLong

_STEPS: Final = 20_000
"""Of SQLite's virtual machine between two looks at the clock: below a millisecond."""


@contextmanager
def time_limit(connection: sqlite3.Connection, most_s: float) -> Iterator[None]:
    """Within the block, statements on this connection are ended once its thread has used this much processor time. 0:
    no limit.

    Raises:
        QueryTooLong: a statement was ended.
    """
    if not most_s:
        yield
        return
    ends_s = time.thread_time() + most_s
    connection.set_progress_handler(lambda: time.thread_time() > ends_s, _STEPS)
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
        raise QueryTooLong(most_s) from None
    finally:
        connection.set_progress_handler(None, 0)
