"""A memory as Markdown pages for people, linked as Obsidian links them. `markdown_folder` writes them.

A page for each conversation (front matter, its digest, pins, summaries, messages) and each document; lists of tasks,
notes and thoughts; what is known; and an index. Nothing in them depends on when they are made, so what did not change
gives the same page again. Forgotten records are in none.

Remembered text is shown as it is, except that it embeds nothing: an image in it would call a server when it is opened.
"""

import json
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, groupby
from typing import Any, Final

from kalito_mcp.domain.archive import Selection
from kalito_mcp.domain.kinds import DIGEST
from kalito_mcp.domain.memory_records import MemoryRecord
from kalito_mcp.domain.records import NOTE_SOURCE, RecordType
from kalito_mcp.domain.scope import PERSONAL
from kalito_mcp.domain.sessions import Session
from kalito_mcp.domain.zone import Zone
from kalito_mcp.exchange.file_names import file_name, plain_name
from kalito_mcp.memory import Memory
from kalito_mcp.memory.conversations import Transcript
from kalito_mcp.text.plurals import plural
from kalito_mcp.text.titles import is_named

_MOST_SESSIONS: Final = 1_000_000
_TITLE_CHARS: Final = 60
_FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})", re.MULTILINE)
_CODE_OR_EMBEDDED: Final = re.compile(r"(`+)(?:(?!\1).)+?\1|(!\[|<(?=[A-Za-z/!?]))")
_LISTS: Final = {RecordType.TASK: "Tasks", RecordType.THOUGHT: "Thoughts"}


@dataclass(frozen=True, slots=True)
class Page:
    """A page: its path in the folder, with `/`, and its text."""

    path: str
    text: str


async def pages(memory: Memory, selection: Selection) -> AsyncIterator[Page]:
    """The pages of the selection, one at a time.

    Raises:
        SessionNotFound, InvalidInput: see `Archive.reading`.
    """
    async with memory.archive.reading(selection) as view:
        selection = view.selection
    every = await memory.conversations.recent(limit=_MOST_SESSIONS)
    names = _Names(every, await memory.conversations.titles(one.id for one in every), memory.zone)
    chosen = _Chosen(selection, memory.zone, names)
    sessions = [
        one
        for one in every
        if selection.session in (None, one.id)
        and selection.agent in (None, one.agent)
        and chosen.is_of_project(one.project)
    ]
    shown: list[Session] = []
    for session in sessions:
        page = _session_page(await memory.conversations.transcript(session.id), chosen)
        if page is not None:
            shown.append(session)
            yield page
    records = [
        record
        for agent in await memory.conversations.agents()
        if selection.agent in (None, agent)
        for record in await memory.records.all(_others(selection), agent_id=agent)
        if chosen.has_record(record) and selection.session in (None, record.session_id)
    ]
    lists: list[str] = []
    async for page in _pages_of_records(memory, records, chosen):
        lists.append(page.path)
        yield page
    profile = await _profile_page(memory, selection, chosen)
    if profile is not None:
        lists.append(profile.path)
        yield profile
    yield _index(shown, lists, chosen)


class _Names:
    """The title of each session, and the path of its page without its ending.

    A session that somebody named has its name. The page of another has the day of its first message and its title, and
    a number if an older session has the same. So a session that comes later changes no other's path.
    """

    def __init__(self, sessions: Iterable[Session], titles: Mapping[str, str], zone: Zone) -> None:
        self._titles = titles
        self._paths: dict[str, str] = {}
        taken: set[str] = set()
        for session in sorted(sessions, key=lambda one: (one.created_at, one.id)):
            day = zone.date(_began_at(session))
            name = file_name(session.id) if is_named(session.id) else plain_name(f"{day} {self.title(session.id)}")
            numbered = (name if number == 1 else f"{name} ({number})" for number in count(1))
            path = next(one for one in numbered if one.casefold() not in taken)
            taken.add(path.casefold())
            self._paths[session.id] = f"Sessions/{path}"

    def title(self, session_id: str) -> str:
        return self._titles.get(session_id, "Conversation")

    def path(self, session_id: str) -> str:
        return self._paths.get(session_id, f"Sessions/{file_name(session_id)}")

    def link(self, session_id: str) -> str:
        return _link(self.path(session_id), self.title(session_id))


