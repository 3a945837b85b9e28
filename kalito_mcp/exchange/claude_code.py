"""Transcripts of Claude Code: `projects/<folder>/<session>.jsonl`, a record a line, appended.

A record names the one before it by `parentUuid`. Going back and asking otherwise begins a branch; the branch of
the newest record is imported. Sub-agents speak with the assistant, not with the user, and are left out. The makers do
not document the format, so what is unknown is skipped and counted.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from kalito_mcp.domain.records import Role
from kalito_mcp.exchange.conversation import Conversation, Home, Reading, Turn, moment
from kalito_mcp.exchange.json_files import json_lines, parsed
from kalito_mcp.exchange.texts import count, spoken, words_of
from kalito_mcp.text.host_blocks import heard

_ROLES: Final = {"user": Role.USER, "assistant": Role.ASSISTANT}
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_SIGNS: Final = ("isMeta", "isVisibleInTranscriptOnly", "isCompactSummary", "isApiErrorMessage", "isSynthetic")
"""Fields of a record that the host wrote; in a record of the user, also the next one."""
_BY_TOOL: Final = "sourceToolUseID"
_PERSONS: Final = frozenset({"human", "user"})
"""Kinds of origin of what a person wrote; others are tasks, channels, other sessions."""


@dataclass(slots=True)
class _Place:
    """Where in the file a turn is, and the prompt that it belongs to."""

    prompt: int
    begin: int
    end: int
    message: str | None


@dataclass(slots=True)
class _Tree:
    """The prompts of a file, each with the prompt before it, and the records that say something."""

    prompt_of: dict[str, int] = field(default_factory=dict[str, int])
    """The last prompt up to each record, by its uuid."""
    before: list[int] = field(default_factory=lambda: [0])
    """The prompt before each prompt. Prompt 0 is what comes before the first."""
    turns: list[_Place] = field(default_factory=list[_Place])
    last: int = 0

    def on_the_branch(self) -> set[int]:
        """The prompts of the branch that ends in the newest record."""
        kept = {0}
        prompt = self.last
        while prompt not in kept:
            kept.add(prompt)
            prompt = self.before[prompt]
        return kept


class ClaudeCode:
    """`conversation.Source`."""

    name: Final = "claude-code"
    title: Final = "Claude Code"
    is_appended: Final = True

    def find(self, home: Home) -> Iterable[Path]:
        return self.within(home.of("CLAUDE_CONFIG_DIR", ".claude") / "projects")

    def within(self, folder: Path) -> Iterable[Path]:
        return (path for path in sorted(folder.rglob("*.jsonl")) if not _is_of_sub_agent(path))

    def read(self, reading: Reading) -> Iterator[Conversation]:
        tree = _Tree()
        others = _Others(reading.path)
        session_id, folder = (reading.path.stem if _UUID.fullmatch(reading.path.stem) else None), None
        for line in json_lines(reading):
            record = line.value
            if others.have(record):
                reading.skipped["copy of a message of another session"] += 1
                continue
            if record.get("isSidechain") is True:
                reading.skipped["sub-agent"] += 1
                continue
            if session_id is None and isinstance(record.get("sessionId"), str):
                session_id = record["sessionId"]
            if folder is None and isinstance(record.get("cwd"), str):
                folder = record["cwd"]
            said = _said(record, reading.skipped)
            uuid = record.get("uuid")
            if isinstance(uuid, str) and uuid in tree.prompt_of:
                reading.skipped["record that is there twice"] += 1
                continue
            prompt = _prompt_before(record, tree)
            if said and _role(record) is Role.USER:
                tree.before.append(prompt)
                prompt = len(tree.before) - 1
            if isinstance(uuid, str):
                tree.prompt_of[uuid] = prompt
            if said or isinstance(uuid, str):
                tree.last = prompt
            if said:
                tree.turns.append(_Place(prompt, line.begin, line.end, _message_id(record)))
        if tree.turns:
            yield Conversation(session_id or reading.path.stem, _turns(tree, reading), folder)


class _Others:
    """The other sessions of a folder. Resuming or forking a session copies its records into the new one's file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._are_there: dict[str, bool] = {}

    def have(self, record: dict[str, Any]) -> bool:
        """Whether the record is one of another session whose file is there."""
        origin = record.get("forkedFrom")
        named = origin.get("sessionId") if isinstance(origin, dict) else record.get("sessionId")
        if not isinstance(named, str) or named == self._path.stem or not _UUID.fullmatch(named):
            return False
        if named not in self._are_there:
            self._are_there[named] = self._path.with_name(f"{named}.jsonl").is_file()
        return self._are_there[named]


def _is_of_sub_agent(path: Path) -> bool:
    return path.parent.name == "subagents" or path.name.startswith("agent-")


def _role(record: dict[str, Any]) -> Role | None:
    if record.get("type") == "attachment":
        return Role.USER
    kind = record.get("type")
    return _ROLES.get(kind) if isinstance(kind, str) else None


