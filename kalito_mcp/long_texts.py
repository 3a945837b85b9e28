"""Reads long texts in a thread, so that other calls do not wait for it."""

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

import anyio.to_thread

LONG_CHARS: Final = 64 * 1024
"""So many characters are read in some milliseconds to some tens of them, by what is read and by which function."""
_Made = TypeVar("_Made")


async def read_aside(chars: int, read: Callable[[], _Made], *, most: int = LONG_CHARS) -> _Made:
    """Run `read`: in a thread if it reads more than `most` characters. Cancelling does not end the thread.

    What already runs in a thread, such as a transaction in one trip, reads there.
    """
    return await anyio.to_thread.run_sync(read) if chars > most and _is_in_event_loop() else read()


def _is_in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
