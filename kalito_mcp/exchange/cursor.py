"""The conversations of Cursor: the transcripts of its command line, and the database of the editor.

`projects/<folder>/agent-transcripts/**/<chat>.jsonl` has a message a line, without ids and times. `state.vscdb` has a
table of keys: `composerData:<chat>` with the order of the messages, `bubbleId:<chat>:<message>` with each of them.
"""

import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from kalito_mcp.domain.records import Role
from kalito_mcp.exchange.conversation import Conversation, Home, Reading, Turn, moment
from kalito_mcp.exchange.json_files import json_lines, parsed
from kalito_mcp.exchange.tables import has_tables, opened, text_or_none
from kalito_mcp.exchange.texts import count, hash_of, spoken, words_of
from kalito_mcp.text.host_blocks import heard

_ROLES: Final = {"user": Role.USER, "assistant": Role.ASSISTANT}
_CHATS: Final = (
    "SELECT key, value FROM cursorDiskKV WHERE key >= 'composerData:' AND key < 'composerData;' ORDER BY key"
)
_BUBBLE: Final = "SELECT value FROM cursorDiskKV WHERE key = ?"
_UNWRITTEN: Final = re.compile("[^0-9A-Za-z]")
_MARK: Final = "<user_query>"


class Cursor:
    """`conversation.Source`."""

    name: Final = "cursor"
    title: Final = "Cursor"
    is_appended: Final = False

    def find(self, home: Home) -> Iterable[Path]:
        found = list(self.within(home.of("CURSOR_CONFIG_DIR", ".cursor") / "projects"))
        for place in home.applications():
            user = place / "Cursor" / "User"
            found += [*user.glob("globalStorage/state.vscdb"), *user.glob("workspaceStorage/*/state.vscdb")]
        return found

    def within(self, folder: Path) -> Iterable[Path]:
        lines = (path for path in folder.rglob("*.jsonl") if "agent-transcripts" in path.parts)
        return [
            *sorted(path for path in lines if "subagents" not in path.parts),
            *sorted(folder.rglob("state.vscdb")),
        ]

    def read(self, reading: Reading) -> Iterator[Conversation]:
        if reading.path.suffix == ".jsonl":
            yield Conversation(reading.path.stem, _turns_of_lines(reading), _folder_of(reading.path))
            return
        with opened(reading.path) as connection:
            if not has_tables(connection, reading, ("cursorDiskKV", ("key", "value"))):
                return
            for key, raw in connection.execute(_CHATS):
                chat = parsed(raw) if isinstance(raw, str | bytes) else None
                if isinstance(chat, dict) and isinstance(key, str):
                    yield from _chat(connection, key.partition(":")[2], chat, reading)
                else:
                    count(reading.skipped, "conversation of an unknown kind")


def _folder_of(path: Path) -> str | None:
    """The folder of this machine that a transcript's project is named after: each other sign of its path is a `-`. None
    if there is no such folder, or more than one."""
    parts = path.parts
    place = parts.index("agent-transcripts") if "agent-transcripts" in parts else 0
    found = list(_folders(Path(path.anchor), parts[place - 1].lstrip("-"))) if place else []
    return str(found[0]) if len(found) == 1 else None


def _folders(folder: Path, name: str) -> Iterator[Path]:
    """The folders below this one whose path from here is written as `name`."""
    try:
        inside = [one for one in folder.iterdir() if one.is_dir()]
    except OSError:
        return
    for one in inside:
        written = _UNWRITTEN.sub("-", one.name).lstrip("-")
        if written and written == name:
            yield one
        elif written and name.startswith(f"{written}-"):
            yield from _folders(one, name.removeprefix(f"{written}-").lstrip("-"))


def _turns_of_lines(reading: Reading) -> Iterator[Turn]:
    times: Counter[str] = Counter()
    for line in json_lines(reading):
        named, message = line.value.get("role"), line.value.get("message")
        role = _ROLES.get(named) if isinstance(named, str) else None
        if role is None or not isinstance(message, dict):
            count(reading.skipped, "record that is not a message")
            continue
        if said := spoken(message.get("content"), reading.skipped, _query if role is Role.USER else words_of):
            key = hash_of(reading.path.stem, role.value, said)
            times[key] += 1
            yield Turn(role, said, key if times[key] == 1 else f"{key}:{times[key]}")


def _query(text: str) -> str:
    """What the user typed of the text, if a mark names that; or else all of it."""
    words = words_of(text)
    return (heard(words).words if _MARK in words else "") or words


def _chat(
    connection: sqlite3.Connection, session_id: str, chat: dict[str, Any], reading: Reading
) -> Iterator[Conversation]:
    bubbles: list[tuple[str, dict[str, Any]]] = []
    inside = chat.get("conversation")  # older releases kept the messages here
    heads = chat.get("fullConversationHeadersOnly")
    for head in inside if isinstance(inside, list) and inside else heads if isinstance(heads, list) else ():
        named = head.get("bubbleId") if isinstance(head, dict) else None
        if not isinstance(named, str):
            count(reading.skipped, "message of an unknown kind")
            continue
        bubble = head if head.get("text") else _bubble(connection, f"bubbleId:{session_id}:{named}")
        if bubble is None:
            count(reading.skipped, "message that is not there")
        else:
            bubbles.append((named, bubble))
    folder = next((one for _, bubble in bubbles if (one := text_or_none(bubble.get("workspaceProjectDir")))), None)
    yield Conversation(session_id, _turns_of(bubbles, reading), folder, moment(chat.get("createdAt")))


def _bubble(connection: sqlite3.Connection, key: str) -> dict[str, Any] | None:
    row = connection.execute(_BUBBLE, (key,)).fetchone()
    value = parsed(row[0]) if row is not None and isinstance(row[0], str | bytes) else None
    return value if isinstance(value, dict) else None


def _turns_of(bubbles: list[tuple[str, dict[str, Any]]], reading: Reading) -> Iterator[Turn]:
    for key, bubble in bubbles:
        kind = bubble.get("type")
        if kind not in (1, 2):
            count(reading.skipped, "message of an unknown kind")
            continue
        if said := words_of(text_or_none(bubble.get("text")) or text_or_none(bubble.get("rawText")) or ""):
            at = moment(bubble.get("timestamp")) or moment(bubble.get("createdAt"))
            yield Turn(Role.USER if kind == 1 else Role.ASSISTANT, said, key, at)
