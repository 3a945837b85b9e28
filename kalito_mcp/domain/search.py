"""What is asked of the memory, and what it answers."""

from dataclasses import dataclass
from typing import Any

from kalito_mcp.domain.records import Origin, RecordType, Role
from kalito_mcp.domain.time import to_iso


@dataclass(frozen=True, slots=True)
class SearchFilters:
    """Which records may be hits. None, or empty, admits all; `since` and `until` are inclusive milliseconds.

    Internal records are hits only with `include_internal`, or where `types` names thoughts.
    """

    types: frozenset[RecordType] = frozenset()
    roles: frozenset[Role] = frozenset()
    since: int | None = None
    until: int | None = None
    include_internal: bool = False


@dataclass(frozen=True, slots=True)
class Posting:
    """The records that hold one term, newest first, cut at the cap that was asked for."""

    term: str
    keys: tuple[int, ...]
    is_complete: bool


@dataclass(frozen=True, slots=True)
class Candidate:
    """A record that may be a hit, with the text that decides it."""

    key: int
    record_id: str
    type: RecordType
    session_id: str | None
    role: Role | None
    name: str | None
    text: str
    created_at: int
    seq: int | None
    client_key: str | None
    origin: Origin = Origin.ASSISTANT
    importance: float = 0.5
    is_critical: bool = False
    usage_count: int = 0
    last_used: int | None = None
    revision: int = 1
    status: str | None = None
    due_date: str | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """One found record. `score` lies in (0, 1]: the share of the query's evidence that the text holds, of which age
    takes up to a tenth. `client_key` is a message's, where it was recorded with one; `status` and `due_date`
    are a task's."""

    record_id: str
    type: RecordType
    session_id: str | None
    role: Role | None
    name: str | None
    text: str
    created_at: int
    score: float
    client_key: str | None
    key: int
    origin: Origin = Origin.ASSISTANT
    revision: int = 1
    status: str | None = None
    due_date: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; None left out."""
        fields = {
            "record_id": self.record_id,
            "type": str(self.type),
            "session_id": self.session_id,
            "role": self.role and str(self.role),
            "name": self.name,
            "text": self.text,
            "created_at": to_iso(self.created_at),
            "score": self.score,
            "client_key": self.client_key,
            "origin": str(self.origin),
            "revision": self.revision,
            "status": self.status,
            "due_date": self.due_date,
        }
        return {name: value for name, value in fields.items() if value is not None}


@dataclass(frozen=True, slots=True)
class SearchPage:
    """The hits of one page, best first; `next_cursor` fetches the next, and is None on the last."""

    hits: tuple[Hit, ...]
    next_cursor: str | None
