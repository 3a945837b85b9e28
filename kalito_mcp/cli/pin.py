"""`kalito-mcp pin`: a fact that every conversation begins with, in the words of the person who runs it."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kalito_mcp.cli.options import one_project, settings_of, with_settings
from kalito_mcp.cli.record_lines import redaction_lines
from kalito_mcp.cli.running import this_person, with_memory
from kalito_mcp.cli.terminal import tell, typed_fields
from kalito_mcp.domain.records import CreatePinRequest, Origin, Reach, SemanticPin, short_record_id

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory

_HERE: Final = "."


@click.command(name="pin")
@click.argument("text")
@click.option(
    "--scope",
    type=click.Choice([str(Reach.PERSON), str(Reach.PROJECT)]),
    help="Which conversations begin with it: all, or those of a project. Default: all, or with --project that one's.",
)
@click.option(
    "--project",
    metavar="PROJECT",
    callback=one_project,
    help="A folder (. is this one) or a name. With --scope project: this one.",
)
@with_settings
def command(database: str | None, config: Path | None, text: str, scope: str | None, project: str | None) -> None:
    """Pin TEXT: `profile` lists it, and every conversation begins with it. - reads it from standard input.

    `edit`, `forget` and `purge` change it by its id.
    """
    settings = settings_of(database, config)
    reach = Reach(scope) if scope else Reach.PERSON if project is None else Reach.PROJECT
    place = project or (_HERE if reach is Reach.PROJECT else None)
    content = typed_fields(text, ())["text"]

    async def pin(memory: "Memory") -> SemanticPin:
        request = CreatePinRequest(content=content, origin=Origin.USER, client=this_person().id, scope=reach)
        return await (await memory.in_project(place)).create_pin(request)

    pinned = with_memory(settings, pin)
    did = "known already:" if pinned.is_known else "pinned"
    audience = "every conversation" if pinned.reach is Reach.PERSON else "conversations of this project"
    tell([f"{did} {short_record_id(pinned.id)}, for {audience}", *redaction_lines(pinned.redacted)])
