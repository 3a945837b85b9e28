"""Whether the files at a database's path are still those that were opened.

SQLite goes on with the files that it has open, whatever becomes of their names: it commits into a database that was
moved away, and replays the -wal of one database into another. So each write looks at the names before it begins
and before it is acknowledged. What the last holder of the write mutex saw stands in the lock file, so that a process
that starts later can tell a -wal that belongs to another database.

A database that was copied over, in place, keeps its name and inode number. It is known by its first page, which is
neither as it was seen last nor in the -wal file. A copy with the same first page is not noticed.
"""

import hashlib
import os
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import aiosqlite

from kalito_mcp.errors import StorageReplaced

_FORMAT: Final = struct.Struct("<7Q8s8s")
_64_BITS: Final = (1 << 64) - 1
_UNKNOWN: Final = bytes(8)
_HEAD_BYTES: Final = 512  # the smallest page SQLite has
_WAL_HEADER_BYTES: Final = 32
_FRAME_HEADER_BYTES: Final = 24
WAL_LIMIT_BYTES: Final = 67_108_864
"""SQLite itself cuts a -wal that has grown longer."""

_FIRST_PAGE: Final = (1).to_bytes(4)
_DESCRIPTORS: Final = Path("/dev/fd")
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_RESTART: Final = "nothing of this call was stored in it; restart the server (end the host)"
_CUT: Final = f"{{}} was cut short or written over by another program while this server was running; {_RESTART}"


