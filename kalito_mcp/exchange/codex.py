"""Rollouts of Codex: `sessions/YYYY/MM/DD/rollout-*.jsonl`, a record a line, appended. From 0.137 on, one that nobody
has touched for a week is compressed to `rollout-*.jsonl.zst`.

The first record names the session and its folder. Messages are `response_item`s; the events `user_message` and
`agent_message` repeat them. Messages have no ids. The rollout of a fork begins with a copy of the messages before it,
with new times.
"""

import re
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from kalito_mcp.domain.records import Role
from kalito_mcp.exchange.conversation import Conversation, Home, Reading, Turn, moment, without_copies
from kalito_mcp.exchange.json_files import first_line, json_lines
from kalito_mcp.exchange.texts import count, hash_of, spoken, words_of
from kalito_mcp.exchange.zstandard import SUFFIX, TO_INSTALL, zstandard
from kalito_mcp.text.host_blocks import without_ide_context

_ID: Final = re.compile(r"[0-9a-zA-Z-]+")
_FOLDERS: Final = ("sessions", "archived_sessions")
_NO_ZSTANDARD: Final = f"compressed conversation of Codex; {TO_INSTALL}"
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
        return [path for name in _FOLDERS for path in self.within(place / name)]

    def within(self, folder: Path) -> Iterable[Path]:
        plain = set(folder.rglob("rollout-*.jsonl"))
        compressed = {path for path in folder.rglob(f"rollout-*.jsonl{SUFFIX}") if path.with_suffix("") not in plain}
        return sorted(plain | compressed)

    def read(self, reading: Reading) -> Iterator[Conversation]:
        if not _is_readable(reading.path, reading):
            return
        first = first_line(reading.path)
        payload = first.get("payload")
        meta = payload if isinstance(payload, dict) else first
        session_id = meta.get("id") or meta.get("session_id")
        session_id = (
            session_id if isinstance(session_id, str) else reading.path.name.removeprefix("rollout-").split(".")[0]
        )
        called_by = meta.get("source")
        turns = _turns(session_id, reading)
        if isinstance(called_by, dict) and "subagent" in called_by:
            reading.skipped["sub-agent"] += sum(1 for _ in turns)
            return
        copied = _rollout_of(meta.get("forked_from_id"), reading.path)
        if copied is not None and not _is_readable(copied, reading):
            return  # what it has of its own is not known
        origin = meta.get("forked_from_id")
        if isinstance(origin, str) and not reading.start:
            others = iter(()) if copied is None else _turns(session_id, Reading(copied))
            turns = without_copies(turns, others, reading, origin=origin)
        folder = meta.get("cwd")
        yield Conversation(
            session_id, turns, folder if isinstance(folder, str) else None, moment(first.get("timestamp"))
        )


def _is_readable(path: Path, reading: Reading) -> bool:
    """Whether the file is not compressed, or can be unpacked here. Otherwise it is counted."""
    if path.suffix != SUFFIX or zstandard() is not None:
        return True
    reading.is_whole = False
    count(reading.skipped, _NO_ZSTANDARD)
    return False


def _rollout_of(session_id: Any, path: Path) -> Path | None:
    """The file of another session, if it is there."""
    if not isinstance(session_id, str) or not _ID.fullmatch(session_id):
        return None
    place = next((folder for folder in path.parents if folder.name in _FOLDERS), None)
    folders = [path.parent] if place is None else [place.with_name(name) for name in _FOLDERS]
    names = (f"rollout-*-{session_id}.jsonl", f"rollout-*-{session_id}.jsonl{SUFFIX}")
    return next((found for name in names for folder in folders for found in folder.rglob(name)), None)


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
        clean = words_of if role is Role.ASSISTANT else partial(_typed, skipped=reading.skipped)
        said = spoken(payload.get("content"), reading.skipped, clean)
        if said:
            time = record.get("timestamp")
            key = hash_of(session_id, time if isinstance(time, str) else line.begin, role.value, said)
            yield Turn(role, said, key, moment(time))


def _typed(text: str, *, skipped: dict[str, int]) -> str:
    words = without_ide_context(words_of(text))
    if not words.startswith(_OF_THE_HOST):
        return words
    count(skipped, "text of the host")
    return ""


def _reason(kind: Any) -> str:
    return "thinking" if kind == "reasoning" else "tool call or output"
