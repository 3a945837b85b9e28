"""The memories of other memory programs, each as a note: server-memory, mem0 and OpenMemory, claude-mem."""

import re
import sqlite3
from collections.abc import Iterable, Iterator
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from kalito_mcp.domain.records import Origin, Role
from kalito_mcp.exchange.claude_code import typed
from kalito_mcp.exchange.conversation import Conversation, Home, Note, Reading, Turn, moment
from kalito_mcp.exchange.exports import streams
from kalito_mcp.exchange.json_files import LONGEST, json_list, json_values
from kalito_mcp.exchange.tables import columns, opened, text_or_none
from kalito_mcp.exchange.texts import count, hash_of, words_of

_GONE: Final = ("deleted", "archived", "paused")
_PARTS: Final = {"entity": "entities", "relation": "relations"}
_MEM0_FILES: Final = ("*memories*.json", "memories_export*.zip", "mem0-export-*.md")
_BLOCK: Final = re.compile(r"^---\n(?=id:)", re.MULTILINE)
_OBSERVATION: Final = ("title", "subtitle", "text", "narrative", "facts")
_SUMMARY: Final = ("request", "investigated", "learned", "completed", "next_steps", "notes")
# Fixed statements, because a name cannot be a parameter: the row has whatever columns the release wrote.
_ROWS: Final = {
    "observations": ("SELECT * FROM observations ORDER BY id", _OBSERVATION),
    "session_summaries": ("SELECT * FROM session_summaries ORDER BY id", _SUMMARY),
}
# The column with the session had another name once.
_PROMPTS: Final = {
    "content_session_id": "SELECT * FROM user_prompts ORDER BY content_session_id, id",
    "claude_session_id": "SELECT * FROM user_prompts ORDER BY claude_session_id, id",
}
_NO_PROMPT: Final = "[media prompt]"


class ServerMemory:
    """`conversation.Source`: the memory file of the reference server: a record a line, or one value with all of them,
    as some of its releases and other programs write it. An entity with its relations is a note."""

    name: Final = "server-memory"
    title: Final = "server-memory"
    is_appended: Final = False

    def find(self, home: Home) -> Iterable[Path]:
        named = home.environment.get("MEMORY_FILE_PATH")
        return (Path(named).expanduser(),) if named else ()

    def within(self, folder: Path) -> Iterable[Path]:
        return sorted(folder.rglob("memory*.json*"))

    def read(self, reading: Reading) -> Iterator[Note]:
        observed: dict[str, list[str]] = {}
        kinds: dict[str, str] = {}
        for one in _graph_records(reading):
            name, observations = text_or_none(one.get("name")), one.get("observations")
            parts = [text_or_none(one.get(part)) for part in ("from", "relationType", "to")]
            if one.get("type") == "entity" and name is not None and isinstance(observations, list):
                kinds[name] = text_or_none(one.get("entityType")) or ""
                observed.setdefault(name, []).extend(text for text in observations if isinstance(text, str) and text)
            elif one.get("type") == "relation" and all(parts):
                observed.setdefault(parts[0] or "", []).append(" ".join(part or "" for part in parts))
            else:
                count(reading.skipped, "memory of an unknown kind")
        for name, texts in observed.items():
            kind = f" ({kinds[name]})" if kinds.get(name) else ""
            text = words_of("\n".join((f"{name}{kind}", *texts)))
            yield Note(f"note:server-memory:{hash_of(name)}", "", text, origin=Origin.IMPORT)


def _graph_records(reading: Reading) -> Iterator[dict[str, Any]]:
    for value in json_values(reading):
        for one in value if isinstance(value, list) else [value]:
            if not isinstance(one, dict):
                count(reading.skipped, "memory of an unknown kind")
                continue
            parts = {kind: one.get(plural) for kind, plural in _PARTS.items()}
            if not any(isinstance(part, list) for part in parts.values()):
                yield one
            for kind, part in parts.items():
                listed = part if isinstance(part, list) else []
                yield from ({**each, "type": kind} for each in listed if isinstance(each, dict))


