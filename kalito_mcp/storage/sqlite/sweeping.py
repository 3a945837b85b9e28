"""The physical erasure: removes deleted text from the database's files.

`secure_delete` overwrites deleted rows. It does not reach old segments of the text index, copies of rows that SQLite
left in unused bytes, or the -wal file. So a sweep
1. merges the text index into one segment, in slices that are transactions of their own;
2. moves the -wal into the file and cuts it to zero bytes, so that every page is in the file;
3. zeroes the unused bytes of the file (`unused_bytes`).
Others write between the slices. The last two steps are one hold of the locks. They begin again if a reader of an older
state was in the way, or if many pages had to be zeroed.

Only then are the erasures marked as swept, so a sweep that is interrupted stays owed. That commit also puts the cut of
the -wal on the disk, for which SQLite itself does not wait: a power cut would bring the text back. And it makes every
writer drop the pages that it has in memory, with their unused bytes, because a connection of the sweep's own makes it.

Where the unused bytes cannot be zeroed, VACUUM rewrites the whole file instead, and others wait for that.
"""

import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final, Protocol

import aiosqlite
import anyio
import anyio.to_thread

from kalito_mcp.errors import StorageFull
from kalito_mcp.runtime.crash_points import crash_point
from kalito_mcp.storage.sqlite.backups import copies
from kalito_mcp.storage.sqlite.connections import WRITER_PRAGMAS, connect
from kalito_mcp.storage.sqlite.failures import explained
from kalito_mcp.storage.sqlite.opening import READ_WRITE
from kalito_mcp.storage.sqlite.queries import Transaction
from kalito_mcp.storage.sqlite.text_index import TextIndexStatements
from kalito_mcp.storage.sqlite.text_rebuild import DROP_NEW
from kalito_mcp.storage.sqlite.unused_bytes import UnusedBytes

VACUUM: Final = "VACUUM"
SELECT_IS_UNSWEPT: Final = "SELECT 1 FROM unswept WHERE key <= :up_to LIMIT 1"
# The row makes a change to commit even if there is nothing to delete.
INSERT_MARK: Final = "INSERT INTO unswept (text_keys) VALUES ('[]')"
DELETE_UNSWEPT: Final = "DELETE FROM unswept WHERE key <= :up_to OR key = last_insert_rowid()"
SELECT_SIZE: Final = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
CHECKPOINT: Final = "PRAGMA wal_checkpoint(TRUNCATE)"

_PAGES_A_HOLD: Final = 2_000
"""Pages that are zeroed while others wait: 8 MB of scattered writes."""

_PAUSE_S: Final = 0.01
"""Between two slices. A process that waits for the mutex asks for it every 2 milliseconds."""

_WAIT_FOR_READERS_S: Final = 5.0
_WAIT_IN_HOLD_S: Final = 0.1
_SPARE_BYTES: Final = 1 << 20


