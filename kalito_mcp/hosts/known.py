"""The hosts that kalito can be written into."""

from typing import Final

from kalito_mcp.errors import InvalidInput
from kalito_mcp.hosts import (
    claude_code,
    claude_desktop,
    cline,
    codex,
    copilot,
    cursor,
    gemini,
    goose,
    opencode,
    vscode,
    windsurf,
    zed,
)
from kalito_mcp.hosts.facts import Host

HOSTS: Final[tuple[Host, ...]] = (
    claude_code.HOST,
    codex.HOST,
    cursor.HOST,
    gemini.HOST,
    vscode.HOST,
    copilot.HOST,
    opencode.HOST,
    claude_desktop.HOST,
    windsurf.HOST,
    zed.HOST,
    goose.HOST,
    cline.HOST,
)
ALL: Final = "all"


def hosts_named(names: tuple[str, ...]) -> tuple[Host, ...]:
    """The hosts of these keys, each once, in their own order; of `all`, every one.

    Raises:
        InvalidInput: no host has one of the names.
    """
    known = [host.key for host in HOSTS]
    for name in names:
        if name != ALL and name not in known:
            raise InvalidInput(f"no host {name!r}; choose among {', '.join(known)}, or {ALL}")
    return tuple(host for host in HOSTS if host.key in names or ALL in names)
