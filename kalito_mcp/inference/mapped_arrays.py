"""The arrays of a model in one file of the cache folder, mapped into memory.

Opening it takes a millisecond, all processes share its pages, and a page that nobody reads takes no memory. The file is
made from what is installed, so it may be deleted at any time.
"""

import json
import mmap
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.files import replacing
from kalito_mcp.runtime.default_places import default_cache

Arrays = Mapping[str, NDArray[Any]]
_SUFFIX: Final = ".arrays"
_LONGEST_WRITE_S: Final = 3_600
_ALIGNED: Final = 64
_LENGTH_BYTES: Final = 8


def mapped_arrays(model: str, content: str, build: Callable[[], Arrays], *, must_build: bool = False) -> Arrays:
    """The arrays that `build` returns, read-only, from the file of this model and content.

    If the file is missing or cut short, or with `must_build`, it is written first, and older files of the model are
    removed. If it cannot be written, the arrays are in the memory of this process.
    """
    try:
        path = default_cache() / f"{model}-{content}{_SUFFIX}"
    except RuntimeError:  # the user has no home
        return build()
    found = None if must_build else _mapped(path)
    if found is not None:
        return found
    arrays = build()
    with suppress(OSError):
        _write(path, arrays)
        _remove_others(path, model)
    return _mapped(path) or arrays


def _remove_others(path: Path, model: str) -> None:
    """Remove files of this model's other contents, and what killed processes were writing. Raises OSError."""
    for other in (*path.parent.glob(f"{model}-*"), *path.parent.glob(f".{model}-*")):
        is_given_up = other.name.startswith(".") and time.time() - other.stat().st_mtime > _LONGEST_WRITE_S
        if is_given_up or (other.suffix == _SUFFIX and other != path):
            other.unlink()


def _mapped(path: Path) -> Arrays | None:
    """The arrays of the file. None if it cannot be read, or is not whole."""
    try:
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        start = _LENGTH_BYTES + int.from_bytes(mapped[:_LENGTH_BYTES], "little")
        described = json.loads(mapped[_LENGTH_BYTES:start])
        return {
            name: np.frombuffer(mapped, dtype, prod(shape), offset).reshape(shape)
            for name, (dtype, shape, offset) in described.items()
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def _write(path: Path, arrays: Arrays) -> None:
    """Write the file whole, or leave what is there. Raises OSError."""
    described, size = {}, 0
    for name, array in arrays.items():
        described[name] = (array.dtype.str, array.shape, size)
        size += -(-array.nbytes // _ALIGNED) * _ALIGNED
    # Numbers get longer when the length of the header is added to them, so room is left for that.
    room = -(-(_LENGTH_BYTES + len(json.dumps(described)) + 16 * len(described)) // _ALIGNED) * _ALIGNED
    placed = {name: (dtype, shape, offset + room) for name, (dtype, shape, offset) in described.items()}
    header = json.dumps(placed).encode().ljust(room - _LENGTH_BYTES)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(len(header).to_bytes(_LENGTH_BYTES, "little") + header)
        for array in arrays.values():
            file.write(np.ascontiguousarray(array).data)
            file.write(bytes(-array.nbytes % _ALIGNED))
