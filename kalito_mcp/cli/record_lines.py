"""Records, their edits and lists of them as lines for a terminal. Pure.

Remembered text may contain anything, including control sequences that a terminal obeys. So `cli.terminal.tell` escapes
each line. The cells of a table are escaped here already, because their widths are counted here.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from kalito_mcp.cli.terminal import one_line
from kalito_mcp.contexts.excerpts import excerpt
from kalito_mcp.domain.erasing import FoundRecord
from kalito_mcp.domain.memory_records import DELETED_AT, MemoryRecord
from kalito_mcp.domain.records import short_record_id
from kalito_mcp.domain.search import Hit
from kalito_mcp.domain.tasks import TaskStatus
from kalito_mcp.domain.time import to_iso
from kalito_mcp.domain.zone import UTC_ZONE, Zone
from kalito_mcp.safety.escaping import as_data
from kalito_mcp.text.analysis import query_terms

HIT_CHARS: Final = 100
WHY_CHARS: Final = 1_000
_LABEL_WIDTH: Final = 14
_OPEN: Final = (TaskStatus.PENDING, TaskStatus.IN_PROGRESS)
_SHOWN_BY_NAME: Final = (
    "id type text timestamp session_id project role name origin client importance importance_score critical tags"
    " caused_by led_to usage_count last_used revision is_deleted"
).split()


def record_lines(record: MemoryRecord) -> list[str]:
    """The record as a person reads it: what it is, its fields, then its text, indented."""
    shown = record.to_dict()
    head = [
        short_record_id(record.id),
        str(record.type),
        f"{_minute(shown['timestamp'])} UTC",
        f"revision {record.revision}",
    ]
    if record.is_deleted:
        head.append(f"forgotten since {_minute(to_iso(record.content[DELETED_AT]))} UTC")
    importance = f"{shown['importance']} ({shown['importance_score']:.2f})"
    fields = {
        "session": record.session_id,
        "project": record.project,
        "said by": shown.get("name") or shown.get("role"),
        "origin": f"{record.origin}, through {record.client}" if record.client else str(record.origin),
        "importance": f"{importance}, critical" if shown["critical"] else importance,
        "tags": ", ".join(shown["tags"]),
        "caused by": short_record_id(record.content.get("caused_by", "")),
        "led to": ", ".join(map(short_record_id, record.led_to)),
        "used": f"{_times(record.usage_count)}, last {_minute(shown['last_used'])} UTC" if record.last_used else None,
        **{
            name.replace("_", " "): _field(value)
            for name, value in shown.items()
            if name not in (*_SHOWN_BY_NAME, DELETED_AT)
        },
    }
    labelled = [f"{name:>{_LABEL_WIDTH}}  {' '.join(str(value).split())}" for name, value in fields.items() if value]
    return ["  ".join(head), *labelled, "", *indented(record.text.split("\n"))]


def _field(value: Any) -> str:
    """The value of a field: a word as it is, an id in its short form, anything else as JSON."""
    if isinstance(value, list):
        value = [short_record_id(one) if isinstance(one, str) else one for one in value]
    return short_record_id(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def erasure_line(given_id: str, records: Sequence[MemoryRecord], zone: Zone = UTC_ZONE) -> str:
    """The text that an erasure of this id would remove: day, first 80 characters, and how many parts of a document."""
    first, *others = records
    day = zone.date(first.created_at)
    head = (
        f"{short_record_id(given_id)}  {day}  {len(records)} parts" if others else f"{short_record_id(first.id)}  {day}"
    )
    return f"{head}  {one_line(first.text)}"


def remembered_line(given_type: str, records: Sequence[MemoryRecord]) -> str:
    """The line about a kept record, with the id that names all of it."""
    name = short_record_id(records[0].content.get("document_id", records[0].id))
    parts = f" in {len(records)} parts" if len(records) > 1 else ""
    project = records[0].project
    did = "known already:" if records[0].is_known else "remembered"
    return f"{did} {given_type} {name}{parts}{f' of project {project}' if project else ''}"


def redaction_lines(redacted: Sequence[str]) -> list[str]:
    """A line about secrets removed before the text was stored, if any."""
    return [f"removed and not stored: {', '.join(dict.fromkeys(redacted))}"] if redacted else []


def hit_line(hit: Hit, query: str = "", zone: Zone = UTC_ZONE, names: Mapping[str, str] | None = None) -> str:
    """One hit of a search: id, type, day, project if it is not the search's, space, speaker, the place in its text that
    the query found, and how many other records say the same. `names` has what projects are called."""
    kind = str(hit.type) if hit.status is None else f"{hit.type} {hit.status}"
    who = one_line(hit.name or hit.role or hit.origin)
    again = f"  (and {len(hit.same)} more like it)" if hit.same else ""
    place = f"  of {one_line((names or {}).get(hit.project, hit.project))}" if hit.project is not None else ""
    if hit.space is not None:
        who, place = "shared", f"{place}  in {one_line(hit.space)}"
    words = as_data(excerpt(hit.text, frozenset(query_terms(query)), HIT_CHARS))
    return f"{short_record_id(hit.record_id)}  {kind}  {zone.date(hit.created_at)}{place}  {who}: {words}{again}"


def turn_lines(hit: Hit) -> list[str]:
    """The turns just before and after a hit, a line each."""
    return indented(
        f"{short_record_id(turn.record_id)}  {one_line(turn.name or turn.role or '')}: {one_line(turn.text, HIT_CHARS)}"
        for turn in hit.turns
    )


def why_lines(hit: Hit) -> list[str]:
    """Why a hit was found: a sentence, if it has one, then the parts of its score, largest first."""
    width = max(map(len, hit.parts), default=0)
    parts = sorted(hit.parts.items(), key=lambda part: -abs(part[1]))
    because = [one_line(f"because: {hit.why}", WHY_CHARS)] if hit.why else []
    return indented([*because, *indented(f"{name:<{width}}  {share:+.4f}" for name, share in parts)])


def nothing_lines(note: str | None, given: Sequence[str]) -> list[str]:
    """That nothing was found, the search's note, and what to try: fewer options, or other words."""
    tip = f"try without {' or '.join(given)}" if given else "try other words for it (--also), a name or a date"
    return ["nothing found", *indented([note, tip] if note else [tip])]


