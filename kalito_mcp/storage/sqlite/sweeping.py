"""The physical erasure: what was deleted from the database leaves its files.

`secure_delete` overwrites deleted rows, but not what lies in old segments of the text index, in freed pages that were
freed before, or in the -wal file. So the index is merged into one segment, the file is written anew, and the -wal is
moved into it and cut to nothing.

Only then the erasures are not unswept any more: whatever interrupts a sweep, it is owed. That commit is the first in
the empty -wal. With it the cut is on the disk, which SQLite does not wait for: a power cut would bring the words back.
"""

import shutil
import tempfile
from pathlib import Path
from typing import Final

import aiosqlite
import anyio

from kalito_mcp.errors import StorageFull
from kalito_mcp.ports.records import Swept
from kalito_mcp.storage.sqlite.vector_files import all_files

OPTIMIZE_TEXT_INDEX: Final = "INSERT INTO records_text (records_text) VALUES ('optimize')"
VACUUM: Final = "VACUUM"
SELECT_IS_UNSWEPT: Final = "SELECT 1 FROM unswept WHERE key <= :last LIMIT 1"
DELETE_UNSWEPT: Final = "DELETE FROM unswept WHERE key <= :last"
SELECT_SIZE: Final = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
CHECKPOINT: Final = "PRAGMA wal_checkpoint(TRUNCATE)"
_WAIT_FOR_READERS_MS: Final = 5_000
_SPARE_BYTES: Final = 1 << 20


async def sweep(connection: aiosqlite.Connection, path: Path, last: int, *, busy_timeout_s: float) -> Swept:
    """Sweep the database at `path` through its writer, as `Store.sweep` says. Hold the write lock and the mutex; once
    begun it is not cancelled."""
    with anyio.CancelScope(shield=True):
        if last and not await connection.execute_fetchall(SELECT_IS_UNSWEPT, {"last": last}):
            return Swept(remaining=_backups(path))
        for derived in all_files(path):
            derived.unlink(missing_ok=True)
        [[size]] = await connection.execute_fetchall(SELECT_SIZE)
        _refuse_without_room(path, size)
        try:
            await connection.execute_fetchall("BEGIN IMMEDIATE")
            await connection.execute_fetchall(OPTIMIZE_TEXT_INDEX)
            await connection.execute_fetchall("COMMIT")
        except BaseException:
            await connection.rollback()
            raise
        # The copy that VACUUM makes first is as large as the database, and belongs into no one's memory.
        await connection.execute_fetchall("PRAGMA temp_store = FILE")
        await connection.execute_fetchall(f"PRAGMA busy_timeout = {_WAIT_FOR_READERS_MS}")
        try:
            await connection.execute_fetchall(VACUUM)
            [[is_blocked, _, _]] = await connection.execute_fetchall(CHECKPOINT)
        finally:
            await connection.execute_fetchall("PRAGMA temp_store = MEMORY")
            await connection.execute_fetchall(f"PRAGMA busy_timeout = {round(busy_timeout_s * 1000)}")
        if not is_blocked:
            await connection.execute_fetchall(DELETE_UNSWEPT, {"last": last})
    return Swept(remaining={**(_unfinished(path) if is_blocked else {}), **_backups(path)})


def _refuse_without_room(path: Path, size: int) -> None:
    # One copy in the folder for temporary files, one in the -wal file.
    for folder in {path.absolute().parent, Path(tempfile.gettempdir())}:
        free = shutil.disk_usage(folder).free
        if free < size + _SPARE_BYTES:
            raise StorageFull(
                f"writing {path} anew takes {size:,} bytes in {folder}, and {free:,} are free there: free some space "
                "and purge again, which then finishes it. What was erased stays erased, but its words may still be "
                "in the file"
            )


def _unfinished(path: Path) -> dict[str, str]:
    reason = "somebody is reading an older state of the database: close the other programs that use it and purge again"
    return {path.name: reason, f"{path.name}-wal": reason}


def _backups(path: Path) -> dict[str, str]:
    return {
        backup.name: "written by an update before the erasure: delete it if it may hold the words"
        for backup in sorted(path.parent.glob(f"{path.name}.before-*.backup"))
    }
