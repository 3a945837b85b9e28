"""The key of a call that may be sent again: stored with what the call writes, so that it is done once. Standard library
alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final


class CallKey:
    """The key of one call. `is_stored` after the write that it belongs to."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.is_stored = False


_KEY: Final = ContextVar[CallKey | None]("call_key", default=None)


@contextmanager
def once(key: str) -> Iterator[None]:
    """Store the key with the first write of the block, in its transaction. If it is stored already, that write raises
    AlreadyTakenIn, and nothing is written."""
    before = _KEY.set(CallKey(key))
    try:
        yield
    finally:
        _KEY.reset(before)


@contextmanager
def before_the_write() -> Iterator[None]:
    """What is written in this block is owed anyway, and not what the call is about."""
    before = _KEY.set(None)
    try:
        yield
    finally:
        _KEY.reset(before)


def key_to_store() -> CallKey | None:
    """The key that the next write has to store, if any."""
    key = _KEY.get()
    return None if key is None or key.is_stored else key
