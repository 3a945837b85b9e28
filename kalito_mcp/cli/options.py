"""Options that several commands share."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from kalito_mcp.errors import ConfigurationError

if TYPE_CHECKING:
    from kalito_mcp.config.settings import Settings
    from kalito_mcp.config.sources import ReaderSettings

Command = TypeVar("Command", bound=Callable[..., Any])
_VALUE: Final = "VALUE is read as JSON, or else as text. A list of tags may be written a,b."
with_assignments: Final = click.option("--set", "assignments", multiple=True, metavar="FIELD=VALUE", help=_VALUE)


def with_settings(command: Command) -> Command:
    """Add --database and --config."""
    database = click.option(
        "--database",
        type=click.Path(),
        help="The database file. Default: $KALITO_DATABASE, or memory.db in your data directory.",
    )
    config = click.option(
        "--config",
        type=click.Path(path_type=Path),
        help="A TOML file with settings. Default: $KALITO_CONFIG, or config.toml in your configuration directory.",
    )
    return database(config(command))


def settings_of(database: str | None, config: Path | None) -> "Settings":
    """Settings from the environment, the file and the options."""
    from kalito_mcp.config.settings import load_settings  # noqa: PLC0415 - imports every policy

    return load_settings(os.environ, config=config, database=database)


def reader_settings_of(database: str | None, config: Path | None) -> "ReaderSettings":
    """The settings from `settings_of` for a command that only reads. Imports the policies only if one of them is
    set."""
    from kalito_mcp.config.sources import ReaderSettings, read_sources  # noqa: PLC0415 - keeps --help quick

    sources = read_sources(os.environ, config=config, database=database)
    if (found := sources.reader_settings()) is not None:
        return found
    from kalito_mcp.config.settings import settings_from  # noqa: PLC0415 - imports every policy

    settings = settings_from(sources)
    return ReaderSettings(settings.database, settings.owner, settings.storage)


def settings_of_existing(database: str | None, config: Path | None) -> "Settings":
    """Settings whose database must exist. Raises ConfigurationError if it does not; nothing is created."""
    settings = settings_of(database, config)
    if not settings.database.exists():
        from kalito_mcp.bridge.connection import read_connection  # noqa: PLC0415 - commands that find one need none

        connection = read_connection(settings.database.files.home)
        if connection is not None:
            raise ConfigurationError(
                f"the memory of this machine is at {connection.origin}: run this command there, or ask an assistant"
            )
        raise ConfigurationError(
            f"nothing has been recorded yet: {settings.database} does not exist. `kalito-mcp install` connects your "
            "assistants, which record from then on; if you expected a memory here, check --database"
        )
    return settings
