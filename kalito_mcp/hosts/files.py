"""Reads and writes the files of hosts. A write is whole or did not happen, and never undoes what another program wrote.

A symlink stays one: its target is written. Permissions stay, too.
"""

import contextlib
import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kalito_mcp.errors import ConfigurationError
from kalito_mcp.files import replacing
from kalito_mcp.hosts.documents import Writer

_BOM: Final = b"\xef\xbb\xbf"
_BACKUP: Final = ".kalito-backup"
_PRIVATE: Final = 0o600


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a file. `data` is None if there is no file; then `text` is empty."""

    data: bytes | None
    text: str

    def with_text(self, text: str) -> bytes:
        """The bytes of another text, with the same byte order mark or none."""
        return (_BOM if self.data and self.data.startswith(_BOM) else b"") + text.encode()


def backup_of(path: Path) -> Path:
    """Where the file is kept as it was before ours came into it."""
    return path.with_name(path.name + _BACKUP)


def read(path: Path) -> Content:
    """The content of the file. Raises ConfigurationError if it cannot be read, or is not a regular file in UTF-8."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a device would be replaced by a file, a pipe never ends
            raise ConfigurationError(f"{path} is no regular file; it was left as it is")
        data = path.read_bytes()
    except FileNotFoundError:
        if path.is_symlink():
            raise ConfigurationError(f"{path} is a link to a file that does not exist; nothing was written") from None
        return Content(None, "")
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}; nothing was written") from error
    try:
        # Line ends stay as they are: Path.read_text would make them all one.
        return Content(data, data.removeprefix(_BOM).decode())
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is not UTF-8 (byte {error.start + 1}); it was left as it is") from error


def read_document(path: Path, writer: Writer) -> Any:
    """The parsed content of the file. Raises ConfigurationError as `read`, and if the file is not of its format."""
    try:
        return writer.parse(read(path).text)
    except ValueError as error:
        raise ConfigurationError(f"{path}: {error}") from error


def write(path: Path, data: bytes, *, before: Content, is_backed_up: bool) -> None:
    """Replace what the file holds, if it still holds `before`. With a backup of `before` first, if there was a file.

    Raises:
        ConfigurationError: the file cannot be written, or another program has changed it since. It is as it was.
    """
    target = Path(os.path.realpath(path))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if is_backed_up and before.data is not None:
            _replace(backup_of(path), before.data, like=target)
        if read(path).data != before.data:
            raise ConfigurationError(f"{path} was changed by another program just now; run the command again")
        _replace(target, data, like=target)
    except OSError as error:
        raise ConfigurationError(f"cannot write {path}: {error.strerror}; it was left as it is") from error


def delete(path: Path, *, before: Content, with_folder: bool = False) -> None:
    """Delete a file that only we wrote into, and its folder, if asked for, once that is empty. Raises
    ConfigurationError like `write`."""
    try:
        if read(path).data != before.data:
            raise ConfigurationError(f"{path} was changed by another program just now; run the command again")
        path.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigurationError(f"cannot delete {path}: {error.strerror}") from error
    if with_folder:
        with contextlib.suppress(OSError):  # others have something in it
            path.parent.rmdir()


def _replace(target: Path, data: bytes, *, like: Path) -> None:
    """Write over the target, with the mode and the owner of `like`."""

    def as_before(part: Path) -> None:
        if like.exists():
            shutil.copymode(like, part)
            _give_to_owner_of(like, part)

    with replacing(target, as_before) as file:
        file.write(data)


def _give_to_owner_of(like: Path, part: Path) -> None:
    if hasattr(os, "chown"):  # not on Windows
        status = like.stat()
        with contextlib.suppress(OSError):  # only root may give files away
            os.chown(part, status.st_uid, status.st_gid)
