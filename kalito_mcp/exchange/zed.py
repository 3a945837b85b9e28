"""The agent threads of Zed: `threads/threads.db`, a thread a row, rewritten whole.

The messages are JSON, compressed with Zstandard. Messages have no times, and the assistant's messages no ids.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath
from typing import Any, Final

from kalito_mcp.domain.records import Role
from kalito_mcp.exchange.conversation import Conversation, Home, Reading, Turn, moment
from kalito_mcp.exchange.json_files import LONGEST, parsed
from kalito_mcp.exchange.tables import columns, has_tables, opened, text_or_none
from kalito_mcp.exchange.texts import count, hash_of, spoken, words_of
from kalito_mcp.exchange.zstandard import TO_INSTALL, zstandard

_THREADS: Final = "SELECT id, updated_at, data_type, data FROM threads ORDER BY updated_at, id"
_SUB_AGENTS: Final = "SELECT id FROM threads WHERE parent_id IS NOT NULL"
_FOLDERS: Final = "SELECT id, folder_paths, folder_paths_order FROM threads"
_BEGUN: Final = "SELECT id, created_at FROM threads"
_NEEDED: Final = (("threads", ("id", "updated_at", "data_type", "data")),)
_NO_ZSTANDARD: Final = f"compressed thread of Zed; {TO_INSTALL}"
_OLD_ROLES: Final = {"user": Role.USER, "assistant": Role.ASSISTANT}
_KINDS: Final = {
    "Image": "image or file",
    "Thinking": "thinking",
    "RedactedThinking": "thinking",
    "ToolUse": "tool call or output",
}


class Zed:
    """`conversation.Source`."""

    name: Final = "zed"
    title: Final = "Zed"
    is_appended: Final = False

    def find(self, home: Home) -> Iterable[Path]:
        # Where case does not count, a pattern finds the folder once.
        return [path for share in home.shares() for path in sorted(share.glob("[Zz]ed/threads/threads.db"))]

    def within(self, folder: Path) -> Iterable[Path]:
        return sorted(folder.rglob("threads.db"))

    def read(self, reading: Reading) -> Iterator[Conversation]:
        with opened(reading.path) as connection:
            if not has_tables(connection, reading, *_NEEDED):
                return
            known = columns(connection, "threads")
            called = {row[0] for row in connection.execute(_SUB_AGENTS)} if "parent_id" in known else set()
            has_folders = {"folder_paths", "folder_paths_order"} <= known
            folders = {row[0]: row[1:] for row in connection.execute(_FOLDERS)} if has_folders else {}
            begun = dict(connection.execute(_BEGUN).fetchall()) if "created_at" in known else {}
            for thread_id, updated, kind, raw in connection.execute(_THREADS):
                if not isinstance(thread_id, str) or thread_id in called:
                    count(reading.skipped, "sub-agent" if thread_id in called else "conversation of an unknown kind")
                    continue
                thread = _thread(kind, raw, reading)
                if thread is None:
                    continue
                if thread.get("subagent_context") is not None:
                    count(reading.skipped, "sub-agent")
                    continue
                folder = _first_folder(*folders.get(thread_id, (None, None))) or _folder_of(thread)
                at = moment(begun.get(thread_id)) or moment(updated)
                yield Conversation(thread_id, _turns(thread_id, thread, reading), folder, at)


def _thread(kind: Any, raw: Any, reading: Reading) -> dict[str, Any] | None:
    """The thread of a row; None if it cannot be read, which is counted."""
    if kind == "zstd" and isinstance(raw, bytes):
        raw = _unpacked(raw, reading)
        if raw is None:
            return None
    value = parsed(raw) if isinstance(raw, str | bytes) and kind in ("json", "zstd") else None
    if isinstance(value, dict) and isinstance(value.get("messages"), list):
        return value
    count(reading.skipped, "conversation of an unknown kind")
    return None


def _unpacked(raw: bytes, reading: Reading) -> bytes | None:
    module = zstandard()
    if module is None:
        reading.is_whole = False
        count(reading.skipped, _NO_ZSTANDARD)
        return None
    unpacker = module.ZstdDecompressor()
    try:
        found = unpacker.decompress(raw, max_length=LONGEST)
    except module.ZstdError:
        found = b""
    if not unpacker.eof:
        count(reading.skipped, "conversation that is torn or too long")
        return None
    return bytes(found)


def _first_folder(paths: Any, order: Any) -> str | None:
    """The folder that was opened first. The paths are in order of name, a line each; `order` has the place that each
    had when they were opened."""
    found = paths.split("\n") if isinstance(paths, str) else []
    places = order.split(",") if isinstance(order, str) else []
    if len(places) == len(found) and "0" in places:
        return found[places.index("0")] or None
    return next((path for path in found if path), None)


def _folder_of(thread: dict[str, Any]) -> str | None:
    """The folder that the thread itself names, where the table does not have it yet."""
    snapshot = thread.get("initial_project_snapshot")
    trees = snapshot.get("worktree_snapshots") if isinstance(snapshot, dict) else None
    first = trees[0] if isinstance(trees, list) and trees else None
    return text_or_none(first.get("worktree_path")) if isinstance(first, dict) else None


def _turns(thread_id: str, thread: dict[str, Any], reading: Reading) -> Iterator[Turn]:
    named = thread.get("model")
    model = text_or_none(named.get("model")) if isinstance(named, dict) else None
    # An answer has no id: it is known by the id of the user's message, and its place after it.
    after, place = "", 0
    for message in thread["messages"]:
        if message == "Resume":
            continue
        found = _said(message, reading)
        if found is None:
            continue
        role, key, said = found
        after, place = (key, 0) if key else (after, place + 1)
        if said:
            # The user may ask again: then the same place has another answer.
            words = hash_of(thread_id, after, place, role.value, said)
            named = model if role is Role.ASSISTANT else None
            yield Turn(role, said, key or words, model=named, has_id=key is not None)


def _said(message: Any, reading: Reading) -> tuple[Role, str | None, str] | None:
    """The role, the text, and the id if there is one; None if it is not a message."""
    user = message.get("User") if isinstance(message, dict) else None
    agent = message.get("Agent") if isinstance(message, dict) else None
    if isinstance(user, dict):
        # Mentions stand within a sentence, so nothing comes between the parts.
        return Role.USER, text_or_none(user.get("id")), words_of("".join(_parts(user.get("content"), reading)))
    if isinstance(agent, dict):
        texts = (words_of(part) for part in _parts(agent.get("content"), reading))
        return Role.ASSISTANT, None, "\n\n".join(text for text in texts if text)
    named = message.get("role") if isinstance(message, dict) else None
    role = _OLD_ROLES.get(named) if isinstance(named, str) else None
    if role is None:
        count(reading.skipped, "text of the host" if named == "system" else "message of an unknown kind")
        return None
    # The first releases kept what tools answered in a message of the user.
    if message.get("is_hidden") is True or (role is Role.USER and message.get("tool_results")):
        count(reading.skipped, "text of the host" if message.get("is_hidden") is True else "tool call or output")
        return None
    segments = message.get("segments")
    return role, None, spoken(message.get("text") if segments is None else segments, reading.skipped)


def _parts(content: Any, reading: Reading) -> Iterator[str]:
    """The texts of a message, each part `{kind: value}`. Of what the user mentions, its name."""
    for part in content if isinstance(content, list) else ():
        kind, value = next(iter(part.items())) if isinstance(part, dict) and part else (None, None)
        if kind == "Text" and isinstance(value, str):
            yield value
        elif kind == "Mention" and isinstance(value, dict):
            yield _mentioned(value.get("uri"))
            count(reading.skipped, "image or file")
        else:
            count(reading.skipped, _KINDS.get(str(kind), "content of an unknown kind"))


def _mentioned(uri: Any) -> str:
    about = next(iter(uri.values())) if isinstance(uri, dict) and uri else None
    if not isinstance(about, dict):
        return ""
    path = PurePath(text_or_none(about.get("abs_path")) or "").name
    name = text_or_none(about.get("name")) or text_or_none(about.get("url")) or path
    return f"@{name}" if name else ""
