"""Shared by exports: each is a zip, a folder, or a file of it."""

import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Final

from kalito_mcp.exchange.conversation import Reading

_MOST_RATIO: Final = 200
"""Bytes that one byte of a zip may become. JSON becomes about ten; more is a trap."""


def exports_in(folder: Path, pattern: str) -> Iterable[Path]:
    """The files of exports in a folder: those that match the pattern, and the zips."""
    return [*sorted(folder.rglob(pattern)), *sorted(folder.glob("*.zip"))]


def streams(reading: Reading, pattern: str) -> Iterator[tuple[str, IO[bytes]]]:
    """The files of an export whose names match the pattern, in order of name: the path of each, and the file opened."""
    if reading.path.suffix.lower() != ".zip":
        with reading.path.open("rb") as file:
            yield str(reading.path), file
        return
    with _opened(reading.path) as archive:
        for one in sorted(archive.infolist(), key=lambda info: info.filename):
            if not Path(one.filename).match(pattern):
                continue
            if one.file_size > _MOST_RATIO * max(1, one.compress_size):
                reading.skipped["file that is packed too well"] += 1
                continue
            try:
                member = archive.open(one)
            except RuntimeError:
                reading.skipped["file that is encrypted, or packed in an unknown way"] += 1
                continue
            with member:
                yield one.filename, member


def _opened(path: Path) -> zipfile.ZipFile:
    """The zip. Raises zipfile.BadZipFile, even for a version of the format that nobody reads."""
    try:
        return zipfile.ZipFile(path)
    except NotImplementedError as error:
        raise zipfile.BadZipFile(str(error)) from error
