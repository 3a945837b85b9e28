"""The plugin for Claude Code says the same as the installer."""

import json
from pathlib import Path
from typing import Any

from kalito_mcp.hosts.claude_code import HOST, plugin_hooks
from kalito_mcp.hosts.facts import HookFile, Launcher
from kalito_mcp.version import __version__

PLUGIN = Path(__file__).parents[2] / "plugins" / "claude-code"


def content(name: str) -> Any:
    return json.loads((PLUGIN / name).read_text())


def test_the_hooks_of_the_plugin_are_those_that_are_installed_but_for_the_name_of_the_server() -> None:
    assert content("hooks/hooks.json")["hooks"] == {event: [hook] for event, hook in plugin_hooks().items()}
    assert isinstance(HOST.hooks, HookFile)
    installed = json.dumps(HOST.hooks.hooks(Launcher("kalito-mcp", "kalito-hook")))
    assert json.dumps(plugin_hooks()).replace("plugin:kalito:kalito", "kalito") == installed


def test_the_server_of_the_plugin_is_the_entry_that_is_installed() -> None:
    entry = dict(HOST.entry.entry(Launcher("kalito-mcp", "kalito-hook"))) | {"env": {"KALITO_HOOKS": "claude-code"}}
    assert content(".mcp.json") == {"mcpServers": {"kalito": entry}}


def test_the_plugin_has_the_version_of_the_package() -> None:
    assert content(".claude-plugin/plugin.json")["version"] == __version__
