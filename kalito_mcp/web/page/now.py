"""Now: what was recorded and what was given back, newest first, whether capture works, and the pause.

An answer opens to its parts: each record as it is now, what was left out and why, and the question that it answered.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final

from pydantic import Field

from kalito_mcp.domain.given import GivenEntry, GivenKind, LeftOut, PartName, Why
from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.errors import ConfigurationError, NotFound
from kalito_mcp.memory.verbs.shapes import SessionName
from kalito_mcp.projects import is_path
from kalito_mcp.switch import FOR_EVER, Switch
from kalito_mcp.web.page.chart import Segment, side_by_side
from kalito_mcp.web.page.machine import Machine, sees_machine
from kalito_mcp.web.page.view import Nothing, Shown, View, ViewFields, Visit

_ITEMS: Final = 30
_AMONG: Final = 200
"""Answers among which those to one host are looked for."""
_LINES: Final = 40
"""Records of a part that are shown with their words. Of the others, the ids."""
_OUT_LINES: Final = 8
_FULL: Final = 100.0
_MOST_OUT: Final = 30.0
"""Of a bar, in hundredths, for what was left out."""
_KINDS: Final[Mapping[str, str]] = {
    GivenKind.CONTEXT: "Context",
    GivenKind.PROMPT: "Added to a prompt",
    GivenKind.START: "Added to the beginning of a conversation",
    GivenKind.SEARCH: "Search",
}
_PARTS: Final[Mapping[str, str]] = {
    PartName.KNOWN: "known",
    PartName.LAST_TIME: "last time",
    PartName.FOUND: "found",
    PartName.RECENT: "recent",
    PartName.PINS: "pins",
    PartName.SUMMARIES: "summaries",
}
_WHYS: Final[Mapping[str, str]] = {
    Why.DID_NOT_FIT: "did not fit",
    Why.READS_LIKE_AN_INSTRUCTION: "like an instruction to the assistant, in the words of a tool or a document",
    Why.REPEATS_ANOTHER: "the same as another that is shown",
    Why.IN_THE_CONVERSATION: "in the conversation already",
}


class Now(ViewFields):
    """Of one session or one host; answers before the one of this number."""

    session: SessionName | None = None
    host: Annotated[str | None, Field(max_length=200)] = None
    before: Annotated[int | None, Field(ge=1, le=1_000_000_000_000)] = None


@dataclass(frozen=True, slots=True)
class Answer:
    """Something that was given, with its bar and the bar's words."""

    entry: GivenEntry
    kind: str
    segments: tuple[Segment, ...]
    title: str | None = None

    @property
    def at(self) -> int:
        """When."""
        return self.entry.at

    @property
    def left_out(self) -> int:
        """How many records were left out."""
        return sum(one.count for one in self.entry.left_out)

    @property
    def words(self) -> str:
        """The bar for somebody who does not see it."""
        parts = [
            f"{one.label} {one.value:,} {'records' if one.name == 'left_out' else 'tokens'}" for one in self.segments
        ]
        return ", ".join(parts) or "nothing was found"


@dataclass(frozen=True, slots=True)
class Line:
    """A record that was given or left out, as it is now; None if it is gone. `revision` was given."""

    record_id: str
    record: MemoryRecord | None
    revision: int | None = None

    @property
    def is_edited(self) -> bool:
        """Whether it has been edited since."""
        is_known = self.record is not None and self.revision is not None
        return is_known and self.record.revision != self.revision and not self.record.is_deleted  # type: ignore[union-attr]


@dataclass(frozen=True, slots=True)
class OpenedPart:
    """A part with its records, and the ids of those that are too many to show."""

    name: str
    label: str
    tokens: int
    count: int
    lines: tuple[Line, ...]
    others: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OpenedOut:
    """What was left out of a part for one reason."""

    label: str
    why: str
    count: int
    lines: tuple[Line, ...]
    others: tuple[str, ...]


