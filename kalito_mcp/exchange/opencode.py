"""The sessions of OpenCode, their messages, and the parts of these, which have the text.

They are in `opencode.db`: in the tables `session`, `message` and `part`, or in `session_v2` and `session_message`,
which has a message in one row. A fork begins with copies of the messages before it, under new ids, and names the
session: in `fork_session_id`, in the first releases in `parent_id`, as a sub-agent does, or only by its title,
`x (fork #1)`. Releases before the database wrote a file each: `storage/session/<project>/<session>.json`,
`storage/message/<session>/<message>.json`, `storage/part/<message>/<part>.json`, and the first ones all of it below
`project/<name>/storage/session`. The files stay when a later release copies them into the database, with the same ids.
"""

import re
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Final

from kalito_mcp.domain.records import Role
from kalito_mcp.exchange.conversation import Conversation, Home, Reading, Turn, moment, without_copies
from kalito_mcp.exchange.json_files import json_file, parsed
from kalito_mcp.exchange.tables import columns, opened, text_or_none
from kalito_mcp.exchange.texts import count, spoken

_ROLES: Final = {"user": Role.USER, "assistant": Role.ASSISTANT}
_MESSAGES: Final = """
SELECT m.id, m.data, m.time_created, p.data FROM message m JOIN part p ON p.message_id = m.id
WHERE m.session_id = ? ORDER BY m.time_created, m.id, p.id
"""
_MESSAGES_V2: Final = """
SELECT id, type, data, time_created FROM session_message WHERE session_id = ? AND type IN ('user', 'assistant')
ORDER BY seq
"""
_PATTERNS: Final = (
    "project/*/storage/session/info/*.json",
    "storage/session/*/*.json",
    "session/*/*.json",
    "opencode*.db",
)
_TABLES: Final = ("session_v2", "session")
_NEEDED: Final = ("id", "directory", "time_created")
_FORK: Final = re.compile(r"(.*) \(fork #\d+\)", re.DOTALL)
_NAME: Final = re.compile(r"\w+")
_V1: Final = (
    ("message", ("id", "session_id", "time_created", "data")),
    ("part", ("id", "message_id", "data")),
)
_V2: Final = ("id", "session_id", "type", "seq", "data", "time_created")


@dataclass(slots=True)
class _Session:
    """A session as the database has it."""

    id: str
    folder: str | None
    begun: int | None
    title: str
    parent: str | None
    fork_of: str | None

    def origin(self, others: "list[_Session]") -> str | None:
        """The session that this one is a fork of; None if it is not a fork."""
        if self.fork_of is not None:
            return self.fork_of
        is_fork = _FORK.fullmatch(self.title)
        if is_fork is None:
            return None
        if self.parent is not None:
            return self.parent
        # Without the id: the latest before it whose title it has, with or without a number of its own.
        before = (one for one in reversed(others) if one is not self and one.folder == self.folder)
        return next((one.id for one in before if is_fork[1] in (one.title, _base(one.title))), None)


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
            found = _sessions(connection, reading)
            for place, session in enumerate(found):
                origin = session.origin(found[:place])
                if origin is None and session.parent is not None:
                    unread = Reading(reading.path)
                    both = (_turns(connection, one, unread) for one in (session.id, session.parent))
                    if not _begin_alike(*both):
                        reading.skipped["sub-agent"] += 1
                        continue
                    origin = session.parent
                turns = _turns(connection, session.id, reading)
                if origin is not None:
                    others = _turns(connection, origin, Reading(reading.path))
                    turns = without_copies(turns, others, reading, origin=origin)
                yield Conversation(session.id, turns, session.folder, session.begun)


def _begin_alike(turns: Iterator[Turn], others: Iterator[Turn]) -> bool:
    """Whether both begin with the same prompt and answer: a sub-agent answers a task of its own."""
    said, other = ([(turn.role, turn.text) for turn in islice(one, 2)] for one in (turns, others))
    return said == other and len(said) == 2  # noqa: PLR2004 - a prompt and an answer


