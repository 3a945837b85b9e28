"""What a disk may contain after a power cut: recorded system calls, replayed on a model of a file system.

strace records the calls. A write, a cut or a new name is durable only after the file, or the folder, was synced. Of the
rest, an image keeps nothing, everything, a prefix, a random part, or torn writes. Of a torn write, only some sectors of
512 bytes arrive. Names keep their order within a folder, as in the journal of a file system. Mapped memory (-shm) is
not recorded and need not survive.
"""

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from heapq import merge
from pathlib import Path
from typing import Final

STRACE: Final = (
    "strace",
    "--follow-forks",
    "--seccomp-bpf",
    "-ttt",
    "--decode-fds=path",
    "--strings-in-hex=all",
    "--string-limit=100000000",
    "--trace=open,openat,creat,write,pwrite64,writev,pwritev,ftruncate,truncate,fsync,fdatasync,rename,renameat,"
    "renameat2,unlink,unlinkat,mkdir,mkdirat,copy_file_range,sendfile,fallocate",
    "--quiet=all",
    "--output",
)
"""Its arguments are the file to write to and then the command."""
_SECTOR: Final = 512
_LINE: Final = re.compile(r"(\d+) +(\d+\.\d+) (.*)")
_CALL: Final = re.compile(r"(\w+)\((.*)\) += (-?\d+)(.*)")
_UNFINISHED: Final = " <unfinished ...>"
_RESUMED: Final = re.compile(r"<\.\.\. \w+ resumed>(.*)")
_HEX: Final = r"(?:\\x[0-9a-f]{2})*"
_DESCRIPTOR: Final = re.compile(rf"(\d+)<({_HEX})>")
_STRING: Final = re.compile(rf'"({_HEX})"')
_MODELLED: Final = frozenset(
    "open openat creat write pwrite64 ftruncate fsync fdatasync rename renameat renameat2 unlink unlinkat mkdir "
    "mkdirat".split()
)


class Mode(StrEnum):
    """Which unsynced writes survive a power cut."""

    DROP = "drop"
    SUBSET = "subset"
    TORN = "torn"
    PREFIX = "prefix"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Event:
    """A system call that changed the disk or made a change durable. `at` is the time of the call."""

    at: float
    call: str
    path: str
    other: str = ""
    offset: int = 0
    """The offset of a write, the size of a cut, or flags of open: 1 creates the file, 2 empties it, 3 does both."""
    data: bytes = b""


Change = tuple[int, bytes | None]
"""A write at an offset. Without bytes: a cut to a size."""


@dataclass(slots=True)
class _File:
    synced: bytes = b""
    pending: list[Change] = field(default_factory=list[Change])

    def sync(self) -> None:
        self.synced = _changed(self.synced, self.pending)
        self.pending = []


Name = tuple[str, str, _File | None]
"""A folder, a name in it, and the new target. None removes the name."""


class Disk:
    """The files below a folder: as they are now, and as they are durable. Paths are relative to the folder."""

    def __init__(self) -> None:
        self._names: dict[str, _File] = {}
        self._synced_names: dict[str, _File] = {}
        self._pending_names: list[Name] = []
        self._folders: set[str] = {""}

    def apply(self, event: Event) -> None:
        """Apply an event."""
        match event.call:
            case "open" | "openat" | "creat":
                if event.path not in self._names and event.offset & 1 and event.path not in self._folders:
                    self._name(event.path, _File())
                if event.offset & 2 and event.path in self._names:
                    self._names[event.path].pending.append((0, None))
            case "write" | "pwrite64" if event.path in self._names:
                self._names[event.path].pending.append((event.offset, event.data))
            case "ftruncate" if event.path in self._names:
                self._names[event.path].pending.append((event.offset, None))
            case "fsync" | "fdatasync" if event.path in self._folders:
                self._sync_folder(event.path)
            case "fsync" | "fdatasync" if event.path in self._names:
                self._names[event.path].sync()
            case "rename" | "renameat" | "renameat2" if event.path in self._names:
                self._name(event.other, self._names[event.path])
                self._name(event.path, None)
            case "unlink" | "unlinkat" if event.path in self._names:
                self._name(event.path, None)
            case "mkdir" | "mkdirat":
                self._folders.add(event.path)

    def image(self, mode: Mode, chance: random.Random) -> dict[str, bytes]:
        """The files that a power cut at this moment may leave."""
        names = dict(self._synced_names)
        pending = self._pending_names
        for _, path, file in pending[: _reached(mode, len(pending), chance)]:
            _point(names, path, file)
        return {path: _changed(file.synced, _kept(file.pending, mode, chance)) for path, file in names.items()}

    def _name(self, path: str, file: _File | None) -> None:
        _point(self._names, path, file)
        self._pending_names.append((_folder_of(path), path, file))

    def _sync_folder(self, folder: str) -> None:
        for where, path, file in self._pending_names:
            if where == folder:
                _point(self._synced_names, path, file)
        self._pending_names = [one for one in self._pending_names if one[0] != folder]


