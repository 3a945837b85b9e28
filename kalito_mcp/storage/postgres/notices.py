"""Says of each commit whose memory it changed, and hears it of other processes. A notice has the key of an owner, and
no word of what changed.

It follows COMMIT in the same round trip. Inside the transaction, it would make all commits of the database wait for
each other.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager, suppress
from typing import Final

import anyio
import asyncpg

from kalito_mcp.errors import KalitoError

_CHANNEL: Final = "kalito_changes"
_RETRY_AFTER_S: Final = 1.0


def commit_with_notice(owner_keys: Iterable[int]) -> str:
    """What commits a transaction that wrote for these owners."""
    return "; ".join(["COMMIT", *(f"NOTIFY {_CHANNEL}, '{key:d}'" for key in owner_keys)])


async def listen(
    connect: Callable[[], AbstractAsyncContextManager[asyncpg.Connection]], heard: Callable[[int], None]
) -> None:
    """Call `heard` with the key of each owner for whom a process commits, until cancelled. When the server has gone and
    comes back, it is heard again."""

    def on_notice(connection: object, process: int, channel: str, payload: object) -> None:
        if str(payload).isdecimal():
            heard(int(str(payload)))

    while True:
        with suppress(KalitoError, OSError):
            async with connect() as connection:
                ended = anyio.Event()
                connection.add_termination_listener(lambda _, ended=ended: ended.set())
                await connection.add_listener(_CHANNEL, on_notice)
                await ended.wait()
        await anyio.sleep(_RETRY_AFTER_S)
