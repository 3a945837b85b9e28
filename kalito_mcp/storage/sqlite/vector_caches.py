"""What a process keeps in memory to search vectors: the rows to scan, and the file of the approximate index.

Empty until the first search.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import aiosqlite
import anyio
import anyio.to_thread

from kalito_mcp.errors import StorageError
from kalito_mcp.storage.sqlite.vector_files import is_installed, newest_key

if TYPE_CHECKING:
    from kalito_mcp.storage.sqlite.ann_file import AnnFile
    from kalito_mcp.storage.sqlite.vector_cache import VectorCache

SELECT_LAST_VECTOR: Final = "SELECT coalesce(max(key), 0) FROM record_vectors"
# The plus makes SQLite read in the order of keys: the newest rows are at the end.
SELECT_VECTORS: Final = """
SELECT key, record_key, agent_key, session_key, vector FROM record_vectors
WHERE key > :after_key AND +index_key = :index_key ORDER BY key LIMIT 4096
"""
SELECT_ACTIVE: Final = """
SELECT key, dimension FROM vector_indexes WHERE state = 'active' AND key NOT IN (SELECT index_key FROM vector_moves)
"""
SELECT_COUNT_AFTER: Final = """
SELECT count(*) FROM (
    SELECT 1 FROM record_vectors WHERE key > :after_key AND +index_key = :index_key LIMIT :limit
)
"""
_LEAST_NEW: Final = 1_000
_ADDED_AT_ONCE: Final = 512
Reading = Callable[[], AbstractAsyncContextManager[aiosqlite.Connection]]


class VectorCaches:
    """The vectors of the active index. Without a path to the database there is no file."""

    def __init__(self, database: Path | None = None, *, exact_up_to: int = 0) -> None:
        self._database = database
        self.exact_up_to = exact_up_to
        self._caches: dict[int, VectorCache] = {}
        self._ann_file: AnnFile | None = None
        self._lock = anyio.Lock()

    async def current(
        self, connection: aiosqlite.Connection, index_key: int, dimension: int, *, after_key: int = 0
    ) -> tuple["VectorCache", int]:
        """The index's vectors after `after_key`, with at least all that this view has, and the view's last key."""
        from kalito_mcp.storage.sqlite.vector_cache import VectorCache  # noqa: PLC0415 - numpy loads when first needed

        [[last_key]] = await connection.execute_fetchall(SELECT_LAST_VECTOR)
        async with self._lock:
            cache = self._caches.get(after_key)
            if cache is None or cache.index_key != index_key:
                newest = max((one.index_key for one in self._caches.values()), default=0)
                cache = VectorCache(index_key, dimension, after_key=after_key)
                # An older view may still use the previous index. It must not replace the cache of the newer one.
                if index_key >= newest:
                    # Keep at most two: all rows, and the rows that the newest file does not contain.
                    self._caches = {
                        after: one
                        for after, one in self._caches.items()
                        if one.index_key == index_key and 0 in (after, after_key)
                    } | {after_key: cache}
            while cache.last_key < last_key:
                rows = list(
                    await connection.execute_fetchall(
                        SELECT_VECTORS, {"after_key": cache.last_key, "index_key": index_key}
                    )
                )
                if rows:
                    await anyio.to_thread.run_sync(cache.add, rows)
                else:
                    cache.last_key = last_key
        return cache, int(last_key)

    def keep_only(self, after_key: int) -> None:
        """Drop the rows in memory, except those that were loaded after this row."""
        self._caches = {after: one for after, one in self._caches.items() if after == after_key}

    async def ann_file(self, connection: aiosqlite.Connection, index_key: int) -> "AnnFile | None":
        """The newest file of the index. None if there is none, or if it has rows that this view does not have."""
        if self._database is None:
            return None
        newest = newest_key(self._database, index_key)
        if newest is None:
            self._ann_file = None
            return None
        from kalito_mcp.storage.sqlite.ann_file import AnnFile  # noqa: PLC0415 - numpy loads when first needed

        file = self._ann_file
        if file is None or (file.index_key, file.last_key) != (index_key, newest):
            file = await anyio.to_thread.run_sync(AnnFile.newest, self._database, index_key)
            # The rows for the exact scan are not needed any more, and they are hundreds of megabytes.
            self._ann_file, self._caches = file, {} if file is not None else self._caches
        [[last_key]] = await connection.execute_fetchall(SELECT_LAST_VECTOR)
        return None if file is None or file.last_key > last_key else file

    async def build(self, reading: Reading, publishing: Callable[[], AbstractAsyncContextManager[object]]) -> bool:
        """Write the file if there are too many vectors to scan, and many that the last file lacks; whether it was
        written. Reads each page in a view of its own, because a million vectors take minutes."""
        if self._database is None or not is_installed():
            return False
        async with reading() as connection:
            active = list(await connection.execute_fetchall(SELECT_ACTIVE))
            if not active:
                return False
            [(index_key, dimension)] = active
            known = newest_key(self._database, index_key)
            most = self.exact_up_to if known is None else max(self.exact_up_to // 2, _LEAST_NEW)
            [[last_key]] = await connection.execute_fetchall(SELECT_LAST_VECTOR)
            asked = {"after_key": known or 0, "index_key": index_key, "limit": most + 1}
            if last_key - (known or 0) <= most:
                return False
            [[count]] = await connection.execute_fetchall(SELECT_COUNT_AFTER, asked)
            if count <= most:
                return False
        from kalito_mcp.storage.sqlite.ann_file import AnnFileBuilder  # noqa: PLC0415 - numpy loads when first needed
        from kalito_mcp.storage.sqlite.vector_cache import unpacked  # noqa: PLC0415 - numpy loads when first needed

        builder: AnnFileBuilder | None = None
        try:
            builder = await anyio.to_thread.run_sync(AnnFileBuilder, self._database, index_key, dimension)
            while True:
                async with reading() as connection:
                    asked = {"after_key": builder.last_key, "index_key": index_key}
                    rows = list(await connection.execute_fetchall(SELECT_VECTORS, asked))
                    keys, vectors = [row[0] for row in rows], unpacked([row[4] for row in rows], dimension)
                if not keys:
                    break
                # A cancelled build waits for this thread, so each part takes at most a second.
                for start in range(0, len(keys), _ADDED_AT_ONCE):
                    part = slice(start, start + _ADDED_AT_ONCE)
                    await anyio.to_thread.run_sync(builder.add, keys[part], vectors[part])
            await anyio.to_thread.run_sync(builder.save)
            async with publishing():
                return builder.publish()
        except (OSError, RuntimeError) as error:
            # The library raises RuntimeError, also if the disk is full.
            raise StorageError(
                f"the vectors' file next to {self._database} cannot be written ({error}); free some space, and "
                "check that its folder is writable. Searches still work, but are slower"
            ) from error
        finally:
            if builder is not None:
                builder.discard()
