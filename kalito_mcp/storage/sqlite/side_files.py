"""Notices when the files at a database's path are no longer those that were opened.

SQLite keeps using the files that it has open, even if they were moved or deleted. It commits into a database that was
moved away, and it replays the -wal of one database into another. So each write looks at the files twice: before it
begins, and before it is acknowledged.

The lock file has a note: the files as the last holder of the write mutex saw them. A process that starts later
compares them with the note, and so recognises a -wal that belongs to another database.

If another database is copied over the file in place, the inode number stays the same. But then the first page is
neither the noted one nor in the -wal. A copy with the same first page is not noticed.
"""

import hashlib
import os
import struct
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from kalito_mcp.errors import StorageReadOnly, StorageReplaced

if TYPE_CHECKING:
    import aiosqlite

_NOTE: Final = struct.Struct("<7Q8s8s")
_64_BITS: Final = (1 << 64) - 1
_UNKNOWN: Final = bytes(8)
_HEAD_BYTES: Final = 512  # the smallest page SQLite has
_WAL_HEADER_BYTES: Final = 32
_WAL_MAGICS: Final = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
"""The first bytes of every -wal (sqlite.org/fileformat2.html, section 4.1)."""

_FRAME_HEADER_BYTES: Final = 24
WAL_LIMIT_BYTES: Final = 67_108_864
"""SQLite itself cuts a -wal that has grown longer."""

_FIRST_PAGE: Final = (1).to_bytes(4)
_BINARY: Final[int] = getattr(os, "O_BINARY", 0)
_DESCRIPTORS: Final = Path("/dev/fd")
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_RESTART: Final = "nothing of this call was stored; restart the server (quit its host)"
_CUT: Final = f"{{}} was cut short or written over by another program while this server ran; {_RESTART}"
_MOVED: Final = f"{{}} was moved, deleted or replaced while this server ran; {_RESTART}"


class _State(NamedTuple):
    """The files at one moment.

    `database`, `wal` and `shm` are inode numbers, 0 if the file is missing. `size`, `modified` (nanoseconds) and
    `head` (a digest of the first bytes) are the database's. `boot` identifies the boot of the machine.
    """

    device: int
    database: int
    wal: int
    shm: int
    wal_size: int
    size: int
    modified: int
    head: bytes = _UNKNOWN
    boot: bytes = _UNKNOWN


