"""`kalito-mcp export`: takes a memory out, as an archive or as Markdown."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kalito_mcp.cli.options import every_project, settings_to_read, with_settings
from kalito_mcp.cli.running import with_memory
from kalito_mcp.domain.archive import Selection
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.time import from_iso, last_moment
from kalito_mcp.text.plurals import plural

if TYPE_CHECKING:
    from kalito_mcp.exchange.archive import ArchiveReport
    from kalito_mcp.memory import Memory


def with_selection(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that narrow an export."""
    types = click.Choice([str(one) for one in RecordType])
    for option in (
        click.option("--until", metavar="WHEN", help="Only what was said by then; a date means the end of that day."),
        click.option("--since", metavar="WHEN", help="Only what was said since then: ISO 8601."),
        click.option("--type", "types", multiple=True, type=types, help="Only records of this type; may be repeated."),
        click.option("--agent", "agent_id", metavar="ID", help="Only one agent's memory."),
        click.option(
            "--project",
            metavar="NAME",
            callback=every_project,
            help="Only what is of this project; `personal`: of none.",
        ),
        click.option("--session", "session_id", metavar="ID", help="Only one conversation."),
    ):
        command = option(command)
    return command


@click.command(name="export")
@click.argument("target", metavar="FILE|FOLDER", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--markdown", "is_markdown", is_flag=True, help="Write a folder of Markdown files, as Obsidian reads it.")
@with_selection
@with_settings
def command(
    database: str | None,
    config: Path | None,
    target: Path,
    is_markdown: bool,
    session_id: str | None,
    project: str | None,
    agent_id: str | None,
    types: tuple[str, ...],
    since: str | None,
    until: str | None,
) -> None:
    """Write the memory to FILE (`-` is standard output), without loss, one JSON object a line.

    `kalito-mcp import FILE` restores it into an empty database. It has everything, also what is forgotten: keep it like
    the database itself. With --type, --since or --until it is for reading only.

    With --markdown, write a FOLDER of files for people: one for each conversation and document, tasks, notes, and what
    is known. Run again, it changes only what changed. Forgotten records are left out.
    """
    settings = settings_to_read(database, config)
    is_standard_output = str(target) == "-"
    if is_markdown and is_standard_output:
        raise click.UsageError("--markdown writes a folder; name one")

    async def act(memory: "Memory") -> list[str]:
        selection = Selection(
            session=session_id,
            project=project,
            agent=agent_id,
            types=frozenset(map(RecordType, types)),
            since_ms=None if since is None else from_iso(since, "--since", memory.zone),
            until_ms=None if until is None else last_moment(until, "--until", memory.zone),
        )
        if is_markdown:
            return await _write_markdown(memory, target, selection)
        from kalito_mcp.exchange.archive import write_archive, write_archive_file  # noqa: PLC0415 - keeps --help quick

        if is_standard_output:
            return _report_lines(await write_archive(memory, sys.stdout.buffer.write, selection), selection)
        return _report_lines(await write_archive_file(memory, target, selection), selection)

    for line in with_memory(settings, act):
        click.echo(line, err=is_standard_output)


async def _write_markdown(memory: "Memory", folder: Path, selection: Selection) -> list[str]:
    from kalito_mcp.exchange.markdown import pages  # noqa: PLC0415 - keeps --help quick
    from kalito_mcp.exchange.markdown_folder import write_folder  # noqa: PLC0415 - as above

    report = await write_folder(folder, pages(memory, selection))
    left = [f"left alone, because it is not as it was written: {path}" for path in report.left]
    counts = f"{plural(report.written, 'file')} written, {report.unchanged:,} unchanged, {report.removed:,} removed"
    return [counts, *left]


def _report_lines(report: "ArchiveReport", selection: Selection) -> list[str]:
    counted = {"sessions": "session", "records": "record", "memory_edits": "edit", "graph_nodes": "graph node"}
    parts = [plural(report.entries.get(kind, 0), noun) for kind, noun in counted.items()]
    note = [] if selection.is_restorable else ["parts of conversations: for reading only, it cannot be restored"]
    return [f"exported {', '.join(parts)}; digest {report.digest[:16]}", *note]
