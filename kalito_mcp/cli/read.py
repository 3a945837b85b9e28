"""`kalito-mcp read`: a conversation as it was held, or the turns around a record that a search found."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from kalito_mcp.cli.options import settings_to_read, with_settings
from kalito_mcp.cli.record_lines import indented
from kalito_mcp.cli.running import with_memory
from kalito_mcp.cli.session_lines import project_names
from kalito_mcp.cli.terminal import one_line, tell, tell_json
from kalito_mcp.domain.records import MessageWithImportance, short_record_id
from kalito_mcp.domain.sessions import Session
from kalito_mcp.domain.zone import Zone
from kalito_mcp.errors import InvalidInput, RecordNotFound, SessionNotFound
from kalito_mcp.text.plurals import plural

if TYPE_CHECKING:
    from kalito_mcp.memory import Memory

_PAGE: Final = 50
_AROUND: Final = 11
_LEAST_PREFIX: Final = 4
_MOST_NAMED: Final = 5


class _Excerpt(NamedTuple):
    """Some messages of a conversation, in order, and the one that was asked for, if one was."""

    session: Session
    title: str
    project: str | None
    messages: Sequence[MessageWithImportance]
    first_seq: int
    last_seq: int
    asked_id: str | None
    zone: Zone


@click.command(name="read")
@click.argument("named", metavar="ID")
@click.option(
    "--limit", type=click.IntRange(min=1), help=f"How many messages. Default: {_PAGE}; around a record: {_AROUND}."
)
@click.option("--before", type=click.IntRange(min=2), metavar="N", help="The messages before message N of it.")
@click.option("--json", "is_json", is_flag=True, help="JSON, one message a line, for programs.")
@with_settings
def command(
    database: str | None, config: Path | None, named: str, limit: int | None, before: int | None, is_json: bool
) -> None:
    """Read the conversation ID, its newest messages last.

    ID is that of a conversation, or its beginning, as `list` shows it. Or it is that of a record, such as
    msg_41: then it shows what was said around it.
    """
    found = with_memory(settings_to_read(database, config), lambda memory: _read(memory, named, limit, before))
    if is_json:
        tell_json({**one.to_dict(), "seq": one.seq} for one in found.messages)
    else:
        tell(_lines(found))


async def _read(memory: "Memory", named: str, limit: int | None, before: int | None) -> _Excerpt:
    """The messages that are meant.

    Raises:
        SessionNotFound: no conversation and no record has this id.
        InvalidInput: several conversations begin like this, or the record is in none.
    """
    session, asked_seq = await _session_of(memory, named)
    if asked_seq is None or before is not None:
        last = session.message_count if before is None else min(before - 1, session.message_count)
        first = last - (limit or _PAGE) + 1
    else:
        first = asked_seq - (limit or _AROUND) // 2
        last = first + (limit or _AROUND) - 1
    first, last = max(1, first), min(last, session.message_count)
    _, said = await memory.conversations.messages(session.id, first_seq=first, last_seq=last)
    names = project_names(one for one, _ in await memory.projects.all())
    return _Excerpt(
        session,
        title=(await memory.conversations.titles([session.id])).get(session.id, "(untitled)"),
        project=None if session.project is None else names.get(session.project, session.project),
        messages=[one for one in said if not one.is_hidden],
        first_seq=first,
        last_seq=last,
        asked_id=next((one.record_id for one in said if one.seq == asked_seq), None),
        zone=memory.zone,
    )


async def _session_of(memory: "Memory", named: str) -> tuple[Session, int | None]:
    """The session that is meant, and the number of the message, if a record was named."""
    session = await memory.conversations.get(named)
    if session is not None:
        return session, None
    try:
        record = await memory.records.get(named)
    except RecordNotFound:
        begun = (
            await memory.conversations.recent(prefix=named, limit=_MOST_NAMED) if len(named) >= _LEAST_PREFIX else ()
        )
        if len(begun) > 1:
            ids = ", ".join(one.id for one in begun)
            raise InvalidInput(f"the ids of several conversations begin with {named}: {ids}") from None
        if not begun:
            raise SessionNotFound(named) from None
        return begun[0], None
    session = None if record.session_id is None else await memory.conversations.get(record.session_id)
    if session is None:
        name = short_record_id(record.id)
        raise InvalidInput(f"{name} is in no conversation; read it with: kalito-mcp show {name}")
    source = record.content.get("source_message_id")
    if source is not None:
        return session, (await memory.records.get(source)).seq
    return session, record.seq if record.seq is not None else record.content.get("start_seq")


def _lines(found: _Excerpt) -> Iterator[str]:
    session, zone = found.session, found.zone
    yield found.title
    count = plural(session.message_count - session.hidden_count, "message")
    began = "" if session.oldest_message_at is None else f", begun {zone.minute(session.oldest_message_at)}"
    yield f"{session.id}{f'  of {found.project}' if found.project else ''}  {count}{began}"
    if found.first_seq > 1:
        yield f"before these: kalito-mcp read {shlex.quote(session.id)} --before {found.first_seq}"
    day = ""
    for one in found.messages:
        said_at = zone.minute(one.created_at)
        shown = said_at.removeprefix(day).lstrip() if day else said_at
        day = said_at.partition(" ")[0]
        yield ""
        mark = "> " if one.record_id == found.asked_id else ""
        yield f"{mark}{one.seq}  {one_line(one.speaker)}, {shown}  {one.record_id}"
        yield from indented(one.text.split("\n"))
    if found.last_seq < session.message_count:
        yield ""
        following = min(session.message_count, found.last_seq + _PAGE) + 1
        yield f"after these: kalito-mcp read {shlex.quote(session.id)} --before {following}"
