"""The approximate index: a file of usearch next to the database, for more vectors than an exact scan reads quickly.

It is derived from `record_vectors`, and only suggests rows. The database says whether they still exist, and how near
they are. Rows after the last one of the file are scanned. The file is mapped into memory, so only the parts that are
read take memory. Without the library there is no file, and the exact scan is used for any size.
"""

import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.storage.sqlite.vector_files import BUILDING, NEW, all_files, file_of, is_installed, newest_key

_MODULE: Final = "usearch.index"
_CONNECTIVITY: Final = 16
_EXPANSION: Final = 128


class AnnFile:
    """One finished file, open for searching."""

    def __init__(self, index: Any, path: Path, index_key: int, last_key: int) -> None:
        self._index = index
        self.path = path
        self.index_key = index_key
        self.last_key = last_key

    @classmethod
    def newest(cls, database: Path, index_key: int) -> Self | None:
        """The newest file of this index; None if there is no file, or it cannot be read."""
        last_key = newest_key(database, index_key)
        if last_key is None or not is_installed():
            return None
        path = file_of(database, index_key, last_key)
        try:
            index = import_module(_MODULE).Index.restore(path, view=True)
        except (RuntimeError, ValueError, OSError):
            index = None
        return None if index is None else cls(index, path, index_key, last_key)

    def nearest(self, query: NDArray[np.int8], count: int) -> list[int]:
        """Keys of about `count` rows near the query. Some of the rows may be gone by now."""
        self._index.expansion_search = max(_EXPANSION, 2 * count)
        return [int(key) for key in self._index.search(query, count, threads=1).keys]


class AnnFileBuilder:
    """Builds a file from the rows of the last one and those that are added.

    A sweep meanwhile removes the builder's mark. Then the result is discarded, because it may contain erased vectors.
    """

    def __init__(self, database: Path, index_key: int, dimension: int) -> None:
        self._database = database
        self._index_key = index_key
        self._mark = file_of(database, index_key, f"{os.getpid()}{BUILDING}")
        _create_private(self._mark)
        self._index = import_module(_MODULE).Index(
            ndim=dimension, metric="cos", dtype="i8", connectivity=_CONNECTIVITY, expansion_add=_EXPANSION
        )
        self.last_key = 0
        before = AnnFile.newest(database, index_key)
        if before is not None:
            self._index.load(before.path)
            self.last_key = before.last_key

    def add(self, keys: Sequence[int], vectors: NDArray[np.int8]) -> None:
        """Add rows (n, dimension), whose keys are greater than all before."""
        self._index.add(np.array(keys, np.uint64), vectors, threads=1)
        self.last_key = keys[-1]

    def save(self) -> None:
        """Write the file under a temporary name. Does nothing if a sweep has removed the mark."""
        if self._mark.exists():
            _create_private(self._new)
            self._index.save(self._new)
            with self._new.open("rb+") as written:
                os.fsync(written.fileno())

    def publish(self) -> bool:
        """Move the file to its place and remove the older ones. Hold the write mutex, as sweeps do. Returns False, and
        discards the file, if a sweep came in between."""
        is_whole = self._mark.exists() and self._new.exists()
        if is_whole:
            finished = self._new.replace(file_of(self._database, self._index_key, self.last_key))
            for path in all_files(self._database):
                if path.name != finished.name and path.suffix not in (BUILDING, NEW):
                    path.unlink(missing_ok=True)
        self.discard()
        return is_whole

    def discard(self) -> None:
        """Remove the unfinished files."""
        self._new.unlink(missing_ok=True)
        self._mark.unlink(missing_ok=True)

    @property
    def _new(self) -> Path:
        return self._mark.with_suffix(NEW)


def _create_private(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
