"""Options that several commands share."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from kalito_mcp.domain.wording import did_you_mean
from kalito_mcp.errors import ConfigurationError

if TYPE_CHECKING:
    from kalito_mcp.config.settings import Settings
    from kalito_mcp.config.sources import ReaderSettings
    from kalito_mcp.runtime.database_address import DatabaseAddress

Command = TypeVar("Command", bound=Callable[..., Any])
_ALL: Final = "*"
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


def every_project(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """The callback of a --project that chooses what is read: `*` is all, as over MCP."""
    return None if value == _ALL else value


def one_project(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """The callback of a --project that says whose something is."""
    if value == _ALL:
        raise click.BadParameter("name one project; what is personal, without --project, is found in all of them")
    return value


class Commands(click.Group):
    """A group that names the nearest command if a name is unknown."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            raise click.UsageError(
                f"no command {args[0]!r}{did_you_mean(args[0], self.list_commands(ctx))}", ctx
            ) from error


def settings_to_read(database: str | None, config: Path | None) -> "Settings":
    """Settings for a command that reads, and ends here if nothing was recorded yet (see `check_recorded`)."""
    settings = settings_of(database, config)
    check_recorded(settings.database, is_reading=database is None)
    return settings


def settings_of_existing(database: str | None, config: Path | None) -> "Settings":
    """Settings whose database must exist. Raises ConfigurationError if it does not; nothing is created."""
    settings = settings_of(database, config)
    check_recorded(settings.database)
    return settings


def check_recorded(database: "DatabaseAddress", *, is_reading: bool = False) -> None:
    """Raise ConfigurationError if there is no database. But if a command only reads, end it with a line and without an
    error: before the first message there is nothing to read."""
    if database.exists():
        return
    from kalito_mcp.bridge.connection import read_connection  # noqa: PLC0415 - commands that find one need none

    connection = read_connection(database.files.home)
    if connection is not None:
        raise ConfigurationError(
            f"the memory of this machine is at {connection.origin}: run this command there, or ask an assistant"
        )
    begin = "`kalito-mcp install` connects your assistants, which record from then on"
    if is_reading:
        click.echo(f'nothing is remembered yet. {begin}; `kalito-mcp pin "..."` keeps a fact now', err=True)
        raise click.exceptions.Exit(0)
    raise ConfigurationError(
        f"nothing has been recorded yet: {database} does not exist. {begin}; if you expected a memory here, check "
        "--database"
    )
