"""What is asked of the memory, and what it answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kalito_mcp.domain.records import Origin, RecordType, Role
from kalito_mcp.domain.time import to_iso


@dataclass(frozen=True, slots=True)
class SearchFilters:
    """Which records may be hits. None, or empty, admits all; `since` and `until` are inclusive milliseconds.

    Internal records are hits only with `include_internal`, or where `types` names thoughts. A record passes `names`
    where one of them is its speaker's, in capitals or not, and `tags` where it has any of them, as they are written.
    `origins` are whose words it may have, and `min_importance`, in [0, 1], is inclusive.
    """

    types: frozenset[RecordType] = frozenset()
    roles: frozenset[Role] = frozenset()
    since: int | None = None
    until: int | None = None
    include_internal: bool = False
    names: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    origins: frozenset[Origin] = frozenset()
    min_importance: float = 0.0


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What to find.

    `cursor` continues an earlier search with the same words and filters. `explain` asks for the parts and reasons of
    each hit. Ages and dates like "yesterday" are relative to `now_ms`, the clock's time if absent.
    """

    query: str
    k: int = 10
    filters: SearchFilters = SearchFilters()
    cursor: str | None = None
    explain: bool = False
    now_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Posting:
    """The records that hold one term, newest first, cut at the cap that was asked for."""

    term: str
    keys: tuple[int, ...]
    is_complete: bool


class CandidateStub(NamedTuple):
    """Where a record stands, before its text is read. `seq` is a message's alone; `is_admitted` says whether it may
    be a hit, or only stands near one. A tuple, for hundreds are made for a search."""

    key: int
    session_key: int | None
    seq: int | None
    tokens: int
    name: str | None
    is_admitted: bool


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
    """One found record. `score` lies in (0, 1]: the weighted sum of the evidence for it, of which age takes up to a
    tenth; a message whose pin or summary scores higher has that score. `parts` are that sum's, by feature, and `why`
    says in words what they are made of, where it was asked for. `same` are the ids of records that say the same and
    are left out for it.
    `client_key` is a message's, where it was recorded with one, and `seq` its place in its session; `status` and
    `due_date` are a task's."""

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
    same: tuple[str, ...] = ()
    parts: Mapping[str, float] = field(default_factory=dict)
    why: str | None = None
    seq: int | None = None

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
            "same": list(self.same) or None,
            "parts": {name: round(part, 4) for name, part in self.parts.items()} or None,
            "why": self.why,
        }
        return {name: value for name, value in fields.items() if value is not None}


@dataclass(frozen=True, slots=True)
class SearchPage:
    """The hits of one page, best first; `next_cursor` fetches the next, and is None on the last. `note` says why there
    are none, or what was not asked."""

    hits: tuple[Hit, ...]
    next_cursor: str | None
    note: str | None = None
