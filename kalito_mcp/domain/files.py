"""Files of the memory: documents whose source is a path below `/memories`. Pure.

A file is one record. Directories are not stored: there is one wherever a file's path says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

ROOT: Final = "/memories"
FILE: Final = "memory-file:"
"""The prefix of a file's source; its path follows."""
MAX_PATH_CHARS: Final = 200


def source_of(path: str) -> str:
    """The source of the file at this path."""
    return FILE + path


@dataclass(frozen=True, slots=True)
class FileTree:
    """The files of a project: the size in bytes of each, by path."""

    sizes: Mapping[str, int]

    def is_file(self, path: str) -> bool:
        """Whether a file has this path."""
        return path in self.sizes

    def is_directory(self, path: str) -> bool:
        """Whether this is the root, or files are below it."""
        return path == ROOT or any(one.startswith(f"{path}/") for one in self.sizes)

    def within(self, path: str) -> list[str]:
        """The file at this path and those below it, in order."""
        return sorted(one for one in self.sizes if one == path or one.startswith(f"{path}/"))