class _Seen(NamedTuple):
    """The files at one moment: inode numbers (0: no such file) and sizes.

    The first four say which files they are. `modified` and `head`, how it begins, are the database's.
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
    """The database at `path` with its -wal and -shm, as one process has opened them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._names = [f"{path}{suffix}" for suffix in ("", "-wal", "-shm")]
        self._found = self._look()
        self._opened: _Seen | None = None

    def prepare(self, lock: int) -> None:
        """Take away what another database left at this path. Call before the first connection, with the mutex held.

        A -wal of another database is set aside as `<name>.before-<time>.backup`; a server that still has it open
        refuses to write from then on.
        """
        last, now = _read(lock), self._look()
        self._found = now
        if last is None or last.device != now.device:
            return
        if now.wal and now.wal == last.wal and now.database != last.database:
            self._set_wal_aside(now)
        elif now.shm == last.shm and (now.wal != last.wal or now.wal_size < last.wal_size):
            self._remove_shm()

    def begin(self, lock: int) -> None:
        """Take the files as opened. Call with the mutex held, once the writer has used them."""
        now = self._look()
        self._opened = now._replace(device=self._found.device, database=self._found.database)
        self._refuse_others(self._opened, now)
        self._keep(lock, _read(lock), now)

    def refuse_foreign_wal(self) -> None:
        """Refuse a database whose -wal belongs to what was at this path before. Call before the first connection.

        Raises:
            StorageReplaced: the -wal would be replayed into a database that it does not belong to.
        """
        try:
            lock = os.open(f"{self._path}.lock", os.O_RDONLY)
        except OSError:
            return
        try:
            last, now = _read(lock), self._look()
        finally:
            os.close(lock)
        if last is None or not now.wal_size or (now.device, now.wal) != (last.device, last.wal):
            return
        is_comparable = last.boot == _boot() != _UNKNOWN
        if now.database != last.database or (is_comparable and not self._is_continued(last, now)):
            name = self._path.name
            raise StorageReplaced(
                f"{self._path} was replaced, and {name}-wal belongs to what was there before; end the servers that "
                f"`kalito-mcp doctor` lists, then move {name}-wal and {name}-shm aside; if you replaced nothing, "
                f"delete {name}.lock instead"
            )

    def check_names(self) -> None:
        """Refuse when a file is not the one that was opened. Costs three looks at the folder.

        Raises:
            StorageReplaced: it was moved, deleted or replaced.
        """
        if self._opened is not None:
            self._refuse_others(self._opened, self._look())

    def check(self, lock: int) -> None:
        """Refuse when a file is not the one that was opened, or its content is not. Call with the mutex held.

        Raises:
            StorageReplaced: it was moved, deleted, replaced or cut short.
        """
        last, now, opened = _read(lock), self._look(), self._opened
        if opened is None:
            return
        try:
            self._refuse_others(opened, now)
            self._refuse_cut(last, now)
        except StorageReplaced:
            self.protect(lock)
            raise

    def protect(self, lock: int) -> None:
        """Set our -wal aside if another database is in our place, so that no program replays it into that one. Call
        with the mutex held."""
        last, now, opened = _read(lock), self._look(), self._opened
        if opened is None or not now.database or now.wal != opened.wal:
            return
        is_other = now[:2] != opened[:2]
        if is_other or (last is not None and last.head not in (_UNKNOWN, _digest(self._head(now)))):
            self._set_wal_aside(now)

    def note(self, lock: int) -> None:
        """Check again, and keep what is seen for who holds the mutex next.

        Raises:
            StorageReplaced: a file was moved, deleted, replaced or cut short since `check`.
        """
        last, now = _read(lock), self._look()
        if self._opened is not None:
            self._refuse_others(self._opened, now)
            if last is not None and last[:2] == now[:2]:
                if not self._is_continued(last, now):
                    raise StorageReplaced(_CUT.format(self._path))
                if self._was_wal_cut(last, now):
                    raise StorageReplaced(_CUT.format(self._path.name + "-wal"))
        self._keep(lock, last, now)

    def _keep(self, lock: int, last: _Seen | None, now: _Seen) -> None:
        is_same = last is not None and (last.modified, last.size) == (now.modified, now.size)
        head = last.head if last is not None and is_same else _digest(self._head(now))
        wal_size = 0 if self._has_hole(now.wal_size) else now.wal_size
        noted = now._replace(head=head, wal_size=wal_size, boot=_boot())
        if noted != last:
            with suppress(OSError):  # a full disk: what was noted before still serves
                os.lseek(lock, 0, os.SEEK_SET)
                os.write(lock, _FORMAT.pack(*noted))

    def forget(self, lock: int) -> None:
        """Note nothing while the files shrink: a crash then leaves no note that they contradict."""
        os.ftruncate(lock, 0)

    @contextmanager
    def closing(self, lock: int) -> Iterator[None]:
        """Note nothing if closing removes the -wal: another program's may get its inode number."""
        had_wal = self._look().wal
        yield
        if had_wal and not self._look().wal:
            self.forget(lock)

    def may_close(self, lock: int) -> bool:
        """Whether the last connection may move the -wal into the database, and remove it.

        It may when a side file has only lost its name, and nobody has opened the database since.
        """
        last, now, opened = _read(lock), self._look(), self._opened
        if opened is None:
            return True
        if now[:4] != opened[:4] and (last is None or last[:4] != opened[:4]):
            return False
        is_ours = now.wal in (0, opened.wal) and now.shm in (0, opened.shm)
        if now[:2] != opened[:2] or not is_ours:
            return False
        try:
            self._refuse_cut(last, now)
        except StorageReplaced:
            return False
        return True

    def _refuse_others(self, opened: _Seen, now: _Seen) -> None:
        if now[:4] == opened[:4]:
            return
        if now[:2] != opened[:2]:
            raise StorageReplaced(
                f"{self._path} was moved, deleted or replaced while this server was running; {_RESTART}"
            )
        raise StorageReplaced(
            f"{self._path.name}-wal or {self._path.name}-shm was moved, deleted or replaced while this server was "
            f"running, and belongs to {self._path}; {_RESTART}"
        )

    def _refuse_cut(self, last: _Seen | None, now: _Seen) -> None:
        if last is None or last[:2] != now[:2]:
            return
        is_cut = now.wal == last.wal and now.wal_size < last.wal_size
        if is_cut or not self._is_continued(last, now):
            raise StorageReplaced(_CUT.format(self._path.name + "-wal" if is_cut else self._path))

    def _is_continued(self, last: _Seen, now: _Seen) -> bool:
        """Whether the database's first page is as noted, or has come from the -wal since."""
        if (now.modified, now.size) == (last.modified, last.size):
            return True
        head = self._head(now)
        if head is None or last.head == _UNKNOWN:
            return True
        if _digest(head) == last.head:
            return now.size >= last.size
        if len(head) < _HEAD_BYTES:
            return False
        content = b""
        with suppress(FileNotFoundError), open(self._names[1], "rb") as wal:  # noqa: PTH123 - as above
            content = wal.read()
        step = _FRAME_HEADER_BYTES + (int.from_bytes(content[8:12]) or _HEAD_BYTES)
        return any(
            content[frame : frame + 4] == _FIRST_PAGE and content.startswith(head, frame + _FRAME_HEADER_BYTES)
            for frame in range(_WAL_HEADER_BYTES, len(content), step)
        )

    def _was_wal_cut(self, last: _Seen, now: _Seen) -> bool:
        """Whether the -wal was cut during a transaction: SQLite writes on where it believes the end to be."""
        if now.wal != last.wal or not last.wal_size:
            return False
        if now.wal_size < last.wal_size:
            return last.wal_size <= WAL_LIMIT_BYTES
        return self._has_hole(last.wal_size)

    def _has_hole(self, wal_size: int) -> bool:
        """Whether the last whole frame of a -wal of this size is zeros, or its header. A power cut may leave a hole."""
        if wal_size <= _WAL_HEADER_BYTES:
            return False
        with open(self._names[1], "rb", buffering=0) as wal:  # noqa: PTH123 - SQLite has no locks on this one
            header = wal.read(_WAL_HEADER_BYTES)
            frame_bytes = _FRAME_HEADER_BYTES + int.from_bytes(header[8:12])
            # A full disk may leave half a frame.
            whole_frames = (wal_size - _WAL_HEADER_BYTES) // frame_bytes
            wal.seek(_WAL_HEADER_BYTES + max(0, whole_frames - 1) * frame_bytes)
            # A frame begins with the number of its page, and there is no page 0.
            return not any(header) or (whole_frames > 0 and not any(wal.read(_FRAME_HEADER_BYTES)))

    def _head(self, now: _Seen) -> bytes | None:
        """How the database begins, read through SQLite's own descriptor: closing another would drop its locks. None
        where the system does not show it."""
        with suppress(OSError):
            for name in os.listdir(_DESCRIPTORS):  # noqa: PTH208
                with suppress(OSError):
                    found = os.fstat(int(name))
                    if (found.st_dev, found.st_ino) == (now.device, now.database):
                        return os.pread(int(name), _HEAD_BYTES, 0)
            # Nothing in this process has it open, so there is no lock to drop: stores open it with the mutex held.
            with open(self._names[0], "rb") as file:  # noqa: PTH123 - as above, names are strings here
                return file.read(_HEAD_BYTES)
        return None

    def _set_wal_aside(self, now: _Seen) -> None:
        if now.wal_size:
            os.replace(self._names[1], f"{self._path}.before-{now.modified}.backup")  # noqa: PTH105
        self._remove_shm()

    def _remove_shm(self) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self._names[2])  # noqa: PTH108

    def _look(self) -> _Seen:
        database, wal, shm = map(_stat, self._names)
        return _Seen(
            device=database.st_dev & _64_BITS if database else 0,
            database=database.st_ino if database else 0,
            wal=wal.st_ino if wal else 0,
            shm=shm.st_ino if shm else 0,
            wal_size=wal.st_size if wal else 0,
            size=database.st_size if database else 0,
            modified=database.st_mtime_ns & _64_BITS if database else 0,
        )


