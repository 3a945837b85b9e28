"""Zed. It has no hooks. Its settings are JSON with comments."""

from pathlib import PurePath
from typing import Final

from kalito_mcp.hosts import jsonc
from kalito_mcp.hosts.facts import EntryFile, Host, Launcher
from kalito_mcp.hosts.places import Places


def _folder(places: Places) -> PurePath:
    if places.is_windows:
        return places.application_support() / "Zed"
    return places.config() / "zed"


def _settings(places: Places) -> PurePath:
    return _folder(places) / "settings.json"


def _entry(launcher: Launcher) -> dict[str, object]:
    return {"source": "custom", "command": launcher.server, "args": ["serve"], "env": {}}


HOST: Final = Host(
    key="zed",
    name="Zed",
    signs=(_folder,),
    programs=("zed",),
    entry=EntryFile(_settings, jsonc, ("context_servers",), _entry),
    confirm=("see in the agent panel's settings that kalito has a green dot",),
)
