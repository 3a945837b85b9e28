"""`kalito-mcp stats`."""

import json
from pathlib import Path

import click

from kalito_mcp.cli.options import check_recorded, reader_settings_of, with_settings
from kalito_mcp.text.plurals import plural

_ALWAYS_COUNTED = ("session", "message", "pin", "summary")
_COUNTED = (*_ALWAYS_COUNTED, "note", "task", "document")


@click.command(name="stats")
@with_settings
@click.option("--session", "session_id", help="One conversation in detail.")
@click.option("--json", "is_json", is_flag=True, help="One JSON object, for programs.")
def command(database: str | None, config: Path | None, session_id: str | None, is_json: bool) -> None:
    """Show what the memory contains. Reads only, and never creates a database."""
    from kalito_mcp.reading import read_stats  # noqa: PLC0415 - keeps --help quick

    settings = reader_settings_of(database, config)
    if database is None:
        check_recorded(settings.database, is_reading=True)
    stats = read_stats(settings, session_id)
    if is_json:
        click.echo(json.dumps(stats, ensure_ascii=False))
        return
    if session_id is not None:
        for name, value in stats.items():
            click.echo(f"{name.replace('_', ' '):>26}  {'none' if value is None else value}")
        return
    click.echo(f"{stats['database']}  ({stats['bytes']:,} bytes)")
    counts = [(stats["summaries"] if noun == "summary" else stats[f"{noun}s"], noun) for noun in _COUNTED]
    click.echo(", ".join(plural(count, noun) for count, noun in counts if count or noun in _ALWAYS_COUNTED))
    if stats["vectors"]:
        click.echo(f"{plural(stats['vectors'], 'vector')}, made by {stats['vectors_made_by']}")
    elif any(count for count, _ in counts):
        click.echo("no vectors: search uses words only")
