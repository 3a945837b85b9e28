"""`kalito-mcp migrate`."""

import os
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
import click

from kalito_mcp.cli.options import settings_of_existing, with_settings
from kalito_mcp.cli.terminal import tell
from kalito_mcp.errors import InvalidInput
from kalito_mcp.runtime.database_address import address_of
from kalito_mcp.text.plurals import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kalito_mcp.config.settings import Settings
    from kalito_mcp.upkeep.transfer import TransferReport

_TELL_EVERY_S: Final = 2.0
_SHOWN: Final = 16


@click.command(name="migrate")
@with_settings
@click.option("--to", "named", required=True, metavar="URL|FILE", help="postgresql://role@host/database, or a file.")
def command(database: str | None, config: Path | None, named: str) -> None:
    """Move the whole memory to another database, from a file to PostgreSQL or back.

    Everything goes along: ids, history, what is forgotten, tokens, sign-ins, and the audit log with its chain. Nothing
    is changed here. End the servers before. If it is stopped, run it again: it goes on.

    The tables of a PostgreSQL database are made with KALITO_DATABASE_DIRECT, as at the start of a server.
    """
    from kalito_mcp.migrating import migrate  # noqa: PLC0415 - keeps --help quick

    settings = settings_of_existing(database, config)
    target = address_of(named, os.environ.get("KALITO_DATABASE_DIRECT") or None)
    is_on_server = target.server or settings.database.server  # which may have two names; nothing is moved then
    if not is_on_server and target.prefix.resolve() == settings.database.prefix.resolve():
        raise InvalidInput(f"{target} is where the memory is already; name another database")
    report = anyio.run(partial(migrate, settings.database, target, settings.storage, _Progress()))
    tell([*_report_lines(report), *_next_lines(settings, replace(settings, database=target))])


class _Progress:
    """Lines on stderr: one for each step, and while rows are moved one in two seconds."""

    def __init__(self) -> None:
        self._rows = 0
        self._told_at = time.monotonic()

    def __call__(self, step: str, rows: int) -> None:
        """Show a step, or that this many more rows are at the target."""
        self._rows += rows
        if not rows:
            click.echo(step, err=True)
        elif time.monotonic() - self._told_at >= _TELL_EVERY_S:
            self._told_at = time.monotonic()
            click.echo(f"{self._rows:,} rows moved, the last ones {step}", err=True)


def _report_lines(report: "TransferReport") -> "Iterator[str]":
    for table, (rows, digest) in report.tables.items():
        if rows:
            yield f"{table:<16} {rows:>11,}  {digest[:_SHOWN]}"
    yield "these have the same digests on both sides"
    if report.vectors_of_source:
        yield f"{plural(report.vectors, 'vector')} of {report.vectors_of_source:,}"


def _next_lines(before: "Settings", after: "Settings") -> "Iterator[str]":
    source, target = before.database, after.database
    what = "KALITO_DATABASE to the URL of its role that serves" if target.server else f"KALITO_DATABASE={target}"
    yield f"{source} is as it was. To use {target} from now on, set {what}"
    for kept, new in ((before.snapshots, after.snapshots), (source.files.hooks, target.files.hooks)):
        if kept.exists():
            yield f"{kept} stays where it is; to go on with it, move it to {new}"
