"""The physical erasure: removes deleted text from the database's files.

`secure_delete` overwrites deleted rows. It does not reach old segments of the text index, pages that were freed before
it was on, or the -wal file. So a sweep merges the index into one segment, rewrites the file, moves the -wal into it
and cuts the -wal to zero bytes.

Only then are the erasures marked as swept, so a sweep that is interrupted stays owed. That commit also puts the cut of
the -wal on the disk. SQLite itself does not wait for that, and a power cut would bring the text back.
"""

import shutil
import tempfile
from pathlib import Path
from typing import Final

import aiosqlite
import anyio

from kalito_mcp.errors import StorageFull
from kalito_mcp.ports.records import Swept
from kalito_mcp.storage.sqlite.text_rebuild import DROP_NEW
from kalito_mcp.storage.sqlite.vector_files import all_files

OPTIMIZE_TEXT_INDEX: Final = "INSERT INTO records_text (records_text) VALUES ('optimize')"
VACUUM: Final = "VACUUM"
SELECT_IS_UNSWEPT: Final = "SELECT 1 FROM unswept WHERE key <= :up_to LIMIT 1"
DELETE_UNSWEPT: Final = "DELETE FROM unswept WHERE key <= :up_to"
SELECT_SIZE: Final = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
CHECKPOINT: Final = "PRAGMA wal_checkpoint(TRUNCATE)"
_WAIT_FOR_READERS_MS: Final = 5_000
_SPARE_BYTES: Final = 1 << 20


async def sweep(connection: aiosqlite.Connection, path: Path, up_to: int, *, busy_timeout_s: float) -> Swept:
    """Sweep the database at `path` through its writer. Hold the write lock and the mutex. Once begun it is not
    cancelled.

    Afterwards the erasures numbered up to `up_to` are swept. If they are already, nothing is done. 0 always sweeps the
    files, and leaves every erasure unswept.
    """
    with anyio.CancelScope(shield=True):
        if up_to and not await connection.execute_fetchall(SELECT_IS_UNSWEPT, {"up_to": up_to}):
            return Swept(remaining=_backups(path))
        for derived in all_files(path):
            derived.unlink(missing_ok=True)
        [[size]] = await connection.execute_fetchall(SELECT_SIZE)
        _refuse_without_room(path, size)
        try:
            await connection.execute_fetchall("BEGIN IMMEDIATE")
            for statement in DROP_NEW:
                await connection.execute_fetchall(statement)
            await connection.execute_fetchall(OPTIMIZE_TEXT_INDEX)
            await connection.execute_fetchall("COMMIT")
        except BaseException:
            await connection.rollback()
            raise
        # VACUUM first makes a copy as large as the database: too large for memory.
        await connection.execute_fetchall("PRAGMA temp_store = FILE")
        await connection.execute_fetchall(f"PRAGMA busy_timeout = {_WAIT_FOR_READERS_MS}")
        try:
            await connection.execute_fetchall(VACUUM)
            [[is_blocked, _, _]] = await connection.execute_fetchall(CHECKPOINT)
        finally:
            await connection.execute_fetchall("PRAGMA temp_store = MEMORY")
            await connection.execute_fetchall(f"PRAGMA busy_timeout = {round(busy_timeout_s * 1000)}")
        if not is_blocked:
            await connection.execute_fetchall(DELETE_UNSWEPT, {"up_to": up_to})
    return Swept(remaining={**(_unfinished(path) if is_blocked else {}), **_backups(path)})


def _refuse_without_room(path: Path, size: int) -> None:
    # One copy in the folder for temporary files, one in the -wal file.
    for folder in {path.absolute().parent, Path(tempfile.gettempdir())}:
        free = shutil.disk_usage(folder).free
        if free < size + _SPARE_BYTES:
            raise StorageFull(
                f"rewriting {path} needs {size:,} bytes in {folder}, and only {free:,} are free; free some space and "
                "purge again to finish. The records stay erased, but their text may still be in the file"
            )


def _unfinished(path: Path) -> dict[str, str]:
    reason = "another program is reading an older state of the database: close the programs that use it and purge again"
    return {path.name: reason, f"{path.name}-wal": reason}


def _backups(path: Path) -> dict[str, str]:
    return {
        backup.name: "a backup: delete it if it may contain the erased text"
        for backup in sorted(path.parent.glob(f"{path.name}.before-*.backup"))
    }
