"""The conversations of Cline and Roo Code: a file a task, written whole.

Cline's own store has `<session>.messages.json` with a manifest beside it. The extensions for VS Code keep
`tasks/<task>/api_conversation_history.json`, which has what the model got: the words of the user are between marks, and
what tools answered is text.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from kalito_mcp.domain.records import Role
from kalito_mcp.exchange.conversation import Conversation, Home, Reading, Turn, moment
from kalito_mcp.exchange.json_files import json_file, parsed
from kalito_mcp.exchange.tables import text_or_none
from kalito_mcp.exchange.texts import count, hash_of, spoken, without, words_of

_ROLES: Final = {"user": Role.USER, "assistant": Role.ASSISTANT}
_EDITORS: Final = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
_HISTORY: Final = "api_conversation_history.json"
_MESSAGES: Final = ".messages.json"
_SHOWN_MESSAGES: Final = "ui_messages.json"
_TYPED: Final = ("task", "user_message", "feedback", "answer")
_TOOL_ANSWER: Final = re.compile(r"\[[^\]\n]{1,500}\] Result:")
_TOOL_CALL: Final = re.compile(
    r"<(?:execute_command|read_file|write_to_file|apply_diff|replace_in_file|insert_content|search_and_replace|"
    r"search_files|list_files|list_code_definition_names|browser_action|use_mcp_tool|access_mcp_resource|"
    r"switch_mode|new_task|update_todo_list|fetch_instructions|plan_mode_respond|codebase_search)>"
)
_SHOWN: Final = ("result", "question", "response")


class Cline:
    """`conversation.Source`, also of Roo Code."""

    is_appended: Final = False

    def __init__(self, name: str, title: str, extension: str) -> None:
        self.name = name
        self.title = title
        self._extension = extension

    def find(self, home: Home) -> Iterable[Path]:
        found: list[Path] = []
        if self.name == "cline":
            found += self.within(home.of("CLINE_DIR", ".cline") / "data" / "sessions")
        for place in home.applications():
            for editor in _EDITORS:
                found += self.within(place / editor / "User" / "globalStorage" / self._extension / "tasks")
        return found

    def within(self, folder: Path) -> Iterable[Path]:
        return [*sorted(folder.rglob(f"*{_MESSAGES}")), *sorted(folder.rglob(_HISTORY))]

    def read(self, reading: Reading) -> Iterator[Conversation]:
        whole = json_file(reading.path, reading)
        is_history = reading.path.name == _HISTORY
        messages = whole.get("messages") if isinstance(whole, dict) else whole
        if not isinstance(messages, list):
            if whole is not None:
                count(reading.skipped, "file that is not a session")
            return
        named = whole.get("sessionId") if isinstance(whole, dict) else None
        if isinstance(whole, dict) and whole.get("agent") not in (None, "lead"):
            count(reading.skipped, "sub-agent")
            return
        default = reading.path.parent.name if is_history else reading.path.name.removesuffix(_MESSAGES)
        session_id = text_or_none(named) or default
        about = _about(reading.path, session_id)
        folder = next((one for name in _FOLDERS if (one := text_or_none(about.get(name)))), None)
        begun = _first_shown(reading.path) or moment(about.get("ts")) or moment(about.get("created_at"))
        turns = _turns(session_id, messages, reading, is_history=is_history)
        yield Conversation(session_id, turns, folder, begun)


_FOLDERS: Final = ("cwd", "workspace", "cwdOnTaskInitialization", "workspace_root")


def _about(path: Path, session_id: str) -> dict[str, Any]:
    """A session's metadata from the files next to it; empty without such files."""
    task = path.parent
    places = (
        task / f"{session_id}.json",
        task / "history_item.json",
        task.parent.parent / "state" / "taskHistory.json",
    )
    for place in places:
        try:
            value = parsed(place.read_bytes())
        except OSError:
            continue
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict) and one.get("id", session_id) == session_id:
                return one
    return {}


def _first_shown(path: Path) -> int | None:
    """When the first message of a task was shown, from the file next to it; None without that file."""
    try:
        value = parsed((path.parent / _SHOWN_MESSAGES).read_bytes())
    except OSError:
        return None
    first = value[0] if isinstance(value, list) and value else None
    return moment(first.get("ts")) if isinstance(first, dict) else None


def _turns(session_id: str, messages: list[Any], reading: Reading, *, is_history: bool) -> Iterator[Turn]:
    for place, message in enumerate(messages):
        named = message.get("role") if isinstance(message, dict) else None
        role = _ROLES.get(named) if isinstance(named, str) else None
        if role is None:
            count(reading.skipped, "message of an unknown kind")
            continue
        clean = words_of if not is_history else _typed if role is Role.USER else _replied
        if said := spoken(message.get("content"), reading.skipped, clean):
            named = text_or_none(message.get("id"))
            key = named or hash_of(session_id, place, role.value, said)
            yield Turn(role, said, key, moment(message.get("ts")), has_id=named is not None)


def _typed(text: str) -> str:
    """The user's part of a text: between the marks, or all of it if nothing is marked."""
    words = words_of(without(text, "<environment_details>", "</environment_details>"))
    for tag in _TYPED:
        found = _between(words, tag)
        if found:
            return found
    return "" if words.startswith(("[ERROR]", "<environment_details>")) or _TOOL_ANSWER.match(words) else words


def _replied(text: str) -> str:
    """The part of a text that the user saw: before a call, and the text of a closing or asking call."""
    words = words_of(without(text, "<thinking>", "</thinking>"))
    call = _TOOL_CALL.search(words)
    shown = [_between(words, tag) for tag in _SHOWN] if "<attempt_completion>" in words or "<ask_" in words else []
    for tag in ("<attempt_completion>", "<ask_followup_question>"):
        words = words.partition(tag)[0]
    before = words[: call.start()] if call is not None else words
    return "\n\n".join(one for one in (before.strip(), *shown) if one)


def _between(text: str, tag: str) -> str:
    _, opening, rest = text.partition(f"<{tag}>")
    words, closing, _ = rest.partition(f"</{tag}>")
    return words.strip() if opening and closing else ""
