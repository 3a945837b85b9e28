"""Writes pages into a folder, and touches only what is its own.

`.kalito-export.jsonl` in the folder names the files that were written, with a digest of what was written; a line is
added before a file is. A file is its own as long as it is as it was written. One that somebody changed, or that was
there before, is never written over or removed, and is named in the report.
"""

import json
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Final

from kalito_mcp.errors import Conflict, InvalidInput
from kalito_mcp.exchange.markdown import Page
from kalito_mcp.files import write_whole

MANIFEST: Final = ".kalito-export.jsonl"


@dataclass(slots=True)
class FolderReport:
    """The result for the files. `left` are files that were changed by others, and were neither written nor removed."""

    written: int = 0
    unchanged: int = 0
    removed: int = 0
    left: list[str] = field(default_factory=list[str])


async def write_folder(folder: Path, pages: AsyncIterator[Page]) -> FolderReport:
    """Make the folder what the pages say, and nothing else in it different.

    Raises:
        Conflict: the path names a file.
        InvalidInput: the folder cannot be written.
    """
    try:
        writing = _FolderWriting(folder)
        try:
            async for page in pages:
                writing.put(page)
            return writing.finish()
        finally:
            writing.close()
    except OSError as error:
        where = error.filename or folder
        raise InvalidInput(f"cannot write {where}: {error.strerror}; run it again to go on") from error


class _FolderWriting:
    """One run."""

    def __init__(self, folder: Path) -> None:
        if folder.exists() and not folder.is_dir():
            raise Conflict(f"{folder} is a file; name a folder for --markdown")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder
        self._own = _read_manifest(folder / MANIFEST)
        self._now: dict[str, str] = {}
        self._report = FolderReport()
        self._noting = (folder / MANIFEST).open("a", encoding="utf-8", newline="\n")

    def close(self) -> None:
        self._noting.close()

    def put(self, page: Page) -> None:
        """Write the page, unless it is there already or somebody else's."""
        content = page.text.encode()
        self._now[page.path] = digest = sha256(content).hexdigest()
        path = self._folder / page.path
        found = _digest(path)
        if found == digest:
            self._report.unchanged += 1
        elif found is not None and found not in self._own.get(page.path, ()):
            self._report.left.append(page.path)
        else:
            self._noting.write(_entry(page.path, digest))
            self._noting.flush()
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(path, content, is_durable=False)
            self._report.written += 1

    def finish(self) -> FolderReport:
        """Remove what no page is for any more."""
        for name in sorted(self._own.keys() - self._now.keys()):
            self._remove(name)
        self._report.left.sort()
        kept = {name: {digest} for name, digest in self._now.items()}
        kept |= {name: self._own.get(name, set()) for name in self._report.left}
        entries = [_entry(name, digest) for name in sorted(kept) for digest in sorted(kept[name])]
        self._noting.close()
        write_whole(self._folder / MANIFEST, "".join(entries).encode())
        return self._report

    def _remove(self, name: str) -> None:
        path = self._folder / name
        found = _digest(path)
        if found in self._own[name]:
            path.unlink()
            self._report.removed += 1
            if path.parent != self._folder:
                with suppress(OSError):  # it has other files
                    path.parent.rmdir()
        elif found is not None:
            self._report.left.append(name)


def _entry(name: str, digest: str) -> str:
    return json.dumps({"path": name, "sha256": digest}) + "\n"


def _read_manifest(path: Path) -> dict[str, set[str]]:
    """The digests with which each file was written. A line that was cut short, or names a place elsewhere, is left
    out."""
    own: dict[str, set[str]] = {}
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return own
    for line in lines:
        with suppress(ValueError, TypeError, KeyError, RecursionError):
            entry = json.loads(line)
            name, digest = str(entry["path"]), str(entry["sha256"])
            if _is_inside(name):
                own.setdefault(name, set()).add(digest)
    return own


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return (
        not path.is_absolute()
        and path.suffix == ".md"
        and not {"..", ""} & {*path.parts}
        and "\\" not in name
        and ":" not in name
    )


def _digest(path: Path) -> str | None:
    """The digest of a file; None if there is none. Anything else at its place has one that no file has."""
    try:
        return sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return None
    except (IsADirectoryError, PermissionError):
        return "no file"
