"""The names of the files of approximate indexes: `<database>.vectors-<index>-<last row>`. No file is read here."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

BUILDING: Final = ".building"
"""How the mark of one that is being built ends."""
NEW: Final = ".new"
"""How one ends that is not in its place yet."""


def is_installed() -> bool:
    """Whether the library is there that makes and reads them."""
    return find_spec("usearch") is not None


def all_files(database: Path) -> Iterator[Path]:
    """Every such file beside the database, also unfinished ones: they hold vectors of texts."""
    return database.parent.glob(f"{_escaped(database.name)}.vectors-*")


def file_of(database: Path, index_key: int, last: int | str) -> Path:
    """Where the file of this index with rows up to this one is."""
    return database.with_name(f"{database.name}.vectors-{index_key}-{last}")


def newest_key(database: Path, index_key: int) -> int | None:
    """The last row that the newest finished file of this index knows; None where there is no file."""
    found = database.parent.glob(f"{_escaped(database.name)}.vectors-{index_key}-*")
    return max((int(end) for path in found if (end := path.name.rpartition("-")[2]).isdecimal()), default=None)


def _escaped(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)
