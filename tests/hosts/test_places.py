"""Where each host's files are on Windows, macOS and Linux."""

from pathlib import PurePath, PurePosixPath, PureWindowsPath

import pytest

from kalito_mcp.hosts.facts import Launcher
from kalito_mcp.hosts.known import HOSTS
from kalito_mcp.hosts.ownership import is_our_entry, is_our_hook, program_of
from kalito_mcp.hosts.places import Places

LINUX = Places("linux", PurePosixPath("/home/ada"), {})
MAC = Places("darwin", PurePosixPath("/Users/ada"), {})
WINDOWS = Places("win32", PureWindowsPath(r"C:\Users\Ada"), {"APPDATA": r"C:\Users\Ada\AppData\Roaming"})


@pytest.mark.parametrize(
    ("key", "linux", "mac", "windows"),
    [
        ("claude-code", "/home/ada/.claude.json", "/Users/ada/.claude.json", r"C:\Users\Ada\.claude.json"),
        ("codex", "/home/ada/.codex/config.toml", "/Users/ada/.codex/config.toml", r"C:\Users\Ada\.codex\config.toml"),
        ("cursor", "/home/ada/.cursor/mcp.json", "/Users/ada/.cursor/mcp.json", r"C:\Users\Ada\.cursor\mcp.json"),
        (
            "gemini",
            "/home/ada/.gemini/settings.json",
            "/Users/ada/.gemini/settings.json",
            r"C:\Users\Ada\.gemini\settings.json",
        ),
        (
            "vscode",
            "/home/ada/.config/Code/User/mcp.json",
            "/Users/ada/Library/Application Support/Code/User/mcp.json",
            r"C:\Users\Ada\AppData\Roaming\Code\User\mcp.json",
        ),
        (
            "copilot",
            "/home/ada/.copilot/mcp-config.json",
            "/Users/ada/.copilot/mcp-config.json",
            r"C:\Users\Ada\.copilot\mcp-config.json",
        ),
        (
            "opencode",
            "/home/ada/.config/opencode/opencode.json",
            "/Users/ada/.config/opencode/opencode.json",
            r"C:\Users\Ada\.config\opencode\opencode.json",
        ),
        (
            "claude-desktop",
            "/home/ada/.config/Claude/claude_desktop_config.json",
            "/Users/ada/Library/Application Support/Claude/claude_desktop_config.json",
            r"C:\Users\Ada\AppData\Roaming\Claude\claude_desktop_config.json",
        ),
        (
            "windsurf",
            "/home/ada/.codeium/windsurf/mcp_config.json",
            "/Users/ada/.codeium/windsurf/mcp_config.json",
            r"C:\Users\Ada\.codeium\windsurf\mcp_config.json",
        ),
        (
            "zed",
            "/home/ada/.config/zed/settings.json",
            "/Users/ada/.config/zed/settings.json",
            r"C:\Users\Ada\AppData\Roaming\Zed\settings.json",
        ),
        (
            "goose",
            "/home/ada/.config/goose/config.yaml",
            "/Users/ada/.config/goose/config.yaml",
            r"C:\Users\Ada\AppData\Roaming\Block\goose\config\config.yaml",
        ),
        (
            "cline",
            "/home/ada/.cline/data/settings/cline_mcp_settings.json",
            "/Users/ada/.cline/data/settings/cline_mcp_settings.json",
            r"C:\Users\Ada\.cline\data\settings\cline_mcp_settings.json",
        ),
    ],
)
def test_the_file_with_the_servers_is_where_the_host_reads_it(key: str, linux: str, mac: str, windows: str) -> None:
    (host,) = [host for host in HOSTS if host.key == key]
    assert [str(host.entry.where(places)) for places in (LINUX, MAC, WINDOWS)] == [linux, mac, windows]


def test_a_variable_of_the_host_moves_its_files() -> None:
    moved = {"CLAUDE_CONFIG_DIR": "/c", "CODEX_HOME": "/x", "COPILOT_HOME": "/p", "XDG_CONFIG_HOME": "/g"}
    places = Places("linux", PurePosixPath("/home/ada"), moved)
    found = {host.key: host.entry.where(places) for host in HOSTS}
    assert found["claude-code"] == PurePath("/c/.claude.json")
    assert found["codex"] == PurePath("/x/config.toml")
    assert found["copilot"] == PurePath("/p/mcp-config.json")
    assert found["zed"] == PurePath("/g/zed/settings.json")


def test_paths_below_home_are_shown_with_a_tilde() -> None:
    assert LINUX.shown(PurePosixPath("/home/ada/.zed/a")) == "~/.zed/a"
    assert LINUX.shown(PurePosixPath("/home/adam/a")) == "/home/adam/a"
    assert WINDOWS.shown(PureWindowsPath(r"c:\users\ada\.cursor")) == r"~\.cursor"


@pytest.mark.parametrize(
    ("launcher", "line"),
    [
        (Launcher("", "/usr/bin/kalito-hook"), "/usr/bin/kalito-hook codex Stop"),
        (Launcher("", "/my apps/kalito-hook"), "'/my apps/kalito-hook' codex Stop"),
        (Launcher("", r"C:\My Apps\kalito-hook.exe", is_windows=True), r'"C:\My Apps\kalito-hook.exe" codex Stop'),
        (Launcher("", r"C:\bin\kalito-hook.exe", is_windows=True), r"C:\bin\kalito-hook.exe codex Stop"),
    ],
)
def test_a_hook_is_one_line_for_the_shell_and_is_recognised(launcher: Launcher, line: str) -> None:
    assert launcher.hook_line("codex", "Stop") == line
    assert is_our_hook({"command": line})
    assert is_our_hook({"bash": line})
    assert program_of({"bash": line}) == launcher.hook


@pytest.mark.parametrize(
    ("entry", "is_ours"),
    [
        ({"command": "kalito-mcp", "args": ["serve"]}, True),
        ({"command": r"C:\Tools\kalito-mcp.exe"}, True),
        ({"command": "uvx", "args": ["kalito-mcp", "serve"]}, True),
        ({"command": "/venv/bin/python", "args": ["-m", "kalito_mcp", "serve"]}, True),
        ({"command": ["/bin/kalito-mcp", "serve"]}, True),
        ({"command": {"path": "/bin/kalito-mcp", "args": ["serve"]}}, True),
        ({"cmd": "/bin/kalito-mcp"}, True),
        ({"command": "not-kalito-mcp"}, False),
        ({"command": "/kalito-mcp/other"}, False),
        ({"command": "kalito-mcp-proxy"}, False),
        ({"url": "https://kalito-mcp"}, False),
        ("kalito-mcp", False),
        (None, False),
    ],
)
def test_an_entry_is_ours_if_it_starts_our_program(entry: object, is_ours: bool) -> None:
    assert is_our_entry(entry) is is_ours


def test_a_hook_of_another_server_is_not_ours() -> None:
    assert is_our_hook({"type": "mcp_tool", "server": "kalito", "tool": "hook_event"})
    assert not is_our_hook({"type": "mcp_tool", "server": "other", "tool": "hook_event"})
    assert not is_our_hook({"type": "command", "command": "echo my-kalito-hooks"})
    assert not is_our_hook("kalito-hook")
