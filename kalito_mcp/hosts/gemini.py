"""Gemini CLI: one file for servers and hooks. Source: docs/hooks/reference.md of google-gemini/gemini-cli."""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Final

from kalito_mcp.hosts import jsonc
from kalito_mcp.hosts.facts import EntryFile, HookFile, HookSwitch, Host, Launcher, grouped_hooks, standard_entry
from kalito_mcp.hosts.places import Places

_KEY: Final = "gemini"
_EVENTS: Final = ("SessionStart", "BeforeAgent", "AfterAgent", "AfterTool", "PreCompress", "SessionEnd")
_TIMEOUT_MS: Final = 5000


def _folder(places: Places) -> PurePath:
    return places.named("GEMINI_CLI_HOME", places.home) / ".gemini"


def _settings(places: Places) -> PurePath:
    return _folder(places) / "settings.json"


def _hooks(launcher: Launcher) -> Mapping[str, Any]:
    return grouped_hooks(launcher, _KEY, _EVENTS, _TIMEOUT_MS)


HOST: Final = Host(
    key=_KEY,
    name="Gemini CLI",
    signs=(_settings,),  # other programs, too, keep things in ~/.gemini
    programs=("gemini",),
    entry=EntryFile(_settings, jsonc, ("mcpServers",), standard_entry),
    hooks=HookFile(
        _settings,
        jsonc,
        ("hooks",),
        _hooks,
        # The second is of versions before 0.27.
        switches=(
            HookSwitch(_settings, jsonc, ("hooksConfig", "enabled")),
            HookSwitch(_settings, jsonc, ("tools", "enableHooks")),
        ),
    ),
    confirm=("start a new conversation in a folder that you trust; /mcp lists kalito",),
    confirm_hooks=("/hooks panel lists the hooks; agree if it asks whether they may run",),
)
