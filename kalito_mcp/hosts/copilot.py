"""GitHub Copilot CLI. Source: docs.github.com/en/copilot/reference/hooks-reference. Its hooks are a file of our own."""

from pathlib import PurePath
from typing import Final

from kalito_mcp.hosts import jsonc
from kalito_mcp.hosts.facts import EntryFile, HookFile, HookSwitch, Host, Launcher
from kalito_mcp.hosts.places import Places

_KEY: Final = "copilot"
_EVENTS: Final = (
    "sessionStart",
    "userPromptSubmitted",
    "postToolUse",
    "agentStop",
    "preCompact",
    "sessionEnd",
    # For VS Code, where the task of a sub-agent is reported as a prompt.
    "subagentStart",
    "subagentStop",
)
_TIMEOUT_S: Final = 5
HEADER: Final = ((("version",), 1),)


def _folder(places: Places) -> PurePath:
    return places.named("COPILOT_HOME", places.home / ".copilot")


def _servers(places: Places) -> PurePath:
    return _folder(places) / "mcp-config.json"


def _config(places: Places) -> PurePath:
    return _folder(places) / "config.json"


def _hook_file(places: Places) -> PurePath:
    return _folder(places) / "hooks" / "kalito.json"


def hooks(launcher: Launcher) -> dict[str, dict[str, object]]:
    """A hook for each event, in a file that VS Code reads as well."""
    shell = "powershell" if launcher.is_windows else "bash"
    return {
        event: {"type": "command", shell: launcher.hook_line(_KEY, event), "timeoutSec": _TIMEOUT_S}
        for event in _EVENTS
    }


def _entry(launcher: Launcher) -> dict[str, object]:
    return {"type": "local", "command": launcher.server, "args": ["serve"], "tools": ["*"]}


HOST: Final = Host(
    key=_KEY,
    name="Copilot CLI",
    signs=(_servers,),  # not the folder, which our hooks for VS Code make, too
    programs=("copilot",),
    entry=EntryFile(_servers, jsonc, ("mcpServers",), _entry),
    hooks=HookFile(
        _hook_file,
        jsonc,
        ("hooks",),
        hooks,
        header=HEADER,
        switches=(
            HookSwitch(_hook_file, jsonc, ("disableAllHooks",), off=True),
            HookSwitch(_config, jsonc, ("disableAllHooks",), off=True),
        ),
        has_own_folder=True,
    ),
    confirm=("start a new conversation; /mcp show lists kalito",),
    confirm_hooks=("hooks run in folders that you trust",),
)
