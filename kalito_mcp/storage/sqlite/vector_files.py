"""The names of the files of approximate indexes: `<database>.vectors-<index>-<last row>`. No file is read here."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

BUILDING: Final = ".building"
"""The suffix of the mark of a file that is being built."""
NEW: Final = ".new"
"""The suffix of a file that is not in its place yet."""


def is_installed() -> bool:
    """Whether usearch, which makes and reads these files, is installed."""
    return find_spec("usearch") is not None


def all_files(database: Path) -> Iterator[Path]:
    """Every such file of the database, including unfinished ones."""
    return database.parent.glob(f"{_escaped(database.name)}.vectors-*")


def file_of(database: Path, index_key: int, last: int | str) -> Path:
    """The path of the file of this index with rows up to `last`."""
    return database.with_name(f"{database.name}.vectors-{index_key}-{last}")


def newest_key(database: Path, index_key: int) -> int | None:
    """The last row in the newest finished file of this index; None if there is no file."""
    found = database.parent.glob(f"{_escaped(database.name)}.vectors-{index_key}-*")
    return max((int(end) for path in found if (end := path.name.rpartition("-")[2]).isdecimal()), default=None)


def _escaped(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)
