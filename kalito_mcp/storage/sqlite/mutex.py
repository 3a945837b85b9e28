"""The write mutex: one writer at a time across all processes, by a lock on a side file.

Never on the database file itself: closing any descriptor of it drops SQLite's own POSIX locks. The kernel releases
the lock when its holder dies, so there is nothing to clean up after a crash.

It is held around every write and every checkpoint, because SQLite 3.7.0 to 3.51.2 can corrupt a WAL when two
connections write and checkpoint at once (sqlite.org, "WAL-reset bug"), and because SQLite's own busy handler is
unfair: among 8 writers the longest wait was 3.4 to 5.8 s with it, and 0.35 s with this lock.
"""

import os
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from kalito_mcp.errors import StorageBusy, StorageReadOnly
from kalito_mcp.files import try_lock

_POLL_S: Final = 0.002


class WriteMutex:
    """An exclusive lock on `path`, created if it is missing, and readable only by its owner."""

    def __init__(self, path: Path, *, timeout_s: float) -> None:
        self.path = path
        self._timeout_s = timeout_s

    @asynccontextmanager
    async def held(self) -> AsyncIterator[int]:
        """Hold the lock for the block. Yields the lock file's descriptor.

        Raises:
            StorageBusy: another process held it for `timeout_s` seconds.
            StorageReadOnly: the lock file cannot be created.
        """
        descriptor = await self._acquire()
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    async def _acquire(self) -> int:
        descriptor = self._open()
        if try_lock(descriptor):
            return descriptor
        wait = _Wait(descriptor, time.monotonic() + self._timeout_s)
        try:
            is_locked = await anyio.to_thread.run_sync(wait.run, abandon_on_cancel=True)
        except BaseException:
            wait.give_up()
            raise
        if not is_locked:
            raise StorageBusy(
                f"another process has been writing for more than {self._timeout_s:g} s (lock {self.path}); "
                "try again, or run `kalito-mcp doctor` to see who has the database open"
            )
        return descriptor

    def _open(self) -> int:
        try:
            return os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        except OSError as error:
            raise StorageReadOnly(
                f"cannot create the lock file {self.path}: {error.strerror}; "
                "make its folder writable, or point KALITO_DATABASE elsewhere"
            ) from error


class _Wait:
    """One wait for the lock, in a worker thread. Its caller can give it up at any moment.

    It polls: a blocking flock would be only a little fairer, and could not be given up. The descriptor is closed
    exactly once: by the thread if it runs and does not get the lock, else by the caller that gives up.
    """

    def __init__(self, descriptor: int, deadline: float) -> None:
        self._descriptor = descriptor
        self._deadline = deadline
        self._guard = threading.Lock()
        self._is_given_up = threading.Event()
        self._is_running = False
        self._is_closed = False

    def run(self) -> bool:
        """Wait. True: the lock is held, and the caller must close the descriptor. False: it is closed."""
        with self._guard:
            if self._is_given_up.is_set():
                return False
            self._is_running = True
        is_locked = False
        while not (is_locked or self._is_given_up.is_set() or time.monotonic() > self._deadline):
            is_locked = try_lock(self._descriptor) or self._is_given_up.wait(_POLL_S)
        with self._guard:
            self._is_running = False
            if is_locked and not self._is_given_up.is_set():
                return True
            self._close()
            return False

    def give_up(self) -> None:
        """Release the lock or end the wait, whether it has begun or not."""
        with self._guard:
            self._is_given_up.set()
            if not self._is_running:
                self._close()

    def _close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            os.close(self._descriptor)