def _stat(name: str) -> os.stat_result | None:
    try:
        return os.stat(name)  # noqa: PTH116 - at every write, and twice as fast
    except OSError:
        return None


def _read(lock: int) -> _Seen | None:
    os.lseek(lock, 0, os.SEEK_SET)
    noted = os.read(lock, _FORMAT.size)
    return _Seen(*_FORMAT.unpack(noted)) if len(noted) == _FORMAT.size else None


def _digest(content: bytes | None) -> bytes:
    return hashlib.blake2b(content, digest_size=len(_UNKNOWN)).digest() if content is not None else _UNKNOWN


@cache
def _boot() -> bytes:
    """Which start of the machine this is; zeros where the system does not say. A power cut may take a file back to
    an older state than was noted."""
    try:
        return _digest(_BOOT_ID.read_bytes())
    except OSError:
        return _UNKNOWN


async def leave_open(connection: aiosqlite.Connection) -> None:
    """End the connection's thread, and leave SQLite's part of it open until the process ends.

    The last connection to close moves its -wal into the database and removes the -wal by name, and both may belong to
    another database by now.
    """
    kept, connection._connection = connection._connection, None
    # What a daemon thread holds outlives the interpreter.
    threading.Thread(target=lambda _: threading.Event().wait(), args=(kept,), daemon=True).start()
    if ended := connection.stop():
        await ended