class _Chosen:
    """The selected part of the memory, its local times, and the sessions' titles."""

    def __init__(self, selection: Selection, zone: Zone, names: _Names) -> None:
        self.selection = selection
        self.zone = zone
        self.names = names

    def is_of_project(self, project: str | None) -> bool:
        return self.selection.project in (None, project or PERSONAL)

    def has(self, kind: RecordType, said_at: int) -> bool:
        selection = self.selection
        return (
            (not selection.types or kind in selection.types)
            and (selection.since_ms is None or said_at >= selection.since_ms)
            and (selection.until_ms is None or said_at <= selection.until_ms)
        )

    def has_record(self, record: MemoryRecord) -> bool:
        return self.has(record.type, record.created_at) and self.is_of_project(record.project)


def _session_page(transcript: Transcript, chosen: _Chosen) -> Page | None:
    session, zone = transcript.session, chosen.zone
    messages = [one for one in transcript.messages if chosen.has(RecordType.MESSAGE, one.created_at)]
    records = [one for one in transcript.records if chosen.has(one.type, one.created_at)]
    if not messages and not records:
        return None
    properties = {
        "session": session.id,
        "agent": session.agent,
        "project": session.project,
        "state": str(session.state),
        "messages": len(messages),
        "started": zone.minute(_began_at(session)),
        "ended": zone.minute(session.newest_message_at or session.created_at),
        "tags": ["kalito/session"],
    }
    parts = [_front_matter(properties), f"# {_line(chosen.names.title(session.id))}\n", "[[Index]]\n"]
    pins = [one for one in reversed(records) if one.type is RecordType.PIN]
    digest = {heading: [one for one in pins if one.content.get("kind") in kinds] for heading, kinds in DIGEST.items()}
    others = [one for one in pins if all(one not in of_heading for of_heading in digest.values())]
    for heading, of_heading in (*digest.items(), ("Pins", others)):
        if of_heading:
            parts += [f"## {heading}\n", "".join(f"- {_line(pin.text)}\n" for pin in of_heading)]
    for summary in (one for one in reversed(records) if one.type is RecordType.SUMMARY):
        first, last = summary.content.get("start_seq", summary.seq), summary.content.get("end_seq")
        parts.append(f"## Summary of messages {first} to {last}\n\n{shown_text(summary.text)}\n")
    if messages:
        parts.append("## Messages\n")
    parts += [
        f"### {one.seq}. {_line(one.speaker)}, {zone.minute(one.created_at)}\n\n{shown_text(one.text)}\n"
        for one in messages
    ]
    return Page(f"{chosen.names.path(session.id)}.md", "\n".join(parts))


async def _pages_of_records(memory: Memory, records: Sequence[MemoryRecord], chosen: _Chosen) -> AsyncIterator[Page]:
    for kind, title in _LISTS.items():
        listed = [one for one in records if one.type is kind]
        if listed:
            yield _list_page(title, listed, chosen)
    documents = [one for one in records if one.type is RecordType.DOCUMENT]
    notes = [one for one in documents if str(one.content.get("source", "")).startswith(NOTE_SOURCE)]
    if notes:
        yield _list_page("Notes", notes, chosen)
    others = [one for one in documents if not str(one.content.get("source", "")).startswith(NOTE_SOURCE)]
    for document_id in dict.fromkeys(str(one.content.get("document_id", one.id)) for one in others):
        parts = [one for one in await memory.records.get_all(document_id) if not one.is_deleted]
        if parts:
            yield _document_page(document_id, parts, chosen.zone)


def _document_page(document_id: str, parts: Sequence[MemoryRecord], zone: Zone) -> Page:
    first = parts[0]
    source = str(first.content.get("source", document_id))
    properties = {
        "document": document_id,
        "source": source,
        "project": first.project,
        "agent": first.agent_id,
        "added": zone.minute(first.created_at),
        "tags": ["kalito/document", *first.content.get("tags", [])],
    }
    body = "\n\n".join(shown_text(one.text) for one in parts)
    name = file_name(f"{source.replace(chr(92), '/').rpartition('/')[2][:80] or 'document'} {document_id}")
    return Page(f"Documents/{name}.md", "\n".join([_front_matter(properties), f"# {_line(source)}\n", body, ""]))


def _list_page(title: str, records: Sequence[MemoryRecord], chosen: _Chosen) -> Page:
    lines = [_front_matter({"tags": [f"kalito/{title.lower()}"]}), f"# {title}\n"]
    ordered = list(reversed(records))  # they come newest first
    ordered.sort(key=lambda one: (one.project or "", one.recorded_at))
    for project, group in groupby(ordered, key=lambda one: one.project):
        lines.append(f"## {_line(project or PERSONAL)}\n")
        lines += [_list_line(one, chosen) for one in group]
        lines.append("")
    return Page(f"{title}.md", "\n".join(lines))


