"""Archives: a whole memory, or some of its conversations, as a file, without loss. `archive_lines` says what is in it.

An archive has all that the database has of its content, also what is forgotten, and the secret by which the notes of
what was forgotten or erased are made: without it they would recognise nothing any more. So keep it like the database.
What is derived (text index, vectors) is not in it and is rebuilt. Snapshots of graphs are files of their own.
"""

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from kalito_mcp.domain.archive import Selection
from kalito_mcp.domain.time import to_iso
from kalito_mcp.errors import Conflict, InvalidInput
from kalito_mcp.exchange.archive_lines import ArchiveReading, ArchiveWriting, Header
from kalito_mcp.files import replacing
from kalito_mcp.memory import Memory
from kalito_mcp.version import __version__

_MOST_LINE_BYTES: Final = 256 * 1024**2
_BEGINNING: Final = b'{"kalito_archive":'


@dataclass(frozen=True, slots=True)
class ArchiveReport:
    """What was written or restored: how many entries of each kind, and the digest over them, 64 hexadecimal digits."""

    entries: Mapping[str, int]
    digest: str


async def write_archive(memory: Memory, write: Callable[[bytes], object], selection: Selection) -> ArchiveReport:
    """Write an archive of the selection as it is at one moment, while others write. Holds some hundred entries at a
    time.

    Raises:
        SessionNotFound, InvalidInput: see `Archive.reading`.
    """
    writing = ArchiveWriting()
    async with aclosing(_pieces(memory, selection, writing)) as pieces:
        async for piece in pieces:
            write(piece)
    return ArchiveReport(dict(writing.counts), writing.digest)


def archive_pieces(memory: Memory, selection: Selection) -> AsyncGenerator[bytes]:
    """The same, piece by piece. The database is read until the generator ends or is closed."""
    return _pieces(memory, selection, ArchiveWriting())


async def _pieces(memory: Memory, selection: Selection, writing: ArchiveWriting) -> AsyncGenerator[bytes]:
    async with memory.archive.reading(selection) as view:
        header = Header(
            __version__,
            to_iso(memory.place.clock.now_ms()),
            view.selection.to_dict(),
            view.selection.is_restorable,
        )
        yield writing.first(header)
        async with aclosing(view.entries()) as pages:
            async for page in pages:
                yield writing.entries(page)
    yield writing.last()


async def write_archive_file(memory: Memory, path: Path, selection: Selection) -> ArchiveReport:
    """The same into a file that only this user can read. An existing archive is replaced once the new one is complete.

    Raises:
        Conflict: the path names a file that is no archive; it is left alone.
        InvalidInput: the file cannot be written.
    """
    with _replacing(path) as file:
        return await write_archive(memory, file.write, selection)


async def restore_archive(memory: Memory, path: Path) -> ArchiveReport:
    """Restore an archive into a database in which nobody has anything, all of it or nothing.

    A process that is killed leaves an empty database or a whole one, whose text index the next start rebuilds.

    Raises:
        Conflict: the database is not empty.
        InvalidInput: the file cannot be read, is no whole archive, or was written by a newer release; the message
            names the line.
    """
    try:
        with _reading(path) as lines:
            reading = ArchiveReading(lines)
            _refuse_parts(reading.header)
            entries = await memory.archive.restore(reading.entries())
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from error
    return ArchiveReport(entries, reading.digest)


def is_archive(path: Path) -> bool:
    """Whether the file begins like an archive."""
    try:
        with path.open("rb") as file:
            return file.read(len(_BEGINNING)) == _BEGINNING
    except OSError:
        return False


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """A new file for the block, which takes its place when the block ends."""
    path = path.resolve()  # what a link leads to, not the link
    try:
        _refuse_other(path)
        with replacing(path) as file:
            yield file
    except OSError as error:
        raise InvalidInput(f"cannot write {path}: {error.strerror}; nothing was exported") from error


@contextmanager
def _reading(path: Path) -> Iterator[Iterator[bytes]]:
    """The lines of a file, for the block."""
    try:
        with path.open("rb") as file:
            yield _lines(file)
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror}; nothing was restored") from error


def _refuse_parts(header: Header) -> None:
    if not header.is_restorable:
        raise InvalidInput(
            "this archive has only parts of conversations (it was exported with --type, --since or --until) and cannot "
            "be restored; nothing was restored. Export without these options"
        )


def _refuse_other(path: Path) -> None:
    if path.is_dir():
        raise Conflict(f"{path} is a folder; name a file, or add --markdown")
    if path.exists() and not (path.is_file() and (is_archive(path) or not path.stat().st_size)):
        raise Conflict(f"{path} exists and is no archive; nothing was exported. Give another name, or - for a pipe")


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file. Longer lines are cut, so their checksum fails."""
    while line := file.readline(_MOST_LINE_BYTES):
        yield line
