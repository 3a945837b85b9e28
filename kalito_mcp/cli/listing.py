"""`kalito-mcp list`: conversations, pins and notes."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kalito_mcp.cli.options import every_project, settings_to_read, with_settings
from kalito_mcp.cli.running import with_memory
from kalito_mcp.cli.session_lines import project_names, session_line
from kalito_mcp.cli.terminal import one_line, tell, tell_json
from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.domain.records import RecordType, short_record_id
from kalito_mcp.domain.scope import PERSONAL

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory

_LINE_CHARS: Final = 100
_MOST: Final = 1_000_000
Listed = tuple[list[dict[str, Any]], list[str]]


@click.command(name="list")
@click.argument("what", type=click.Choice(["sessions", "pins", "notes"]), default="sessions")
@click.option(
    "--project",
    metavar="NAME",
    callback=every_project,
    help="Only what is of this project; `personal`: of none. Default: all.",
)
@click.option("--agent", "agent_id", metavar="ID", help="Only one agent's memory. Default: all.")
@click.option("--json", "is_json", is_flag=True, help="JSON, one object a line, for programs.")
@with_settings
def command(
    database: str | None, config: Path | None, what: str, project: str | None, agent_id: str | None, is_json: bool
) -> None:
    """List conversations (`sessions`, the default), pins or notes, the newest first."""

    async def read(memory: "Memory") -> Listed:
        named = None if project is None else await memory.projects.named(project)
        if what == "sessions":
            return await _sessions(memory, named, agent_id)
        return await _records(memory, named, agent_id, what)

    objects, lines = with_memory(settings_to_read(database, config), read)
    if is_json:
        tell_json(objects)
    else:
        tell(lines or [f"no {what}{f' of project {project}' if project else ''}"])


async def _sessions(memory: "Memory", project: str | None, agent_id: str | None) -> Listed:
    objects, lines = [], []
    found = await memory.conversations.recent(agent_id=agent_id, limit=_MOST, has_forgotten=False)
    sessions = [one for one in found if project in (None, one.project or PERSONAL)]
    titles = await memory.conversations.titles(one.id for one in sessions)
    names = project_names(one for one, _ in await memory.projects.all())
    for session in sessions:
        shown = session.to_dict(titles.get(session.id))
        place = None if session.project is None else names.get(session.project, session.project)
        lines.append(session_line(shown, memory.zone, place))
        objects.append(shown)
    return objects, lines


async def _records(memory: "Memory", project: str | None, agent_id: str | None, what: str) -> Listed:
    kinds = {RecordType.DOCUMENT} if what == "notes" else {RecordType.PIN, RecordType.DOCUMENT}
    found = [
        record
        for agent in ([agent_id] if agent_id else await memory.conversations.agents())
        for record in await memory.records.all(frozenset(kinds), agent_id=agent)
        if project in (None, record.project or PERSONAL) and (record.is_note if what == "notes" else record.is_pin)
    ]
    found.sort(key=lambda one: -one.recorded_at)
    names = project_names(one for one, _ in await memory.projects.all())
    return [one.to_dict() for one in found], [_record_line(memory, one, names) for one in found]


def _record_line(memory: "Memory", record: MemoryRecord, names: Mapping[str, str]) -> str:
    place = f"  of {names.get(record.project, record.project)}" if record.project else ""
    day = memory.zone.date(record.created_at)
    name = short_record_id(record.content.get("document_id", record.id))
    return f"{day}  {name}{place}  {one_line(record.text, _LINE_CHARS)}"
