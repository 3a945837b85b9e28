"""Where a memory is: the address of its database, and the files that this machine keeps outside the database. Standard
library alone: a hook looks here, and its host waits for it."""

from dataclasses import dataclass
from pathlib import Path

from kalito_mcp.errors import ConfigurationError
from kalito_mcp.runtime.default_places import data_folder


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
class DatabaseAddress:
    """The address of a database: today always the path of a SQLite file. Only composition roots look at `path`."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    @property
    def files(self) -> LocalFiles:
        """The files of this memory outside the database."""
        return LocalFiles(self.path)

    def exists(self) -> bool:
        """Whether there is a database at this address. Opens nothing."""
        return self.path.exists()


def default_database() -> DatabaseAddress:
    """`memory.db` in the user's data directory."""
    return DatabaseAddress(data_folder() / "memory.db")


def address_of(named: Path | str) -> DatabaseAddress:
    """The database that a person or a program names.

    Raises:
        ConfigurationError: it is not the path of a file.
    """
    scheme, is_url, _ = str(named).partition("://")
    if is_url:  # the rest may have a password in it
        raise ConfigurationError(f"a database at {scheme}:// is not supported; name a SQLite file, such as memory.db")
    path = expanded(Path(named))
    if not path.name or "\0" in str(path):
        raise ConfigurationError(f"{str(path)!r} cannot be a database; name a file, such as memory.db")
    try:
        path.exists()
    except OSError as error:
        raise ConfigurationError(f"the database {path} cannot be reached: {error.strerror}; check the path") from error
    return DatabaseAddress(path)


def expanded(path: Path) -> Path:
    """The path with the user's folder for `~`. Raises ConfigurationError if there is no such user."""
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise ConfigurationError(f"{path}: no such user; write the whole path") from error