class SideFiles:
    """The database at `path` with its -wal and -shm, as one process has opened them.

    `lock` is always the descriptor of the lock file, from a caller that holds the mutex.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._names = [f"{path}{suffix}" for suffix in ("", "-wal", "-shm")]
        self._found = self._look()
        self._opened: _State | None = None

    def prepare(self, lock: int) -> None:
        """Remove the side files that another database left at this path. Call before the first connection.

        A -wal of another database becomes `<name>.before-<time>.backup`. A server that still has it open refuses to
        write from then on.
        """
        noted, now = _read_note(lock), self._look()
        self._found = now
        if noted is None or noted.device != now.device:
            return
        if now.wal and now.wal == noted.wal and now.database != noted.database:
            self._set_wal_aside(now)
        elif now.shm == noted.shm and (now.wal != noted.wal or now.wal_size < noted.wal_size):
            self._remove_shm()

    def set_opened(self, lock: int) -> None:
        """Remember the files as the opened ones. Call it after the writer has used them.

        Raises:
            StorageReplaced: the database was replaced since `prepare`.
        """
        now = self._look()
        self._opened = now._replace(device=self._found.device, database=self._found.database)
        self._refuse_replaced(self._opened, now)
        self._write_note(lock, _read_note(lock), now, is_wal_whole=not self._has_hole(now.wal_size))

    def refuse_foreign_wal(self) -> None:
        """Refuse a database whose -wal belongs to another one. Call before the first connection.

        Raises:
            StorageReplaced: SQLite would replay the -wal into a database that it does not belong to.
        """
        try:
            lock = os.open(f"{self._path}.lock", os.O_RDONLY)
        except OSError:
            return
        try:
            noted, now = _read_note(lock), self._look()
        finally:
            os.close(lock)
        if noted is None or not now.wal_size or (now.device, now.wal) != (noted.device, noted.wal):
            return
        is_comparable = noted.boot == _boot_id() != _UNKNOWN
        if now.database != noted.database or (is_comparable and not self._is_continued(noted, now)):
            name = self._path.name
            raise StorageReplaced(
                f"{self._path}-wal belongs to another database. End the servers that `kalito-mcp doctor` lists. "
                f"If you replaced {name}, move {name}-wal and {name}-shm aside; else delete {name}.lock"
            )

    def check_names(self) -> None:
        """Check that the paths still name the files that were opened. Fast: it opens no file.

        Raises:
            StorageReplaced: a file was moved, deleted or replaced.
        """
        opened = self._opened
        if opened is None:
            return
        with suppress(OSError):
            # At every read: a third of the time of `_look`.
            if [os.stat(name).st_ino for name in self._names] == [opened.database, opened.wal, opened.shm]:  # noqa: PTH116
                return
        self._refuse_replaced(opened, self._look())

    def check(self, lock: int) -> None:
        """Check the names, and that the content is as the last write left it. Call it before a write.

        Raises:
            StorageReplaced: a file was moved, deleted, replaced or cut short.
        """
        noted, now, opened = _read_note(lock), self._look(), self._opened
        if opened is None:
            return
        try:
            self._refuse_replaced(opened, now)
            self._refuse_cut(noted, now)
        except StorageReplaced:
            self.protect(lock)
            raise

    def protect(self, lock: int) -> None:
        """Set our -wal aside if another database is at this path, so that no program replays it into that one."""
        noted, now, opened = _read_note(lock), self._look(), self._opened
        if opened is None or not now.database or now.wal != opened.wal:
            return
        is_other = now[:2] != opened[:2]
        if is_other or (noted is not None and noted.head not in (_UNKNOWN, _digest(self._head(now)))):
            self._set_wal_aside(now)

    def note(self, lock: int) -> None:
        """Check again, and write the note for the next holder of the mutex. Call it after a write.

        Raises:
            StorageReplaced: a file was moved, deleted, replaced or cut short since `check`.
        """
        noted, now = _read_note(lock), self._look()
        is_wal_known = False
        if self._opened is not None:
            self._refuse_replaced(self._opened, now)
            if noted is not None and noted[:2] == now[:2]:
                if not self._is_continued(noted, now):
                    raise StorageReplaced(_CUT.format(self._path))
                if self._was_wal_cut(noted, now):
                    raise StorageReplaced(_CUT.format(self._path.name + "-wal"))
                # A file that was whole before this write is whole after it.
                is_wal_known = noted.wal == now.wal and 0 < noted.wal_size <= now.wal_size
        self._write_note(lock, noted, now, is_wal_whole=is_wal_known or not self._has_hole(now.wal_size))

    def _write_note(self, lock: int, noted: _State | None, now: _State, *, is_wal_whole: bool) -> None:
        """Write the note. The head is read only if the database changed since the last one."""
        is_same = noted is not None and (noted.modified, noted.size) == (now.modified, now.size)
        head = noted.head if noted is not None and is_same else _digest(self._head(now))
        note = now._replace(head=head, wal_size=now.wal_size if is_wal_whole else 0, boot=_boot_id())
        if note != noted:
            with suppress(OSError):  # a full disk: the note before still serves
                os.lseek(lock, 0, os.SEEK_SET)
                os.write(lock, _NOTE.pack(*note))

    def forget(self, lock: int) -> None:
        """Empty the note. Call it before the files shrink: after a crash they would contradict it."""
        os.ftruncate(lock, 0)

    @contextmanager
    def closing(self, lock: int) -> Iterator[None]:
        """Empty the note if closing removes the -wal: another program's file may get its inode number."""
        had_wal = self._look().wal
        yield
        if had_wal and not self._look().wal:
            self.forget(lock)

    def may_close(self, lock: int) -> bool:
        """Whether the last connection may move the -wal into the database and remove it.

        It may even if a side file was deleted, as long as no process has opened the database since.
        """
        noted, now, opened = _read_note(lock), self._look(), self._opened
        if opened is None:
            return True
        if now[:4] != opened[:4] and (noted is None or noted[:4] != opened[:4]):
            return False
        is_ours = now.wal in (0, opened.wal) and now.shm in (0, opened.shm)
        if now[:2] != opened[:2] or not is_ours:
            return False
        try:
            self._refuse_cut(noted, now)
        except StorageReplaced:
            return False
        return True

    def _refuse_replaced(self, opened: _State, now: _State) -> None:
        if now[:4] == opened[:4]:
            return
        if now[:2] != opened[:2]:
            raise StorageReplaced(_MOVED.format(self._path))
        name = self._path.name
        raise StorageReplaced(_MOVED.format(f"{name}-wal or {name}-shm, part of {self._path},"))

    def _refuse_cut(self, noted: _State | None, now: _State) -> None:
        """Raise StorageReplaced if a file is shorter or another than noted."""
        if noted is None or noted[:2] != now[:2]:
            return
        is_cut = now.wal == noted.wal and now.wal_size < noted.wal_size
        if is_cut or not self._is_continued(noted, now):
            raise StorageReplaced(_CUT.format(self._path.name + "-wal" if is_cut else self._path))

    def _is_continued(self, noted: _State, now: _State) -> bool:
        """Whether the database's first page is the noted one, or came from the -wal since."""
        if (now.modified, now.size) == (noted.modified, noted.size):
            return True
        head = self._head(now)
        if head is None or noted.head == _UNKNOWN:
            return True
        if _digest(head) == noted.head:
            return now.size >= noted.size
        if len(head) < _HEAD_BYTES:
            return False
        with suppress(FileNotFoundError), open(self._names[1], "rb") as wal:  # noqa: PTH123 - as above
            header = wal.read(_WAL_HEADER_BYTES)
            step = _FRAME_HEADER_BYTES + (int.from_bytes(header[8:12]) or _HEAD_BYTES)
            # One frame at a time: a long transaction leaves a -wal that is as large as what it wrote.
            while frame := wal.read(step):
                if frame.startswith(_FIRST_PAGE) and frame.startswith(head, _FRAME_HEADER_BYTES):
                    return True
        return False

    def _was_wal_cut(self, noted: _State, now: _State) -> bool:
        """Whether the -wal was cut during a transaction. SQLite then goes on writing at the old end of the file."""
        if now.wal != noted.wal or not noted.wal_size:
            return False
        if now.wal_size < noted.wal_size:
            return noted.wal_size <= WAL_LIMIT_BYTES
        return self._has_hole(noted.wal_size)

    def _has_hole(self, wal_size: int) -> bool:
        """Whether a -wal of this size has no header, or zeros as its last whole frame: a power cut may leave that."""
        if wal_size <= _WAL_HEADER_BYTES:
            return False
        wal = os.open(self._names[1], os.O_RDONLY | _BINARY)  # SQLite has no locks on this one
        try:
            header = os.read(wal, _WAL_HEADER_BYTES)
            frame_bytes = _FRAME_HEADER_BYTES + int.from_bytes(header[8:12])
            # A full disk may leave half a frame.
            whole_frames = (wal_size - _WAL_HEADER_BYTES) // frame_bytes
            os.lseek(wal, _WAL_HEADER_BYTES + max(0, whole_frames - 1) * frame_bytes, os.SEEK_SET)
            # A frame begins with the number of its page, and there is no page 0.
            return header[:4] not in _WAL_MAGICS or (whole_frames > 0 and not any(os.read(wal, _FRAME_HEADER_BYTES)))
        finally:
            os.close(wal)

    def _head(self, now: _State) -> bytes | None:
        """The database's first bytes, or None. Reads through SQLite's own descriptor: closing another one would drop
        its locks."""
        if sys.platform == "win32":  # it has no list of descriptors
            return None
        with suppress(OSError):
            for name in os.listdir(_DESCRIPTORS):  # noqa: PTH208
                with suppress(OSError):
                    found = os.fstat(int(name))
                    if (found.st_dev, found.st_ino) == (now.device, now.database):
                        return os.pread(int(name), _HEAD_BYTES, 0)
            # This process does not have it open, so there is no lock to drop: stores open it while they hold the mutex.
            with open(self._names[0], "rb") as file:  # noqa: PTH123 - as above, names are strings here
                return file.read(_HEAD_BYTES)
        return None

    def _set_wal_aside(self, now: _State) -> None:
        if now.wal_size:
            os.replace(self._names[1], f"{self._path}.before-{now.modified}.backup")  # noqa: PTH105
        self._remove_shm()

    def _remove_shm(self) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self._names[2])  # noqa: PTH108

    def _look(self) -> _State:
        """The files now. `head` and `boot` stay unknown."""
        database, wal, shm = map(_stat, self._names)
        return _State(
            device=database.st_dev & _64_BITS if database else 0,
            database=database.st_ino & _64_BITS if database else 0,  # Windows has numbers of 128 bits
            wal=wal.st_ino & _64_BITS if wal else 0,
            shm=shm.st_ino & _64_BITS if shm else 0,
            wal_size=wal.st_size if wal else 0,
            size=database.st_size if database else 0,
            modified=database.st_mtime_ns & _64_BITS if database else 0,
        )


