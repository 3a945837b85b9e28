"""The calls that wait for the home: one file each, in order, on disk before they are acknowledged. Standard library
alone.

Several processes share it. The name of an entry begins with the moment at which its call arrived, so that names sort in
the order of arrival, whenever they were written. One process at a time delivers, oldest first, and deletes an entry
after the home has taken it in. If it dies in between, the entry is sent again; the home recognises it by its keys. A
call that the home refuses for good is put aside with the reason and never sent again, unless a person asks for that.
"""

import errno
import json
import math
import os
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kalito_mcp.errors import StorageError, StorageFull
from kalito_mcp.files import sync_folder, try_lock, write_whole

_ENTRY: Final = ".json"
_DIGITS: Final = 20
_FAILURES: Final = "failures"
_COUNTED_EVERY_S: Final = 15.0
_MOST_ENTRIES: Final = 100_000
_UNFINISHED_S: Final = 3_600
_DAMAGED: Final = "its file is damaged"
_PASSING: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR, errno.EAGAIN})
"""Errors of this process or machine. All others are of one entry, which must not hold up the rest."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One call that waits. `content` is sent; `reason` says why it was put aside."""

    file: Path
    content: Mapping[str, Any]
    reason: str | None = None

    @property
    def id(self) -> str:
        """The id shown to users."""
        return self.file.name.removesuffix(_ENTRY).partition("-")[2]


class Outbox:
    """The entries in one folder, which need not exist yet."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._waiting = folder / "outbox"
        self._refused = folder / "refused"
        self._last_place = 0

    def next_place(self) -> int:
        """The place of a call that arrives now: after all that this process has given, and after what waited before
        that. Nanoseconds since 1970, or more if the clock was set back."""
        if not self._last_place:
            with suppress(OSError):  # `put` reports the error
                self._last_place = max((_place_of(name) for name in self._names(self._waiting)), default=0)
        self._last_place = max(time.time_ns(), self._last_place + 1)
        return self._last_place

    def put(self, content: Mapping[str, Any], place: int | None = None) -> Entry:
        """Add an entry at its place, by default at the end. It is on disk when this returns.

        Raises:
            StorageError: it cannot be written, or too much waits already; nothing waits that did not before.
        """
        data = json.dumps(content).encode()
        return Entry(self._add(lambda file: write_whole(file, data), place), content)

    def _add(self, write: Callable[[Path], object], place: int | None = None) -> Path:
        try:
            self._waiting.mkdir(mode=0o700, parents=True, exist_ok=True)
            waiting = self.count()
            if waiting >= _MOST_ENTRIES:
                raise StorageFull(
                    f"nothing was kept: {waiting:,} calls wait for the home already; "
                    "`kalito-mcp status` says why it does not answer"
                )
            number = self.next_place() if place is None else place
            file = self._waiting / f"{number:0{_DIGITS}d}-{secrets.token_hex(8)}{_ENTRY}"
            write(file)
        except OSError as error:
            raise StorageError(
                f"nothing was kept: {self._waiting} cannot be written: {error.strerror}; send it again"
            ) from error
        return file

    def sweep(self) -> None:
        """Delete files whose process died while it wrote them: these calls were never acknowledged."""
        for folder in (self._waiting, self._refused):
            with suppress(OSError):
                for file in folder.iterdir():
                    if file.name.startswith(".") and time.time() - file.stat().st_mtime > _UNFINISHED_S:
                        file.unlink(missing_ok=True)

    def count(self, before: float = math.inf) -> int:
        """How many entries wait, at places before that one."""
        return sum(_place_of(name) < before for name in self._names(self._waiting))

    def waiting(self, before: float = math.inf) -> Iterator[Entry]:
        """The entries before this place, oldest first. Entries with a damaged file are put aside. Raises
        OSError."""
        for name in self._names(self._waiting):
            if _place_of(name) >= before:
                return
            file = self._waiting / name
            with suppress(FileNotFoundError):  # another process has delivered it
                content = _object(file)
                if content:
                    yield Entry(file, content)
                else:
                    self.put_aside(Entry(file, {}), _DAMAGED)

    def refused(self) -> list[Entry]:
        """Refused and damaged entries, oldest first."""
        entries = []
        for name in self._names(self._refused):
            file = self._refused / name
            with suppress(OSError):
                stored = _object(file)
                content = stored.get("content")
                if isinstance(content, dict) and content:
                    entries.append(Entry(file, content, str(stored.get("reason"))))
                else:
                    entries.append(Entry(file, {}, _DAMAGED))
        return entries

    def remove(self, entry: Entry) -> None:
        """Delete an entry that the home has taken in, or that a person does not want. Raises OSError."""
        if entry.file.is_dir() and not entry.file.is_symlink():  # another process has put it there
            shutil.rmtree(entry.file)
        entry.file.unlink(missing_ok=True)
        sync_folder(entry.file.parent)

    def put_aside(self, entry: Entry, reason: str) -> None:
        """Keep an entry that can never be delivered, with the reason; a damaged one as it is. Raises OSError; then it
        still waits."""
        self._refused.mkdir(mode=0o700, parents=True, exist_ok=True)
        aside = self._refused / entry.file.name
        if os.path.lexists(aside):
            aside = aside.with_name(f"{_place_of(aside.name):0{_DIGITS}d}-{secrets.token_hex(8)}{_ENTRY}")
        if entry.content:
            write_whole(aside, json.dumps({"reason": reason, "content": entry.content}).encode())
            self.remove(entry)
        else:
            entry.file.replace(aside)

    def count_failure(self, entry: Entry) -> int:
        """How often the home has failed at this entry, including now. Stored with the entry; counted at most once per
        15 s, so that a burst of retries counts once. Raises OSError."""
        earlier, now = entry.content.get(_FAILURES), time.time()
        before, at = (earlier.get("count"), earlier.get("at")) if isinstance(earlier, dict) else (None, None)
        count = before if isinstance(before, int) else 0
        if isinstance(at, int | float) and 0 <= now - at < _COUNTED_EVERY_S:
            return count
        count += 1
        failures = {"count": count, "at": now}
        write_whole(entry.file, json.dumps({**entry.content, _FAILURES: failures}).encode())
        return count

    def send_again(self, entry: Entry) -> None:
        """Let a refused entry wait again, after all others. Raises StorageError; then it is still refused."""
        if entry.content:
            self.put({name: value for name, value in entry.content.items() if name != _FAILURES})
            self.remove(entry)
        else:
            self._add(entry.file.replace)

    @contextmanager
    def delivering(self) -> Iterator[bool]:
        """Whether this process may deliver during the block: False if another one does. The kernel lets go of the lock
        if its holder dies."""
        if not self._folder.is_dir():
            yield True
            return
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
        descriptor = os.open(self._folder / "deliver.lock", flags, 0o600)
        try:
            yield try_lock(descriptor)
        finally:
            os.close(descriptor)

    def _names(self, folder: Path) -> list[str]:
        try:
            names = [file.name for file in folder.iterdir()]
        except FileNotFoundError:
            return []
        return sorted(name for name in names if name.endswith(_ENTRY) and name.partition("-")[0].isdecimal())


def _place_of(name: str) -> int:
    return int(name.partition("-")[0])


def _object(file: Path) -> dict[str, Any]:
    """The content of a file; empty if it is damaged or not a file. Raises OSError."""
    content = None
    try:
        if stat.S_ISREG(file.lstat().st_mode):  # a pipe would never end
            content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        if error.errno in _PASSING or isinstance(error, FileNotFoundError):
            raise
    except (ValueError, RecursionError):
        pass
    return content if isinstance(content, dict) else {}
