"""`kalito-mcp project`: which project memories belong to."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kalito_mcp.cli.options import Commands, settings_of_existing, settings_to_read, with_settings
from kalito_mcp.cli.running import this_person, with_memory
from kalito_mcp.cli.terminal import tell
from kalito_mcp.errors import RecordNotFound, SessionNotFound
from kalito_mcp.text.plurals import plural

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory


@click.group(name="project", cls=Commands)
def command() -> None:
    """List projects, and move conversations and notes between them.

    Name a project by its path, or by any other name. What is personal is found in every project.
    """


@command.command(name="list")
@with_settings
def list_all(database: str | None, config: Path | None) -> None:
    """List the projects, the newest first."""
    found = with_memory(settings_to_read(database, config), lambda memory: memory.projects.all())
    tell(f"{plural(sessions, 'session'):>14}  {project}" for project, sessions in found)
    if not found:
        tell(["no projects: everything is personal"])


@command.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@click.option("--to", "project", metavar="PROJECT", help="The folder or the name of the project.")
@click.option("--personal", "is_personal", is_flag=True, help="Make them personal.")
@with_settings
def move(
    database: str | None, config: Path | None, ids: tuple[str, ...], project: str | None, is_personal: bool
) -> None:
    """Move conversations, or notes, tasks and documents that are in none, to another project.

    All messages, summaries and pins of a session go along. Hosts that still work in its former project can no longer
    record into it.
    """
    if (project is None) is not is_personal:
        raise click.UsageError("give --to PROJECT, or --personal")

    async def moved(memory: "Memory") -> list[str]:
        return [await _moved(memory, one, project) for one in ids]

    tell(with_memory(settings_of_existing(database, config), moved))


@command.command()
@click.argument("old")
@click.argument("new")
@with_settings
def rename(database: str | None, config: Path | None, old: str, new: str) -> None:
    """Give the project OLD, with all that belongs to it, the name NEW, such as the path that its folder moved to.

    If NEW is a known project, the two become one.
    """
    name = with_memory(settings_of_existing(database, config), lambda memory: memory.projects.rename(old, new))
    tell([f"renamed to {name}"])


async def _moved(memory: "Memory", one_id: str, project: str | None) -> str:
    """Move a session or a record. Returns a line that says so."""
    try:
        session = await memory.conversations.move(one_id, project)
    except SessionNotFound as unknown:
        try:
            records = await memory.records.move(one_id, project, editor=this_person())
        except RecordNotFound:
            raise unknown from None
        return f"moved {one_id} to {records[0].project or 'personal'}"
    return f"moved session {one_id} to {session.project or 'personal'}"
