"""Reads long texts in a thread, and before a transaction, so that other calls do not wait for it."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

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


class Readings:
    """What was read of long texts before a transaction: within it, nobody else could write meanwhile.

    It is kept by the text itself. So a text that was changed in between is not found here, and is read as it is now.
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[Any, ...], Any] = {}

    async def prepare(self, read: Callable[..., Any], text: str, *more: Any, most: int = LONG_CHARS) -> None:
        """Keep `read(text, *more)` if the text has more than `most` characters. `read` depends on nothing else."""
        if len(text) > most:
            self._kept[read, text, *more] = await anyio.to_thread.run_sync(read, text, *more)

    def keep(self, made: Any, *of: Any) -> None:
        """Keep what somebody else made of these."""
        self._kept[of] = made

    def kept(self, *of: Any) -> Any:
        """What was made of these; None if nothing was."""
        return self._kept.get(of)

    async def of(self, read: Callable[..., _Made], text: str, *more: Any) -> _Made:
        """`read(text, *more)`, as it was kept, or read now."""
        if (read, text, *more) in self._kept:
            kept: _Made = self._kept[read, text, *more]
            return kept
        return await read_aside(len(text), partial(read, text, *more))


def is_in_event_loop() -> bool:
    """Whether this runs in an event loop, and not in a thread of a transaction."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
