"""Reads the events of hosts' hooks into one form. Pure.

Each host has its own names of events and fields; one table per host lists them. An event outside of a conversation
between a person and an assistant is None: a timer's, or of a kind that is not listed. The events of a sub-agent have no
words, except for its task when it starts. Sources: the hooks' documentation of each host; for Claude Code, what its
releases 2.1.197 and 2.1.329 sent.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from kalito_mcp.capture.fields import SESSION, first, folder_of
from kalito_mcp.text.host_blocks import Heard, heard


class EventKind(StrEnum):
    """What happened."""

    STARTED = "started"
    PROMPT = "prompt"
    REPLY = "reply"
    TOOL = "tool"
    COMPACTING = "compacting"
    COMPACTED = "compacted"
    ENDED = "ended"
    SUB_AGENT_STARTED = "sub-agent started"
    SUB_AGENT_TASKED = "sub-agent tasked"
    SUB_AGENT_ENDED = "sub-agent ended"


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool that the assistant used. `error` is what it answered if it failed."""

    name: str
    files: tuple[str, ...] = ()
    command: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class HookEvent:
    """One event of a session. `folder` is where the host works, `text` the words of a prompt, a reply or a summary.
    `id` is the host's id of the turn, or else the moment; for a tool, the id of its use; None if the host sends none of
    these."""

    host: str
    name: str
    kind: EventKind
    session_id: str
    folder: str | None = None
    text: str = ""
    unascribed: str = ""
    """What is in a prompt and may not be the person's."""
    id: str | None = None
    tool: ToolUse | None = None
    is_over: bool = True
    """Whether a session that ends is over for good, not resumed or cleared by a host that goes on with it."""
    agent_id: str | None = None
    """The sub-agent, if the event is of one."""
    transcript: str | None = None
    """The path of the transcript that the event names."""


_CLAUDE: Final = {
    "SessionStart": EventKind.STARTED,
    "UserPromptSubmit": EventKind.PROMPT,
    "Stop": EventKind.REPLY,
    "PostToolUse": EventKind.TOOL,
    "PostToolUseFailure": EventKind.TOOL,
    "PreCompact": EventKind.COMPACTING,
    "PostCompact": EventKind.COMPACTED,
    "SessionEnd": EventKind.ENDED,
    "SubagentStart": EventKind.SUB_AGENT_STARTED,
    "SubagentStop": EventKind.SUB_AGENT_ENDED,
}
_CAMEL: Final = {
    "sessionStart": EventKind.STARTED,
    "beforeSubmitPrompt": EventKind.PROMPT,
    "userPromptSubmitted": EventKind.PROMPT,
    "userPromptTransformed": EventKind.PROMPT,
    "afterAgentResponse": EventKind.REPLY,
    "agentStop": EventKind.REPLY,
    "postToolUse": EventKind.TOOL,
    "preCompact": EventKind.COMPACTING,
    "sessionEnd": EventKind.ENDED,
}
_SUB_AGENTS: Final = {
    "subagentStart": EventKind.SUB_AGENT_STARTED,
    "subagentStop": EventKind.SUB_AGENT_ENDED,
}
_GEMINI: Final = {
    "SessionStart": EventKind.STARTED,
    "BeforeAgent": EventKind.PROMPT,
    "AfterAgent": EventKind.REPLY,
    "AfterTool": EventKind.TOOL,
    "PreCompress": EventKind.COMPACTING,
    "SessionEnd": EventKind.ENDED,
}
_OPENCODE: Final = {
    "session.created": EventKind.STARTED,
    "chat.message": EventKind.PROMPT,
    "session.idle": EventKind.REPLY,
    # Sent afterwards, and without a summary; but it alone says that the assistant loses what it saw.
    "session.compacted": EventKind.COMPACTING,
}
_WINDSURF: Final = {
    "pre_user_prompt": EventKind.PROMPT,
    "post_write_code": EventKind.TOOL,
    "post_run_command": EventKind.TOOL,
    "post_cascade_response": EventKind.REPLY,
}
EVENTS: Final[Mapping[str, Mapping[str, EventKind]]] = {
    "claude-code": _CLAUDE,
    "codex": _CLAUDE,
    "vscode": _CLAUDE | _CAMEL | _SUB_AGENTS,
    "cursor": _CAMEL | _SUB_AGENTS,
    # Its sub-agents run no hooks of prompts, and work in the background while its person types.
    "copilot": _CAMEL,
    "gemini": _GEMINI,
    "windsurf": _WINDSURF,
    "opencode": _OPENCODE,
}
"""The events of each host that are listened to. VS Code has its own names, and reads hooks with those of Copilot CLI,
too."""

