"""Where a memory is: the address of its database, and the files that this machine keeps outside the database. Standard
library alone: a hook looks here, and its host waits for it."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kalito_mcp.errors import ConfigurationError
from kalito_mcp.runtime.default_places import data_folder

_SERVERS = frozenset({"postgresql", "postgres"})
_LIKE_A_URL: Final = re.compile(r"[\s'\"]*([a-z][a-z0-9+.-]+:/+|postgres\w*:)", re.IGNORECASE)
"""A drive of Windows is one letter."""


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """What this machine keeps for a memory outside its database. Every name begins with `prefix`."""

    prefix: Path

    @property
    def hooks(self) -> Path:
        """The folder that hooks and servers share. Each server that listens has a file in it."""
        return self._beginning("hooks")

    @property
    def switch(self) -> Path:
        """Whether the memory is paused, and which folders are excluded."""
        return self.hooks / "switch.json"

    @property
    def spool(self) -> Path:
        """The folder of events that no server has taken yet."""
        return self.hooks / "spool"

    @property
    def conversations(self) -> Path:
        """The folder of what hooks have reported of conversations that still run."""
        return self.hooks / "conversations"

    def trace(self, host: str) -> Path:
        """The file whose modification time is the time of the last event of a host's hooks."""
        return self.hooks / f"heard-{host}"

    @property
    def home(self) -> Path:
        """The folder of a machine whose memory is on another one: the home's address, the token, and the calls that
        wait."""
        return self._beginning("home")

    @property
    def answers(self) -> Path:
        """The folder of answers of that memory, for when it cannot be reached."""
        return self.home / "answers"

    @property
    def http_address(self) -> Path:
        """The file that names the server of this memory that listens for HTTP on this machine."""
        return self._beginning("address")

    @property
    def snapshots(self) -> Path:
        """The folder of snapshots of graphs."""
        return self._beginning("snapshots")

    def _beginning(self, suffix: str) -> Path:
        return self.prefix.with_name(f"{self.prefix.name}.{suffix}")


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """The address of a database on a PostgreSQL server. Its URLs may have passwords in them, so none is shown.

    `direct_url` is for what a pooler in between cannot pass on, and of the role that owns the tables; None if it was
    not named.
    """

    url: str = field(repr=False)
    direct_url: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        hosts, name = shown_parts(self.url)
        return f"postgresql://{hosts}/{name}"


@dataclass(frozen=True, slots=True)
class DatabaseAddress:
    """The address of a database: the path of a SQLite file, or a server. Every name of a file that this machine keeps
    outside the database begins with `prefix`. Only composition roots look at `path` and `server`."""

    prefix: Path
    server: ServerAddress | None = None

    def __str__(self) -> str:
        return str(self.server or self.prefix)

    @property
    def path(self) -> Path:
        """The SQLite file. Raises ConfigurationError if the database is on a server."""
        if self.server is not None:
            raise ConfigurationError(
                f"{self} is on PostgreSQL, which has tools of its own for this; docs/postgresql.md names them"
            )
        return self.prefix

    @property
    def files(self) -> LocalFiles:
        """The files of this memory outside the database."""
        return LocalFiles(self.prefix)

    def exists(self) -> bool:
        """Whether there is a database at this address. Opens nothing: a server's is taken to be there."""
        return self.server is not None or self.prefix.exists()


def default_database() -> DatabaseAddress:
    """`memory.db` in the user's data directory."""
    return DatabaseAddress(data_folder() / "memory.db")


def address_of(named: Path | str, direct_url: str | None = None) -> DatabaseAddress:
    """The database that a person or a program names: a file, or the URL of a PostgreSQL server.

    Raises:
        ConfigurationError: it is neither, or a URL cannot be read.
    """
    scheme, is_url, rest = str(named).partition("://")
    begun = _LIKE_A_URL.match(str(named))
    if is_url and scheme in _SERVERS:
        for which, url in (("the database", f"postgresql://{rest}"), ("KALITO_DATABASE_DIRECT", direct_url)):
            if url is not None and not _is_readable(url):
                raise ConfigurationError(
                    f"the URL of {which} cannot be read; write postgresql://role:password@host:port/database, and "
                    "percent-encode special characters of the password, such as %40 for @ and %2F for /"
                )
        server = ServerAddress(f"postgresql://{rest}", direct_url)
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", str(server).partition("://")[2])
        return DatabaseAddress(data_folder() / f"postgresql-{name}", server)
    if is_url or begun:  # the rest may have a password in it
        raise ConfigurationError(
            f"a database at {begun[0] if begun else f'{scheme}://'} is not supported; name a SQLite file, such as "
            "memory.db, or postgresql://role@host/database"
        )
    path = expanded(Path(named))
    if not path.name or "\0" in str(path):
        raise ConfigurationError(f"{str(path)!r} cannot be a database; name a file, such as memory.db")
    try:
        path.exists()
    except OSError as error:
        raise ConfigurationError(f"the database {path} cannot be reached: {error.strerror}; check the path") from error
    return DatabaseAddress(path)


def _is_readable(url: str) -> bool:
    """Whether a URL has one reading. Otherwise a piece of its password may be taken for a host or a database's name,
    and shown."""
    from urllib.parse import parse_qsl, urlsplit  # noqa: PLC0415 - only with a server

    try:
        parts = urlsplit(url)
        named = dict(parse_qsl(parts.query, strict_parsing=True)) if parts.query else {}
    except ValueError:
        return False
    role, at, hosts = parts.netloc.rpartition("@")
    has_password = bool(at) or ":" in hosts
    if url.partition("://")[0] not in _SERVERS or "#" in url:
        return False
    if "@" in role + parts.path or (has_password and "@" in parts.query):
        return False
    places = hosts.split(",") if hosts else []
    ports = [one.rpartition("]")[2].partition(":")[2] for one in places] + named.get("port", "").split(",")
    return all(places) and all(port.isdecimal() or not port for port in ports)


def shown_parts(url: str) -> tuple[str, str]:
    """The hosts of a server's URL, with their ports, and the name of its database: what may be shown of it."""
    from urllib.parse import parse_qs, urlsplit  # noqa: PLC0415 - only with a server

    parts = urlsplit(url)
    hosts = parts.netloc.rpartition("@")[2] or parse_qs(parts.query).get("host", ["localhost"])[-1]
    return hosts, parts.path.lstrip("/")


def expanded(path: Path) -> Path:
    """The path with the user's folder for `~`. Raises ConfigurationError if there is no such user."""
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise ConfigurationError(f"{path}: no such user; write the whole path") from error