class Mem0:
    """`conversation.Source`: what mem0 gives for `get_all`, the Markdown that its plugin exports, or the zip of
    OpenMemory."""

    is_appended: Final = False

    def __init__(self, name: str, title: str) -> None:
        self.name = name
        self.title = title

    def find(self, home: Home) -> Iterable[Path]:
        del home  # an export can be anywhere
        return ()

    def within(self, folder: Path) -> Iterable[Path]:
        return sorted(path for pattern in _MEM0_FILES for path in folder.glob(pattern))

    def read(self, reading: Reading) -> Iterator[Note]:
        if reading.path.suffix == ".md":
            for one in _blocks(reading):
                yield from self._note(one, reading)
            return
        for _, stream in streams(reading, "memories.json"):
            for whole in json_list(stream, reading):
                inside = whole.get("results", whole.get("memories")) if isinstance(whole, dict) else None
                for one in inside if isinstance(inside, list) else [whole]:
                    yield from self._note(one, reading)

    def _note(self, one: Any, reading: Reading) -> Iterator[Note]:
        found = one.get("memory") or one.get("content") or one.get("text") if isinstance(one, dict) else None
        text = words_of(found) if isinstance(found, str) else ""
        if not isinstance(one, dict) or not text:
            count(reading.skipped, "memory of an unknown kind")
        elif one.get("state") in _GONE:
            count(reading.skipped, "memory that was switched off or deleted")
        else:
            at = moment(one.get("updated_at")) or moment(one.get("created_at"))
            key = text_or_none(one.get("id")) or hash_of(text)
            yield Note(f"note:{self.name}:{key}", "", text, at=at, origin=Origin.IMPORT)


def _blocks(reading: Reading) -> Iterator[dict[str, str]]:
    """The memories of a file of Markdown: for each its fields between two lines of dashes, and its text after them. A
    line of dashes within a text does not begin a block, because no id follows it."""
    with reading.path.open(encoding="utf-8-sig", errors="replace") as file:
        rest = file.read(LONGEST)
    starts = [found.start() for found in _BLOCK.finditer(rest)]
    if rest.strip() and not starts:
        reading.skipped["file of an unknown kind"] += 1
    for begin, end in pairwise((*starts, len(rest))):
        head, _, text = rest[begin:end].removeprefix("---\n").partition("\n---\n")
        fields = (line.partition(":") for line in head.split("\n"))
        yield {**{name.strip(): value.strip() for name, _, value in fields}, "memory": text.strip()}


class ClaudeMem:
    """`conversation.Source`: what claude-mem kept. Observations and summaries are notes; the prompts are messages of
    the session that they were written in."""

    name: Final = "claude-mem"
    title: Final = "claude-mem"
    is_appended: Final = False

    def find(self, home: Home) -> Iterable[Path]:
        return self.within(home.of("CLAUDE_MEM_DATA_DIR", ".claude-mem"))

    def within(self, folder: Path) -> Iterable[Path]:
        return sorted(folder.glob("claude-mem.db"))

    def read(self, reading: Reading) -> Iterator[Conversation | Note]:
        with opened(reading.path) as connection:
            yield from _prompts(connection, reading)
            for table, (select, fields) in _ROWS.items():
                if "id" not in columns(connection, table):
                    count(reading.skipped, "database of an unknown kind")
                    continue
                for values in _rows(connection, select):
                    parts = [text_or_none(values.get(name)) for name in fields]
                    text = words_of("\n".join(part for part in parts if part))
                    if text:
                        name = f"note:claude-mem:{table}:{values['id']}"
                        project = text_or_none(values.get("project"))
                        yield Note(name, "", text, at=_time_of(values), origin=Origin.IMPORT, project=project)


def _prompts(connection: sqlite3.Connection, reading: Reading) -> Iterator[Conversation]:
    """The prompts of each session. Sessions have the ids that the host gave them."""
    names = columns(connection, "user_prompts") & columns(connection, "sdk_sessions")
    for key, select in _PROMPTS.items():
        if key in names:
            sessions = _rows(connection, "SELECT * FROM sdk_sessions")
            projects = {one[key]: text_or_none(one.get("project")) for one in sessions}
            for session_id, rows in groupby(_rows(connection, select), itemgetter(key)):
                if isinstance(session_id, str):
                    yield Conversation(session_id, _turns(rows, reading), project=projects.get(session_id))
            return


def _turns(rows: Iterable[dict[str, Any]], reading: Reading) -> Iterator[Turn]:
    for row in rows:
        said = text_or_none(row.get("prompt_text"))
        if said and said != _NO_PROMPT and (text := typed(said, reading.skipped)):
            yield Turn(Role.USER, text, f"prompt:{row.get('id')}", _time_of(row))


def _time_of(row: dict[str, Any]) -> int | None:
    return moment(row.get("created_at_epoch")) or moment(row.get("created_at"))


def _rows(connection: sqlite3.Connection, select: str) -> Iterator[dict[str, Any]]:
    rows = connection.execute(select)
    rows.row_factory = sqlite3.Row
    return map(dict, rows)
