"""Zeroes the bytes of a database file that no page uses any more.

`secure_delete` zeroes a row where it is deleted. But when SQLite moves rows to other pages, it may leave copies of them
in the unallocated bytes of the page that they came from, and does not zero those when the row is deleted later. So do
3.40.1, 3.51.1 and 3.54.1; thousands of random changes left copies there and in no other place. SQLite never reads these
bytes. Free blocks and free pages are zeroed too: a program without `secure_delete` may have left something there.

The file is read and written through SQLite's own descriptor: closing another one would drop SQLite's locks.
Source: sqlite.org/fileformat2.html, sections 1.3 to 1.6.
"""

import os
import sqlite3
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Self

_DESCRIPTORS: Final = Path("/dev/fd")
_MAGIC: Final = b"SQLite format 3\x00"
_HEAD_BYTES: Final = 100
_HEADER_BYTES: Final = {2: 12, 5: 12, 10: 8, 13: 8}
"""The first byte of a page of a b-tree, and the length of the page's header."""

_MOST_PAGES: Final = 0x0200_0000
"""In a file with fewer pages, no other page in use begins with one of those bytes: overflow pages and pages that list
free ones begin with the number of a page."""

_BLOCK_HEADER_BYTES: Final = 4
_PAGES_AT_ONCE: Final = 1_024
_Range = tuple[int, int]


class UnusedBytes:
    """The unused bytes of the file behind a descriptor."""

    def __init__(self, descriptor: int, page_bytes: int) -> None:
        self._descriptor = descriptor
        self._page_bytes = page_bytes

    @classmethod
    def of(cls, path: Path) -> Self | None:
        """The unused bytes of the database at `path`, which this process has open for writing. None if they cannot be
        zeroed: the system has no list of descriptors, or the file has bytes of kinds that kalito does not make."""
        descriptor = _descriptor_of(path)
        if descriptor is None:
            return None
        head = os.pread(descriptor, _HEAD_BYTES, 0)
        page_bytes = int.from_bytes(head[16:18])
        # Reserved bytes may be a checksum of the page, and a file with a largest root has pages of pointers.
        reserved, largest_root = head[20], int.from_bytes(head[52:56])
        is_known = head.startswith(_MAGIC) and page_bytes > 1 and not reserved and not largest_root
        if not is_known or os.fstat(descriptor).st_size >= _MOST_PAGES * page_bytes:
            return None
        return cls(descriptor, page_bytes)

    def read_ahead(self) -> None:
        """Read the file once, so that `zero` need not wait for the disk. Needs no lock."""
        for _ in self._pages():
            pass

    def zero(self, most: int) -> bool:
        """Zero the unused bytes of at most this many pages, and wait until that is on the disk. True: nothing is left
        to zero.

        Hold SQLite's write lock, with all of the -wal in the file. Otherwise SQLite might write rows there meanwhile,
        which would be lost. If it is interrupted, even by a power cut, some bytes stay as they were.

        Raises:
            sqlite3.DatabaseError: a page is malformed; it is as it was.
        """
        zeroed, is_whole = 0, True
        trunks, leaves = self._free_pages()
        for number, page in self._pages():
            if number in leaves:
                unused = [(0, len(page))]
            elif number in trunks:
                unused = [(trunks[number], len(page))]
            elif number > 1 and page[0] in _HEADER_BYTES:  # the first page has no rows but the schema
                unused = _unused_in_tree(number, page)
            else:
                continue
            unused = [(start, end) for start, end in unused if page.count(0, start, end) < end - start]
            if unused and zeroed == most:
                is_whole = False
                break
            for start, end in unused:
                os.pwrite(self._descriptor, bytes(end - start), (number - 1) * self._page_bytes + start)
            zeroed += bool(unused)
        if zeroed:
            os.fsync(self._descriptor)
        return is_whole

    def _pages(self) -> Iterator[tuple[int, bytes]]:
        """Every page with its number, from 1."""
        number, size = 1, self._page_bytes
        while chunk := os.pread(self._descriptor, _PAGES_AT_ONCE * size, (number - 1) * size):
            for start in range(0, len(chunk), size):
                yield number, chunk[start : start + size]
                number += 1

    def _free_pages(self) -> tuple[dict[int, int], set[int]]:
        """The pages that list free ones, with how many of their bytes that takes, and the other free pages."""
        trunks: dict[int, int] = {}
        leaves: set[int] = set()
        next_trunk = int.from_bytes(os.pread(self._descriptor, 4, 32))
        while next_trunk:
            page = os.pread(self._descriptor, self._page_bytes, (next_trunk - 1) * self._page_bytes)
            if next_trunk in trunks or len(page) < self._page_bytes:
                raise _malformed(next_trunk)
            count = int.from_bytes(page[4:8])
            trunks[next_trunk] = used = 8 + 4 * count
            if used > self._page_bytes:
                raise _malformed(next_trunk)
            leaves.update(struct.unpack_from(f">{count}I", page, 8))
            next_trunk = int.from_bytes(page[:4])
        return trunks, leaves


def _unused_in_tree(number: int, page: bytes) -> list[_Range]:
    """The unused parts of a page of a b-tree: between its list of cells and the cells, and its free blocks."""
    free_block, cells, content = struct.unpack_from(">HHH", page, 1)
    start, content = _HEADER_BYTES[page[0]] + 2 * cells, content or 0x1_0000
    if not start <= content <= len(page):
        raise _malformed(number)
    unused = [(start, content)]
    while free_block:
        if not content <= free_block <= len(page) - _BLOCK_HEADER_BYTES:
            raise _malformed(number)
        next_block, size = struct.unpack_from(">HH", page, free_block)
        end = free_block + size
        if size < _BLOCK_HEADER_BYTES or end > len(page) or (next_block and next_block < end):
            raise _malformed(number)
        unused.append((free_block + _BLOCK_HEADER_BYTES, end))
        free_block = next_block
    return unused


def _descriptor_of(path: Path) -> int | None:
    """A descriptor of SQLite's that can write the file.

    It stays open as long as any connection of this process does: SQLite closes no descriptor of a file on which one
    holds a lock, and in WAL mode each holds one from its first read on.
    """
    if not hasattr(os, "pwrite"):
        return None
    import fcntl  # noqa: PLC0415 - not on Windows

    wanted = path.stat()
    for name in os.listdir(_DESCRIPTORS) if _DESCRIPTORS.is_dir() else ():  # noqa: PTH208 - names that are numbers
        try:
            found = os.fstat(int(name))
            is_writable = fcntl.fcntl(int(name), fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDWR
        except OSError:  # the list's own descriptor
            continue
        if is_writable and (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino):
            return int(name)
    return None


def _malformed(number: int) -> sqlite3.DatabaseError:
    return sqlite3.DatabaseError(f"page {number} is malformed")