_MOMENT: Final = "timestamp"
"""When a host without ids of its turns ran its hooks. All hooks of one event are given the same."""

# The first of these fields that is there counts.
_TURN: Final = ("prompt_id", "turn_id", "generation_id", "message_id", "execution_id")
_AGENT: Final = ("agent_id", "subagent_id", "agentId")
_TRANSCRIPT: Final = ("transcript_path", "transcriptPath")
_TOOL_USE: Final = ("tool_use_id", "tool_call_id", "call_id")
_WORDS: Final[Mapping[EventKind, tuple[str, ...]]] = {
    EventKind.PROMPT: ("prompt", "transformedPrompt", "user_prompt"),
    EventKind.REPLY: ("last_assistant_message", "prompt_response", "text", "response"),
    EventKind.COMPACTED: ("compact_summary", "text"),
    EventKind.SUB_AGENT_STARTED: ("task",),
}
_BY_PERSONS: Final = frozenset({None, "", "user", "sdk"})
"""Sources of a prompt that a person wrote; others are timers and the host itself."""

_ONE_ARGUMENT: Final = re.compile(r'"((?:[^"]|(?<=\\)")*)"')
"""A prompt on OpenCode's command line, which it puts into quotation marks if it is of several words."""

_OF_SUB_AGENTS: Final = (EventKind.SUB_AGENT_STARTED, EventKind.SUB_AGENT_TASKED, EventKind.SUB_AGENT_ENDED)
_GOES_ON: Final = frozenset({"resume", "clear", "fork"})
_FILE_FIELDS: Final = ("file_path", "filePath", "notebook_path", "path", "filename", "files")
_PATCH_FIELDS: Final = ("command", "input", "patch")
_PATCHED: Final = re.compile(r"^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+)$", re.MULTILINE)
"""The lines of a patch of Codex that name files."""

_EXIT: Final = re.compile(r"\s*(?:Process exited with code|Exit code:?) (-?\d+)")
_EXIT_LINE: Final = re.compile(r"^Exit Code: (-?\d+)$", re.MULTILINE)
_WRITING: Final = frozenset(
    """Edit MultiEdit Write NotebookEdit apply_patch create createFile create_file edit editFiles edit_file
    insert_edit_into_file post_write_code replace replace_string_in_file str_replace_editor write write_file""".split()
)
"""Tools that change a file; files that are only read do not count as work."""

_RUNNING: Final = frozenset(
    """Bash PowerShell bash exec_command post_run_command runTerminalCommand run_in_terminal run_shell_command
    run_terminal_cmd shell""".split()
)
_FAILURE: Final = "PostToolUseFailure"
_MAX_FIELD_CHARS: Final = 4_096


def read_event(host: str, name: str, payload: Mapping[str, Any]) -> HookEvent | None:
    """The event that a host's hook of this name reports; None if it is not kept."""
    host, name, payload = _normalised(host, name, payload)
    payload = {**payload, "hook_event_name": name}
    kind = EVENTS.get(host, {}).get(name)
    session_id = first(payload, SESSION)
    if kind is None or session_id is None:
        return None
    agent_id = first(payload, _AGENT)
    if kind is EventKind.PROMPT and payload.get("agent_id"):
        kind = EventKind.SUB_AGENT_TASKED
    event = HookEvent(host, name, kind, session_id, folder_of(payload), agent_id=agent_id)
    if kind in _OF_SUB_AGENTS:
        return replace(event, id=_moment(payload), text=first(payload, _WORDS.get(kind, ())) or "")
    if payload.get("agent_id"):
        return None
    words = _words(host, kind, payload)
    tool = _tool_use(payload) if kind is EventKind.TOOL else None
    if words is None or (kind is EventKind.TOOL and tool is None):
        return None
    return replace(
        event,
        text=words.words,
        unascribed=words.unascribed,
        id=first(payload, _TOOL_USE) if kind is EventKind.TOOL else first(payload, _TURN) or _moment(payload),
        tool=tool,
        is_over=first(payload, ("reason",)) not in _GOES_ON,
        transcript=first(payload, _TRANSCRIPT),
    )


