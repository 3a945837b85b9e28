"""Python's cyclic collector, paused while many objects are made that stay: it would walk through all of them again and
again, and find nothing."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Iterator[None]:
    """No collection within the block, nor in other threads; as it was afterwards."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