def recorded(traces: Sequence[Path], folder: Path) -> list[Event]:
    """The events in the traces for files below the folder, in the order of the calls.

    Raises:
        ValueError: the trace has a call that the model does not know.
    """
    return list(merge(*(_events(trace, folder) for trace in traces), key=lambda event: event.at))


def _events(trace: Path, folder: Path) -> Iterator[Event]:
    base = f"{folder}/"
    needle = _in_hex(str(folder))
    positions: dict[int, int] = {}
    begun: dict[str, tuple[str, str]] = {}
    found: list[Event] = []
    with trace.open(encoding="ascii", errors="replace") as lines:
        for line in lines:
            if (split := _LINE.match(line)) is None:
                continue
            process, at, text = split.groups()
            if text.endswith(_UNFINISHED):
                begun[process] = at, text.removesuffix(_UNFINISHED)
                continue
            if resumed := _RESUMED.match(text):
                at, text = begun.pop(process, (at, ""))
                text += resumed[1]
            if needle in text and (call := _CALL.match(text)) and (event := _event(float(at), call, base, positions)):
                found.append(event)
    # strace prints an interrupted call when it ends, with the time of its start.
    return iter(sorted(found, key=lambda event: event.at))


def _event(at: float, match: re.Match[str], base: str, positions: dict[int, int]) -> Event | None:
    call, arguments, returned, rest = match[1], match[2], int(match[3]), match[4]
    if returned < 0:
        return None
    descriptor = _DESCRIPTOR.match(arguments)
    if descriptor is not None and not _path(descriptor[2]).startswith(base[:-1]):
        return None  # a pipe, or the folder is only in what was written to it
    if call not in _MODELLED:
        raise ValueError(f"the model of the disk does not know {call}")
    if descriptor is None:
        paths = [_path(one) for one in _STRING.findall(arguments)]
        flags = ("O_CREAT" in arguments) | ("O_TRUNC" in arguments) << 1
        if call.startswith(("open", "creat")) and (opened := re.match(rf"<({_HEX})>", rest)):
            positions[returned] = 0
            paths = [_path(opened[1])]
        inside = [_relative(path, base) for path in paths]
        return Event(at, call, inside[0], inside[-1], flags) if inside else None
    path = _relative(_path(descriptor[2]), base)
    number = int(descriptor[1])
    if call == "write":
        data = _bytes(arguments)[:returned]
        start = positions.get(number, 0)
        positions[number] = start + len(data)
        return Event(at, call, path, offset=start, data=data)
    last = int(arguments.rpartition(",")[2]) if call in ("pwrite64", "ftruncate") else 0
    return Event(at, call, path, offset=last, data=_bytes(arguments)[:returned] if call == "pwrite64" else b"")


def _relative(path: str, base: str) -> str:
    return path.removeprefix(base) if path.startswith(base) else "" if path == base[:-1] else path


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0]


def _point(names: dict[str, _File], path: str, file: _File | None) -> None:
    if file is None:
        names.pop(path, None)
    else:
        names[path] = file


def _in_hex(text: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in text.encode())


def _path(text: str) -> str:
    return bytes.fromhex(text.replace("\\x", "")).decode("utf-8", "surrogateescape")


def _bytes(arguments: str) -> bytes:
    found = _STRING.search(arguments)
    return b"" if found is None else bytes.fromhex(found[1].replace("\\x", ""))


def _changed(content: bytes, changes: Sequence[Change]) -> bytes:
    if not changes:
        return content
    made = bytearray(content)
    for offset, data in changes:
        end = offset if data is None else offset + len(data)
        if end > len(made):
            made.extend(bytes(end - len(made)))
        if data is None:
            del made[offset:]
        else:
            made[offset:end] = data
    return bytes(made)


def _reached(mode: Mode, count: int, chance: random.Random) -> int:
    """How many of these changes, counted from the first, have reached the disk."""
    return 0 if mode is Mode.DROP else count if mode is Mode.ALL else chance.randint(0, count)


def _kept(changes: Sequence[Change], mode: Mode, chance: random.Random) -> list[Change]:
    if mode in (Mode.DROP, Mode.PREFIX, Mode.ALL):
        return list(changes[: _reached(mode, len(changes), chance)])
    kept = [one for one in changes if chance.random() < 0.5]
    return kept if mode is Mode.SUBSET else [torn for one in kept for torn in _torn(one, lambda: chance.random() < 0.5)]


def _torn(change: Change, arrives: Callable[[], bool]) -> Iterator[Change]:
    """The sectors of a write that arrived."""
    offset, data = change
    if data is None:
        yield change
        return
    start, end = offset, offset + len(data)
    while start < end:
        stop = min(end, (start // _SECTOR + 1) * _SECTOR)
        if arrives():
            yield start, data[start - offset : stop - offset]
        start = stop
