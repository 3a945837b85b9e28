"""Which paths a command may name. Pure.

There is no file system behind them, so no path leads out of the memory. What would lead out of a real `/memories` is
refused all the same, also in encoded form: the files may be copied to a disk some day.
"""

import unicodedata
from typing import Final
from urllib.parse import unquote

from kalito_mcp.domain.files import MAX_PATH_CHARS, ROOT
from kalito_mcp.errors import InvalidInput
from kalito_mcp.safety.escaping import visible

_MOST_ENCODED: Final = 3
"""How often a path is decoded to see what it hides."""


def checked_path(path: str) -> str:
    """The path in its normal form (NFC, single slashes, none at the end).

    Raises:
        InvalidInput: it is not below `/memories`, too long, or has characters that no name should have.
    """
    if len(path) > MAX_PATH_CHARS:
        raise InvalidInput(f"Path {path[:40]!r}... has {len(path):,} characters; use at most {MAX_PATH_CHARS}")
    parts = unicodedata.normalize("NFC", path).split("/")
    if parts[:2] != ["", ROOT[1:]]:
        raise InvalidInput(f"Path must start with {ROOT}, got: {path}")
    if any(part in (".", "..") for part in _decoded(path).replace("\\", "/").split("/")):
        raise InvalidInput(f"Path {path} would escape {ROOT} directory")
    names = [part for part in parts[2:] if part]
    for name in names:
        if "\\" in name or "\t" in name or "\n" in name or visible(name) != name or name != name.strip():
            raise InvalidInput(
                f"Path {visible(path)!r} has a backslash, an invisible character, or a space at the edge of a name; "
                "use plain names between slashes"
            )
    normal = "/".join((ROOT, *names))
    if len(normal) > MAX_PATH_CHARS:
        raise InvalidInput(f"Path {normal[:40]!r}... has {len(normal):,} characters; use at most {MAX_PATH_CHARS}")
    return normal


def _decoded(path: str) -> str:
    for _ in range(_MOST_ENCODED):
        path = unquote(path)
    return path
