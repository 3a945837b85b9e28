"""Timeline: what was talked about day by day, what came of it, and what is still open."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import Field

from kalito_mcp.domain.kinds import DIGEST, Kind
from kalito_mcp.domain.known import KnownRecord
from kalito_mcp.domain.records import RecordType
from kalito_mcp.domain.sessions import Session, SessionCursor
from kalito_mcp.domain.zone import Zone
from kalito_mcp.errors import InvalidInput
from kalito_mcp.memory.verbs.shapes import RecordName
from kalito_mcp.text.plurals import plural
from kalito_mcp.web.page.view import Act, Done, Shown, Undo, View, ViewFields, Visit

if TYPE_CHECKING:
    from kalito_mcp.memory.timeline import SessionWithNotes

_SESSIONS: Final = 25
_DAYS: Final = 90
_OPEN_SHOWN: Final = 3
_MOST_OPEN: Final = 200
_MOST_CLOSED: Final = 1_000
_CURSOR: Final = re.compile(r"(-?[0-9]{1,15})\.(.+)")
_LINES: Final = 4
"""What a session in the list says of itself, at most."""
_HEADINGS: Final[Mapping[str, frozenset[Kind]]] = {
    "Open": frozenset({Kind.OPEN}),
    **{name: kinds for name, kinds in DIGEST.items() if name != "Open"},
    "Planned": frozenset({Kind.PLAN}),
}
_OTHERS: Final = "Pinned"


class Days(ViewFields):
    """From which day on, back in time; of which host; after which session of the page before. `open`: what is open.
    `forgotten`: conversations of which all is."""

    day: Annotated[str | None, Field(max_length=10)] = None
    host: Annotated[str | None, Field(max_length=200)] = None
    after: Annotated[str | None, Field(max_length=240)] = None
    open: bool = False
    forgotten: bool = False


class Points(ViewFields):
    """Open points that are done."""

    point_ids: Annotated[list[RecordName], Field(min_length=1, max_length=_MOST_CLOSED)]


@dataclass(frozen=True, slots=True)
class Bar:
    """A day in the chart, how many messages it has, and its height in hundredths."""

    day: str
    name: str
    short: str
    count: int
    height: float


@dataclass(frozen=True, slots=True)
class Line:
    """A session in the list, with a few notes below their headings."""

    session: Session
    title: str
    client: str | None
    span: str
    digest: "tuple[tuple[str, tuple[KnownRecord, ...]], ...]"
    summary: KnownRecord | None

    @property
    def count(self) -> int:
        """Its messages that can be seen."""
        return self.session.message_count - self.session.hidden_count


@dataclass(frozen=True, slots=True)
class Day:
    """A day, and the sessions in which something was said last on it."""

    iso: str
    name: str
    lines: tuple[Line, ...]


async def timeline(visit: Visit[Days]) -> Shown:
    """Days with their sessions, newest first, below a chart and what is open."""
    sent, reader = visit.sent, visit.memory.conversations.timeline
    zone = visit.memory.zone
    points = await reader.open_points(limit=_MOST_OPEN)
    if sent.open:
        titles = await visit.memory.conversations.titles(_sessions_of(points))
        return Shown("open.html", "What is open", {"sent": sent, "points": points, "titles": titles})
    day = _day_of(sent.day)
    until = None if day is None else zone.last_ms(day)
    found = await reader.sessions(
        client=sent.host,
        begun_until=until,
        before=_place(sent.after),
        is_forgotten=sent.forgotten,
        limit=_SESSIONS + 1,
    )
    page = found[:_SESSIONS]
    shown = points[:_OPEN_SHOWN]
    titles = await visit.memory.conversations.titles([*(one.session.id for one in page), *_sessions_of(shown)])
    by_day = await reader.messages_by_day(days=_DAYS)
    bars = _bars(by_day)
    values: dict[str, Any] = {
        "sent": sent,
        "days": _days(page, titles, zone, day),
        "chosen": None if day is None else _name(day),
        "bars": bars,
        "total": sum(one.count for one in bars),
        "most": max(bars, key=lambda one: one.count),
        "hosts": await reader.clients(),
        "points": shown,
        "more_points": len(points) - len(shown),
        "titles": titles,
        "after": _written(page[-1].session.cursor) if len(found) > len(page) else None,
    }
    return Shown("timeline.html", "Timeline", values)


async def close(visit: Visit[Points]) -> Done:
    """Mark open points as done, so that no later conversation begins with them."""
    ids = list(await visit.memory.conversations.timeline.close(visit.sent.point_ids, editor=visit.caller().editor))
    return Done(f"{plural(len(ids), 'point')} done", Undo("restore", {"record_ids": ids}) if ids else None)


def digest_of(notes: Sequence[KnownRecord], *, most: int | None = None) -> Sequence[tuple[str, list[KnownRecord]]]:
    """Pins below headings, open points first; those of no such kind below "Pinned". At most `most` of all."""
    pins = [one for one in notes if one.type is RecordType.PIN]
    headings: dict[str, list[KnownRecord]] = {name: [] for name in (*_HEADINGS, _OTHERS)}
    for pin in pins:
        headings[next((name for name, kinds in _HEADINGS.items() if pin.kind in kinds), _OTHERS)].append(pin)
    left = len(pins) if most is None else most
    found: list[tuple[str, list[KnownRecord]]] = []
    for name, of_kind in headings.items():
        if kept := of_kind[:left]:
            found.append((name, kept))
            left -= len(kept)
    return found


def span_of(session: Session, zone: Zone) -> str:
    """From when to when something was said, in the user's time zone: the days only if there are several."""
    first, last = session.oldest_message_at, session.newest_message_at
    if first is None or last is None:
        return ""
    begin, end = zone.minute(first), zone.minute(last)
    if begin[:10] == end[:10]:
        return begin[11:] if begin == end else f"{begin[11:]} – {end[11:]}"
    return " – ".join(f"{_short(zone.day(at))} {text[11:]}" for at, text in ((first, begin), (last, end)))


