"""The sessions of OpenCode, their messages, and the parts of these, which have the text.

They are in `opencode.db`; releases before it wrote a file each: `storage/session/<project>/<session>.json`,
`storage/message/<session>/<message>.json`, `storage/part/<message>/<part>.json`, and the first ones all of it below
`project/<name>/storage/session`. The files stay when a later release copies them into the database, with the same ids.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from kalito_mcp.domain.records import Role
from kalito_mcp.exchange.conversation import Conversation, Home, Reading, Turn, moment
from kalito_mcp.exchange.json_files import json_file, parsed
from kalito_mcp.exchange.tables import columns, conversations, has_tables, opened, text_or_none
from kalito_mcp.exchange.texts import count, spoken

_ROLES: Final = {"user": Role.USER, "assistant": Role.ASSISTANT}
_SESSIONS: Final = "SELECT id, directory, time_created FROM session ORDER BY time_created, id"
_MESSAGES: Final = """
SELECT m.id, m.data, m.time_created, p.data FROM message m JOIN part p ON p.message_id = m.id
WHERE m.session_id = ? ORDER BY m.time_created, m.id, p.id
"""
_PATTERNS: Final = (
    "project/*/storage/session/info/*.json",
    "storage/session/*/*.json",
    "session/*/*.json",
    "opencode*.db",
)
_SUB_AGENTS: Final = "SELECT id FROM session WHERE parent_id IS NOT NULL"
_NEEDED: Final = (
    ("session", ("id", "directory", "time_created")),
    ("message", ("id", "session_id", "time_created", "data")),
    ("part", ("id", "message_id", "data")),
)


class OpenCode:
    """`conversation.Source`."""

    name: Final = "opencode"
    title: Final = "OpenCode"
    is_appended: Final = False

    def find(self, home: Home) -> Iterable[Path]:
        return [path for share in home.shares() for path in self.within(share / "opencode")]

    def within(self, folder: Path) -> Iterable[Path]:
        return [path for pattern in _PATTERNS for path in sorted(folder.glob(pattern))]

    def read(self, reading: Reading) -> Iterator[Conversation]:
        if reading.path.suffix == ".json":
            yield from _session_of_files(reading)
            return
        with opened(reading.path) as connection:
            if not has_tables(connection, reading, *_NEEDED):
                return
            has_parents = "parent_id" in columns(connection, "session")
            called = {row[0] for row in connection.execute(_SUB_AGENTS)} if has_parents else set()
            yield from conversations(connection, reading, _SESSIONS, called, _turns)


def _turns(connection: sqlite3.Connection, session_id: str, reading: Reading) -> Iterator[Turn]:
    rows = connection.execute(_MESSAGES, (session_id,))
    for (key, raw, created), parts in groupby(rows, key=lambda row: row[:3]):
        message = parsed(raw) if isinstance(raw, str) else None
        found = (parsed(row[3]) if isinstance(row[3], str) else None for row in parts)
        yield from _turn(key, message, created, found, reading)


def _session_of_files(reading: Reading) -> Iterator[Conversation]:
    """The session of a file, with its messages. The ids are the names of the files: what is in them may be older."""
    session = json_file(reading.path, reading)
    if not isinstance(session, dict):
        return
    if session.get("parentID"):
        count(reading.skipped, "sub-agent")
        return
    session_id, is_first = reading.path.stem, reading.path.parent.name == "info"
    root = reading.path.parent.parent if is_first else reading.path.parent.parent.parent
    # The file of a session says nothing of new messages. What is in a database is not added to.
    reading.is_whole = is_first or any(root.parent.glob("opencode*.db"))
    messages = [(path, json_file(path, reading)) for path in sorted((root / "message" / session_id).glob("*.json"))]
    parts = root / "part" / session_id if is_first else root / "part"
    folder = text_or_none(session.get("directory")) or _folder_of(value for _, value in messages)
    time = session.get("time")
    begun = moment(time.get("created")) if isinstance(time, dict) else None
    yield Conversation(session_id, _turns_of_files(messages, parts, reading), folder, begun)


def _turns_of_files(messages: list[tuple[Path, Any]], parts: Path, reading: Reading) -> Iterator[Turn]:
    # Ties, and messages without a time, are in the order of their ids.
    for path, message in sorted(messages, key=lambda one: _created(one[1]) or 0):
        if message is None:
            continue  # it was counted
        inside = message.get("parts") if isinstance(message, dict) else None
        found = (parsed(part.read_bytes()) for part in sorted((parts / path.stem).glob("*.json")))
        yield from _turn(path.stem, message, None, inside if isinstance(inside, list) else found, reading)


def _created(message: Any) -> int | None:
    """When a message was written. The first releases have the time among other things about it."""
    about = message.get("metadata") if isinstance(message, dict) else None
    for one in (message, about):
        time = one.get("time") if isinstance(one, dict) else None
        if isinstance(time, dict) and (at := moment(time.get("created"))) is not None:
            return at
    return None


def _folder_of(messages: Iterable[Any]) -> str | None:
    """The folder that an answer was given in, where the session does not say it."""
    for message in messages:
        about = message.get("metadata") if isinstance(message, dict) else None
        helper = about.get("assistant") if isinstance(about, dict) else None
        for one in (message, helper):
            path = one.get("path") if isinstance(one, dict) else None
            if isinstance(path, dict) and (folder := text_or_none(path.get("cwd"))):
                return folder
    return None


def _turn(key: Any, message: Any, created: Any, parts: Iterable[Any], reading: Reading) -> Iterator[Turn]:
    named = message.get("role") if isinstance(message, dict) else None
    role = _ROLES.get(named) if isinstance(named, str) else None
    if role is None or not isinstance(key, str):
        count(reading.skipped, "message of an unknown kind")
    elif said := "\n\n".join(words for part in parts if (words := _said(part, reading))):
        at = _created(message)
        yield Turn(role, said, key, at if at is not None else moment(created), text_or_none(message.get("modelID")))


def _said(part: Any, reading: Reading) -> str:
    if not isinstance(part, dict):
        count(reading.skipped, "content of an unknown kind")
        return ""
    if part.get("synthetic") is True or part.get("ignored") is True:
        count(reading.skipped, "text of the host")
        return ""
    if part.get("type") in ("step-start", "step-finish", "snapshot", "patch", "compaction", "retry", "agent"):
        return ""
    return spoken(part, reading.skipped)
