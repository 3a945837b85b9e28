"""Files that are replaced whole, and locked. Standard library alone.

After a power cut there is the old file or the new one: its content is on disk before it gets its name, and the folder
before the caller goes on. What can be made again, or matters only while processes live, need not be durable: syncing
takes milliseconds. Only its owner can read a new file.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

LOCKED_BYTE: Final = 0x4000_0000
"""The one byte that is locked on Windows, which lets nobody else read what is locked. It is far behind what others read
in a locked file. There need be no such byte in it."""

if sys.platform == "win32":
    import msvcrt

    def try_lock(descriptor: int) -> bool:
        """Lock the file until it is closed. False if somebody else has locked it."""
        os.lseek(descriptor, LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def try_lock(descriptor: int) -> bool:
        """Lock the file until it is closed. False if somebody else has locked it."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


@contextmanager
def replacing(
    path: Path, finish: Callable[[Path], None] | None = None, *, is_durable: bool = True
) -> Iterator[BinaryIO]:
    """A new file for the block, which takes the place of `path` when the block ends. `finish` gets it before that. If
    anything raises, the old file is as before. Raises OSError."""
    part = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    try:
        with open(part, "xb", opener=_private) as file:
            yield file
            if is_durable:
                file.flush()
                os.fsync(file.fileno())
        if finish is not None:
            finish(part)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    if is_durable:
        sync_folder(path.parent)


def write_whole(path: Path, data: bytes, *, is_durable: bool = True) -> None:
    """Replace a file. Raises OSError."""
    with replacing(path, is_durable=is_durable) as file:
        file.write(data)


def sync_folder(folder: Path) -> None:
    """Store what was renamed in a folder or deleted from it. Windows cannot open a folder, and does so by itself."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