async def now(machine: Machine | None, visit: Visit[Now]) -> Shown:
    """The feed, with what is needed to trust it."""
    sent, memory = visit.sent, visit.memory
    version = await memory.given.version()  # before what it is the version of
    entries = await memory.given.recent(_ITEMS if sent.host is None else _AMONG, sent.before, sent.session)
    entries = [one for one in entries if sent.host in (None, one.client)][:_ITEMS]
    timeline = memory.conversations.timeline
    is_first = sent.before is None
    said = await timeline.newest(client=sent.host, session_id=sent.session, limit=_ITEMS) if is_first else []
    ids = {one.session_id for one in entries if one.session_id} | {one.session.id for one in said}
    titles = await memory.conversations.titles(ids)
    answers = [answer_of(one, titles.get(one.session_id or "")) for one in entries]
    at = [*((one.at, one) for one in answers), *((one.message.created_at, one) for one in said)]
    items = [one for _, one in sorted(at, key=lambda pair: -pair[0])]
    switch = _switch(visit)
    values: dict[str, Any] = {
        "sent": sent,
        "version": version,
        "items": [{"answer": one} if isinstance(one, Answer) else {"said": one} for one in items][:_ITEMS],
        "titles": titles,
        "legend": _PARTS,
        "heard": await timeline.heard() if is_first else [],
        "before": entries[-1].id if len(entries) == _ITEMS else None,
        **_pause_values(visit, switch, machine),
    }
    return Shown("now.html", "Now", values)


async def given(visit: Visit[Nothing]) -> Shown:
    """One answer, with all that was in it and what was not."""
    number = visit.path["entry_id"]
    if not (number.isascii() and number.isdecimal() and len(number) < 16):  # noqa: PLR2004 - fits 64 bits
        raise NotFound(f"nothing that was given has the number {number[:40]}, or it is no longer kept")
    memory = visit.memory
    entry = await memory.given.get(int(number))
    shown = [record_id for part in entry.parts for record_id in part.ids[:_LINES]]
    shown += [record_id for one in entry.left_out for record_id in one.ids[:_OUT_LINES]]
    records = await memory.given.records(shown)
    titles = await memory.conversations.titles([entry.session_id] if entry.session_id else [])
    values: dict[str, Any] = {
        "answer": answer_of(entry, titles.get(entry.session_id or "")),
        "legend": _PARTS,
        "parts_shown": [
            OpenedPart(
                part.name,
                _PARTS[part.name],
                part.tokens,
                part.count,
                tuple(
                    Line(one, records.get(one), revision)
                    for one, revision in [*zip(part.ids, part.revisions, strict=False)][:_LINES]
                ),
                part.ids[_LINES:],
            )
            for part in entry.parts
        ],
        "out": [_opened(one, records) for one in entry.left_out],
        "fixed": await memory.spaces.fixed({one.id: one.space for one in records.values() if one is not None}),
        "asked": await memory.given.asked(entry),
    }
    return Shown("given.html", f"{_KINDS[entry.kind]} {entry.id}", values)


def answer_of(entry: GivenEntry, title: str | None = None) -> Answer:
    """An entry with its bar: what was left out has the share of its records, at most a third; the parts share the rest
    by their tokens."""
    left = sum(one.count for one in entry.left_out)
    count = sum(part.count for part in entry.parts)
    for_out = min(_MOST_OUT, _FULL * left / (left + count)) if left else 0.0
    whole = max(1, sum(part.tokens for part in entry.parts))
    parts = [
        (part.name, _PARTS[part.name], part.tokens, (_FULL - for_out) * part.tokens / whole) for part in entry.parts
    ]
    segments = side_by_side([*parts, ("left_out", "left out", left, for_out)])
    return Answer(entry, _KINDS[entry.kind], segments, title)


def _opened(out: LeftOut, records: Mapping[str, MemoryRecord | None]) -> OpenedOut:
    lines = tuple(Line(one, records.get(one)) for one in out.ids[:_OUT_LINES])
    return OpenedOut(_PARTS[out.part], _WHYS[out.why], out.count, lines, out.ids[_OUT_LINES:])


def _switch(visit: Visit[Any]) -> Switch | None:
    """None if it cannot be read, so that nothing is remembered."""
    try:
        return visit.memory.place.switch()
    except ConfigurationError:
        return None


def _pause_values(visit: Visit[Any], switch: Switch | None, machine: Machine | None) -> dict[str, Any]:
    now_ms, project = visit.memory.place.clock.now_ms(), visit.project
    is_paused = switch is None or switch.is_paused(now_ms)
    until = None if switch is None or not is_paused or switch.paused_until == FOR_EVER else switch.paused_until
    excluded: Sequence[str] = () if switch is None else switch.excluded
    return {
        "is_paused": is_paused,
        "paused_until": until,
        "may_pause": sees_machine(visit, machine),
        "folder": project if project is not None and is_path(project) else None,
        "is_excluded": project in excluded,
    }


def now_views(machine: Machine | None) -> "tuple[View[Any], ...]":
    """The lines of the table. The pause is for who has the machine."""
    return (View("/now", partial(now, machine), Now), View("/given/{entry_id}", given, Nothing))
