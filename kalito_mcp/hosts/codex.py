"""OpenAI Codex (CLI, IDE and desktop). Its user must trust each hook before it runs.

Source: developers.openai.com/codex/hooks, and 0.169 as tried out, where the feature `hooks` is on by default.
"""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Final

from kalito_mcp.hosts import jsonc, toml
from kalito_mcp.hosts.facts import EntryFile, HookFile, HookSwitch, Host, Launcher, grouped_hooks, standard_entry
from kalito_mcp.hosts.places import Places

_KEY: Final = "codex"
_EVENTS: Final = ("SessionStart", "UserPromptSubmit", "PostToolUse", "PreCompact", "PostCompact", "Stop")
_TIMEOUT_S: Final = 5


def _folder(places: Places) -> PurePath:
    return places.named("CODEX_HOME", places.home / ".codex")


def _config(places: Places) -> PurePath:
    return _folder(places) / "config.toml"


def _hook_file(places: Places) -> PurePath:
    return _folder(places) / "hooks.json"


def _hooks(launcher: Launcher) -> Mapping[str, Any]:
    return grouped_hooks(launcher, _KEY, _EVENTS, _TIMEOUT_S)


HOST: Final = Host(
    key=_KEY,
    name="Codex",
    signs=(_folder,),
    programs=("codex",),
    entry=EntryFile(_config, toml, ("mcp_servers",), standard_entry),
    hooks=HookFile(
        _hook_file,
        jsonc,
        ("hooks",),
        _hooks,
        # The second is its older name.
        switches=(
            HookSwitch(_config, toml, ("features", "hooks")),
            HookSwitch(_config, toml, ("features", "codex_hooks")),
        ),
    ),
    confirm=("start a new conversation; /mcp lists kalito",),
    confirm_hooks=(
        "run /hooks and trust each hook of kalito: until then Codex runs none of them, without a word",
        "in older versions, `codex features enable hooks`",
    ),
)
