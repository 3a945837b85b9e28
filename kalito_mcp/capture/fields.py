"""Where hosts put the session and the folder in what they give a hook. Pure; standard library alone."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

# The first of these fields that is there counts.
SESSION: Final = ("session_id", "sessionId", "conversation_id", "trajectory_id")
FOLDER: Final = ("cwd", "workspace_roots", "workspaceFolder")


def first(payload: Mapping[str, Any], names: Sequence[str]) -> str | None:
    """The first of these fields that has a text; of a list, its first text."""
    for name in names:
        value = payload.get(name)
        if isinstance(value, list) and value:
            value = value[0]
        if isinstance(value, str) and value:
            return value
    return None
