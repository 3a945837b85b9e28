"""The chats of VS Code, whose assistant is Copilot: a file a session, in the folder of its workspace.

`chatSessions/<session>.json` is the whole session. Newer releases write `<session>.jsonl`: the session, and then a line
a change of it, which are replayed. Chats of windows without a folder are in `emptyWindowChatSessions`. When a window
gets a folder, its chats are copied, so the same one can be in several places.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from kalito_mcp.domain.records import Role
from kalito_mcp.exchange.conversation import Conversation, Home, Reading, Turn, moment
from kalito_mcp.exchange.json_files import json_file, json_lines, parsed
from kalito_mcp.exchange.tables import text_or_none
from kalito_mcp.exchange.texts import count, hash_of, words_of

_EDITORS: Final = ("Code", "Code - Insiders", "VSCodium", "VSCodium - Insiders")
_FOLDERS: Final = ("chatSessions", "emptyWindowChatSessions")
_PLACES: Final = ("workspaceStorage/*/chatSessions", "globalStorage/emptyWindowChatSessions")
_WHOLE, _SET, _PUSH, _DELETE = range(4)
_UNFINISHED: Final = (0, 4)
"""States of an answer that is being written, or waits for the user."""
_TOOLS: Final = frozenset(("toolInvocation", "toolInvocationSerialized", "prepareToolInvocation"))
_EMPTY_BLOCK: Final = re.compile(r"(`{3,})[^\n`]*\n\s*\1(?:\n|\Z)")
"""Remains around code that was written into a file."""


class VsCode:
    """`conversation.Source`."""

    name: Final = "vscode"
    title: Final = "VS Code"
    is_appended: Final = False

    def find(self, home: Home) -> Iterable[Path]:
        users = [place / editor / "User" for place in home.applications() for editor in _EDITORS]
        folders = [folder for user in users for pattern in _PLACES for folder in sorted(user.glob(pattern))]
        return [path for folder in folders for path in self.within(folder)]

    def within(self, folder: Path) -> Iterable[Path]:
        found = (path for path in folder.rglob("*.json*") if path.suffix in (".json", ".jsonl"))
        return sorted(path for path in found if path.parent.name in _FOLDERS or path.parent == folder)

    def read(self, reading: Reading) -> Iterator[Conversation]:
        is_log = reading.path.suffix == ".jsonl"
        session = _replayed(reading) if is_log else json_file(reading.path, reading)
        requests = session.get("requests") if isinstance(session, dict) else None
        if not isinstance(session, dict) or not isinstance(requests, list):
            count(reading.skipped, "file that is not a session")
            return
        session_id = text_or_none(session.get("sessionId")) or reading.path.stem
        folder = _folder(reading.path.parent.parent / "workspace.json")
        begun = moment(session.get("creationDate"))
        yield Conversation(session_id, _turns(session_id, requests, reading), folder, begun)


def _folder(path: Path) -> str | None:
    """The address of the folder that a workspace is; None if it is several."""
    try:
        value = parsed(path.read_bytes())
    except OSError:
        return None
    return text_or_none(value.get("folder")) if isinstance(value, dict) else None


def _replayed(reading: Reading) -> Any:
    """The session after all changes of its log. A change that does not fit is counted."""
    session: Any = None
    for line in json_lines(reading):
        change = line.value
        if change.get("kind") == _WHOLE:
            session = change.get("v")
        elif not _is_changed(session, change):
            count(reading.skipped, "change that does not fit")
    return session


def _is_changed(session: Any, change: dict[str, Any]) -> bool:
    """Apply a change to the session. False if there is no such place, or no such change; then nothing is changed."""
    kind, way = change.get("kind"), change.get("k")
    if kind not in (_SET, _PUSH, _DELETE) or not isinstance(way, list) or not way:
        return False
    inside = session
    for step in way[:-1]:
        inside = _at(inside, step)
    last = way[-1]
    if kind == _PUSH:
        return _is_pushed(inside, last, change)
    if (isinstance(inside, dict) and isinstance(last, str)) or _at(inside, last) is not None:
        inside[last] = change.get("v") if kind == _SET else None
        return True
    return False


def _is_pushed(inside: Any, last: Any, change: dict[str, Any]) -> bool:
    """Cut a list at a place if the change names one, and add to it. A list that is not there is empty."""
    pushed, cut, found = change.get("v") or [], change.get("i"), _at(inside, last)
    if found is None and isinstance(inside, dict) and isinstance(last, str):
        found = inside[last] = []
    if not isinstance(found, list) or not isinstance(pushed, list):
        return False
    if isinstance(cut, int) and cut >= 0:
        del found[cut:]
    found.extend(pushed)
    return True


def _at(inside: Any, step: Any) -> Any:
    if isinstance(inside, dict) and isinstance(step, str):
        return inside.get(step)
    is_place = isinstance(inside, list) and isinstance(step, int) and 0 <= step < len(inside)
    return inside[step] if is_place else None


def _turns(session_id: str, requests: list[Any], reading: Reading) -> Iterator[Turn]:
    for place, request in enumerate(requests):
        if not isinstance(request, dict):
            count(reading.skipped, "message of an unknown kind")
            continue
        if _is_undone(request):
            count(reading.skipped, "another branch")
            continue
        message = request.get("message")
        words = words_of(text_or_none(message.get("text") if isinstance(message, dict) else message) or "")
        at, state = moment(request.get("timestamp")), request.get("modelState")
        state = state if isinstance(state, dict) else {}
        key = text_or_none(request.get("requestId")) or hash_of(session_id, place, words)
        if request.get("isSystemInitiated") is True:
            count(reading.skipped, "text of the host")
        elif words:
            yield Turn(Role.USER, words, key, at)
        if place == len(requests) - 1 and state.get("value") in _UNFINISHED:
            count(reading.skipped, "answer that is not finished")
        elif answered := _answered(request.get("response"), reading):
            named, done = text_or_none(request.get("responseId")), moment(state.get("completedAt"))
            model = text_or_none(request.get("modelId"))
            yield Turn(Role.ASSISTANT, answered, named or f"{key}:answer", done if done is not None else at, model)


def _is_undone(request: dict[str, Any]) -> bool:
    """Whether the user took the request back; not if only what came after a place in its answer."""
    removed = request.get("shouldBeRemovedOnSend")
    return request.get("isHidden") is True or (isinstance(removed, dict) and not removed.get("afterUndoStop"))


def _answered(response: Any, reading: Reading) -> str:
    """The words of an answer. What came before and after the call of a tool is two lines apart."""
    texts = [""]
    for part in response if isinstance(response, list) else [response]:
        kind = part.get("kind") if isinstance(part, dict) else None
        said = _words(part, kind)
        if said is not None:
            texts[-1] += said
        elif kind == "thinking" or (isinstance(kind, str) and kind in _TOOLS):
            count(reading.skipped, "thinking" if kind == "thinking" else "tool call or output")
            texts.append("")
        elif part is not None:
            count(reading.skipped, "text of the host" if isinstance(kind, str) else "content of an unknown kind")
    cleaned = (words_of(_EMPTY_BLOCK.sub("", text) if "```" in text else text) for text in texts)
    return "\n\n".join(text for text in cleaned if text)


def _words(part: Any, kind: Any) -> str | None:
    """The words of a part, or None."""
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return None
    if kind == "inlineReference":
        return _named(part)
    if kind not in (None, "markdownContent", "markdownVuln"):
        return None
    content = part.get("content", part)
    return text_or_none(content.get("value") if isinstance(content, dict) else content)


def _named(part: dict[str, Any]) -> str:
    """The name of what a part points to: a symbol, or a file."""
    inner = part.get("inlineReference")
    name = text_or_none(part.get("name")) or (text_or_none(inner.get("name")) if isinstance(inner, dict) else None)
    uri = inner.get("uri", inner) if isinstance(inner, dict) else None
    path = text_or_none(uri.get("path")) if isinstance(uri, dict) else None
    return f"`{name or (path or '').rpartition('/')[2]}`" if name or path else ""