def derived_lines(record_id: str, pins: Sequence[MemoryRecord], summaries: Sequence[MemoryRecord]) -> list[str]:
    """The pins that still repeat a changed message, and the summaries that were rewritten with it."""
    lines = [
        f"{short_record_id(pin.id)} came from {short_record_id(record_id)} and still says: {one_line(pin.text)}"
        for pin in pins
    ]
    if summaries:
        ids = ", ".join(short_record_id(one.id) for one in summaries)
        lines.append(f"rewritten: {ids} (`kalito-mcp history ID` shows the earlier text)")
    return lines


def found_lines(found: Iterable[FoundRecord]) -> list[str]:
    """The records of a preview, one a line: id and first words."""
    return indented([f"{short_record_id(one.id)}  {one_line(one.text)}" for one in found])


def edit_line(edit: Mapping[str, Any]) -> str:
    """One edit of `Records.history`; `*` marks the current version."""
    editor = " ".join(str(edit[name]) for name in ("editor_type", "editor_id") if edit.get(name))
    return (
        f"{'*' if edit['current'] else ' '} {edit['version']:>3}  {edit['timestamp'][:19].replace('T', ' ')} UTC  "
        f"{edit['edit_type']:<7}  {one_line(editor):<16}  {edit['diff_summary']}"
    )


def task_lines(tasks: Sequence[MemoryRecord], now: datetime) -> list[str]:
    """A table, one task a line, in the order given, with overdue ones marked. A due date without a time ends with that
    day in the time zone of `now`."""
    rows = [("id", "status", "priority", "due", "assigned to", "text")]
    for task in tasks:
        due = str(task.content.get("due_date", ""))
        overdue = " overdue" if is_overdue(task, now) else ""
        rows.append(
            (
                short_record_id(task.id),
                str(task.content["status"]),
                str(task.content["priority"]),
                f"{_minute(due)}{overdue}" or "-",
                one_line(str(task.content.get("assigned_to", "-"))),
                one_line(task.text),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    return [
        "  ".join([*(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)), row[-1]]) for row in rows
    ]


def is_overdue(task: MemoryRecord, now: datetime) -> bool:
    """Whether a task is open and its due date is over."""
    due = task.content.get("due_date")
    if due is None or task.content["status"] not in _OPEN:
        return False
    moment = datetime.fromisoformat(due)
    return now.date() > moment.date() if moment.tzinfo is None else now > moment


def indented(lines: Iterable[str]) -> list[str]:
    """The lines, indented below another."""
    return [f"  {line}" for line in lines]


def _minute(moment: str) -> str:
    """An ISO 8601 moment to the minute; a date without a time stays as it is."""
    return moment[:16].replace("T", " ")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
