"""Exports of Claude.ai: the zip, its folder, or a file of it: `conversations.json`, `projects.json` or one for each
project in `projects`, and `memories.json`.

A message that was edited leaves a branch: messages name the one before them. What is read is the way to the newest.
The texts and instructions of projects become documents, and so does what Claude noted of the person and of projects.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from kalito_mcp.domain.records import Origin, Role
from kalito_mcp.exchange.conversation import MOST_BYTES, Conversation, Home, Note, Reading, Turn, moment
from kalito_mcp.exchange.exports import exports_in, streams
from kalito_mcp.exchange.json_files import json_list
from kalito_mcp.exchange.texts import count, hash_of, spoken, words_of

_FILES: Final = "*.json"
_KNOWN: Final = ("conversations", "projects", "memories")
"""The name of a file begins so, or its folder is named so."""
_ROLES: Final = {"human": Role.USER, "user": Role.USER, "assistant": Role.ASSISTANT}


class ClaudeAi:
    """`conversation.Source`."""

    name: Final = "claude-ai"
    title: Final = "Claude.ai"
    is_appended: Final = False

    def find(self, home: Home) -> Iterable[Path]:
        del home  # an export can be anywhere
        return ()

    def within(self, folder: Path) -> Iterable[Path]:
        found = exports_in(folder, _FILES)
        return (path for path in found if path.suffix == ".zip" or _is_known(path))

    def read(self, reading: Reading) -> Iterator[Conversation | Note]:
        for name, stream in streams(reading, _FILES):
            if reading.path.suffix.lower() == ".zip" and not _is_known(Path(name)):
                reading.skipped[f"file of the export: {Path(name).name}"] += 1
                continue
            for one in json_list(stream, reading):
                if isinstance(one, dict) and isinstance(one.get("chat_messages"), list):
                    yield _conversation(one, reading)
                elif isinstance(one, dict) and ("docs" in one or "prompt_template" in one):
                    yield from _project(one)
                elif isinstance(one, dict) and ("conversations_memory" in one or "project_memories" in one):
                    yield from _memories(one)
                else:
                    count(reading.skipped, "conversation of an unknown kind")


def _is_known(path: Path) -> bool:
    return path.name.startswith(_KNOWN) or path.parent.name in _KNOWN


def _conversation(one: dict[str, Any], reading: Reading) -> Conversation:
    begun = moment(one.get("created_at")) or moment(one.get("updated_at"))
    named = one.get("uuid")
    session_id = named if isinstance(named, str) else hash_of(one.get("name"), begun)
    messages = [message for message in one["chat_messages"] if isinstance(message, dict)]
    if len(messages) < len(one["chat_messages"]):
        count(reading.skipped, "message of an unknown kind")
    way = _way(messages, one.get("current_leaf_message_uuid"))
    if len(way) < len(messages):
        reading.skipped["another branch"] += len(messages) - len(way)
    return Conversation(session_id, _turns(session_id, way, reading), started_at=begun)


def _way(messages: list[dict[str, Any]], current: Any) -> list[dict[str, Any]]:
    """The messages from the first to the current one, or to the last. All of them, if they do not name the one before
    them, or one is missing."""
    known = {one["uuid"]: one for one in messages if isinstance(one.get("uuid"), str)}
    if len(known) < len(messages) or not messages:
        return messages
    if not isinstance(current, str) or current not in known:
        current = messages[-1]["uuid"]
    way: dict[str, dict[str, Any]] = {}
    while isinstance(current, str) and current in known and current not in way:
        way[current] = known[current]
        current = known[current].get("parent_message_uuid")
    # Of a message without a parent only the first of the conversation is the beginning.
    first = next(reversed(way.values()))
    is_whole = first is messages[0] or str(current).startswith("00000000-")
    return [*reversed(way.values())] if is_whole else messages


def _turns(session_id: str, messages: list[dict[str, Any]], reading: Reading) -> Iterator[Turn]:
    for place, message in enumerate(messages):
        sender = message.get("sender") or message.get("role")
        role = _ROLES.get(sender) if isinstance(sender, str) else None
        if role is None:
            count(reading.skipped, "message of an unknown kind")
            continue
        # The blocks say more than the text, which has marks for those that it cannot show.
        said = spoken(message.get("content") or None, reading.skipped) or spoken(message.get("text"), reading.skipped)
        said = _with_attachments(said, message, reading)
        if said:
            named = message.get("uuid")
            key = named if isinstance(named, str) else hash_of(session_id, place, role.value, said)
            yield Turn(role, said, key, moment(message.get("created_at")))


def _with_attachments(said: str, message: dict[str, Any], reading: Reading) -> str:
    """The text of a message, and then of its attachments, as far as there is room for them.

    They are fenced like code, because their words are not the user's.
    """
    files = [one for name in ("attachments", "files") if isinstance(message.get(name), list) for one in message[name]]
    for file in files:
        text = file.get("extracted_content") if isinstance(file, dict) else None
        words = words_of(text) if isinstance(text, str) else ""
        if not words:
            reading.skipped["image or file"] += 1
            continue
        name = file["file_name"] if isinstance(file.get("file_name"), str) and file["file_name"] else "pasted text"
        fence = "```"
        while fence in words:
            fence += "`"
        longer = f"{said}\n\n{words_of(name)}:\n{fence}\n{words}\n{fence}".strip()
        if len(longer.encode()) > MOST_BYTES:
            reading.skipped["attachment that is too long"] += 1
        else:
            said = longer
    return said


def _memories(one: dict[str, Any]) -> Iterator[Note]:
    """Claude's notes on the person, and on each project."""
    account = one["account_uuid"] if isinstance(one.get("account_uuid"), str) else ""
    projects = one["project_memories"] if isinstance(one.get("project_memories"), dict) else {}
    for key, text in ((account, one.get("conversations_memory")), *projects.items()):
        if isinstance(text, str):
            yield Note(f"claude-ai:memory:{key}", "Memory of Claude.ai", text, origin=Origin.IMPORT)


def _project(one: dict[str, Any]) -> Iterator[Note]:
    """The documents of a project."""
    title = one["name"] if isinstance(one.get("name"), str) else ""
    named = one["uuid"] if isinstance(one.get("uuid"), str) else hash_of(title)
    if isinstance(one.get("prompt_template"), str):
        heading = f"{title}: instructions" if title else ""
        at = moment(one.get("updated_at")) or moment(one.get("created_at"))
        yield Note(f"claude-ai:{named}", heading, one["prompt_template"], at=at)
    for place, document in enumerate(one["docs"] if isinstance(one.get("docs"), list) else ()):
        text = document.get("content") if isinstance(document, dict) else None
        if isinstance(text, str):
            key = document["uuid"] if isinstance(document.get("uuid"), str) else f"{named}:{place}"
            name = document["filename"] if isinstance(document.get("filename"), str) else title
            yield Note(f"claude-ai:{key}", name, text, at=moment(document.get("created_at")))
