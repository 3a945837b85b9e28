"""Conversations as lines for a terminal."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

from kalito_mcp.cli.terminal import one_line
from kalito_mcp.domain.sessions import SessionState
from kalito_mcp.domain.time import from_iso
from kalito_mcp.domain.zone import Zone
from kalito_mcp.text.plurals import plural
from kalito_mcp.text.titles import short_id


def session_line(shown: Mapping[str, Any], zone: Zone, project: str | None = None) -> str:
    """A session of a list, from its `Session.to_dict`: when something was said last, how much, its title, and the short
    id by which other commands find it, if that is not its title."""
    session_id, title = shown["session_id"], shown.get("title", "(untitled)")
    said_at = zone.minute(from_iso(shown.get("newest_message", shown["updated_at"])))
    parts = [said_at, f"{plural(shown['messages'], 'message'):>16}", one_line(title)]
    parts += [] if title == session_id else [short_id(session_id)]
    parts += [f"of {one_line(project)}"] if project else []
    parts += [] if shown["state"] == SessionState.OPEN else [shown["state"].lower()]
    return "  ".join(parts)


def project_names(projects: Iterable[str]) -> Mapping[str, str]:
    """The short name of each project: the last part of its path, or the whole if another has the same last
    part."""
    known = set(projects)
    last = {one: PurePath(one).name or one for one in known}
    count = Counter(last.values())
    return {one: name if count[name] == 1 else one for one, name in last.items()}
