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
from kalito_mcp.exchange.texts import count, hash_of, spoken, words_of
from kalito_mcp.text.host_blocks import heard

_ROLES: Final = {"user": Role.USER, "assistant": Role.ASSISTANT}
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_QUEUED: Final = ("attachment", "queue-operation")
"""Records of what the user typed while the assistant worked. Nobody goes back and asks otherwise with these."""
_WHY_SENT: Final = (None, "absorbed_mid_turn")
"""Reasons for which the host takes words out of its queue and sends them. Otherwise they are not sent."""
_SIGNS: Final = ("isMeta", "isVisibleInTranscriptOnly", "isCompactSummary", "isApiErrorMessage", "isSynthetic")
"""Fields of a record that the host wrote; in a record of the user, also the next one."""
_BY_TOOL: Final = "sourceToolUseID"
_PERSONS: Final = frozenset({"human", "user"})
"""Kinds of origin of what a person wrote; others are tasks, channels, other sessions."""


@dataclass(slots=True)
class _Place:
    """Where in the file a turn is, the prompt that it belongs to, and the conversation that it was copied from."""

    prompt: int
    begin: int
    end: int
    message: str | None
    origin: str | None = None


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


@dataclass(slots=True)
class _Queue:
    """What the user typed while the assistant worked, from the records of the host's queue.

    Usually a later record repeats the words, alone or with others of the queue: then that one counts. `waiting` are the
    words that were not sent yet, `sent` those that were, by the bytes where they are.
    """

    waiting: dict[int, str] = field(default_factory=dict[int, str])
    sent: dict[int, str] = field(default_factory=dict[int, str])

    def take(self, record: dict[str, Any], begin: int, words: str) -> None:
        """Follow a record of the queue."""
        operation = record.get("operation")
        if operation == "enqueue":
            if words:
                self.waiting[begin] = words
        elif operation == "popAll":
            self.waiting.clear()  # back in the input
        elif operation in ("dequeue", "remove") and self.waiting:
            named = (place for place, one in self.waiting.items() if one == words)
            place = next(named, None) if words else next(iter(self.waiting))
            if place is not None:
                said = self.waiting.pop(place)
                if record.get("reason") in _WHY_SENT:
                    self.sent[place] = said

    def repeated(self, said: str) -> None:
        """Leave out the words that a message has as lines of it."""
        for queue in (self.waiting, self.sent):
            for place in [place for place, words in queue.items() if f"\n{words}\n" in f"\n{said}\n"]:
                del queue[place]


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
        tree, queue = _Tree(), _Queue()
        session_id, folder = (reading.path.stem if _UUID.fullmatch(reading.path.stem) else None), None
        prompt_at = reading.start
        for line in json_lines(reading):
            record = line.value
            if record.get("isSidechain") is True:
                reading.skipped["sub-agent"] += 1
                continue
            if session_id is None and isinstance(record.get("sessionId"), str):
                session_id = record["sessionId"]
            if folder is None and isinstance(record.get("cwd"), str):
                folder = record["cwd"]
            said, uuid = _said(record, reading.skipped), record.get("uuid")
            if isinstance(uuid, str) and uuid in tree.prompt_of:
                reading.skipped["record that is there twice"] += 1
                continue
            prompt, is_queued = _prompt_before(record, tree), record.get("type") in _QUEUED
            if record.get("type") == "queue-operation":
                queue.take(record, line.begin, said)
                said = said if line.begin in queue.waiting else ""
            elif said and _role(record) is Role.USER:
                queue.repeated(said)
                if isinstance(uuid, str) and not is_queued:
                    tree.before.append(prompt)
                    prompt = len(tree.before) - 1
                    prompt_at = prompt_at if queue.waiting else line.begin
            if isinstance(uuid, str):
                tree.prompt_of[uuid] = tree.last = prompt
            if said:
                origin = _origin(record, session_id)
                tree.turns.append(_Place(prompt, line.begin, line.end, _message_id(record), origin))
        if queue.waiting:
            # Whether these words are sent stands in what is not written yet. A message is read again with its prompt.
            reading.read_to = min(reading.read_to, prompt_at)
        if tree.turns:
            yield Conversation(session_id or reading.path.stem, _turns(tree, queue, reading), folder)


def _origin(record: dict[str, Any], session_id: str | None) -> str | None:
    """The session that a record was copied from, if it says so: resuming or forking a session copies its records."""
    fork = record.get("forkedFrom")
    named = fork.get("sessionId") if isinstance(fork, dict) else record.get("sessionId")
    return named if isinstance(named, str) and named != session_id else None


def _is_of_sub_agent(path: Path) -> bool:
    return path.parent.name == "subagents" or path.name.startswith("agent-")


def _role(record: dict[str, Any]) -> Role | None:
    kind = record.get("type")
    if kind in _QUEUED:
        return Role.USER
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


def _turns(tree: _Tree, queue: _Queue, reading: Reading) -> Iterator[Turn]:
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
            if isinstance(record, dict) and record["type"] == "queue-operation" and place.begin not in queue.sent:
                continue  # it was repeated, taken back, or is not sent yet
            role = _role(record) if isinstance(record, dict) else None
            if role is None or not said:
                continue  # the file was rewritten meanwhile
            if turn is not None and role is turn.role is Role.ASSISTANT and message and place.message == message:
                turn.text += f"\n\n{said}"
                continue
            if turn is not None:
                yield turn
            uuid, time = record.get("uuid"), record.get("timestamp")
            # Without an id a copy in another file is known by its time and words.
            key = uuid if isinstance(uuid, str) else hash_of(time or (reading.path.stem, place.begin), said)
            inner = record.get("message")
            model = inner.get("model") if isinstance(inner, dict) else None
            model = model if isinstance(model, str) else None
            turn = Turn(role, said, key, moment(time), model, _is_typed(record), place.origin)
            message = place.message
    if turn is not None:
        yield turn


def _queued(record: dict[str, Any]) -> Any:
    """The content of a record that has what the user typed while the assistant worked; None if it is another one."""
    if record.get("type") == "queue-operation":
        return record.get("content") or ""
    queued = record.get("attachment") if record.get("type") == "attachment" else None
    if not isinstance(queued, dict) or queued.get("type") != "queued_command":
        return None
    is_typed = queued.get("commandMode") in (None, "prompt") and not _is_of_host(queued)
    return queued.get("prompt") if is_typed else ""


def _said(record: dict[str, Any], skipped: dict[str, int]) -> str:
    """The text of the user or the assistant in a record; empty without text. Parts left out are counted."""
    kind = record.get("type")
    if (queued := _queued(record)) is not None:
        return spoken(queued, skipped, lambda text: typed(text, skipped))
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
    writer = _writer(record)
    is_known = writer is not None and writer not in _PERSONS
    return is_known or record.get("promptSource") == "system" or isinstance(record.get(_BY_TOOL), str)


def _is_typed(record: dict[str, Any]) -> bool:
    """Whether the host says that a person typed this."""
    return _writer(record) in _PERSONS or record.get("promptSource") == "typed"


def _writer(record: dict[str, Any]) -> str | None:
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
