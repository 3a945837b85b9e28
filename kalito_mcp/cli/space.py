"""`kalito-mcp space`: what several people share."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kalito_mcp.cli.options import (
    Commands,
    one_project,
    settings_of,
    settings_of_existing,
    settings_to_read,
    with_settings,
)
from kalito_mcp.cli.running import this_person, with_memory
from kalito_mcp.cli.terminal import tell
from kalito_mcp.domain.records import short_record_id
from kalito_mcp.domain.spaces import Membership, Role, Space
from kalito_mcp.text.plurals import plural

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory


@click.group(name="space", cls=Commands)
def command() -> None:
    """Share records with other people: with a team, or with all who work in a project.

    A member sees what is in a space in every search and context, labelled with its name. A reader does no more. A
    writer also shares their own records, and corrects and takes back those. A curator corrects and removes what anybody
    shared.
    """


@command.command()
@click.argument("name")
@click.option(
    "--project",
    callback=one_project,
    help="Of this project: it is seen in there alone. Default: of a team, seen everywhere.",
)
@with_settings
def create(database: str | None, config: Path | None, name: str, project: str | None) -> None:
    """Make the space NAME. It has no members yet."""
    space = with_memory(settings_of(database, config), lambda memory: memory.spaces.create(name, project))
    tell([f"made {_named(space)}; `kalito-mcp space add {shlex.quote(name)} USER` lets somebody in"])


@command.command(name="list")
@with_settings
def list_all(database: str | None, config: Path | None) -> None:
    """List the spaces, and who is in them."""

    async def read(memory: "Memory") -> list[tuple[Space, Sequence[Membership]]]:
        return [(one, await memory.spaces.members(one.name)) for one in await memory.spaces.all()]

    found = with_memory(settings_to_read(database, config), read)
    lines = [line for space, members in found for line in (_named(space), *(f"  {_line(one)}" for one in members))]
    tell(lines or ["no spaces; `kalito-mcp space create NAME` makes one"])


@command.command()
@click.argument("name")
@click.argument("user")
@click.option(
    "--role", type=click.Choice([*map(str, Role)]), help="Default: writer; a member keeps the role they have."
)
@with_settings
def add(database: str | None, config: Path | None, name: str, user: str, role: str | None) -> None:
    """Let USER into the space NAME, or give a member another role."""

    async def let_in(memory: "Memory") -> list[str]:
        is_known = any(one.name == user for one in await memory.people.all())
        there = [one for one in await memory.spaces.members(name) if one.user == user]
        if there and role is None:
            return [f"{_line(there[0])} already; --role gives them another role"]
        joined = _line(await memory.spaces.set_member(name, user, Role(role or Role.WRITER)))
        hint = f"nobody is called {user} yet: `kalito-mcp user add {shlex.quote(user)}`"
        return [joined] if is_known else [joined, hint]

    tell(with_memory(settings_of_existing(database, config), let_in))


@command.command()
@click.argument("name")
@click.argument("user")
@with_settings
def leave(database: str | None, config: Path | None, name: str, user: str) -> None:
    """Let USER leave the space NAME. What they shared stays, until they or a curator remove it."""
    with_memory(settings_of_existing(database, config), lambda memory: memory.spaces.remove_member(name, user))
    tell([f"{user} is no longer in {name}"])


@command.command()
@click.argument("record_id", metavar="ID")
@click.option("--space", "name", help="In which one. Default: the only one in which you may share.")
@with_settings
def share(database: str | None, config: Path | None, record_id: str, name: str | None) -> None:
    """Share the record ID, or bring what was shared of it up to date."""
    settings = settings_of_existing(database, config)
    _, shared = with_memory(settings, lambda memory: memory.spaces.share(record_id, name, editor=this_person()))
    tell([f"shared {short_record_id(shared.source_id)} in {shared.space} as {short_record_id(shared.record_id)}"])


@command.command()
@click.argument("record_id", metavar="ID")
@with_settings
def keep(database: str | None, config: Path | None, record_id: str) -> None:
    """Keep what somebody proposes in a space as a note of your own, which all your conversations know."""
    settings = settings_of_existing(database, config)
    kept = with_memory(settings, lambda memory: memory.records.keep(record_id, editor=this_person()))
    tell([f"kept as {short_record_id(kept.id)}"])


@command.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_settings
def remove(database: str | None, config: Path | None, name: str, yes: bool) -> None:
    """Erase all that was shared in the space NAME, and the space."""
    if not yes:
        click.confirm(f"Erase everything in {name} for good?", abort=True)
    erased = with_memory(settings_of_existing(database, config), lambda memory: memory.spaces.remove(name))
    tell([f"erased {plural(erased, 'record')} and {name}"])


def _named(space: Space) -> str:
    return f"{space.name}, of {f'project {space.project}' if space.project else 'a team'}"


def _line(member: Membership) -> str:
    return f"{member.user} is a {member.role} of {member.space.name}"
