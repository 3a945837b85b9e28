"""Cursor, the editor and its command line. Source: cursor.com/docs/agent/hooks, and files that it reads."""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Final

from kalito_mcp.hosts import jsonc
from kalito_mcp.hosts.facts import EntryFile, HookFile, Host, Launcher, standard_entry
from kalito_mcp.hosts.places import Places

_KEY: Final = "cursor"
_EVENTS: Final = ("sessionStart", "beforeSubmitPrompt", "afterAgentResponse", "preCompact", "sessionEnd")
_TIMEOUT_S: Final = 5


def _folder(places: Places) -> PurePath:
    return places.home / ".cursor"


def _servers(places: Places) -> PurePath:
    return _folder(places) / "mcp.json"


def _hook_file(places: Places) -> PurePath:
    return _folder(places) / "hooks.json"


def _hooks(launcher: Launcher) -> Mapping[str, Any]:
    return {event: {"command": launcher.hook_line(_KEY, event), "timeout": _TIMEOUT_S} for event in _EVENTS}


HOST: Final = Host(
    key=_KEY,
    name="Cursor",
    signs=(_folder,),
    programs=("cursor", "cursor-agent"),
    entry=EntryFile(_servers, jsonc, ("mcpServers",), standard_entry),
    hooks=HookFile(_hook_file, jsonc, ("hooks",), _hooks, header=((("version",), 1),)),
    confirm=("restart it, and see under Settings, MCP that kalito is on",),
    confirm_hooks=("Settings, Hooks lists the hooks",),
)
