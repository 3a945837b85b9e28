"""One record: its words, who said it through which host, its history, and what it was made from and into."""

from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import Field

from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.domain.records import MessageWithImportance, RecordType
from kalito_mcp.domain.search import NEAR_FROM, Hit
from kalito_mcp.domain.time import from_iso
from kalito_mcp.errors import RecordNotFound
from kalito_mcp.memory.verbs import records, search
from kalito_mcp.memory.verbs.shapes import Version
from kalito_mcp.web.page.view import Shown, View, ViewFields, Visit

_AROUND: Final = 3
_MOST_ALIKE: Final = 8
_MOST_COMPARED: Final = 1_000
_ANSWERS: Final = 20
_WHOLE: Final = 2_000_000
_SHORT: Final = 20_000


class OneRecord(ViewFields):
    """How to show a record: as it was at a moment, or in a version; the difference between two; a long text whole; with
    others that are like one of its versions."""

    as_of: Annotated[str | None, Field(max_length=40)] = None
    version: Version | None = None
    old: Version | None = None
    new: Version | None = None
    like: Version | None = None
    whole: bool = False
    edit: bool = False


@dataclass(frozen=True, slots=True)
class HistoryLine:
    """One version of a record. `changes` are the lines of its difference from the one before."""

    version: int
    kind: str
    editor: str
    at_ms: int
    changes: tuple[str, ...]


async def record(visit: Visit[OneRecord]) -> Shown:
    """A record as it is or was, with all that is known of it."""
    record_id, sent = visit.path["record_id"], visit.sent
    now = await visit.memory.records.get(record_id)
    shown, problem = await _as_asked(visit, now)
    pins, summaries = (await visit.memory.records.derived_from(now.id)) if now.type is RecordType.MESSAGE else ([], [])
    alike = await _alike(visit, now)
    values: dict[str, Any] = {
        "record": shown,
        "now": now,
        "is_past": shown.revision != now.revision,
        "most": _WHOLE if sent.whole else _SHORT,
        "sent": sent,
        "problem": problem,
        "difference": await visit.memory.records.diff(now.id, sent.old, sent.new) if sent.old and sent.new else None,
        "history": await _history(visit, now),
        "around": await _around(visit, now),
        "made_from_it": [*pins, *summaries],
        "alike": alike,
        "fixed": await visit.memory.spaces.fixed({now.id: now.space, **{one.record_id: one.space for one in alike}}),
        "session_title": await _title(visit, now),
        "given": await visit.memory.given.with_record(now.id, _ANSWERS),
    }
    return Shown("record.html", f"{now.type} {now.id}", values)


async def _alike(visit: Visit[OneRecord], now: MemoryRecord) -> tuple[Hit, ...]:
    """Other records that say nearly what one of its versions said: what was corrected may stand there, too."""
    if visit.sent.like is None:
        return ()
    words = (await visit.memory.records.version(now.id, visit.sent.like)).text[:_MOST_COMPARED]
    found = await search.search(visit.caller(), search.Search(query=words, k=_MOST_ALIKE), is_preview=True)
    return tuple(hit for hit in found.page.hits if hit.record_id != now.id and hit.score >= NEAR_FROM)


async def _as_asked(visit: Visit[OneRecord], now: MemoryRecord) -> tuple[MemoryRecord, str | None]:
    """The record at the moment or in the version that was asked for. If it was not recorded yet, as it is now, and a
    sentence that says so."""
    sent = visit.sent
    if not (sent.as_of or sent.version):
        return now, None
    asked = records.ReadRecord(record_id=now.id, as_of=sent.as_of, version=sent.version)
    try:
        return await records.read_record(visit.caller(), asked), None
    except RecordNotFound:
        return now, f"On {sent.as_of} it was not recorded yet. This is how it is now."


async def _history(visit: Visit[OneRecord], now: MemoryRecord) -> list[HistoryLine]:
    """The versions, newest first."""
    lines: list[HistoryLine] = []
    for edit in await visit.memory.records.history(now.id):
        version = int(edit["version"])
        diff = await visit.memory.records.diff(now.id, version - 1, version) if lines else []
        at_ms = from_iso(str(edit["timestamp"]), "timestamp")
        editor = str(edit.get("editor_id") or edit.get("editor_type") or "")
        lines.append(HistoryLine(version, str(edit["edit_type"]), editor, at_ms, tuple(diff)))
    return lines[::-1]


async def _around(visit: Visit[OneRecord], now: MemoryRecord) -> list[MessageWithImportance]:
    """The turns before and after a message, with it."""
    if now.session_id is None or now.seq is None:
        return []
    _, said = await visit.memory.conversations.messages(
        now.session_id, first_seq=max(1, now.seq - _AROUND), last_seq=now.seq + _AROUND
    )
    return [one for one in said if not one.is_hidden or one.record_id == now.id]


async def _title(visit: Visit[OneRecord], now: MemoryRecord) -> str | None:
    if now.session_id is None:
        return None
    titles = await visit.memory.conversations.titles([now.session_id])
    return titles.get(now.session_id) or now.session_id


RECORD: Final = (View("/r/{record_id}", record, OneRecord),)
