"""Reads long texts in a thread, so that other calls do not wait for it."""

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

import anyio.to_thread

LONG_CHARS: Final = 64 * 1024
"""Characters that are read in some milliseconds to some tens of them, depending on the text and the function."""
_Made = TypeVar("_Made")


async def aside(work: Callable[[], _Made]) -> _Made:
    """Run `work` in a thread, or here if this already runs in one, such as a transaction."""
    return await anyio.to_thread.run_sync(work) if is_in_event_loop() else work()


async def read_aside(chars: int, read: Callable[[], _Made], *, most: int = LONG_CHARS) -> _Made:
    """Run `read`, as `aside` if it reads more than `most` characters. Cancelling does not end it."""
    return await aside(read) if chars > most else read()


def is_in_event_loop() -> bool:
    """Whether this runs in an event loop, and not in a thread of a transaction."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
