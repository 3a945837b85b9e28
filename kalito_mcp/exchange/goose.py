"""The sessions of Goose: its database `sessions.db`, and the `.jsonl` files of older releases."""

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from kalito_mcp.domain.records import Role
from kalito_mcp.exchange.conversation import Conversation, Home, Reading, Turn, moment
from kalito_mcp.exchange.json_files import first_line, json_lines, parsed
from kalito_mcp.exchange.tables import columns, conversations, has_tables, opened, text_or_none
from kalito_mcp.exchange.texts import count, hash_of, spoken

_ROLES: Final = {"user": Role.USER, "assistant": Role.ASSISTANT}
_SESSIONS: Final = "SELECT id, working_dir, created_at FROM sessions ORDER BY created_at, id"
_NOT_OF_THE_USER: Final = "SELECT id FROM sessions WHERE session_type IN ('sub_agent', 'hidden')"
_MESSAGES: Final = """
SELECT id, role, content_json, created_timestamp FROM messages WHERE session_id = ? ORDER BY id
"""
_HIDDEN: Final = """
SELECT id FROM messages WHERE session_id = ?
AND json_valid(metadata_json) AND json_extract(metadata_json, '$.userVisible') = 0
"""
"""Messages that its user does not see, such as the summary after a compaction."""
_FOLDERS: Final = ("goose", "Block/goose", "Block/goose/data")
"""Where it keeps its data, by system and release: on Linux; on macOS; on Windows."""
_NEEDED: Final = (
    ("sessions", ("id", "working_dir", "created_at")),
    ("messages", ("id", "session_id", "role", "content_json", "created_timestamp")),
)


class Goose:
    """`conversation.Source`."""

    name: Final = "goose"
    title: Final = "Goose"
    is_appended: Final = False

    def find(self, home: Home) -> Iterable[Path]:
        root = home.environment.get("GOOSE_PATH_ROOT")
        places = [Path(root) / "data"] if root else [share / name for share in home.shares() for name in _FOLDERS]
        return [path for place in places for path in self.within(place / "sessions")]

    def within(self, folder: Path) -> Iterable[Path]:
        return [*sorted(folder.glob("*.jsonl")), *sorted(folder.glob("sessions.db"))]

    def read(self, reading: Reading) -> Iterator[Conversation]:
        if reading.path.suffix == ".jsonl":
            head = first_line(reading.path)
            session_id = text_or_none(head.get("id")) or reading.path.stem
            folder, begun = text_or_none(head.get("working_dir")), moment(head.get("created_at"))
            yield Conversation(session_id, _turns_of_lines(session_id, reading), folder, begun)
            return
        with opened(reading.path) as connection:
            if not has_tables(connection, reading, *_NEEDED):
                return
            has_types = "session_type" in columns(connection, "sessions")
            called = {row[0] for row in connection.execute(_NOT_OF_THE_USER)} if has_types else set()
            yield from conversations(connection, reading, _SESSIONS, called, _turns_of_rows)


def _turns_of_lines(session_id: str, reading: Reading) -> Iterator[Turn]:
    for line in json_lines(reading):
        about = line.value.get("metadata")
        if isinstance(about, dict) and about.get("userVisible") is False:
            count(reading.skipped, "text of the host")
        elif "role" in line.value:
            key = line.value.get("id")
            yield from _turn(session_id, key, line.value["role"], line.value.get("content"), line.value, reading)


def _turns_of_rows(connection: sqlite3.Connection, session_id: str, reading: Reading) -> Iterator[Turn]:
    has_hidden = "metadata_json" in columns(connection, "messages")
    hidden = {row[0] for row in connection.execute(_HIDDEN, (session_id,))} if has_hidden else set()
    for key, role, raw, created in connection.execute(_MESSAGES, (session_id,)):
        if key in hidden:
            count(reading.skipped, "text of the host")
            continue
        content = parsed(raw) if isinstance(raw, str) else None
        if content is None:
            count(reading.skipped, "content of an unknown kind")
            continue
        yield from _turn(session_id, f"{session_id}:{key}", role, content, {"created": created}, reading)


def _turn(
    session_id: str, key: Any, named: Any, content: Any, message: dict[str, Any], reading: Reading
) -> Iterator[Turn]:
    role = _ROLES.get(named) if isinstance(named, str) else None
    if role is None:
        count(reading.skipped, "message of an unknown kind")
    elif said := spoken(content, reading.skipped):
        at = moment(message.get("created"))
        yield Turn(role, said, text_or_none(key) or hash_of(session_id, at, role.value, said), at)
