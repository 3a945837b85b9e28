"""Recognises our parts of a host's file, by our server's name together with our programs' names. Pure."""

import re
from collections.abc import Mapping
from typing import Any, Final

from kalito_mcp.hosts.facts import SERVER_NAME

_END: Final = r"""(?:\.exe|\.cmd)?(?=$|[\s"'])"""
_SERVER: Final = re.compile(rf"""(?:^|[\\/\s"'])kalito[-_]mcp{_END}""", re.IGNORECASE)
_FIRST: Final = re.compile(r"""(?:'([^']*)'|"([^"]*)"|(\S+))""")
_HOOK: Final = re.compile(rf"""(?:^|[\\/\s"'])kalito-hook{_END}""", re.IGNORECASE)


def is_our_entry(entry: Any) -> bool:
    """Whether an entry named like our server starts our program."""
    if not isinstance(entry, Mapping):
        return False
    words = [word for name in ("command", "cmd", "args") for word in _words(entry.get(name))]
    return any(_SERVER.search(word) for word in words)


def is_our_hook(hook: Any) -> bool:
    """Whether one hook starts our program, or calls our tool."""
    if not isinstance(hook, Mapping):
        return False
    if hook.get("type") == "mcp_tool":
        return hook.get("server") == SERVER_NAME and hook.get("tool") == "hook_event"
    return any(
        _HOOK.search(word) for name in ("command", "bash", "powershell", "args") for word in _words(hook.get(name))
    )


def program_of(hook: Mapping[str, Any]) -> str | None:
    """The path of the program that a hook of ours starts: alone, or the first word of a line for a shell."""
    for name in ("command", "bash", "powershell"):
        line = hook.get(name)
        if isinstance(line, str):
            if "args" in hook:
                return line
            found = _FIRST.match(line)
            return (found[1] or found[2] or found[3]) if found else None
    return None


def _words(value: Any) -> list[str]:
    """The texts of a command, which is one text or a list. In Zed and others it is an object with a path."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return _words(value.get("path")) + _words(value.get("args"))
    return [word for word in value if isinstance(word, str)] if isinstance(value, list) else []
