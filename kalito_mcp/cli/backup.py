"""`kalito-mcp backup`: copies of the database, made while hosts use it, and one of them put in its place."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click

from kalito_mcp.cli.options import settings_of, settings_of_existing, with_settings
from kalito_mcp.cli.terminal import ask
from kalito_mcp.text.plurals import plural

if TYPE_CHECKING:
    from kalito_mcp.config.settings import Settings


@click.command(name="backup")
@click.option("--keep", type=click.IntRange(1), default=7, show_default=True, help="How many of the newest to keep.")
@click.option("--list", "is_list", is_flag=True, help="List the backups, the newest first.")
@click.option("--restore", "backup", metavar="FILE", type=click.Path(path_type=Path), help="Put a backup in place.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_settings
def command(
    database: str | None, config: Path | None, keep: int, is_list: bool, backup: Path | None, yes: bool
) -> None:
    """Copy the database into the folder `<database>.backups`, while hosts use it, and check the copy.

    All but the newest copies are removed. What is erased later stays in earlier ones: `purge` names them. Snapshots
    of graphs are files of their own.

    --restore puts a copy back, after quitting every host that uses the database. What was there is kept under another
    name. FILE may be just the name that --list shows.
    """
    if is_list and backup is not None:
        raise click.UsageError("give --list or --restore, not both")
    if backup is not None:
        _restore(settings_of(database, config), backup, yes=yes)
    elif is_list:
        _list(settings_of(database, config))
    else:
        _back_up(settings_of_existing(database, config), keep)


def _back_up(settings: "Settings", keep: int) -> None:
    from kalito_mcp.wiring import back_up  # noqa: PLC0415 - keeps --help quick

    made, removed = back_up(settings, keep)
    click.echo(f"{made.path}  {made.size_bytes:,} bytes")
    click.echo(f"checked: {plural(made.sessions, 'session')}, {plural(made.records, 'record')}")
    for path in removed:
        click.echo(f"removed {path.name}")


def _list(settings: "Settings") -> None:
    from kalito_mcp.wiring import backups  # noqa: PLC0415 - keeps --help quick

    folder, found = backups(settings)
    zone = settings.time.zone_of_user(os.environ.get("TZ"))
    for one in found:
        click.echo(f"{zone.minute(one.made_at_ms)}  {one.size_bytes:>14,} bytes  {one.path.name}")
    if not found:
        click.echo(f"no backups in {folder}")


def _restore(settings: "Settings", backup: Path, *, yes: bool) -> None:
    from kalito_mcp.wiring import backups, restore_backup  # noqa: PLC0415 - keeps --help quick

    named = backups(settings)[0] / backup
    chosen = named if backup.name == str(backup) and not backup.exists() and named.exists() else backup
    if not yes and settings.database.exists():
        ask(f"Put {chosen} in the place of {settings.database}?", undone="nothing was restored")
    restored, kept = anyio.run(restore_backup, settings, chosen)
    click.echo(f"restored {plural(restored.sessions, 'session')} and {plural(restored.records, 'record')}")
    if kept is not None:
        click.echo(f"the replaced database is now {kept}; delete it when you no longer need it")
