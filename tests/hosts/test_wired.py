"""What a host starts is read from its own files as `install` wrote them."""

from pathlib import Path

import pytest

from kalito_mcp.capture.events import EVENTS, EventKind, read_event
from kalito_mcp.hosts.facts import HookFile, Host, Launcher, OwnFile
from kalito_mcp.hosts.known import HOSTS
from kalito_mcp.hosts.places import Places
from kalito_mcp.hosts.plans import plan_install
from kalito_mcp.hosts.prompts import PAYLOADS
from kalito_mcp.hosts.wired import prompt_hook_of, server_of, why_hooks_are_off

LAUNCHER = Launcher("/opt/my tools/kalito-mcp", "/opt/my tools/kalito-hook")
with_hooks = pytest.mark.parametrize("host", [host for host in HOSTS if host.hooks], ids=lambda host: host.key)


def installed(host: Host, home: Path) -> Places:
    places = Places("linux", home, {})
    for change in plan_install(host, places, LAUNCHER, has_hooks=True):
        change.make()
    return places


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.key)
def test_the_server_of_each_host_is_read_back(host: Host, tmp_path: Path) -> None:
    places = Places("linux", tmp_path, {})
    assert server_of(host, places) is None
    installed(host, tmp_path)
    start = server_of(host, places)
    assert start is not None
    assert (start.command, start.arguments, start.is_off) == (LAUNCHER.server, ("serve",), False)
    assert start.variables == ({"KALITO_HOOKS": "claude-code"} if host.key == "claude-code" else {})


@with_hooks
def test_the_hook_of_a_prompt_is_read_back(host: Host, tmp_path: Path) -> None:
    places = Places("linux", tmp_path, {})
    assert prompt_hook_of(host, places) is None
    installed(host, tmp_path)
    hook = prompt_hook_of(host, places)
    assert hook is not None
    if hook.tool_input is not None:
        assert hook.arguments({"prompt": "Hi", "session_id": "s1"})["prompt"] == "Hi"
        return
    assert hook.program == LAUNCHER.hook
    if isinstance(host.hooks, OwnFile):
        assert hook.argv == (LAUNCHER.hook, host.key, hook.event)
    else:
        named = "copilot" if host.key == "vscode" else host.key
        assert hook.line == f"'{LAUNCHER.hook}' {named} {hook.event}"


def test_every_hook_that_is_installed_is_of_an_event_that_is_listened_to() -> None:
    for host in HOSTS:
        if isinstance(host.hooks, HookFile):
            # Copilot CLI and VS Code read one file.
            read_by = "vscode" if host.key == "copilot" else host.key
            assert set(host.hooks.hooks(LAUNCHER)) <= set(EVENTS[read_by])


@with_hooks
def test_what_a_host_sends_for_a_prompt_is_understood_as_one(host: Host, tmp_path: Path) -> None:
    hook = prompt_hook_of(host, installed(host, tmp_path))
    assert hook is not None
    payload = PAYLOADS[host.key]("s1", "/home/ann/shop", "Hi")
    if host.key == "windsurf":
        payload["cwd"] = "/home/ann/shop"  # kalito-hook adds where it runs
    event = read_event(host.key, hook.event, payload if hook.tool_input is None else hook.arguments(payload))
    assert event is not None
    assert (event.kind, event.session_id, event.folder, event.text) == (
        EventKind.PROMPT,
        "s1",
        "/home/ann/shop",
        "Hi",
    )


@pytest.mark.parametrize(
    ("host", "file", "text", "name"),
    [
        ("claude-code", ".claude/settings.json", '{"disableAllHooks": true}', "disableAllHooks = true"),
        ("codex", ".codex/config.toml", "[features]\nhooks = false\n", "features.hooks = false"),
        ("codex", ".codex/config.toml", "features.codex_hooks = false\n", "features.codex_hooks = false"),
        ("gemini", ".gemini/settings.json", '{"hooksConfig": {"enabled": false}}', "hooksConfig.enabled = false"),
        ("gemini", ".gemini/settings.json", '{"tools": {"enableHooks": false}}', "tools.enableHooks = false"),
        ("copilot", ".copilot/config.json", '{"disableAllHooks": true}', "disableAllHooks = true"),
        ("vscode", ".config/Code/User/settings.json", '{"chat.useHooks": false}', "chat.useHooks = false"),
    ],
)
def test_a_setting_that_switches_all_hooks_off_is_found(
    host: str, file: str, text: str, name: str, tmp_path: Path
) -> None:
    [one] = (known for known in HOSTS if known.key == host)
    places = Places("linux", tmp_path, {})
    assert why_hooks_are_off(one, places) is None
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    installed(one, tmp_path)
    assert why_hooks_are_off(one, places) == f"{path} switches all hooks off ({name})"
