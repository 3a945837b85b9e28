"""Reads long texts in a thread, so that other calls do not wait for it."""

from collections.abc import Callable
from typing import Final, TypeVar

import anyio.to_thread

LONG_CHARS: Final = 64 * 1024
"""So many characters are read in some milliseconds to some tens of them, by what is read and by which function."""
_Made = TypeVar("_Made")


async def read_aside(chars: int, read: Callable[[], _Made]) -> _Made:
    """Run `read`: in a thread if it reads more than `LONG_CHARS` characters. Cancelling does not end the thread."""
    return await anyio.to_thread.run_sync(read) if chars > LONG_CHARS else read()
