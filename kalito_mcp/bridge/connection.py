"""The connection to a memory on another machine: its address, and the token for it.

Standard library alone, because every start of the server looks here.

Both are in a folder that only its owner can read, `LocalFiles.home`. The address is in a file that may be shown. The
token is in one of its own, together with the origin that it is for, or in the environment. It is never in the
configuration of a host or on a command line.
"""

import ipaddress
import json
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from kalito_mcp.errors import ConfigurationError, InvalidInput
from kalito_mcp.files import write_whole

TOKEN_VARIABLE: Final = "KALITO_HOME_TOKEN"  # noqa: S105 - the name of a variable
NO_CONNECTION: Final = "no connection"
"""The start of the reason if nothing answers at the address."""
_CONNECTION: Final = "connection.json"
_TOKEN: Final = "token"  # noqa: S105 - the name of a file
_OTHERS: Final = 0o077
_LONGEST_TOKEN: Final = 4_096
_MCP_PATH: Final = "/mcp"


@dataclass(frozen=True, slots=True)
class Connection:
    """The address of the home server's MCP endpoint. `is_plain` allows http to a private address."""

    url: str
    is_plain: bool = False

    @property
    def origin(self) -> str:
        """Scheme, host and port: where the token may go."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"


def connection_to(url: str, *, is_plain: bool = False) -> Connection:
    """The connection to a home that a person has named, with or without `/mcp`.

    Raises:
        InvalidInput: it is not an address of a home, or others on the way could read the token. Says what to do.
    """
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidInput(f"{url!r} is not an address ({error}); write it as https://kalito.example.org") from error
    if parts.username is not None or parts.password is not None:
        raise InvalidInput("leave the user and the password out of the address; kalito asks for a token")
    if parts.scheme not in ("https", "http") or not host or parts.query or parts.fragment:
        raise InvalidInput(f"{url!r} is not the address of a home; write it as https://kalito.example.org")
    if parts.scheme == "http":
        _check_plain(host, is_plain=is_plain)
    path = parts.path.rstrip("/") or _MCP_PATH
    return Connection(f"{parts.scheme}://{parts.netloc}{path}", is_plain)


def _check_plain(host: str, *, is_plain: bool) -> None:
    """Refuse to send the token and all words without encryption, except within this machine or, if asked for, within
    a private network. A name could lead anywhere tomorrow, so only a number is known to be private."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        if host == "localhost":
            return
        raise InvalidInput(
            f"http to {host} would send your token and text unencrypted; use https, or its "
            "private number such as 192.168.1.20 with --plain-http (docs/machines.md)"
        ) from None
    if address.is_loopback:
        return
    is_private = not address.is_global and not address.is_unspecified and not address.is_multicast
    if not is_private:
        raise InvalidInput(f"http to {host} would send your token and text unencrypted; use https")
    if not is_plain:
        raise InvalidInput(
            f"http to {host} would send your token and text unencrypted in that network; use https, or add "
            "--plain-http if you trust everybody in it"
        )


def read_connection(folder: Path) -> Connection | None:
    """Where the memory of this machine is; None if it is here.

    Raises: ConfigurationError: the file is damaged, or cannot be read now. The memory on this machine is not used
        instead: the conversation would be stored in two places.
    """
    file = folder / _CONNECTION
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):  # the database reports what is wrong with the folder
        return None
    except OSError as error:
        raise ConfigurationError(
            f"{file} cannot be read: {error.strerror}; make it readable, or mount its drive, and try again"
        ) from error
    except ValueError as error:
        raise _damaged(file) from error
    url = content.get("url") if isinstance(content, dict) else None
    if not isinstance(url, str):
        raise _damaged(file)
    try:
        return connection_to(url, is_plain=content.get("is_plain") is True)
    except InvalidInput as error:
        raise ConfigurationError(f"{file}: {error}") from error


def write_connection(folder: Path, connection: Connection, token: str | None) -> None:
    """Store where the home is and, unless it comes from the environment, the token.

    They are two files. The token is the first, and names its origin, so that it is never sent to an earlier home.

    Raises:
        ConfigurationError: a file cannot be written.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if token is None:
            (folder / _TOKEN).unlink(missing_ok=True)
        else:
            write_whole(folder / _TOKEN, f"{token}\n{connection.origin}\n".encode())
        content = {"url": connection.url, "is_plain": connection.is_plain}
        write_whole(folder / _CONNECTION, json.dumps(content).encode())
    except OSError as error:
        raise ConfigurationError(
            f"cannot write {error.filename}: {error.strerror}; run `kalito-mcp connect` again when it can be written"
        ) from error


def remove_connection(folder: Path) -> None:
    """Forget the home's address, the token, and the kept answers. Calls that wait for the home stay.

    Raises:
        ConfigurationError: a file cannot be deleted.
    """
    try:
        for name in (_CONNECTION, _TOKEN):
            (folder / name).unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            shutil.rmtree(folder / "answers")
        (folder / "deliver.lock").unlink(missing_ok=True)
    except OSError as error:
        raise ConfigurationError(f"cannot delete {error.filename}: {error.strerror}; delete it yourself") from error
    for empty in (folder / "outbox", folder / "refused", folder):
        with suppress(OSError):  # what waits is in it
            empty.rmdir()


def read_token(folder: Path, environment: Mapping[str, str], origin: str) -> str:
    """The token for the home at this origin: from the environment, or else from the file.

    Raises:
        ConfigurationError: there is no token, it is for another origin, or others on this machine can read the file.
            Never says the token.
    """
    given = environment.get(TOKEN_VARIABLE)
    if given:
        return checked_token(given)
    file = folder / _TOKEN
    try:
        if sys.platform != "win32" and file.stat().st_mode & _OTHERS:
            raise ConfigurationError(
                f"others on this machine can read {file}: run chmod 600 on it, and make a new token"
            )
        token, _, its_origin = file.read_text(encoding="utf-8").partition("\n")
    except FileNotFoundError:
        raise ConfigurationError(
            f"there is no token for the home: run `kalito-mcp connect` again, or set {TOKEN_VARIABLE}"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file} cannot be read; run `kalito-mcp connect` again") from error
    if its_origin.strip() != origin:
        raise ConfigurationError(
            "the token of this machine is for another home: restart the assistants, or run `kalito-mcp connect` again"
        )
    return checked_token(token)


def checked_token(text: str) -> str:
    """The token without white space around it. Raises ConfigurationError if it cannot be one; never repeats it."""
    token = text.strip()
    if not token or len(token) > _LONGEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigurationError(
            "this is not a token: make one on the home machine with `kalito-mcp token create`, and copy all of it"
        )
    return token


def _damaged(file: Path) -> ConfigurationError:
    return ConfigurationError(
        f"{file} cannot be read, so it is unknown where the memory is: run `kalito-mcp connect` again"
    )
