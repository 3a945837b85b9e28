"""Zstandard, which Python has from 3.14 on. Before, the extra `zed` brings it, which is loaded only when something
compressed is met."""

from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Final

_MODULES: Final = ("compression.zstd", "backports.zstd")
SUFFIX: Final = ".zst"
TO_INSTALL: Final = "pip install 'kalito-mcp[zed]' and import again"


def zstandard() -> Any:
    """The module, or None if it is not installed."""
    for name in _MODULES:
        with suppress(ImportError):
            return import_module(name)
    return None


def opened(path: Path) -> IO[bytes]:
    """The bytes of a file, unpacked if it is compressed. What is torn raises when it is read."""
    if path.suffix != SUFFIX:
        return path.open("rb")
    file: IO[bytes] = zstandard().open(path, "rb")
    return file