def _days(found: "Sequence[SessionWithNotes]", titles: Any, zone: Zone, chosen: int | None) -> tuple[Day, ...]:
    """By the day of their last message. What went on after the chosen day stands on it."""

    def day_of(one: "SessionWithNotes") -> int:
        said = zone.day(one.session.said_at)
        return said if chosen is None else min(said, chosen)

    return tuple(
        Day(date.fromordinal(day).isoformat(), _name(day), tuple(_line(one, titles, zone) for one in of_day))
        for day, of_day in groupby(found, key=day_of)
    )


def _line(found: "SessionWithNotes", titles: Any, zone: Zone) -> Line:
    session, notes = found.session, found.notes
    summaries = [one for one in notes if one.type is RecordType.SUMMARY]
    digest = tuple((name, tuple(some)) for name, some in digest_of(notes, most=_LINES))
    return Line(
        session=session,
        title=titles.get(session.id) or session.id,
        client=found.client,
        span=span_of(session, zone),
        digest=digest,
        summary=summaries[-1] if summaries and not digest else None,
    )


def _bars(by_day: Sequence[tuple[int, int]]) -> list[Bar]:
    most = max((count for _, count in by_day), default=0) or 1
    return [
        Bar(date.fromordinal(day).isoformat(), _name(day), _short(day), count, 100 * count / most if count else 0.0)
        for day, count in by_day
    ]


def _name(day: int) -> str:
    """`Friday 20 November 2026`."""
    named = date.fromordinal(day)
    return f"{named:%A} {named.day} {named:%B %Y}"


def _short(day: int) -> str:
    """`20 Nov`."""
    named = date.fromordinal(day)
    return f"{named.day} {named:%b}"


def _day_of(text: str | None) -> int | None:
    try:
        return None if text is None else date.fromisoformat(text).toordinal()
    except ValueError:
        raise InvalidInput(f"{text!r} is not a day; write it as 2026-11-20") from None


def _place(text: str | None) -> SessionCursor | None:
    if text is None:
        return None
    found = _CURSOR.fullmatch(text)
    if found is None:
        raise InvalidInput("this link is not whole; open the timeline from its beginning")
    return SessionCursor(int(found[1]), found[2])


def _written(cursor: SessionCursor) -> str:
    return f"{cursor.said_at}.{cursor.session_id}"


def _sessions_of(points: Sequence[KnownRecord]) -> list[str]:
    return [one.session_id for one in points if one.session_id is not None]


TIMELINE: Final = (View("/timeline", timeline, Days), Act("close", close, Points))
