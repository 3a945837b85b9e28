"""Turns `sqlite3.Error` into the `StorageError` tree, with messages for people."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kalito_mcp.errors import (
    InvalidInput,
    StorageBusy,
    StorageDamaged,
    StorageError,
    StorageFull,
    StorageReadOnly,
)
from kalito_mcp.storage.intact_rows import UnreadableRow

_PRIMARY_CODE_MASK: Final = 0xFF
_READ_ONLY_CODES: Final = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM})
_FULL_CODES: Final = frozenset({sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE})
_DAMAGED_CODES: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT})
_UNDECODABLE: Final = "Could not decode to UTF-8"


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Raise errors of SQLite as a StorageError that says what to do. An argument that is not Unicode text becomes
    InvalidInput."""
    try:
        yield
    except (sqlite3.Error, UnreadableRow) as error:
        # The cursor of a statement that failed halfway is in there, and with it the snapshot that it reads: the
        # connection would go on seeing the past for as long as anybody holds the error.
        _clear_frames(error)
        if _is_undecodable(error):
            # Python's own words quote the text, and remembered text is not for a log.
            raise explain(error, path) from None
        raise explain(error, path) from error
    except UnicodeDecodeError as error:
        # SQLite's message quotes a name in the schema that was damaged.
        _clear_frames(error)
        raise explain(UnreadableRow("a name is not UTF-8"), path) from None
    except UnicodeEncodeError:
        raise InvalidInput("an argument has an unpaired surrogate; send valid Unicode") from None


def _clear_frames(error: Exception) -> None:
    import traceback  # noqa: PLC0415 - only where something failed

    traceback.clear_frames(error.__traceback__)


def explain(error: sqlite3.Error | UnreadableRow, path: Path) -> StorageError:
    """Return the StorageError for an error of SQLite."""
    code = getattr(error, "sqlite_errorcode", 0) or 0
    primary = code & _PRIMARY_CODE_MASK
    if _is_full(error):
        # IOERR_WRITE may also mean a limit on the size of files, so do not report the free room then.
        room = _room(path) if code != sqlite3.SQLITE_IOERR_WRITE else "or the limit on the size of files is reached"
        return StorageFull(
            f"no room to write {path} ({room}); free some space or raise the limit (ulimit -f), and try again; "
            "nothing of this call was written"
        )
    if is_read_only(error):
        return StorageReadOnly(
            f"{path} cannot be opened for writing; check that the file, its folder and its -wal file belong to "
            "you and are writable, or point KALITO_DATABASE at another file"
        )
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StorageBusy(f"{path} is locked by another program; close it and try again")
    if primary in _DAMAGED_CODES or isinstance(error, UnreadableRow) or _is_undecodable(error):
        reason = "a text is not UTF-8" if _is_undecodable(error) else error
        return StorageDamaged(
            f"{path} is not a readable database ({reason}); run `kalito-mcp doctor --deep`, "
            "end the servers that it lists, move the file aside together with its -wal and -shm, and restore a backup; "
            "nothing was overwritten"
        )
    return StorageError(f"{path}: {error} ({getattr(error, 'sqlite_errorname', 'no code')}); run `kalito-mcp doctor`")


def is_read_only(error: Exception) -> bool:
    """Whether the error means that the file or its folder cannot be written."""
    return ((getattr(error, "sqlite_errorcode", 0) or 0) & _PRIMARY_CODE_MASK) in _READ_ONLY_CODES


def is_not_writable(error: Exception) -> bool:
    """Whether the error means that nothing can be written now. The database may still be readable."""
    return is_read_only(error) or _is_full(error)


def _is_full(error: Exception) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) or 0
    return (code & _PRIMARY_CODE_MASK) == sqlite3.SQLITE_FULL or code in _FULL_CODES


def _is_undecodable(error: Exception) -> bool:
    return str(error).startswith(_UNDECODABLE)


def _room(path: Path) -> str:
    import shutil  # noqa: PLC0415 - only here, and slow

    try:
        return f"{shutil.disk_usage(path.parent).free} bytes free there"
    except OSError:
        return "free room unknown"
