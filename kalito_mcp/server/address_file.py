"""Where on this machine a server of a memory listens for HTTP: a file that the server locks for as long as it runs.

Standard library alone. A process that is killed leaves the file, but not the lock, so nobody is sent to a port that
another program has taken since.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import BinaryIO, Final
from urllib.parse import urlsplit

from kalito_mcp.files import try_lock
from kalito_mcp.safety.addresses import LOOPBACK_HOSTS

_EVERY_ADDRESS: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared, not listened on
_ANSWER_S: Final = 2.0
_LONGEST: Final = 200


def local_url(host: str, port: int) -> str | None:
    """The URL by which this machine reaches a server that listens on a host; None if it is not by loopback."""
    name = _EVERY_ADDRESS.get(host, host)
    if name not in LOOPBACK_HOSTS:
        return None
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


@contextmanager
def naming(file: Path, url: str) -> Iterator[None]:
    """Name the server in the file during the block. Where that cannot be, or another server is named, it is not."""
    opened = _locked(file)
    if opened is None:
        yield
        return
    with opened:
        try:
            opened.truncate(0)
            opened.write(url.encode())
            opened.flush()
            yield
        finally:
            with suppress(OSError):  # Windows deletes no open file; without its lock it counts for nothing
                file.unlink(missing_ok=True)


def running_server(file: Path) -> str | None:
    """The URL of the server that is named in the file, if it runs and is ready."""
    try:
        with file.open("rb") as opened:
            if try_lock(opened.fileno()):
                return None
            url = opened.read(_LONGEST).decode("ascii", "replace")
    except OSError:
        return None
    return url if _is_ready(url) else None


def _is_ready(url: str) -> bool:
    try:
        parts = urlsplit(url)
        connection = HTTPConnection(parts.hostname or "", parts.port, timeout=_ANSWER_S)
        try:
            connection.request("GET", "/health/ready")
            return connection.getresponse().status == HTTPStatus.OK
        finally:
            connection.close()
    except (ValueError, OSError, HTTPException):
        return False


def _locked(file: Path) -> BinaryIO | None:
    try:
        opened = open(file, "ab", opener=_private)  # noqa: SIM115 - the caller closes it
    except OSError:
        return None
    if try_lock(opened.fileno()):
        return opened
    opened.close()
    return None


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
