"""`kalito-mcp doctor`."""

import platform
import sys
from pathlib import Path

import click

from kalito_mcp.cli.options import settings_of, with_settings
from kalito_mcp.version import __version__


@click.command(name="doctor")
@with_settings
@click.option("--deep", "is_deep", is_flag=True, help="Read every record: hashes, counters, text index, vectors.")
def command(database: Path | None, config: Path | None, is_deep: bool) -> None:
    """Check the database and its surroundings. Changes nothing. The exit code is 1 if a check failed."""
    from kalito_mcp.wiring import diagnose  # noqa: PLC0415 - keeps --help quick

    settings = settings_of(database, config)
    click.echo(f"kalito-mcp {__version__}, Python {platform.python_version()}, {platform.platform(terse=True)}")
    click.echo(f"database  {settings.database}")
    is_well = True
    for finding in diagnose(settings, is_deep=is_deep):
        is_well = is_well and finding.verdict != "FAILED"
        colour = {"ok": "green", "warning": "yellow"}.get(finding.verdict, "red")
        click.echo(f"{click.style(f'{finding.verdict:>7}', fg=colour)}  {finding.check}: {finding.detail}")
    if not is_well:
        sys.exit(1)
