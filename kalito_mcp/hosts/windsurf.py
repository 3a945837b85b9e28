"""Windsurf. Its hooks only listen: what they print does not reach the model.

Source: docs.windsurf.com/windsurf/cascade/hooks. Not run with the program itself.
"""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Final

from kalito_mcp.hosts import jsonc
from kalito_mcp.hosts.facts import EntryFile, HookFile, Host, Launcher, standard_entry
from kalito_mcp.hosts.places import Places

_KEY: Final = "windsurf"
_EVENTS: Final = ("pre_user_prompt", "post_write_code", "post_run_command", "post_cascade_response")


def _folder(places: Places) -> PurePath:
    return places.home / ".codeium" / "windsurf"


def _servers(places: Places) -> PurePath:
    return _folder(places) / "mcp_config.json"


def _hook_file(places: Places) -> PurePath:
    return _folder(places) / "hooks.json"


def _hooks(launcher: Launcher) -> Mapping[str, Any]:
    return {event: {"command": launcher.hook_line(_KEY, event), "show_output": False} for event in _EVENTS}


HOST: Final = Host(
    key=_KEY,
    name="Windsurf",
    signs=(_folder,),
    programs=("windsurf",),
    entry=EntryFile(_servers, jsonc, ("mcpServers",), standard_entry),
    hooks=HookFile(_hook_file, jsonc, ("hooks",), _hooks),
    confirm=("press refresh under Settings, Cascade, MCP servers",),
    confirm_hooks=("its hooks record what is said; to recall it, the assistant calls the tools",),
)