def _stat(name: str) -> os.stat_result | None:
    try:
        return os.stat(name)  # noqa: PTH116 - at every write, and twice as fast
    except OSError:
        return None


def _read_note(lock: int) -> _State | None:
    os.lseek(lock, 0, os.SEEK_SET)
    noted = os.read(lock, _NOTE.size)
    return _State(*_NOTE.unpack(noted)) if len(noted) == _NOTE.size else None


def _digest(content: bytes | None) -> bytes:
    return hashlib.blake2b(content, digest_size=len(_UNKNOWN)).digest() if content is not None else _UNKNOWN


@cache
def _boot_id() -> bytes:
    """A digest that identifies this boot of the machine; zeros if unknown. Notes of an earlier boot prove less: a power
    cut may take a file back to an older state."""
    try:
        return _digest(_BOOT_ID.read_bytes())
    except OSError:
        return _UNKNOWN


def create_private(path: Path) -> None:
    """Create the folder (0700) and an empty file (0600) if missing. SQLite gives its side files the same mode."""
    if path.exists():
        return
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return
    except OSError as error:
        raise StorageReadOnly(
            f"cannot create {path}: {error.strerror}; point KALITO_DATABASE at a folder you can write to"
        ) from error


async def leave_open(connection: "aiosqlite.Connection") -> None:
    """End the connection's thread, but leave SQLite's own connection open until the process ends.

    When the last connection closes, SQLite moves the -wal into the database and removes it by name. Both may belong to
    another database by now.
    """
    kept, connection._connection = connection._connection, None
    # An object that a daemon thread refers to is never freed.
    threading.Thread(target=lambda _: threading.Event().wait(), args=(kept,), daemon=True).start()
    if ended := connection.stop():
        await ended
