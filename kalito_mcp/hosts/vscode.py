"""VS Code with Copilot. Its agent reads personal hooks from Copilot's folder, as Copilot CLI does: one file for both.

What such a hook is given says which of the two runs it. Source: code.visualstudio.com/docs/agent-customization/hooks, a
preview. Not run with the program itself.
"""

from pathlib import PurePath
from typing import Final

from kalito_mcp.hosts import jsonc
from kalito_mcp.hosts.copilot import HEADER, hooks
from kalito_mcp.hosts.facts import EntryFile, HookFile, HookSwitch, Host, typed_entry
from kalito_mcp.hosts.places import Places


def _folder(places: Places) -> PurePath:
    return places.application_support() / "Code" / "User"


def _servers(places: Places) -> PurePath:
    return _folder(places) / "mcp.json"


def _settings(places: Places) -> PurePath:
    return _folder(places) / "settings.json"


def _hook_file(places: Places) -> PurePath:
    return places.home / ".copilot" / "hooks" / "kalito.json"  # wherever $COPILOT_HOME is


HOST: Final = Host(
    key="vscode",
    name="VS Code",
    signs=(_folder,),
    programs=("code",),
    entry=EntryFile(_servers, jsonc, ("servers",), typed_entry),
    hooks=HookFile(
        _hook_file,
        jsonc,
        ("hooks",),
        hooks,
        header=HEADER,
        switches=(
            HookSwitch(_settings, jsonc, ("chat.useHooks",)),
            HookSwitch(_hook_file, jsonc, ("disableAllHooks",), off=True),
        ),
        has_own_folder=True,
    ),
    confirm=('run "MCP: List Servers", choose kalito, start and trust it',),
    confirm_hooks=(
        '/hooks in the chat lists the hooks; if not, set "~/.copilot/hooks": true in chat.hookFilesLocations',
    ),
)
