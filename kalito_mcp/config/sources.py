"""Where settings come from: the TOML file, the `KALITO_*` environment and the command line, each winning over the ones
before. Reads them; `settings` checks the sections.

Apart from `settings`, because that module imports the policy of every rule, which takes a tenth of a second. A command
that only reads does without it if nothing is set but where the memory is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kalito_mcp.domain.scope import LOCAL_OWNER
from kalito_mcp.domain.spaces import checked_user
from kalito_mcp.errors import ConfigurationError, InvalidInput
from kalito_mcp.ports.storage_policy import StoragePolicy
from kalito_mcp.runtime.database_address import DatabaseAddress, address_of, default_database, expanded
from kalito_mcp.runtime.default_places import default_config

PREFIX: Final = "KALITO_"
OWN_VARIABLES: Final = frozenset(
    {
        "KALITO_DATABASE",
        "KALITO_DATABASE_DIRECT",
        "KALITO_OWNER",
        "KALITO_CONFIG",
        "KALITO_SESSION",
        "KALITO_LOG",
        "KALITO_PROJECT",
        "KALITO_CRASH_POINT",
        "KALITO_HOME_TOKEN",
        "KALITO_HOOKS",
        "KALITO_CHATGPT",
        "KALITO_MEMORY_TOOL",
    }
)
"""Those that set no key of a section."""


@dataclass(frozen=True, slots=True)
class ReaderSettings:
    """The settings of a command that only reads."""

    database: DatabaseAddress
    owner: str
    storage: StoragePolicy = StoragePolicy()


@dataclass(frozen=True, slots=True)
class Sources:
    """What all sources say, as written. `sections` is the rest of the file `config`, and `variables` those variables
    that may be a key of a section."""

    database: Path | str | None
    owner: str
    config: Path | None
    sections: dict[str, Any]
    variables: dict[str, str]
    direct_url: str | None = None

    def checked_database(self) -> DatabaseAddress:
        """The address of the database. Raises ConfigurationError if it cannot be one."""
        return default_database() if self.database is None else address_of(self.database, self.direct_url)

    def checked_owner(self) -> str:
        """Whose memory it is. Raises ConfigurationError if it is no name."""
        try:
            return checked_user(self.owner, "owner")
        except InvalidInput as error:
            raise ConfigurationError(str(error)) from error

    def reader_settings(self) -> ReaderSettings | None:
        """The settings of a command that only reads. None if anything else is set as well: `settings` must check it.

        Raises:
            ConfigurationError: the database or the owner cannot be used.
        """
        if self.sections or self.variables:
            return None
        return ReaderSettings(self.checked_database(), self.checked_owner())


def read_sources(
    environment: Mapping[str, str], *, config: Path | None = None, database: Path | str | None = None
) -> Sources:
    """Read all sources. `config` and `database` are the command line's and win over the environment.

    Raises:
        ConfigurationError: the file cannot be read, or its database or owner is no text.
    """
    path = _config_path(environment, config)
    content = {} if path is None else _content(path)
    in_file = {name: content.pop(name, None) for name in ("database", "owner")}
    for name, what in (("database", "database's path"), ("owner", "owner's name")):
        if not isinstance(in_file[name], str | None):
            raise ConfigurationError(f"{path}: write the {what} in quotes")
    return Sources(
        database=(environment.get("KALITO_DATABASE") or in_file["database"]) if database is None else database,
        owner=environment.get("KALITO_OWNER") or in_file["owner"] or LOCAL_OWNER,
        config=path,
        sections=content,
        variables={
            name: value for name, value in environment.items() if name.startswith(PREFIX) and name not in OWN_VARIABLES
        },
        direct_url=environment.get("KALITO_DATABASE_DIRECT") or None,
    )


def _config_path(environment: Mapping[str, str], config: Path | None) -> Path | None:
    named = config or (Path(environment["KALITO_CONFIG"]) if environment.get("KALITO_CONFIG") else None)
    if named is not None:
        return expanded(named)
    return default_config() if default_config().is_file() else None


def _content(path: Path) -> dict[str, Any]:
    import tomllib  # noqa: PLC0415 - most people have no file

    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigurationError(f"cannot read the configuration {path}: {error.strerror}; check the path") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is not TOML: {error}; correct it") from error
