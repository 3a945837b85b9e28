"""Sessions of Copilot CLI: `session-state/<session>/events.jsonl`, an event a line, appended. The first releases wrote
`session-state/<session>.jsonl`; a session that later ones go on with is copied, with the same ids."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from kalito_mcp.domain.records import Role
from kalito_mcp.exchange.conversation import Conversation, Home, Reading, Turn, moment
from kalito_mcp.exchange.json_files import first_line, json_lines
from kalito_mcp.exchange.texts import count, hash_of, spoken

_ROLES: Final = {"user.message": Role.USER, "assistant.message": Role.ASSISTANT}


class Copilot:
    """`conversation.Source`."""

    name: Final = "copilot"
    title: Final = "Copilot CLI"
    is_appended: Final = True

    def find(self, home: Home) -> Iterable[Path]:
        return self.within(home.of("COPILOT_HOME", ".copilot") / "session-state")

    def within(self, folder: Path) -> Iterable[Path]:
        flat = (
            path for path in folder.rglob("*.jsonl") if path.parent == folder or path.parent.name == "session-state"
        )
        return sorted({*folder.rglob("events.jsonl"), *flat})

    def read(self, reading: Reading) -> Iterator[Conversation]:
        begun = first_line(reading.path).get("data")
        begun = begun if isinstance(begun, dict) else {}
        context = begun.get("context")
        folder = context.get("cwd") if isinstance(context, dict) else None
        named = begun.get("sessionId")
        session_id = named if isinstance(named, str) else _named(reading.path)
        yield Conversation(session_id, _turns(session_id, reading), folder if isinstance(folder, str) else None)


def _named(path: Path) -> str:
    return path.parent.name if path.name == "events.jsonl" else path.stem


def _turns(session_id: str, reading: Reading) -> Iterator[Turn]:
    for line in json_lines(reading):
        event = line.value
        kind, fields = event.get("type"), event.get("data")
        role = _ROLES.get(kind) if isinstance(kind, str) else None
        if role is None or not isinstance(fields, dict):
            is_tool = isinstance(kind, str) and kind.startswith("tool.")
            count(reading.skipped, "tool call or output" if is_tool else "record that is not a message")
            continue
        if fields.get("parentToolCallId"):
            count(reading.skipped, "sub-agent")
            continue
        if said := spoken(fields.get("content"), reading.skipped):
            named = event.get("id")
            key = named if isinstance(named, str) else hash_of(session_id, line.begin, role.value, said)
            if role is Role.USER and fields.get("source") not in (None, "user"):
                role = Role.SYSTEM  # a skill's, or the host's own
            yield Turn(role, said, key, moment(event.get("timestamp")))
