"""JSON files that are whole or not there: written beside their place, made durable, and moved into it."""

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import anyio.to_thread

from kalito_mcp.errors import InvalidInput, StorageFull, StorageReadOnly

MAX_FILE_BYTES: Final = 1_073_741_824
_NO_SPACE: Final = 28


async def write_json(path: Path, data: Mapping[str, Any], *, is_pretty: bool = False) -> None:
    """Write the file, readable by its owner alone; its folder is made where it is missing.

    Raises:
        InvalidInput: the path is that of a folder, or can be none.
        StorageFull, StorageReadOnly: it cannot be written; what stood there before stands there still.
    """
    await anyio.to_thread.run_sync(_write, path, data, is_pretty)


async def read_json(path: Path) -> Any:
    """What the file says.

    Raises:
        InvalidInput: it does not exist, cannot be read, is too large, or is no JSON.
    """
    return await anyio.to_thread.run_sync(_read, path)


def _write(path: Path, data: Mapping[str, Any], is_pretty: bool) -> None:
    text = json.dumps(
        data,
        ensure_ascii=False,
        allow_nan=False,
        indent=2 if is_pretty else None,
        separators=None if is_pretty else (",", ":"),
    )
    if "\0" in str(path):
        raise InvalidInput("a file's name has no null character; name another")
    try:
        if path.is_dir():
            raise InvalidInput(f"{path} is a folder; name a file")
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(beside).replace(path)
        except BaseException:
            Path(beside).unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)
    except OSError as error:
        if error.errno == _NO_SPACE:
            raise StorageFull(f"no room to write {path}; free some and try again") from error
        raise StorageReadOnly(f"cannot write {path}: {error.strerror}; make its folder writable") from error


def _sync_folder(folder: Path) -> None:
    """Make the new name durable. Windows has no such call, and needs none."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read(path: Path) -> Any:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise InvalidInput(f"{path} has more than {MAX_FILE_BYTES:,} bytes; that is no snapshot")
        return json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{path} is cut short or is no JSON: {error}") from error


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")
