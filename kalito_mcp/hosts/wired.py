"""Programs that a host's files start: our server, and our hook of a prompt. It reads the files and starts nothing."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kalito_mcp.capture.events import EVENTS, EventKind
from kalito_mcp.errors import ConfigurationError
from kalito_mcp.hosts import files
from kalito_mcp.hosts.documents import value_at
from kalito_mcp.hosts.facts import ON_PATH, SERVER_NAME, HookFile, Host, OwnFile
from kalito_mcp.hosts.files import read_document
from kalito_mcp.hosts.ownership import is_our_entry, is_our_hook, program_of
from kalito_mcp.hosts.places import Places
from kalito_mcp.hosts.plugins import enabling_file

_FIELD: Final = re.compile(r"\$\{(\w+)\}")
_IN_PLUGIN: Final = re.compile(r"^const HOOK = (\"[^\n]*\")", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ServerStart:
    """How a host starts our server, as written in `file`. `variables` are added to the host's environment."""

    file: Path
    command: str
    arguments: tuple[str, ...]
    variables: Mapping[str, str]
    is_off: bool = False
    """Whether the host is configured not to start it."""


@dataclass(frozen=True, slots=True)
class PromptHook:
    """What a host does when a person has written a prompt: a line for a shell, or a program with its arguments, or a
    call of our tool `hook_event`. The other two are empty."""

    file: Path
    event: str
    line: str = ""
    argv: tuple[str, ...] = ()
    tool_input: Mapping[str, str] | None = None
    program: str | None = None

    def arguments(self, payload: Mapping[str, Any]) -> dict[str, str]:
        """The arguments of the tool, with what the host fills in from the event."""
        return {
            name: _FIELD.sub(lambda found: str(payload.get(found[1], "")), value)
            for name, value in (self.tool_input or {}).items()
        }


def server_of(host: Host, places: Places) -> ServerStart | None:
    """How the host starts our server, by our entry or else by our plugin; None if it has neither.

    Raises:
        ConfigurationError: the file cannot be read, or our entry in it names no program.
    """
    part = host.entry
    path = Path(part.where(places))
    entry = value_at(read_document(path, part.writer), (*part.servers, SERVER_NAME))
    if not is_our_entry(entry):
        return _server_of_plugin(host, places)
    given = entry.get("command", entry.get("cmd"))
    if isinstance(given, dict):  # Zed has had both forms
        words = [given.get("path"), *_list(given.get("args"))]
    else:
        words = [*(given if isinstance(given, list) else [given]), *_list(entry.get("args"))]
    variables = entry.get(part.environment) or {}
    is_text = all(isinstance(word, str) and word for word in words)
    if not is_text or not isinstance(variables, dict):
        raise ConfigurationError(
            f"{path}: the entry {SERVER_NAME} names no program; run `kalito-mcp install {host.key}`"
        )
    is_off = entry.get("enabled") is False or entry.get("disabled") is True
    values = {str(name): str(value) for name, value in variables.items()}
    return ServerStart(path, words[0], tuple(words[1:]), values, is_off)


def prompt_hook_of(host: Host, places: Places) -> PromptHook | None:
    """Our hook of a prompt in the host's files, or else in our plugin, or None.

    Raises:
        ConfigurationError: the file cannot be read.
    """
    if isinstance(host.hooks, OwnFile):
        return _hook_in_own_file(host, host.hooks, places)
    if host.hooks is None:
        return None
    path = Path(host.hooks.where(places))
    document = read_document(path, host.hooks.writer)
    found = next(_our_prompt_hooks(host, host.hooks, document), None)
    if found is None and (enabled_by := enabling_file(host, places)) is not None:
        path, found = enabled_by, _prompt_hook_of_plugin(host)
    return None if found is None else _read_hook(path, *found, is_windows=places.is_windows)


def why_hooks_are_off(host: Host, places: Places) -> str | None:
    """Which setting of the host switches all its hooks off, in words; None if none does.

    Raises:
        ConfigurationError: a file with such a setting cannot be read.
    """
    for switch in host.hooks.switches if isinstance(host.hooks, HookFile) else ():
        path = Path(switch.where(places))
        if value_at(read_document(path, switch.writer), switch.place) is switch.off:
            return f"{path} switches all hooks off ({switch.name} = {str(switch.off).lower()})"
    return None


def shown_command(hook: PromptHook) -> str:
    """The hook as a person reads it."""
    return "calls hook_event" if hook.tool_input is not None else f"runs {hook.line or shlex.join(hook.argv)}"


def _read_hook(path: Path, event: str, hook: Mapping[str, Any], *, is_windows: bool) -> PromptHook:
    if hook.get("type") == "mcp_tool":
        given = hook.get("input")
        texts = {str(name): str(value) for name, value in given.items()} if isinstance(given, dict) else {}
        return PromptHook(path, event, tool_input=texts)
    line = next((hook[name] for name in ("command", "bash", "powershell") if isinstance(hook.get(name), str)), "")
    if "args" in hook:
        words = (line, *(str(word) for word in _list(hook["args"])))
    elif "powershell" in hook and is_windows:
        words = ("powershell", "-NoProfile", "-Command", str(hook["powershell"]))
    else:
        return PromptHook(path, event, line=line, program=program_of(hook))
    return PromptHook(path, event, argv=words, program=program_of(hook))


def _server_of_plugin(host: Host, places: Places) -> ServerStart | None:
    """How the host starts the server of our plugin, if that is enabled."""
    path = enabling_file(host, places)
    if path is None:
        return None
    entry = host.entry.entry(ON_PATH)
    variables = (host.hooks.variables or {}) if isinstance(host.hooks, HookFile) else {}
    return ServerStart(path, entry["command"], tuple(entry["args"]), variables)


def _prompt_hook_of_plugin(host: Host) -> tuple[str, Mapping[str, Any]] | None:
    event = _prompt_event(host)
    groups = {} if host.plugin is None else host.plugin.hooks()
    return (event, groups[event]["hooks"][0]) if event in groups else None


def _hook_in_own_file(host: Host, own: OwnFile, places: Places) -> PromptHook | None:
    """The command that our plugin starts for a prompt. The plugin itself runs in the host alone."""
    path = Path(own.where(places))
    text = files.read(path).text
    found = _IN_PLUGIN.search(text)
    if own.mark not in text.partition("\n")[0] or found is None:
        return None
    program = str(json.loads(found[1]))
    event = _prompt_event(host)
    return PromptHook(path, event, argv=(program, host.key, event), program=program)


def _prompt_event(host: Host) -> str:
    return next(event for event, kind in EVENTS[host.key].items() if kind is EventKind.PROMPT)


def _our_prompt_hooks(host: Host, part: HookFile, document: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    events = value_at(document, part.events)
    for event, groups in (events if isinstance(events, dict) else {}).items():
        if EVENTS.get(host.key, {}).get(event) is not EventKind.PROMPT:
            continue
        for group in _list(groups):
            inner = group.get("hooks") if isinstance(group, dict) else None
            yield from ((event, hook) for hook in (inner if isinstance(inner, list) else [group]) if is_our_hook(hook))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
