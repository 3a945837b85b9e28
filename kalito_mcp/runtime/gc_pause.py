"""Pauses Python's cyclic garbage collector while many lasting objects are created: it would scan them all, again and
again, and free nothing."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Iterator[None]:
    """Run the block without cyclic collection, in every thread; restore the earlier state afterwards."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
