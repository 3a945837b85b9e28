"""Where hosts put the session and the folder in what they give a hook. Pure; standard library alone, except where a
folder has to be spelled in another way."""

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


def folder_of(payload: Mapping[str, Any]) -> str | None:
    """The folder that the host works in, in the one spelling that the rest of the house knows."""
    folder = first(payload, FOLDER)
    if folder is None or not (":" in folder or "%" in folder or folder.startswith("\\\\")):
        return folder
    from kalito_mcp.projects import spelled  # noqa: PLC0415 - a hook of most hosts does without

    return spelled(folder)
