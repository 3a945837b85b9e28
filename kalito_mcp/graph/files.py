"""JSON files that are whole or not there: written beside their place, made durable, and moved into it.

The unfinished file is there before what goes into it is read. Who erases words from the files of a folder removes the
unfinished ones first: what was read before the erasure then never gets a name again, whatever becomes of its writer,
and a writer that goes on reads again.
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

MAX_FILE_BYTES: Final = 1_073_741_824
_NO_SPACE: Final = 28
_MAX_ROUNDS: Final = 20


async def write_json(path: Path, data: Mapping[str, Any], *, is_pretty: bool = False) -> None:
    """Write the file, readable by its owner alone; its folder is made where it is missing.

    Raises:
        InvalidInput: the path is that of a folder, or can be none.
        StorageFull, StorageReadOnly: it cannot be written; what stood there before stands there still.
    """

    async def given() -> Mapping[str, Any]:
        return data

    await write_made(path, given, is_pretty=is_pretty)


async def write_made(
    path: Path, make: Callable[[], Awaitable[Mapping[str, Any] | None]], *, is_pretty: bool = False
) -> bool:
    """Write what `make` makes, as `write_json`; False, and nothing is written, where it makes None. It is called again
    where the unfinished file was removed meanwhile.

    Raises:
        Conflict: that happened every time.
    """
    for _ in range(_MAX_ROUNDS):
        file, beside = await anyio.to_thread.run_sync(_created, path)
        try:
            data = await make()
            if data is None or await anyio.to_thread.run_sync(_finished, file, beside, path, data, is_pretty):
                return data is not None
        finally:
            file.close()
            beside.unlink(missing_ok=True)
    raise Conflict(f"records were erased again and again while {path.name} was written; try again")


def remove_files(paths: Iterable[Path]) -> None:
    """Remove the files, so that no power cut brings them back."""
    for path in paths:
        path.unlink(missing_ok=True)
        _sync_folder(path.parent)


async def read_json(path: Path) -> Any:
    """What the file says.

    Raises:
        InvalidInput: it does not exist, cannot be read, is too large, or is no JSON.
    """
    return await anyio.to_thread.run_sync(_read, path)


def _created(path: Path) -> tuple[TextIO, Path]:
    if "\0" in str(path):
        raise InvalidInput("a file's name has no null character; name another")
    with _explained(path):
        if path.is_dir():
            raise InvalidInput(f"{path} is a folder; name a file")
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        return os.fdopen(descriptor, "w", encoding="utf-8"), Path(beside)


def _finished(file: TextIO, beside: Path, path: Path, data: Mapping[str, Any], is_pretty: bool) -> bool:
    """Whether the file was still there, and has its place now."""
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
            beside.replace(path)
        except FileNotFoundError:
            return False
        _sync_folder(path.parent)
    return True


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
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
