"""Rollouts of Codex: `sessions/YYYY/MM/DD/rollout-*.jsonl`, a record a line, appended. From 0.137 on, one that nobody
has touched for a week is compressed to `rollout-*.jsonl.zst`.

The first record names the session and its folder. Messages are `response_item`s. An event repeats what the user typed
(`user_message`, or `item_completed` of a `UserMessage`), so a message in the user's role without such an event is the
host's. The first releases wrote no events. Messages have no ids. The rollout of a fork begins with a copy of the
messages before it, with new times.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, cast

from kalito_mcp.domain.records import Role
from kalito_mcp.exchange.conversation import Conversation, Home, Reading, Turn, moment, without_copies
from kalito_mcp.exchange.json_files import first_line, json_lines
from kalito_mcp.exchange.texts import count, hash_of, spoken, texts_in, words_of
from kalito_mcp.exchange.zstandard import SUFFIX, TO_INSTALL, zstandard
from kalito_mcp.text.host_blocks import without_ide_context

_ID: Final = re.compile(r"[0-9a-zA-Z-]+")
_FOLDERS: Final = ("sessions", "archived_sessions")
_NO_ZSTANDARD: Final = f"compressed conversation of Codex; {TO_INSTALL}"
_ROLES: Final = {"user": Role.USER, "assistant": Role.ASSISTANT}
_EVENT: Final = "event_msg"
_OF_THE_HOST: Final = (
    "# AGENTS.md instructions",
    "<INSTRUCTIONS>",
    "<skill>",
    "Another language model started to solve this problem and produced a summary",
)
"""How texts of the host begin, in rollouts without the events."""
_KINDS: Final = ("internal_chat_message_metadata_passthrough", "content_item_kinds")
"""Where newer releases say what each block of a message is."""
_TYPED: Final = "user.text"


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
            turns = _in_places(turns, origin, is_copy=copied is None)
            others = iter(()) if copied is None else _turns(session_id, Reading(copied))
            turns = without_copies(turns, others, reading, origin=origin)
        elif not reading.start:
            turns = _in_places(turns, session_id, is_copy=False)
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
    typed = _Typed(reading)
    waiting: int | None = None
    """Where messages in the user's role begin after which nothing is said: their events may not be written yet."""
    for line in json_lines(reading):
        record = line.value
        # The first releases wrote messages without an envelope.
        payload = record.get("payload") if "payload" in record else record
        if record.get("type") in (_EVENT, "session_meta", "turn_context"):
            continue
        begun, waiting = waiting, None
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
        said = typed.said(payload) if role is Role.USER else spoken(payload.get("content"), reading.skipped)
        if said:
            time = record.get("timestamp")
            key = hash_of(session_id, time if isinstance(time, str) else line.begin, role.value, said)
            is_typed = role is Role.USER and (typed.is_known or _kinds(payload) is not None)
            yield Turn(role, said, key, moment(time), is_typed=is_typed)
        elif role is Role.USER and typed.is_known:
            waiting = line.begin if begun is None else begun
    if waiting is not None and reading.path.suffix != SUFFIX:
        reading.read_to = waiting


def _in_places(turns: Iterator[Turn], first_id: str, *, is_copy: bool) -> Iterator[Turn]:
    """The turns, each also with a key of its place in the session `first_id`, in which the conversation began.

    A fork has other times. If the first session is missing, the fork is stored with these keys, by which the first one
    is recognised later.
    """
    for place, turn in enumerate(turns):
        turn.also = hash_of(first_id, place, turn.role.value, turn.text)
        if is_copy:
            turn.key, turn.also = turn.also, turn.key
        yield turn


class _Typed:
    """What the user typed in a rollout, as its events say."""

    def __init__(self, reading: Reading) -> None:
        self._skipped = reading.skipped
        self.is_known = False
        """Whether the rollout has such events."""
        start = 0 if reading.path.suffix == SUFFIX else reading.start
        counts: dict[Any, Counter[str]] = {}
        for line in json_lines(Reading(reading.path)):
            payload = line.value.get("payload")
            if line.value.get("type") != _EVENT or not isinstance(payload, dict):
                continue
            for text in _typed_in(payload):
                self.is_known = True
                if line.begin >= start:
                    counts.setdefault(payload["type"], Counter())[_squeezed(text)] += 1
        # A release writes both events for one message.
        self._left: Counter[str] = Counter()
        for one in counts.values():
            self._left |= one

    def said(self, message: dict[str, Any]) -> str:
        """What the user typed of a message, block by block or all of it; empty if the host wrote it."""
        content: Any = message.get("content")
        kinds = _kinds(message)
        if kinds is not None:
            if not any(kinds):
                count(self._skipped, "text of the host")
            content = [block for block, is_typed in zip(content, kinds, strict=True) if is_typed]
            if not self.is_known:
                return spoken(content, self._skipped, _request)
        said = spoken(content, self._skipped, self._words_of)
        if not said and self.is_known and self._takes(whole := spoken(content, {}, _request)):
            return whole
        return said

    def _words_of(self, text: str) -> str:
        """The text of a block as the user typed it; empty if the host wrote it, which is counted."""
        words = _request(text)
        if words and not (self._takes(words) if self.is_known else not words.startswith(_OF_THE_HOST)):
            count(self._skipped, "text of the host")
            return ""
        return words

    def _takes(self, words: str) -> bool:
        """Whether the words were typed once more than they were taken."""
        key = _squeezed(words)
        self._left[key] -= 1
        return self._left[key] >= 0


def _kinds(message: dict[str, Any]) -> list[bool] | None:
    """Of each block of a message, whether the host says that the user typed it; None if it does not say so."""
    content, named = message.get("content"), cast("Any", message)
    for name in _KINDS:
        named = named.get(name) if isinstance(named, dict) else None
    if not isinstance(content, list) or not isinstance(named, list) or len(named) != len(content):
        return None
    return [kind == _TYPED for kind in named]


def _typed_in(event: dict[str, Any]) -> list[str]:
    """The texts of an event that repeats what the user typed; empty for another event."""
    item = event.get("item")
    if event.get("type") == "user_message" and event.get("kind") in (None, "plain"):
        return list(texts_in(event.get("message"), {}))
    if event.get("type") == "item_completed" and isinstance(item, dict) and item.get("type") == "UserMessage":
        return list(texts_in(item.get("content"), {}))
    return []


def _request(text: str) -> str:
    return without_ide_context(words_of(text))


def _squeezed(text: str) -> str:
    """The text without white space, by which an event and a message are compared."""
    return "".join(_request(text).split())


def _reason(kind: Any) -> str:
    return "thinking" if kind == "reasoning" else "tool call or output"
