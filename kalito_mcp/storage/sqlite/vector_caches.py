"""A process's cache of vectors for searches. Empty until the first search."""

import sqlite3
from threading import Lock
from typing import TYPE_CHECKING, Final

from kalito_mcp.storage.sqlite.vector_indexes import ActiveIndex

if TYPE_CHECKING:
    from kalito_mcp.storage.sqlite.vector_cache import VectorCache

SELECT_LAST_ROW: Final = "SELECT coalesce(max(key), 0) FROM record_vectors"
SELECT_LAST_REMOVAL: Final = "SELECT coalesce(max(key), 0) FROM vector_removals"
# The plus makes SQLite read in the order of keys: the newest rows are at the end.
SELECT_VECTORS: Final = """
SELECT key, record_key, agent_key, session_key, vector FROM record_vectors
WHERE key > :after_key AND +index_key = :index_key ORDER BY key LIMIT 1024
"""
SELECT_REMOVALS: Final = "SELECT row_key FROM vector_removals WHERE key > :last_removal"


class VectorCaches:
    """The vectors of the active index that are in the database. Its methods block: they are called on the threads of
    connections."""

    def __init__(self) -> None:
        self._cache: VectorCache | None = None
        self._lock = Lock()

    def current(self, connection: sqlite3.Connection, active: ActiveIndex) -> tuple["VectorCache", int]:
        """The index's vectors, with at least all that this view has, and the view's last row."""
        [last_key] = connection.execute(SELECT_LAST_ROW).fetchone()
        [last_removal] = connection.execute(SELECT_LAST_REMOVAL).fetchone()
        with self._lock:
            cache = self._of(active, last_removal)
            if cache.last_key < last_key:
                # This view may be older than the last one, and have rows that have been removed since.
                cache.last_removal = min(cache.last_removal, last_removal)
            while cache.last_key < last_key:
                parameters = {"after_key": cache.last_key, "index_key": active.key}
                rows = connection.execute(SELECT_VECTORS, parameters).fetchall()
                if rows:
                    cache.add(rows)
                else:
                    cache.last_key = last_key
            _remove(cache, connection, last_removal)
        return cache, int(last_key)

    def drop_removed(self, connection: sqlite3.Connection) -> None:
        """Remove from memory what was removed from the database."""
        [last_removal] = connection.execute(SELECT_LAST_REMOVAL).fetchone()
        with self._lock:
            if self._cache is not None:
                _remove(self._cache, connection, last_removal)

    def _of(self, active: ActiveIndex, last_removal: int) -> "VectorCache":
        from kalito_mcp.storage.sqlite.vector_cache import VectorCache  # noqa: PLC0415 - numpy loads when first needed

        if self._cache is not None and self._cache.index == active:
            return self._cache
        made = VectorCache(active, last_removal=last_removal)
        # A view may be older than the previous search. Then it must not replace what newer ones use.
        if self._cache is None or _version(active) >= _version(self._cache.index):
            self._cache = made
        return made


def _remove(cache: "VectorCache", connection: sqlite3.Connection, last_removal: int) -> None:
    if cache.last_removal < last_removal:
        parameters = {"last_removal": cache.last_removal}
        cache.remove([key for [key] in connection.execute(SELECT_REMOVALS, parameters)])
        cache.last_removal = last_removal


def _version(index: ActiveIndex) -> tuple[int, bool]:
    return index.key, index.centre is not None
