"""`kalito-mcp profile`: what is known of the person and of their projects."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kalito_mcp.cli.options import every_project, settings_to_read, with_settings
from kalito_mcp.cli.running import with_memory
from kalito_mcp.cli.terminal import one_line, tell, tell_json
from kalito_mcp.domain.known import KnownRecord, Profile
from kalito_mcp.domain.records import short_record_id
from kalito_mcp.domain.time import to_iso

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory

_LINE_CHARS: Final = 200
_MOST_OFFERED: Final = 20


@click.command(name="profile")
@click.option(
    "--project",
    metavar="NAME",
    callback=every_project,
    help="Of the projects only this one; `personal`: none. Default: all.",
)
@click.option("--agent", "agent_id", metavar="ID", help="Which agent's memory. Default: `default`.")
@click.option("--json", "is_json", is_flag=True, help="One JSON object, for programs.")
@with_settings
def command(
    database: str | None, config: Path | None, project: str | None, agent_id: str | None, is_json: bool
) -> None:
    """List what every conversation knows: of you, and of each project. `edit`, `forget` and `purge` change it."""

    async def read(memory: "Memory") -> tuple[Profile, Sequence[KnownRecord]]:
        records = (await memory.in_project(project)).records
        return await records.profile(agent_id=agent_id), await records.proposed()

    found, proposed = with_memory(settings_to_read(database, config), read)
    if is_json:
        tell_json([found.to_dict() | {"proposed": [one.to_dict() for one in proposed]}])
    else:
        tell([*_lines(found), *_proposals(proposed)])


def _lines(profile: Profile) -> Iterator[str]:
    if not profile.lines:
        yield 'nothing is known yet; keep something with: kalito-mcp pin "I am allergic to nuts"'
    for (project, subject), lines in groupby(profile.lines, lambda line: (line.record.project, line.subject)):
        yield f"{'you' if project is None else f'project {project}'}: {subject}"
        for line in lines:
            shared = (
                "" if line.record.space is None else f"  (shared in {line.record.space} by {line.record.shared_by})"
            )
            yield _line(line.record.created_at, line.record.record_id, line.record.text) + shared
    for reach, offered in groupby(
        sorted(profile.offered[:_MOST_OFFERED], key=lambda one: one.reach), lambda one: one.reach
    ):
        yield f"pinned in a session; make it lasting with: kalito-mcp edit ID --set scope={reach}"
        for pin in offered:
            yield _line(pin.created_at, pin.record_id, pin.text)
    if len(profile.offered) > _MOST_OFFERED:
        yield f"and {len(profile.offered) - _MOST_OFFERED} more pins of sessions; --json lists all"


def _proposals(proposed: Sequence[KnownRecord]) -> Iterator[str]:
    if proposed:
        yield "proposed in your spaces, in no conversation of yours; keep one with: kalito-mcp space keep ID"
    for one in proposed:
        yield f"{_line(one.created_at, one.record_id, one.text)}  (shared in {one.space} by {one.shared_by})"


def _line(created_at: int, record_id: str, text: str) -> str:
    return f"  {to_iso(created_at)[:10]}  {short_record_id(record_id)}  {one_line(text, _LINE_CHARS)}"
