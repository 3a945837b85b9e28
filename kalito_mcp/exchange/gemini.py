"""Chats of Gemini CLI: `tmp/<project>/chats/session-*.jsonl`, and whole sessions in `.json`, as older releases wrote.

The lines are replayed: a message of a known id replaces it, `$set` replaces all messages, and `$rewindTo` removes a
message and what follows it. So the whole file is read each time.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from kalito_mcp.domain.records import Role
from kalito_mcp.exchange.conversation import Conversation, Home, Reading, Turn, moment
from kalito_mcp.exchange.json_files import first_line, json_file, json_lines
from kalito_mcp.exchange.texts import count, hash_of, spoken, without, words_of

_ROLES: Final = {"user": Role.USER, "gemini": Role.ASSISTANT, "model": Role.ASSISTANT}


class Gemini:
    """`conversation.Source`."""

    name: Final = "gemini"
    title: Final = "Gemini CLI"
    is_appended: Final = False

    def find(self, home: Home) -> Iterable[Path]:
        return self.within(home.of("GEMINI_CLI_HOME", ".") / ".gemini" / "tmp")

    def within(self, folder: Path) -> Iterable[Path]:
        # A chat of a sub-agent is in a folder below the folder of the chat that called it.
        chats = (path for path in folder.rglob("*.json*") if path.parent.name == "chats" or path.parent == folder)
        return sorted(path for path in chats if path.suffix in (".json", ".jsonl"))

    def read(self, reading: Reading) -> Iterator[Conversation]:
        if reading.path.suffix == ".jsonl":
            head = first_line(reading.path)
            messages: Any = _replayed(reading)
        else:
            whole = json_file(reading.path, reading)
            head = whole if isinstance(whole, dict) else {}
            messages = head.get("messages")
        session_id = head.get("sessionId")
        if not isinstance(session_id, str) or not isinstance(messages, list):
            count(reading.skipped, "file that is not a session")
            return
        if head.get("kind") == "subagent":
            count(reading.skipped, "sub-agent")
            return
        turns = _turns(session_id, messages, reading)
        yield Conversation(session_id, turns, _folder(reading.path), moment(head.get("startTime")))


def _replayed(reading: Reading) -> list[Any]:
    messages: dict[str, Any] = {}
    for line in json_lines(reading):
        record = line.value
        change, rewound = record.get("$set"), record.get("$rewindTo")
        if isinstance(change, dict):
            if isinstance(change.get("messages"), list):
                messages = {_key(one, str(place)): one for place, one in enumerate(change["messages"])}
        elif rewound is not None:
            keys = list(messages)
            if isinstance(rewound, str) and rewound in messages:
                for key in keys[keys.index(rewound) :]:
                    del messages[key]
                    count(reading.skipped, "another branch")
        elif "type" in record:
            messages[_key(record, str(line.begin))] = record
        elif "content" in record:
            count(reading.skipped, "record that is not a message")
    return list(messages.values())


def _key(message: Any, place: str) -> str:
    named = message.get("id") if isinstance(message, dict) else None
    return named if isinstance(named, str) else place


def _turns(session_id: str, messages: list[Any], reading: Reading) -> Iterator[Turn]:
    for place, message in enumerate(messages):
        kind = message.get("type") if isinstance(message, dict) else None
        role = _ROLES.get(kind) if isinstance(kind, str) else None
        if role is None:
            count(reading.skipped, "record that is not a message")
            continue
        if said := spoken(message.get("content"), reading.skipped, _said):
            named, model = message.get("id"), message.get("model")
            key = named if isinstance(named, str) else hash_of(session_id, place, role.value, said)
            yield Turn(role, said, key, moment(message.get("timestamp")), model if isinstance(model, str) else None)


def _said(text: str) -> str:
    """The words without what hooks put before or after them."""
    return words_of(without(text, "<hook_context>", "</hook_context>"))


def _folder(path: Path) -> str | None:
    """The folder that a chat was held in, if the file beside the chats says so."""
    try:
        return (path.parent.parent / ".project_root").read_text(encoding="utf-8").strip() or None
    except (OSError, ValueError):
        return None