def _list_line(record: MemoryRecord, chosen: _Chosen) -> str:
    box = ""
    if record.type is RecordType.TASK:
        status = str(record.content.get("status"))
        box = "[x] " if status == "completed" else "[-] " if status == "failed" else "[ ] "
    due = f" (due {_line(str(record.content['due_date']))})" if record.content.get("due_date") else ""
    source = "" if record.session_id is None else f", {chosen.names.link(record.session_id)}"
    indented = shown_text(record.text).replace("\n", "\n  ")
    return f"- {box}{indented}{due} *{chosen.zone.date(record.created_at)}{source}*"


async def _profile_page(memory: Memory, selection: Selection, chosen: _Chosen) -> Page | None:
    if selection.session is not None or selection.types:
        return None
    profile = await (await memory.in_project(selection.project)).records.profile(agent_id=selection.agent)
    lines = [line for line in profile.lines if chosen.has(line.record.type, line.record.created_at)]
    if selection.project not in (None, PERSONAL):
        lines = [line for line in lines if line.record.project == selection.project]
    if not lines:
        return None
    text = [_front_matter({"tags": ["kalito/profile"]}), "# What is known\n"]
    for place, group in groupby(lines, lambda line: (line.record.project, line.subject)):
        text.append(f"## {_line(place[0] or 'you')}: {_line(place[1])}\n")
        for line in group:
            session = line.record.session_id
            source = "" if session is None else f", {chosen.names.link(session)}"
            text.append(f"- {_line(line.record.text)} *{chosen.zone.date(line.record.created_at)}{source}*")
        text.append("")
    return Page("Profile.md", "\n".join(text))


def _index(sessions: Sequence[Session], lists: Sequence[str], chosen: _Chosen) -> Page:
    text = [_front_matter({"tags": ["kalito/index"]}), "# Memory\n"]
    plain = sorted(path.removesuffix(".md") for path in lists)
    text += [f"- {_link(path, path.rpartition('/')[2])}" for path in plain]
    ordered = sorted(sessions, key=lambda one: (one.project or "", _began_at(one), one.id))
    for project, group in groupby(ordered, key=lambda one: one.project):
        text.append(f"\n## {_line(project or PERSONAL)}\n")
        for one in group:
            day = chosen.zone.date(_began_at(one))
            messages = plural(one.message_count - one.hidden_count, "message")
            text.append(f"- {day} {chosen.names.link(one.id)} ({messages})")
    return Page("Index.md", "\n".join([*text, ""]))


def _began_at(session: Session) -> int:
    """When its first message was said; without messages, when it was begun here."""
    return session.created_at if session.oldest_message_at is None else session.oldest_message_at


def _others(selection: Selection) -> frozenset[RecordType]:
    """The types that have pages of their own."""
    kinds = frozenset({RecordType.TASK, RecordType.THOUGHT, RecordType.DOCUMENT})
    return kinds & selection.types if selection.types & kinds else kinds


def _link(path: str, title: str) -> str:
    shown = re.sub(r"[\[\]|\s]+", " ", title).strip()[:_TITLE_CHARS] or "session"
    return f"[[{path}|{shown}]]"


def _front_matter(properties: dict[str, Any]) -> str:
    # JSON's texts and lists are also YAML's.
    lines = [
        f"{name}: {json.dumps(value, ensure_ascii=True)}" for name, value in properties.items() if value is not None
    ]
    return "\n".join(["---", *lines, "---", ""])


def _line(text: str) -> str:
    """A text on one line, without anything that would embed something."""
    return shown_text(" ".join(text.split()))


def shown_text(text: str) -> str:
    """The text as Markdown that embeds nothing: no image, no other page, no HTML. Code stays as it is."""
    return "".join(part if is_code else _CODE_OR_EMBEDDED.sub(_escaped, part) for part, is_code in _fenced(text))


def _escaped(found: re.Match[str]) -> str:
    return found[0] if found[2] is None else f"\\{found[2]}"


def _fenced(text: str) -> Iterator[tuple[str, bool]]:
    """The parts of a text, and whether each is a block of code. A block that does not end goes on to the end, and is
    closed there: what follows the text is no code."""
    at = 0
    while opening := _FENCE.search(text, at):
        yield text[at : opening.start()], False
        closing = re.compile(rf"^ {{0,3}}{re.escape(opening[1])}+[ \t]*$", re.MULTILINE).search(text, opening.end())
        if closing is None:
            yield f"{text[opening.start() :]}\n{opening[1]}", True
            return
        yield text[opening.start() : closing.end()], True
        at = closing.end()
    yield text[at:], False