def _base(title: str) -> str:
    found = _FORK.fullmatch(title)
    return found[1] if found else title


def _sessions(connection: sqlite3.Connection, reading: Reading) -> "list[_Session]":
    """The sessions of the database, in order of their beginnings."""
    found: dict[str, _Session] = {}
    is_known = False
    for table in _TABLES:
        known = columns(connection, table)
        if not known >= set(_NEEDED):
            continue
        is_known = True
        wanted = [name if name in known else "NULL" for name in ("title", "parent_id", "fork_session_id")]
        statement = f"SELECT id, directory, time_created, {', '.join(wanted)} FROM {table} ORDER BY time_created, id"  # noqa: S608 - names of ours
        for session_id, folder, created, *named in connection.execute(statement):
            title, parent, fork_of = (text_or_none(one) for one in named)
            if isinstance(session_id, str):
                session = _Session(session_id, text_or_none(folder), moment(created), title or "", parent, fork_of)
                found.setdefault(session_id, session)
    has_messages = columns(connection, "session_message") >= set(_V2) or all(
        columns(connection, table) >= set(names) for table, names in _V1
    )
    if not is_known or not has_messages:
        reading.skipped["database of an unknown kind"] += 1
        return []
    return sorted(found.values(), key=lambda one: (one.begun or 0, one.id))


def _turns(connection: sqlite3.Connection, session_id: str, reading: Reading) -> Iterator[Turn]:
    """The turns of a session, from the table that has them."""
    if columns(connection, "session_message") >= set(_V2):
        rows = connection.execute(_MESSAGES_V2, (session_id,)).fetchall()
        for key, role, raw, created in rows:
            message = parsed(raw) if isinstance(raw, str) else None
            message = {**message, "role": role} if isinstance(message, dict) else None
            inside = message.get("content") if message else None
            parts = inside if isinstance(inside, list) else [{"type": "text", "text": (message or {}).get("text")}]
            yield from _turn(key, message, created, parts, reading)
        if rows:
            return
    if all(columns(connection, table) >= set(names) for table, names in _V1):
        messages = connection.execute(_MESSAGES, (session_id,))
        for (key, raw, created), parts_of in groupby(messages, key=lambda row: row[:3]):
            message = parsed(raw) if isinstance(raw, str) else None
            found = (parsed(row[3]) if isinstance(row[3], str) else None for row in parts_of)
            yield from _turn(key, message, created, found, reading)


def _session_of_files(reading: Reading) -> Iterator[Conversation]:
    """The session of a file, with its messages. The ids are the names of the files: what is in them may be older."""
    session = json_file(reading.path, reading)
    if not isinstance(session, dict):
        return
    session_id, is_first = reading.path.stem, reading.path.parent.name == "info"
    root = reading.path.parent.parent if is_first else reading.path.parent.parent.parent
    # The file of a session says nothing of new messages. What is in a database is not added to.
    reading.is_whole = is_first or any(root.parent.glob("opencode*.db"))

    def turns_of(named: str, read: Reading) -> tuple[list[tuple[Path, Any]], Iterator[Turn]]:
        messages = [(path, json_file(path, read)) for path in sorted((root / "message" / named).glob("*.json"))]
        return messages, _turns_of_files(messages, root / "part" / named if is_first else root / "part", read)

    messages, turns = turns_of(session_id, reading)
    origin = text_or_none(session.get("parentID"))
    if origin is not None and _NAME.fullmatch(origin):
        is_fork = _FORK.fullmatch(text_or_none(session.get("title")) or "") is not None
        both = (turns_of(one, Reading(reading.path))[1] for one in (session_id, origin))
        if not is_fork and not _begin_alike(*both):
            count(reading.skipped, "sub-agent")
            return
        turns = without_copies(turns, turns_of(origin, Reading(reading.path))[1], reading, origin=origin)
    folder = text_or_none(session.get("directory")) or _folder_of(value for _, value in messages)
    time = session.get("time")
    begun = moment(time.get("created")) if isinstance(time, dict) else None
    yield Conversation(session_id, turns, folder, begun)


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
