"""Where each host's files are on Windows, macOS and Linux."""

from pathlib import PurePath, PurePosixPath, PureWindowsPath

from kalito_mcp.hosts.facts import Launcher
from kalito_mcp.hosts.known import HOSTS
from kalito_mcp.hosts.ownership import is_our_entry, is_our_hook, program_of
from kalito_mcp.hosts.places import Places

LINUX = Places("linux", PurePosixPath("/home/ada"), {})
MAC = Places("darwin", PurePosixPath("/Users/ada"), {})
SUPPORT, ROAMING, DESKTOP = "Library/Application Support", "AppData/Roaming", "Claude/claude_desktop_config.json"
WINDOWS = Places("win32", PureWindowsPath(r"C:\Users\Ada"), {"APPDATA": r"C:\Users\Ada\AppData\Roaming"})


def test_the_file_with_the_servers_is_where_the_host_reads_it() -> None:
    """Below the home folder; without another one, where it is on Linux."""
    for key, linux, mac, windows in (
        ("claude-code", ".claude.json", None, None),
        ("codex", ".codex/config.toml", None, None),
        ("cursor", ".cursor/mcp.json", None, None),
        ("gemini", ".gemini/settings.json", None, None),
        ("vscode", ".config/Code/User/mcp.json", f"{SUPPORT}/Code/User/mcp.json", f"{ROAMING}/Code/User/mcp.json"),
        ("copilot", ".copilot/mcp-config.json", None, None),
        ("opencode", ".config/opencode/opencode.json", None, None),
        ("claude-desktop", f".config/{DESKTOP}", f"{SUPPORT}/{DESKTOP}", f"{ROAMING}/{DESKTOP}"),
        ("windsurf", ".codeium/windsurf/mcp_config.json", None, None),
        ("zed", ".config/zed/settings.json", None, f"{ROAMING}/Zed/settings.json"),
        ("goose", ".config/goose/config.yaml", None, f"{ROAMING}/Block/goose/config/config.yaml"),
        ("cline", ".cline/data/settings/cline_mcp_settings.json", None, None),
    ):
        (host,) = [host for host in HOSTS if host.key == key]
        found = [host.entry.where(places) for places in (LINUX, MAC, WINDOWS)]
        assert found == [LINUX.home / linux, MAC.home / (mac or linux), WINDOWS.home / (windows or linux)]


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


def test_a_hook_is_one_line_for_the_shell_and_is_recognised() -> None:
    for launcher, line in (
        (Launcher("", "/usr/bin/kalito-hook"), "/usr/bin/kalito-hook codex Stop"),
        (Launcher("", "/my apps/kalito-hook"), "'/my apps/kalito-hook' codex Stop"),
        (Launcher("", r"C:\My Apps\kalito-hook.exe", is_windows=True), r'"C:\My Apps\kalito-hook.exe" codex Stop'),
        (Launcher("", r"C:\bin\kalito-hook.exe", is_windows=True), r"C:\bin\kalito-hook.exe codex Stop"),
    ):
        assert launcher.hook_line("codex", "Stop") == line
        assert is_our_hook({"command": line})
        assert is_our_hook({"bash": line})
        assert program_of({"bash": line}) == launcher.hook


def test_an_entry_is_ours_if_it_starts_our_program() -> None:
    for entry, is_ours in (
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
    ):
        assert is_our_entry(entry) is is_ours


def test_a_hook_is_ours_if_it_calls_our_server_or_program() -> None:
    assert is_our_hook({"type": "mcp_tool", "server": "kalito", "tool": "hook_event"})
    others = (
        {"type": "mcp_tool", "server": "other", "tool": "hook_event"},
        {"command": "echo my-kalito-hooks"},
        "kalito-hook",
    )
    assert not any(map(is_our_hook, others))
