"""Rollouts of Codex: `sessions/YYYY/MM/DD/rollout-*.jsonl`, a record a line, appended.

The first record names the session and its folder. Messages are `response_item`s; the events `user_message` and
`agent_message` repeat them. Messages have no ids.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from kalito_mcp.domain.records import Role
from kalito_mcp.exchange.conversation import Conversation, Home, Reading, Turn, moment
from kalito_mcp.exchange.json_files import first_line, json_lines
from kalito_mcp.exchange.texts import count, hash_of, spoken, words_of

_ROLES: Final = {"user": Role.USER, "assistant": Role.ASSISTANT}
_OF_THE_HOST: Final = (
    "# AGENTS.md instructions",
    "<environment_context>",
    "<user_instructions>",
    "<INSTRUCTIONS>",
    "<permissions instructions>",
    "<turn_aborted>",
    "<user_shell_command>",
    "<skill>",
    "<subagent_notification>",
    "<collaboration_mode>",
)


class Codex:
    """`conversation.Source`."""

    name: Final = "codex"
    title: Final = "Codex"
    is_appended: Final = True

    def find(self, home: Home) -> Iterable[Path]:
        place = home.of("CODEX_HOME", ".codex")
        return [*self.within(place / "sessions"), *self.within(place / "archived_sessions")]

    def within(self, folder: Path) -> Iterable[Path]:
        return sorted(folder.rglob("rollout-*.jsonl"))

    def read(self, reading: Reading) -> Iterator[Conversation]:
        first = first_line(reading.path)
        payload = first.get("payload")
        meta = payload if isinstance(payload, dict) else first
        session_id = meta.get("id") or meta.get("session_id")
        session_id = session_id if isinstance(session_id, str) else reading.path.stem.removeprefix("rollout-")
        origin = meta.get("source")
        turns = _turns(session_id, reading)
        if isinstance(origin, dict) and "subagent" in origin:
            reading.skipped["sub-agent"] += sum(1 for _ in turns)
            return
        folder = meta.get("cwd")
        yield Conversation(
            session_id, turns, folder if isinstance(folder, str) else None, moment(first.get("timestamp"))
        )


def _turns(session_id: str, reading: Reading) -> Iterator[Turn]:
    for line in json_lines(reading):
        record = line.value
        # The first releases wrote messages without an envelope.
        payload = record.get("payload") if "payload" in record else record
        if record.get("type") in ("event_msg", "session_meta", "turn_context"):
            continue
        if not isinstance(payload, dict):
            count(reading.skipped, "message of an unknown kind")
            continue
        if payload.get("type", "message") != "message" or "role" not in payload:
            if payload.get("type") == "message":
                count(reading.skipped, "message of an unknown kind")
            elif payload is not record or "role" in record:
                count(reading.skipped, _reason(payload.get("type")))
            continue
        named = payload["role"]
        role = _ROLES.get(named) if isinstance(named, str) else None
        if role is None:
            count(reading.skipped, "text of the host")
            continue
        said = spoken(payload.get("content"), reading.skipped, words_of if role is Role.ASSISTANT else _typed)
        if said:
            time = record.get("timestamp")
            key = hash_of(session_id, time if isinstance(time, str) else line.begin, role.value, said)
            yield Turn(role, said, key, moment(time))


def _typed(text: str) -> str:
    words = words_of(text)
    return "" if words.startswith(_OF_THE_HOST) else words


def _reason(kind: Any) -> str:
    return "thinking" if kind == "reasoning" else "tool call or output"
