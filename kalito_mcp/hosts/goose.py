"""Goose. It has no hooks. Its configuration is YAML, which it writes itself and people edit."""

from pathlib import PurePath
from typing import Final

from kalito_mcp.hosts import yaml
from kalito_mcp.hosts.facts import SERVER_NAME, EntryFile, Host, Launcher
from kalito_mcp.hosts.places import Places

_TIMEOUT_S: Final = 300


def _folder(places: Places) -> PurePath:
    if places.is_windows:
        return places.application_support() / "Block" / "goose" / "config"
    return places.config() / "goose"


def _config(places: Places) -> PurePath:
    return _folder(places) / "config.yaml"


def _entry(launcher: Launcher) -> dict[str, object]:
    return {
        "enabled": True,
        "type": "stdio",
        "name": SERVER_NAME,
        "description": "Long-term memory",
        "cmd": launcher.server,
        "args": ["serve"],
        "envs": {},
        "env_keys": [],
        "timeout": _TIMEOUT_S,
    }


HOST: Final = Host(
    key="goose",
    name="Goose",
    signs=(_folder,),
    programs=("goose",),
    entry=EntryFile(_config, yaml, ("extensions",), _entry, environment="envs"),
    confirm=("start a new session; `goose configure` lists kalito among the extensions",),
)
