"""Things whose changes a host can be notified of. Pure."""

from dataclasses import dataclass
from enum import StrEnum


class WatchedKind(StrEnum):
    """`sessions` are the hundred in which something was said last, `session_list` which sessions there are at all."""

    SESSIONS = "sessions"
    SESSION_LIST = "session_list"
    SESSION = "session"
    SESSION_GRAPH = "session_graph"
    AGENT_GRAPH = "agent_graph"
    PROFILE = "profile"
    SNAPSHOTS = "snapshots"
    SNAPSHOT = "snapshot"
    RECORD = "record"


@dataclass(frozen=True, slots=True)
class Watched:
    """One thing to watch: `id` is the id of the session, the snapshot or the record."""

    kind: WatchedKind
    id: str = ""