def _words(host: str, kind: EventKind, payload: Mapping[str, Any]) -> Heard | None:
    """The words of an event; None of a prompt that no person wrote, or of a reply without words."""
    text = first(payload, _WORDS.get(kind, ())) or ""
    if kind is EventKind.REPLY and not text.strip():
        return None
    if kind is not EventKind.PROMPT:
        return Heard(text)
    words = heard(_typed(host, text))
    is_of_person = first(payload, ("source",)) in _BY_PERSONS and "".join(words).strip()
    return words if is_of_person else None


def _moment(payload: Mapping[str, Any]) -> str | None:
    moment = payload.get(_MOMENT)
    return str(moment) if isinstance(moment, str | int) and moment else None


def _normalised(host: str, name: str, payload: Mapping[str, Any]) -> tuple[str, str, Mapping[str, Any]]:
    """Undoes two peculiarities: a hook that two hosts run, and a payload of another shape."""
    if host == "copilot":
        given = first(payload, ("hookEventName", "hook_event_name"))
        # Copilot CLI does not name the event; VS Code runs the same hook, and does.
        return ("vscode", given, payload) if given in _CLAUDE else (host, name, payload)
    given = payload.get("tool_info")
    if host == "windsurf" and isinstance(given, Mapping):
        tool = {"tool_name": name, "tool_input": {**given, "command": given.get("command_line")}}
        return host, name, {**given, **tool, **payload}
    return host, name, payload


def _typed(host: str, prompt: str) -> str:
    """A prompt as its user typed it."""
    if host == "opencode" and (quoted := _ONE_ARGUMENT.fullmatch(prompt)):
        return quoted[1].replace('\\"', '"')
    return prompt


def _tool_use(payload: Mapping[str, Any]) -> ToolUse | None:
    """The part of a tool call that is kept: changed files, or a command; None for other tools."""
    name, given = payload.get("tool_name", payload.get("toolName")), _object(payload, "tool_input", "toolArgs")
    if not isinstance(name, str) or not isinstance(given, Mapping):
        return None
    error = _error(payload)
    if name in _RUNNING:
        command = given.get("command")
        if isinstance(command, list):
            command = " ".join(map(str, command))
        return ToolUse(name, command=command[:_MAX_FIELD_CHARS], error=error) if isinstance(command, str) else None
    files = _files(given) if name in _WRITING else ()
    return ToolUse(name, files=files, error=error) if files else None


def _files(given: Mapping[str, Any]) -> tuple[str, ...]:
    """The files that a tool changes, from its arguments or from a patch."""
    for field in _FILE_FIELDS:
        value = given.get(field)
        listed = [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str) and one]
        if listed:
            return tuple(one[:_MAX_FIELD_CHARS] for one in listed)
    patch = first(given, _PATCH_FIELDS) or ""
    return tuple(dict.fromkeys(found[1].strip()[:_MAX_FIELD_CHARS] for found in _PATCHED.finditer(patch)))


def _object(payload: Mapping[str, Any], *names: str) -> Any:
    """The first of these fields that is there; a text is read as JSON, because some hosts write objects so."""
    for name in names:
        value = payload.get(name)
        if isinstance(value, str):
            try:
                return json.loads(value)
            except (ValueError, RecursionError):
                return None
        if value is not None:
            return value
    return None


def _error(payload: Mapping[str, Any]) -> str | None:
    """What a tool answered if it failed."""
    answer = _object(payload, "tool_response", "toolResult")
    error = payload.get("error")
    if error is None and payload.get("hook_event_name") == _FAILURE:
        error = payload.get("tool_response") or "it failed"
    if error is None and isinstance(answer, Mapping):
        failed = (
            answer.get("is_error")
            or answer.get("interrupted")
            or answer.get("error")
            or answer.get("exit_code") not in (None, 0)
            or answer.get("resultType") == "failure"
        )
        said = (answer.get(name) for name in ("stderr", "error", "textResultForLlm", "stdout"))
        error = next(filter(None, said), "it failed") if failed else None
    if error is None:
        error = _with_exit_code(answer if answer is not None else payload.get("tool_response"))
    return str(error)[-_MAX_FIELD_CHARS:] if error else None


def _with_exit_code(answer: Any) -> str | None:
    """The answer, if it is a text with an exit code other than 0: at its start, or in a line in Gemini CLI's format."""
    if isinstance(answer, Mapping):
        output = answer.get("llmContent")
        found = _EXIT_LINE.search(output) if isinstance(output, str) else None
    else:
        output = answer
        found = _EXIT.match(output) if isinstance(output, str) else None
    return output if found is not None and int(found[1]) else None
