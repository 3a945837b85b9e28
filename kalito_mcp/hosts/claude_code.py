"""Claude Code. Source: what `claude mcp add --scope user` of 2.1.330 writes, and its hooks as tried out."""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Final

from kalito_mcp.hosts import jsonc
from kalito_mcp.hosts.facts import (
    HOOKS_VARIABLE,
    ON_PATH,
    SERVER_NAME,
    EntryFile,
    HookFile,
    HookSwitch,
    Host,
    Launcher,
    Plugin,
    plugin_line,
    typed_entry,
)
from kalito_mcp.hosts.places import Places

_KEY: Final = "claude-code"
_TIMEOUT_S: Final = 5
_ALWAYS: Final = ("session_id", "cwd")
# What each event says, besides the above, by the argument of the tool. At its start and its end a session has no
# connection to its servers, so these two start a program.
_BY_TOOL: Final[Mapping[str, Mapping[str, str]]] = {
    "UserPromptSubmit": {"prompt": "prompt", "prompt_id": "prompt_id", "source": "source"},
    "Stop": {"text": "last_assistant_message", "prompt_id": "prompt_id"},
    "PreCompact": {"trigger": "trigger"},
    "PostCompact": {"trigger": "trigger", "text": "compact_summary"},
    "PostToolUse": {
        "agent_id": "agent_id",
        "tool_name": "tool_name",
        "tool_input": "tool_input",
        "tool_response": "tool_response",
    },
    "PostToolUseFailure": {
        "agent_id": "agent_id",
        "tool_name": "tool_name",
        "tool_input": "tool_input",
        "tool_response": "error",
    },
}
_BY_COMMAND: Final = ("SessionStart", "SessionEnd")


def _folder(places: Places) -> PurePath:
    return places.named("CLAUDE_CONFIG_DIR", places.home / ".claude")


def _servers(places: Places) -> PurePath:
    return places.named("CLAUDE_CONFIG_DIR", places.home) / ".claude.json"


def _settings(places: Places) -> PurePath:
    return _folder(places) / "settings.json"


def plugin_hooks() -> Mapping[str, Any]:
    """The hooks of the plugin in `plugins/claude-code`, by event."""
    hooks = _hooks(ON_PATH, server=f"plugin:kalito:{SERVER_NAME}")
    by_command = {"type": "command", "timeout": _TIMEOUT_S}
    lines = {event: {"hooks": [{**by_command, "command": plugin_line(_KEY, event)}]} for event in _BY_COMMAND}
    return {**hooks, **lines}


def _hooks(launcher: Launcher, *, server: str = SERVER_NAME) -> Mapping[str, Any]:
    by_tool = {event: _tool_hook(event, says, server) for event, says in _BY_TOOL.items()}
    by_command = {
        event: {"type": "command", "command": launcher.hook, "args": [_KEY, event], "timeout": _TIMEOUT_S}
        for event in _BY_COMMAND
    }
    return {event: {"hooks": [hook]} for event, hook in (by_tool | by_command).items()}


def _tool_hook(event: str, says: Mapping[str, str], server: str) -> Mapping[str, Any]:
    given = {name: name for name in _ALWAYS} | dict(says)
    return {
        "type": "mcp_tool",
        "server": server,
        "tool": "hook_event",
        "input": {"host": _KEY, "event": event} | {name: f"${{{field}}}" for name, field in given.items()},
        "timeout": _TIMEOUT_S,
    }


HOST: Final = Host(
    key=_KEY,
    name="Claude Code",
    signs=(_folder, _servers),
    programs=("claude",),
    entry=EntryFile(_servers, jsonc, ("mcpServers",), typed_entry),
    hooks=HookFile(
        _settings,
        jsonc,
        ("hooks",),
        _hooks,
        variables={HOOKS_VARIABLE: _KEY},
        switches=(HookSwitch(_settings, jsonc, ("disableAllHooks",), off=True),),
    ),
    plugin=Plugin(_settings, jsonc, ("enabledPlugins",), plugin_hooks),
    confirm=("start a new conversation; /mcp lists kalito",),
    confirm_hooks=("/hooks lists the hooks",),
)
