"""Facts of one host: how to find it, which files it reads, and our parts of them. No I/O."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final

from kalito_mcp.hosts.documents import Place, Writer
from kalito_mcp.hosts.places import Places

SERVER_NAME: Final = "kalito"
HOOKS_VARIABLE: Final = "KALITO_HOOKS"
"""Set in a host's entry if its hooks call the server's tool. Its value is the name of the host."""

Where = Callable[[Places], PurePath]


@dataclass(frozen=True, slots=True)
class Launcher:
    """The two programs of ours that hosts start, by absolute paths. `hook` is None if it is not installed."""

    server: str
    hook: str | None
    is_windows: bool = False

    def hook_line(self, host: str, event: str) -> str:
        """The hook as one line for a shell."""
        return f"{self._quoted(self.hook or '')} {host} {event}"

    def _quoted(self, path: str) -> str:
        if self.is_windows:
            return f'"{path}"' if " " in path else path
        import shlex  # noqa: PLC0415 - only to install

        return shlex.quote(path)


ON_PATH: Final = Launcher("kalito-mcp", "kalito-hook")
"""The programs as a plugin starts them."""
_MISSING: Final = (
    "kalito-mcp is not on the PATH, so nothing is remembered. Run: pipx install kalito-mcp (or: uv tool install "
    "kalito-mcp), then start again"
)


def plugin_line(host: str, event: str) -> str:
    """The hook as a plugin has it. In a POSIX shell it never fails: at the start of a conversation it says what to do
    if the program is missing, and at other events nothing.

    For PowerShell, and cmd.exe, all after the event is further words, which the program ignores: there a missing
    program is the shell's own error.
    """
    said = f"echo '{json.dumps({'systemMessage': _MISSING})}'" if event == "SessionStart" else ":"
    return f"{ON_PATH.hook_line(host, event)} --% ; if [ $? -ne 0 ]; then {said}; fi"


@dataclass(frozen=True, slots=True)
class EntryFile:
    """The file with the MCP servers of a host: they are at `servers`, and ours looks as `entry` says.

    `environment` is the name of an entry's variables.
    """

    where: Where
    writer: Writer
    servers: Place
    entry: Callable[[Launcher], Mapping[str, Any]]
    environment: str = "env"


@dataclass(frozen=True, slots=True)
class HookSwitch:
    """A setting of a host that switches all its hooks off: the value at `place` of a file, if it is `off`."""

    where: Where
    writer: Writer
    place: Place
    off: bool = False

    @property
    def name(self) -> str:
        """The setting as a person writes it."""
        return ".".join(map(str, self.place))


@dataclass(frozen=True, slots=True)
class HookFile:
    """The file with the hooks of a host: an object of lists, by event, at `events`.

    `hooks` says what is added to the list of each event. `header` are values that the file needs, unless any are set.
    `variables` go into the environment of the MCP entry. `switches` can switch all hooks off. With `has_own_folder`
    the folder of the file is for hooks alone.
    """

    where: Where
    writer: Writer
    events: Place
    hooks: Callable[[Launcher], Mapping[str, Any]]
    header: tuple[tuple[Place, Any], ...] = ()
    variables: Mapping[str, str] | None = None
    switches: tuple[HookSwitch, ...] = ()
    has_own_folder: bool = False


@dataclass(frozen=True, slots=True)
class OwnFile:
    """A file that is wholly ours. `mark` is what its first line has."""

    where: Where
    content: Callable[[Launcher], str]
    mark: str


@dataclass(frozen=True, slots=True)
class Plugin:
    """Our plugin for a host, which brings an entry and `hooks`, and finds our programs on the PATH.

    The object at `switches` of a file says which plugins are enabled, by `NAME@MARKETPLACE`. Ours is named as our
    server is.
    """

    where: Where
    writer: Writer
    switches: Place
    hooks: Callable[[], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Host:
    """A program that talks to MCP servers.

    It is on this machine if one of `signs` exists, or one of `programs` is on the PATH. `confirm` is what its user has
    to do after the files are written, and `confirm_hooks` what they have to do for the hooks, one sentence each.
    """

    key: str
    name: str
    signs: tuple[Where, ...]
    entry: EntryFile
    programs: tuple[str, ...] = ()
    hooks: HookFile | OwnFile | None = None
    plugin: Plugin | None = None
    confirm: tuple[str, ...] = ()
    confirm_hooks: tuple[str, ...] = ()


def standard_entry(launcher: Launcher) -> Mapping[str, Any]:
    """The entry that most hosts take."""
    return {"command": launcher.server, "args": ["serve"]}


def typed_entry(launcher: Launcher) -> Mapping[str, Any]:
    """The entry of hosts that want the transport named."""
    return {"type": "stdio", "command": launcher.server, "args": ["serve"]}


def grouped_hooks(launcher: Launcher, host: str, events: Sequence[str], timeout: int) -> Mapping[str, Any]:
    """A command for each event, in the form of hosts that group hooks as Claude Code does."""
    return {
        event: {"hooks": [{"type": "command", "command": launcher.hook_line(host, event), "timeout": timeout}]}
        for event in events
    }