class SweepStatements:
    """The slices of a sweep that are write transactions."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection
        self._index = TextIndexStatements(Transaction(connection))

    async def is_owed(self, up_to: int) -> bool:
        """Whether an erasure up to this number is unswept."""
        return bool(await self._connection.execute_fetchall(SELECT_IS_UNSWEPT, {"up_to": up_to}))

    async def begin_merging(self) -> bool:
        """Discard a rebuild of the text index, which may have words of erased records, and merge the first slice of the
        index in use. Whether more is left."""
        for statement in DROP_NEW:
            await self._connection.execute_fetchall(statement)
        return await self._index.begin_merging()

    async def go_on_merging(self) -> bool:
        """Merge the next slice of the text index. Whether more is left."""
        return await self._index.go_on_merging()


class _Transaction(Protocol):
    @property
    def sweep(self) -> SweepStatements: ...


def remove_old_vector_files(database: Path) -> None:
    """Remove the files `<database>.vectors-<index>-<row>` in which earlier versions kept copies of the vectors."""
    escaped = "".join(f"[{letter}]" if letter in "*?[" else letter for letter in database.name)
    for path in database.parent.glob(f"{escaped}.vectors-[0-9]*-[0-9]*"):
        path.unlink(missing_ok=True)


class Sweep:
    """One sweep of the database at `path`.

    `write` opens a write transaction. `locked` holds the same locks without one, for files that become shorter. The
    store's own writer stays open meanwhile: closing the last connection would checkpoint.
    """

    def __init__(
        self,
        path: Path,
        *,
        write: Callable[[], AbstractAsyncContextManager[_Transaction]],
        locked: Callable[[], AbstractAsyncContextManager[object]],
    ) -> None:
        self._path = path
        self._write = write
        self._locked = locked

    async def run(self, up_to: int) -> dict[str, str]:
        """Sweep. Returns the files that may still contain erased text. Once begun it is not cancelled.

        Afterwards the erasures numbered up to `up_to` are swept. If they are already, nothing is done. 0 always sweeps
        the files, and leaves every erasure unswept.
        """
        with anyio.CancelScope(shield=True):
            try:
                with explained(self._path):
                    is_clean = await self._run(up_to)
            except StorageFull as error:
                raise StorageFull(
                    f"no room to sweep {self._path}; free some space and purge again to finish. The records stay "
                    "erased, but their text may still be in the file"
                ) from error
        return {**({} if is_clean else self._unfinished()), **self._backups()}

    async def _run(self, up_to: int) -> bool:
        async with self._write() as transaction:
            if up_to and not await transaction.sweep.is_owed(up_to):
                return True
            remove_old_vector_files(self._path)
            is_more = await transaction.sweep.begin_merging()
        crash_point("sweep.merging")
        while is_more:
            await anyio.sleep(_PAUSE_S)
            async with self._write() as transaction:
                is_more = await transaction.sweep.go_on_merging()
        crash_point("sweep.merged")
        connection = await connect(self._path, READ_WRITE, timeout_s=_WAIT_IN_HOLD_S, pragmas=WRITER_PRAGMAS)
        try:
            return await self._clean(connection, up_to)
        finally:
            await connection.close()

    async def _clean(self, connection: aiosqlite.Connection, up_to: int) -> bool:
        """Remove what the rows of the database do not have from its files. False if a reader of an older state is in
        the way."""
        unused = UnusedBytes.of(self._path)
        if unused is None:
            await self._rewrite(connection)
        else:
            await anyio.to_thread.run_sync(unused.read_ahead)
        gives_up_at = time.monotonic() + _WAIT_FOR_READERS_S
        while True:
            async with self._locked(), self._transaction_on_whole_file(connection) as is_whole:
                if is_whole and (unused is None or await anyio.to_thread.run_sync(unused.zero, _PAGES_A_HOLD)):
                    crash_point("sweep.zeroed")
                    await connection.execute_fetchall(INSERT_MARK)
                    await connection.execute_fetchall(DELETE_UNSWEPT, {"up_to": up_to})
                    await connection.execute_fetchall("COMMIT")
                    return True
            if not is_whole and time.monotonic() >= gives_up_at:
                return False
            await anyio.sleep(_PAUSE_S)

    @asynccontextmanager
    async def _transaction_on_whole_file(self, connection: aiosqlite.Connection) -> AsyncIterator[bool]:
        """Move the -wal into the file, and begin a transaction: nobody writes to the file until it ends. Yields False
        if a reader is in the way. Rolled back unless the block commits."""
        [[is_blocked, _, _]] = await connection.execute_fetchall(CHECKPOINT)
        if is_blocked:
            yield False
            return
        await connection.execute_fetchall("BEGIN IMMEDIATE")
        try:
            # Another program, which does not know our lock, may have written in between.
            yield not self._path.with_name(f"{self._path.name}-wal").stat().st_size
        finally:
            await connection.rollback()

    async def _rewrite(self, connection: aiosqlite.Connection) -> None:
        async with self._locked():
            [[size]] = await connection.execute_fetchall(SELECT_SIZE)
            self._refuse_without_room(size)
            # VACUUM first makes a copy as large as the database: too large for memory.
            await connection.execute_fetchall("PRAGMA temp_store = FILE")
            await connection.execute_fetchall(VACUUM)

    def _refuse_without_room(self, size: int) -> None:
        # One copy in the folder for temporary files, one in the -wal file.
        for folder in {self._path.absolute().parent, Path(tempfile.gettempdir())}:
            free = shutil.disk_usage(folder).free
            if free < size + _SPARE_BYTES:
                raise StorageFull(
                    f"rewriting {self._path} needs {size:,} bytes in {folder}, and only {free:,} are free"
                )

    def _unfinished(self) -> dict[str, str]:
        reason = (
            "another program is reading an older state of the database: close the programs that use it and purge again"
        )
        return {self._path.name: reason, f"{self._path.name}-wal": reason}

    def _backups(self) -> dict[str, str]:
        migrated = {
            backup.name: "a backup: delete it if it may contain the erased text"
            for backup in sorted(self._path.parent.glob(f"{self._path.name}.before-*.backup"))
        }
        rotated = {
            one.relative_to(self._path.parent).as_posix(): "a backup: delete it if it may contain the erased text; "
            "`kalito-mcp backup --keep 1` makes a new one and removes all others"
            for one in copies(self._path)
        }
        return {**migrated, **rotated}
