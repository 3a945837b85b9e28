"""The plugin for Claude Code says the same as the installer."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kalito_mcp.hosts.claude_code import HOST, plugin_hooks
from kalito_mcp.hosts.facts import HookFile, Launcher
from kalito_mcp.version import __version__

PLUGIN = Path(__file__).parents[2] / "plugins" / "claude-code"


def content(name: str) -> Any:
    return json.loads((PLUGIN / name).read_text())


def test_the_hooks_of_the_plugin_are_those_that_are_installed_but_for_the_name_of_the_server() -> None:
    assert content("hooks/hooks.json")["hooks"] == {event: [hook] for event, hook in plugin_hooks().items()}
    assert isinstance(HOST.hooks, HookFile)
    installed = HOST.hooks.hooks(Launcher("kalito-mcp", "kalito-hook"))
    by_tool = {event: hook for event, hook in plugin_hooks().items() if hook["hooks"][0]["type"] == "mcp_tool"}
    assert plugin_hooks().keys() == installed.keys()
    assert json.loads(json.dumps(by_tool).replace("plugin:kalito:kalito", "kalito")).items() <= installed.items()


@pytest.mark.parametrize("folder", ["claude-code", "codex", "gemini"])
def test_where_kalito_is_missing_the_plugin_says_so_once_at_the_start_and_no_hook_fails(
    folder: str, tmp_path: Path
) -> None:
    events = json.loads((PLUGIN.parent / folder / "hooks" / "hooks.json").read_text())["hooks"]
    lines = {event: groups[0]["hooks"][0].get("command") for event, groups in events.items()}
    here = str(Path(sys.executable).parent)
    for event, line in lines.items():
        for path in (str(tmp_path), here) if line is not None else ():
            ran = subprocess.run(
                ["/bin/sh", "-c", line],
                check=False,
                input=b"{}",
                capture_output=True,
                env={"PATH": path, "HOME": str(tmp_path)},
            )
            is_said = b'{"systemMessage": "kalito-mcp is not on the PATH' in ran.stdout
            assert (ran.returncode, is_said) == (0, event == "SessionStart" and path != here)


def test_the_server_of_the_plugin_is_the_entry_that_is_installed() -> None:
    entry = dict(HOST.entry.entry(Launcher("kalito-mcp", "kalito-hook"))) | {"env": {"KALITO_HOOKS": "claude-code"}}
    assert content(".mcp.json") == {"mcpServers": {"kalito": entry}}


def test_the_plugin_has_the_version_of_the_package() -> None:
    assert content(".claude-plugin/plugin.json")["version"] == __version__
