"""The addresses of resources, and what they show. Pure."""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, unquote

from kalito_mcp.domain.watching import Watched, WatchedKind

SESSIONS_URI: Final = "memory://sessions"
AGENT_URI: Final = "memory://agent"
PROFILE_URI: Final = "memory://profile"
SNAPSHOTS_URI: Final = "memory://snapshots"
STATS_URI: Final = "memory://sessions/{session_id}/stats"
GRAPH_URI: Final = "memory://sessions/{session_id}/graph"
SNAPSHOT_URI: Final = "memory://snapshots/{snapshot_id}"
SNAPSHOT_GRAPH_URI: Final = "memory://snapshots/{snapshot_id}/graph"
RECORD_URI: Final = "memory://records/{record_id}"
HISTORY_URI: Final = "memory://records/{record_id}/history"

SESSION_LIST: Final = Watched(WatchedKind.SESSION_LIST)
"""What the pages of resources/list show."""
_WATCHED: Final[Mapping[str, WatchedKind]] = {
    SESSIONS_URI: WatchedKind.SESSIONS,
    AGENT_URI: WatchedKind.AGENT_GRAPH,
    PROFILE_URI: WatchedKind.PROFILE,
    SNAPSHOTS_URI: WatchedKind.SNAPSHOTS,
    STATS_URI: WatchedKind.SESSION,
    GRAPH_URI: WatchedKind.SESSION_GRAPH,
    SNAPSHOT_URI: WatchedKind.SNAPSHOT,
    SNAPSHOT_GRAPH_URI: WatchedKind.SNAPSHOT,
    RECORD_URI: WatchedKind.RECORD,
    HISTORY_URI: WatchedKind.RECORD,
}
_PATTERNS: Final = [(re.compile(re.sub(r"\{\w+\}", "([^/]+)", uri)), kind) for uri, kind in _WATCHED.items()]


def stats_uri(session_id: str) -> str:
    """The address of a session's numbers."""
    return STATS_URI.replace("{session_id}", quote(session_id, safe=""))


def graph_uri(session_id: str) -> str:
    """The address of a session's graph."""
    return GRAPH_URI.replace("{session_id}", quote(session_id, safe=""))


def watched_at(uri: str) -> Watched | None:
    """What the resource at an address shows; None if no resource is there."""
    for pattern, kind in _PATTERNS:
        found = pattern.fullmatch(uri)
        if found is not None:
            return Watched(kind, *(unquote(one) for one in found.groups()))
    return None
