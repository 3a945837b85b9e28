"""JSON files that are written whole or not at all: to a temporary file, made durable, then moved into place.

The temporary file is created before its content is read. Erasing words from a folder removes the temporary files
first. So content that was read before the erasure never gets a name, even if its writer dies, and a writer that lives
reads again.
"""

import json
import os
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TextIO

import anyio.to_thread

from kalito_mcp.errors import Conflict, InvalidInput, StorageFull, StorageReadOnly
from kalito_mcp.files import sync_folder

MAX_FILE_BYTES: Final = 1_073_741_824
_NO_SPACE: Final = 28
_MAX_ROUNDS: Final = 20


async def write_json(path: Path, data: Mapping[str, Any], *, is_pretty: bool = False) -> None:
    """Write the file, readable only by its owner. A missing folder is created.

    Raises:
        InvalidInput: the path is a folder or cannot be a path.
        StorageFull, StorageReadOnly: the file cannot be written; the old one is unchanged.
    """

    async def content() -> Mapping[str, Any]:
        return data

    await write_made(path, content, is_pretty=is_pretty)


async def write_made(
    path: Path, make: Callable[[], Awaitable[Mapping[str, Any] | None]], *, is_pretty: bool = False
) -> bool:
    """Write what `make` returns, as `write_json` does; False if it returns None, and then nothing is written.

    `make` is called again if an erasure removed the temporary file in between.

    Raises:
        Conflict: that happened every time.
        InvalidInput, StorageFull, StorageReadOnly: as for `write_json`.
    """
    for _ in range(_MAX_ROUNDS):
        file, temporary = await anyio.to_thread.run_sync(_create, path)
        try:
            data = await make()
            if data is None or await anyio.to_thread.run_sync(_finish, file, temporary, path, data, is_pretty):
                return data is not None
        finally:
            file.close()
            temporary.unlink(missing_ok=True)
    raise Conflict(f"records were erased again and again while {path.name} was written; try again")


def remove_files(paths: Iterable[Path]) -> None:
    """Remove the files, so that no power cut brings them back."""
    for path in paths:
        path.unlink(missing_ok=True)
        sync_folder(path.parent)


async def read_json(path: Path, *, named: str | None = None) -> Any:
    """The parsed content of the file. Errors call it `named`, or else by its path, which is not for who calls over
    HTTP.

    Raises:
        InvalidInput: it does not exist, cannot be read, is too large, or is not JSON.
    """
    return await anyio.to_thread.run_sync(_read, path, named or str(path))


def _create(path: Path) -> tuple[TextIO, Path]:
    if "\0" in str(path):
        raise InvalidInput("file names cannot contain a NUL character; give another name")
    with _explained(path):
        if path.is_dir():
            raise InvalidInput(f"{path} is a folder; give the path of a file")
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        return os.fdopen(descriptor, "w", encoding="utf-8"), Path(temporary)


def _finish(file: TextIO, temporary: Path, path: Path, data: Mapping[str, Any], is_pretty: bool) -> bool:
    """Move the file into place; False if it had been removed."""
    text = json.dumps(
        data,
        ensure_ascii=False,
        allow_nan=False,
        indent=2 if is_pretty else None,
        separators=None if is_pretty else (",", ":"),
    )
    with _explained(path):
        with file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        try:
            temporary.replace(path)
        except FileNotFoundError:
            return False
        sync_folder(path.parent)
    return True


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno == _NO_SPACE:
            raise StorageFull(f"no space left to write {path}; free some space and try again") from error
        raise StorageReadOnly(f"cannot write {path}: {error.strerror}; make its folder writable") from error


def _read(path: Path, named: str) -> Any:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise InvalidInput(
                f"{named} has more than {MAX_FILE_BYTES:,} bytes and cannot be a snapshot; give another file"
            )
        return json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except OSError as error:
        raise InvalidInput(f"cannot read {named}: {error.strerror}; check its path") from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{named} is cut short or not JSON ({error}); give a complete file") from error


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")
