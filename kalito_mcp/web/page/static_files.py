"""Style, scripts and icon of the page, from this package alone. Their URLs have a hash of all of them, so browsers keep
them for good, and get new ones with a new release.
"""

import gzip
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).parent / "static"
_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file with its media type, as it is and compressed."""

    media: str
    content: bytes
    zipped: bytes


@cache
def static_files() -> dict[str, StaticFile]:
    """The files by name."""
    found: dict[str, StaticFile] = {}
    for file in sorted(_FOLDER.iterdir()):
        if file.suffix in _TYPES:
            content = file.read_bytes()
            found[file.name] = StaticFile(
                f"{_TYPES[file.suffix]}; charset=utf-8", content, gzip.compress(content, 9, mtime=0)
            )
    return found


@cache
def static_hash() -> str:
    """The hash in their URLs."""
    return sha256(b"".join(one.content for one in static_files().values())).hexdigest()[:16]


def static_url(name: str) -> str:
    """Where a file is. Raises KeyError for a file that is not here."""
    if name not in static_files():
        raise KeyError(name)
    return f"/static/{static_hash()}/{name}"
