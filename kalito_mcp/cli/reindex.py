"""`kalito-mcp reindex`."""

from pathlib import Path

import anyio
import click

from kalito_mcp.cli.options import settings_of, with_settings


@click.command(name="reindex")
@with_settings
def command(database: Path | None, config: Path | None) -> None:
    """Build the text index anew from the records. Other processes may go on reading meanwhile."""
    from kalito_mcp.wiring import reindex  # noqa: PLC0415 - keeps --help quick

    count = anyio.run(reindex, settings_of(database, config))
    click.echo(f"indexed {count} records")
