"""Whether anything is remembered now: a pause, and folders that are left out. Standard library alone.

It is a small file outside the database, because a host's hook looks at it without opening the database. If it cannot be
read, nothing is remembered: a person who paused the memory must not be recorded because a file is damaged.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kalito_mcp.domain.folders import is_foreign, is_within
from kalito_mcp.errors import ConfigurationError, Conflict
from kalito_mcp.files import write_whole

FOR_EVER: Final = 0
"""`paused_until` of a pause without an end."""


@dataclass(frozen=True, slots=True)
class Switch:
    """`paused_until` is the end of a pause, in milliseconds since 1970, or None. `excluded` are folders
    in which, and below which, nothing is remembered."""

    paused_until: int | None = None
    excluded: tuple[str, ...] = ()

    def is_paused(self, now_ms: int) -> bool:
        """Whether the pause lasts."""
        return self.paused_until is not None and (self.paused_until == FOR_EVER or now_ms < self.paused_until)

    def check_not_paused(self, now_ms: int) -> None:
        """Raise Conflict while the pause lasts; the message says what to do."""
        if self.is_paused(now_ms):
            raise Conflict(f"the memory is {self.pause()}, so nothing is remembered; `kalito-mcp resume` ends that")

    def pause(self) -> str:
        """`paused`, and until when in local time if the pause has an end."""
        if not self.paused_until:
            return "paused"
        from datetime import datetime  # noqa: PLC0415 - hooks do not need it

        return f"paused until {datetime.fromtimestamp(self.paused_until / 1_000).astimezone():%Y-%m-%d %H:%M}"

    def is_excluded(self, folder: str | None, *, is_here: bool = True) -> bool:
        """Whether nothing is remembered in this folder. One that may be on another machine is not looked up here."""
        if folder is None or not self.excluded:
            return False
        known = folder
        if not is_foreign(folder):
            known = os.path.realpath(folder) if is_here else os.path.normpath(folder)
        return any(is_within(known, one) for one in self.excluded)


def read_switch(file: Path) -> Switch:
    """The switch in this file; without a file, nothing is paused or excluded.

    Raises:
        ConfigurationError: the file cannot be read; the message says what to do.
    """
    try:
        content: Any = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Switch()
    except (OSError, ValueError) as error:
        raise _damaged(file) from error
    if not isinstance(content, Mapping):
        raise _damaged(file)
    until, excluded = content.get("paused_until"), content.get("excluded", [])
    is_known = isinstance(until, int | None) and isinstance(excluded, list)
    if not is_known or not all(isinstance(one, str) for one in excluded):
        raise _damaged(file)
    return Switch(until, tuple(excluded))


def is_off(file: Path, folder: str | None, now_ms: int) -> bool:
    """Whether nothing is remembered now, or nothing in this folder. True if that cannot be read."""
    try:
        switch = read_switch(file)
    except ConfigurationError:
        return True
    return switch.is_paused(now_ms) or switch.is_excluded(folder)


def write_switch(file: Path, switch: Switch) -> None:
    """Store the switch, whole or not at all.

    Raises:
        OSError: the file cannot be written; the switch is as before.
    """
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    content = {"paused_until": switch.paused_until, "excluded": list(switch.excluded)}
    write_whole(file, json.dumps(content).encode("utf-8", "surrogatepass"))


def keep_switch(file: Path, switch: Switch) -> None:
    """The same, for a caller who can only say what is wrong. Raises ConfigurationError."""
    try:
        write_switch(file, switch)
    except OSError as error:
        raise ConfigurationError(
            f"nothing has changed: {error.filename} cannot be written: {error.strerror}"
        ) from error


def _damaged(file: Path) -> ConfigurationError:
    return ConfigurationError(
        f"{file} cannot be read, so nothing is remembered: run `kalito-mcp resume` to recreate it"
    )
