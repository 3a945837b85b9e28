"""Limits numpy's matrix products to one thread during a block.

OpenBLAS uses one thread a core, and they wait for each other by spinning: on a machine with other work, one thread is
several times faster than many. Its environment variable would have to be set before numpy is imported, for the whole
process. The library's own call works at any time and is undone afterwards.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

_PREFIXES: Final = ("scipy_openblas", "openblas")
_SUFFIXES: Final = ("64_", "")
_LOCK: Final = threading.Lock()

Controls = tuple[Callable[[], int], Callable[[int], None]]


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let matrix products of this process use one thread within the block. Only one block runs at a time.

    Without OpenBLAS (Accelerate, MKL) the number of threads does not change.
    """
    with _LOCK:
        controls = _openblas()
        if controls is None:
            yield
            return
        get, put = controls
        before = get()
        put(1)
        try:
            yield
        finally:
            put(before)


@cache
def _openblas() -> Controls | None:
    """The functions that get and set the number of threads of the OpenBLAS that numpy has loaded."""
    import ctypes  # noqa: PLC0415 - loads when first needed

    import numpy as np  # noqa: PLC0415 - the same

    folder = Path(np.__file__).parent
    # Through numpy's own module the linker finds the library it is linked with, except on Windows.
    own = sorted((folder / "_core").glob("_multiarray_umath.*"))
    bundled = sorted(folder.with_name("numpy.libs").glob("*openblas*"))
    for path in (*own, *bundled):
        try:
            library = ctypes.CDLL(str(path))
        except OSError:
            continue
        for prefix in _PREFIXES:
            for suffix in _SUFFIXES:
                get = getattr(library, f"{prefix}_get_num_threads{suffix}", None)
                put = getattr(library, f"{prefix}_set_num_threads{suffix}", None)
                if get is not None and put is not None:
                    return get, put
    return None
