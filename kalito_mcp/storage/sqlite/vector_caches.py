"""Where a process keeps what it searches vectors with: the rows that it scans, and the file of the approximate index.

Empty until somebody asks what is near.
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
# The plus keeps to the order of keys: what another process has added since lies at the end.
SELECT_VECTORS: Final = """
SELECT key, record_key, agent_key, session_key, vector FROM record_vectors
WHERE key > :after_key AND +index_key = :index_key ORDER BY key LIMIT 4096
"""
SELECT_ACTIVE: Final = "SELECT key, dimension FROM vector_indexes WHERE state = 'active'"
SELECT_COUNT_AFTER: Final = """
SELECT count(*) FROM (
    SELECT 1 FROM record_vectors WHERE key > :after_key AND +index_key = :index_key LIMIT :limit
)
"""
_LEAST_NEWS: Final = 1_000
_ADDED_AT_ONCE: Final = 512
Reading = Callable[[], AbstractAsyncContextManager[aiosqlite.Connection]]


class VectorCaches:
    """The vectors of the active index. Without a database's path it has no file."""

    def __init__(self, database: Path | None = None, *, exact_up_to: int = 0) -> None:
        self._database = database
        self._exact_up_to = exact_up_to
        self._caches: dict[int, VectorCache] = {}
        self._near: AnnFile | None = None
        self._lock = anyio.Lock()

    async def current(
        self, connection: aiosqlite.Connection, index_key: int, dimension: int, *, after_key: int = 0
    ) -> tuple["VectorCache", int]:
        """The index's vectors after one key, with at least all that this view has; and the last key of the view."""
        from kalito_mcp.storage.sqlite.vector_cache import VectorCache  # noqa: PLC0415 - numpy loads when first needed

        [[last_key]] = await connection.execute_fetchall(SELECT_LAST_VECTOR)
        async with self._lock:
            cache = self._caches.get(after_key)
            if cache is None or cache.index_key != index_key:
                newest = max((one.index_key for one in self._caches.values()), default=0)
                cache = VectorCache(index_key, dimension, after_key=after_key)
                # An older view may still have the index before: it must not drive out the one after it.
                if index_key >= newest:
                    # At most two are kept: of all rows, and of those that the newest file does not know.
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
                    await anyio.to_thread.run_sync(cache.take, rows)
                else:
                    cache.last_key = last_key
        return cache, int(last_key)

    async def near(self, connection: aiosqlite.Connection, index_key: int) -> "AnnFile | None":
        """The newest file of the index, if this view has all that it knows of; None where an exact scan will do."""
        if self._database is None:
            return None
        newest = newest_key(self._database, index_key)
        if newest is None:
            self._near = None
            return None
        from kalito_mcp.storage.sqlite.ann_file import AnnFile  # noqa: PLC0415 - numpy loads when first needed

        near = self._near
        if near is None or (near.index_key, near.last_key) != (index_key, newest):
            near = await anyio.to_thread.run_sync(AnnFile.newest, self._database, index_key)
            # What was scanned until now is not needed any more: it is hundreds of megabytes.
            self._near, self._caches = near, {} if near is not None else self._caches
        [[last_key]] = await connection.execute_fetchall(SELECT_LAST_VECTOR)
        return None if near is None or near.last_key > last_key else near

    async def build(self, reading: Reading, publishing: Callable[[], AbstractAsyncContextManager[object]]) -> bool:
        """Write the file where there are more vectors than are scanned, and many that it does not know; whether it was
        written. Each page is read in a view of its own: it takes minutes for a million."""
        if self._database is None or not is_installed():
            return False
        async with reading() as connection:
            active = list(await connection.execute_fetchall(SELECT_ACTIVE))
            if not active:
                return False
            [(index_key, dimension)] = active
            known = newest_key(self._database, index_key)
            most = self._exact_up_to if known is None else max(self._exact_up_to // 2, _LEAST_NEWS)
            [[last_key]] = await connection.execute_fetchall(SELECT_LAST_VECTOR)
            asked = {"after_key": known or 0, "index_key": index_key, "limit": most + 1}
            if last_key - (known or 0) <= most:
                return False
            [[count]] = await connection.execute_fetchall(SELECT_COUNT_AFTER, asked)
            if count <= most:
                return False
        from kalito_mcp.storage.sqlite.ann_file import NearFileBuilder  # noqa: PLC0415 - numpy loads when first needed
        from kalito_mcp.storage.sqlite.vector_cache import unpacked  # noqa: PLC0415 - numpy loads when first needed

        builder: NearFileBuilder | None = None
        try:
            builder = await anyio.to_thread.run_sync(NearFileBuilder, self._database, index_key, dimension)
            while True:
                async with reading() as connection:
                    asked = {"after_key": builder.last_key, "index_key": index_key}
                    rows = list(await connection.execute_fetchall(SELECT_VECTORS, asked))
                    keys, vectors = [row[0] for row in rows], unpacked([row[4] for row in rows], dimension)
                if not keys:
                    break
                # A thread is waited for where the build is cancelled: a second, not longer.
                for start in range(0, len(keys), _ADDED_AT_ONCE):
                    part = slice(start, start + _ADDED_AT_ONCE)
                    await anyio.to_thread.run_sync(builder.add, keys[part], vectors[part])
            await anyio.to_thread.run_sync(builder.save)
            async with publishing():
                return builder.publish()
        except (OSError, RuntimeError) as error:
            # The library raises the second, also where the disk is full.
            raise StorageError(
                f"the vectors' file beside {self._database} cannot be written ({error}); free some space, and look who "
                "may write there; what is near is found all the same, slower"
            ) from error
        finally:
            if builder is not None:
                builder.discard()
