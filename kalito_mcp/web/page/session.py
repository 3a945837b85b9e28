"""One conversation: what came of it beside what was said, and where it belongs."""

from typing import Annotated, Any, Final

from pydantic import Field

from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.scope import PERSONAL
from kalito_mcp.memory.timeline import Hidden
from kalito_mcp.memory.verbs.shapes import SessionName
from kalito_mcp.web.page.timeline import digest_of, span_of
from kalito_mcp.web.page.view import Act, Done, Shown, Undo, View, ViewFields, Visit

_TURNS: Final = 50
_TURN_CHARS: Final = 1_500
_FEW: Final = 5
"""Notes below a heading; the others are folded."""


class Place(ViewFields):
    """Which part of the conversation to show, from 1, or the one with a message, by its place in the conversation."""

    page: Annotated[int, Field(ge=1, le=1_000_000_000)] = 1
    at: Annotated[int | None, Field(ge=1, le=1_000_000_000)] = None


class Move(ViewFields):
    """A conversation, and the project that it is to belong to; `personal`: to none."""

    session_id: SessionName
    to: Annotated[str, Field(min_length=1, max_length=1_000)]


async def session(visit: Visit[Place]) -> Shown:
    """A page of a conversation, with its digest."""
    # A link to a conversation works whichever project was chosen.
    memory = await visit.memory.in_project_of(visit.path["session_id"])
    timeline = memory.conversations.timeline
    found = await timeline.session(visit.path["session_id"])
    one = found.session
    pages = max(1, -(-one.message_count // _TURNS))
    page = min(visit.sent.page if visit.sent.at is None else -(-visit.sent.at // _TURNS), pages)
    first = (page - 1) * _TURNS + 1
    turns = await timeline.turns(one.id, first_seq=first, last_seq=first + _TURNS - 1)
    titles = await memory.conversations.titles([one.id])
    title = titles.get(one.id) or one.id
    forgotten = [of for of, why in turns.hidden.items() if why is Hidden.FORGOTTEN]
    values: dict[str, Any] = {
        "session": one,
        "client": found.client,
        "span": span_of(one, memory.zone),
        "summaries": [note for note in found.notes if note.type is RecordType.SUMMARY],
        "digest": digest_of(found.notes),
        "turns": turns,
        "first_turn": first,
        "last_turn": min(first + _TURNS - 1, one.message_count),
        "at": visit.sent.at,
        "page": page,
        "pages": pages,
        "most": _TURN_CHARS,
        "few": _FEW,
        "count": one.message_count - one.hidden_count,
        "forgotten": forgotten if all(turn.is_hidden for turn in turns.messages) else [],
    }
    return Shown("session.html", title, values)


async def move_session(visit: Visit[Move]) -> Done:
    """Give a conversation, with all that was made from it, to another project."""
    sent = visit.sent
    memory = await visit.memory.in_project_of(sent.session_id)
    before = (await memory.conversations.timeline.session(sent.session_id)).session
    after = await memory.conversations.move(before.id, None if sent.to == PERSONAL else sent.to)
    if after.project == before.project:
        return Done("Nothing changed: it belongs there already")
    undo = Undo("move_session", {"session_id": before.id, "to": before.project or PERSONAL})
    return Done("Moved" if after.project else "It is personal now", undo)


SESSION: Final = (View("/s/{session_id}", session, Place), Act("move_session", move_session, Move))