def _prompt_before(record: dict[str, Any], tree: _Tree) -> int:
    """The prompt that a record follows. One whose parent is not there follows the record before it in the file: a line
    was torn, or read earlier, or the host began to forget."""
    for name in ("parentUuid", "logicalParentUuid"):
        parent = record.get(name)
        if isinstance(parent, str) and parent in tree.prompt_of:
            return tree.prompt_of[parent]
    return tree.last


def _message_id(record: dict[str, Any]) -> str | None:
    """Fields shared by the records of one message."""
    message = record.get("message")
    named = message.get("id") if isinstance(message, dict) else None
    return named if isinstance(named, str) else None


def _turns(tree: _Tree, reading: Reading) -> Iterator[Turn]:
    """The turns of the newest branch. The texts are read again, so that they need not be kept."""
    kept = tree.on_the_branch()
    unsaid: dict[str, int] = {}
    turn: Turn | None = None
    message: str | None = None
    with reading.path.open("rb") as file:
        for place in tree.turns:
            if place.prompt not in kept:
                reading.skipped["another branch"] += 1
                continue
            file.seek(place.begin)
            record = parsed(file.read(place.end - place.begin))
            said = _said(record, unsaid) if isinstance(record, dict) else ""
            role = _role(record) if isinstance(record, dict) else None
            if role is None or not said:
                continue  # the file was rewritten meanwhile
            if turn is not None and role is turn.role is Role.ASSISTANT and message and place.message == message:
                turn.text += f"\n\n{said}"
                continue
            if turn is not None:
                yield turn
            uuid = record.get("uuid")
            key = uuid if isinstance(uuid, str) else f"{reading.path.stem}:{place.begin}"
            inner = record.get("message")
            model = inner.get("model") if isinstance(inner, dict) else None
            model = model if isinstance(model, str) else None
            turn = Turn(role, said, key, moment(record.get("timestamp")), model, is_typed=_is_typed(record))
            message = place.message
    if turn is not None:
        yield turn


def _said(record: dict[str, Any], skipped: dict[str, int]) -> str:
    """The text of the user or the assistant in a record; empty without text. Parts left out are counted."""
    kind = record.get("type")
    if kind == "attachment":
        queued = record.get("attachment")
        if isinstance(queued, dict) and queued.get("type") == "queued_command":
            # Text that the user typed while the assistant worked.
            is_typed = queued.get("commandMode") in (None, "prompt") and isinstance(queued.get("prompt"), str)
            return typed(queued["prompt"], skipped) if is_typed and not _is_of_host(queued) else ""
    if not isinstance(kind, str) or kind not in _ROLES:
        count(skipped, "record that is not a message")
        return ""
    is_of_user = _ROLES[kind] is Role.USER
    if any(record.get(sign) is True for sign in _SIGNS) or (is_of_user and _is_of_host(record)):
        count(skipped, "text of the host")
        return ""
    message = record.get("message")
    if not isinstance(message, dict):
        count(skipped, "message of an unknown kind")
        return ""
    is_typed = _is_typed(record)
    clean = partial(typed, skipped=skipped, is_typed=is_typed) if is_of_user else words_of
    return spoken(message.get("content"), skipped, clean)


def _is_of_host(record: dict[str, Any]) -> bool:
    """Whether the host says that nobody typed this: it came from a tool, a task, a timer or another session."""
    origin = _origin(record)
    is_known = origin is not None and origin not in _PERSONS
    return is_known or record.get("promptSource") == "system" or isinstance(record.get(_BY_TOOL), str)


def _is_typed(record: dict[str, Any]) -> bool:
    """Whether the host says that a person typed this."""
    return _origin(record) in _PERSONS or record.get("promptSource") == "typed"


def _origin(record: dict[str, Any]) -> str | None:
    origin = record.get("origin")
    kind = origin.get("kind") if isinstance(origin, dict) else origin
    return kind if isinstance(kind, str) else None


def typed(text: str, skipped: dict[str, int], *, is_typed: bool = False) -> str:
    """The text of the user in a block. A command is as it was typed, one without arguments is nothing to remember."""
    words = words_of(text)
    if words.startswith(("<command-name>", "<command-message>")):
        command, arguments = _inside(words, "command-name"), _inside(words, "command-args")
        if command is None or not arguments:
            count(skipped, "command without words")
            return ""
        return f"{command} {arguments}"
    if words and not any(heard(words, is_typed=is_typed)):
        count(skipped, "text of the host")
        return ""
    return words


def _inside(text: str, tag: str) -> str | None:
    """The text in the first element of this name, without white space around it; None if it is missing."""
    _, opening, rest = text.partition(f"<{tag}>")
    inside, closing, _ = rest.partition(f"</{tag}>")
    return inside.strip() if opening and closing else None
