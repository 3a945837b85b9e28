"""A search: its request, its filters, its candidates and its hits."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from kalito_mcp.domain.records import Origin, RecordType, Role
from kalito_mcp.domain.request_keys import chosen_by_caller
from kalito_mcp.domain.time import to_iso
from kalito_mcp.domain.zone import Zone

NEAR_FROM: Final = 0.3
"""The score from which on a hit is near. It says when other wordings are worth a search, not whether a hit answers:
with them, 84 in 100 pages without such a score have the answer, and 89 of the others."""

MOST_HITS: Final = 100
"""Of a page."""

MOST_ALSO: Final = 4
"""Other wordings of a query that are searched."""


FoundType = RecordType | Literal["note"]
"""What `types` of a search may name: the types of records, and notes, which are documents."""


class SeenPart(NamedTuple):
    """The part of a conversation that the caller still sees: what was recorded in this session after its message with
    this seq; 0 means all of it."""

    session_id: str
    after_seq: int


@dataclass(frozen=True, slots=True)
class SearchFilters:
    """Which records may be hits. None, or empty, admits all.

    Pins in `types` are also the notes that contexts show like them (`MemoryRecord.is_pin`); "note" is every note.
    `since` and `until` are milliseconds, both inclusive. Internal records need `include_internal`, or thoughts in
    `types`. `names` are speakers in any case. One of the `tags`, in any case, is enough. `min_importance` is in
    [0, 1] and inclusive. What is `seen`, no search shows: two filters that differ in it alone are equal.
    """

    types: frozenset[FoundType] = frozenset()
    roles: frozenset[Role] = frozenset()
    since: int | None = None
    until: int | None = None
    include_internal: bool = False
    names: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    origins: frozenset[Origin] = frozenset()
    min_importance: float = 0.0
    seen: frozenset[SeenPart] = field(default=frozenset(), compare=False)


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What to find.

    `also` are other wordings of the query, best with a sentence that would answer it, in the user's words and names.
    `cursor` continues an earlier search with the same query, wordings and filters. `explain` asks for the parts of each
    score and the reasons. Ages and words like "yesterday" are relative to `now_ms`; None means the clock's time. Days
    are days in `zone`; None means the memory's. One that `is_urgent` waits neither for a model that is not loaded yet
    nor for a slow one: it is searched by words alone then.
    """

    query: str
    k: int = 10
    filters: SearchFilters = SearchFilters()
    cursor: str | None = None
    explain: bool = False
    now_ms: int | None = None
    zone: Zone | None = None
    is_urgent: bool = False
    also: tuple[str, ...] = ()

    @property
    def other_wordings(self) -> tuple[str, ...]:
        """The first four of `also`, without blank ones and repetitions."""
        stripped = [one.strip() for one in self.also]
        return tuple(one for one in dict.fromkeys(stripped) if one and one != self.query.strip())[:MOST_ALSO]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A record that may be a hit, with what its score depends on."""

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
    project: str | None = None


@dataclass(frozen=True, slots=True)
class TurnBeside:
    """A turn next to a hit. `text` is the part of it that is shown."""

    record_id: str
    role: Role | None
    name: str | None
    text: str

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, without fields that are None."""
        fields = {
            "record_id": self.record_id,
            "role": self.role and str(self.role),
            "name": self.name,
            "text": self.text,
        }
        return {name: value for name, value in fields.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Hit:
    """One found record.

    `score`, in (0, 1], is the sum of its `parts` (`retrieval.formula`), and `why` explains them in words; both only on
    request. `same` lists records left out because they say the same. Only messages have a `client_key` and a `seq`, and
    only tasks a `status` and a `due_date`. `turns` are shown around it, in their order: those just before and after it,
    unless a better hit shows them; in a context all that there is room for. `project` is that of a record of another
    project than the search's, `space` that in which `shared_by` shared it. `valid_until` and `superseded_by` say until
    when it was true and which record says so, if one does. `session_title` is what the session is called, if its id is
    not its name."""

    record_id: str
    type: RecordType
    session_id: str | None
    role: Role | None
    name: str | None
    text: str
    created_at: int
    score: float
    client_key: str | None
    origin: Origin = Origin.ASSISTANT
    revision: int = 1
    status: str | None = None
    due_date: str | None = None
    same: tuple[str, ...] = ()
    parts: Mapping[str, float] = field(default_factory=dict)
    why: str | None = None
    seq: int | None = None
    project: str | None = None
    valid_until: int | None = None
    superseded_by: str | None = None
    session_title: str | None = None
    space: str | None = None
    shared_by: str | None = None
    turns: tuple[TurnBeside, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, without fields that are None."""
        fields = {
            "record_id": self.record_id,
            "type": str(self.type),
            "space": self.space,
            "shared_by": self.shared_by,
            "project": self.project,
            "session_id": self.session_id,
            "session_title": self.session_title,
            "role": self.role and str(self.role),
            "name": self.name,
            "text": self.text,
            "created_at": to_iso(self.created_at),
            "score": self.score,
            "client_key": chosen_by_caller(self.client_key),
            "origin": str(self.origin),
            "revision": self.revision,
            "status": self.status,
            "due_date": self.due_date,
            "same": list(self.same) or None,
            "parts": {name: round(part, 4) for name, part in self.parts.items()} or None,
            "why": self.why,
            "turns": [one.to_dict() for one in self.turns] or None,
            "valid_until": None if self.valid_until is None else to_iso(self.valid_until),
            "superseded_by": self.superseded_by,
        }
        return {name: value for name, value in fields.items() if value is not None}


@dataclass(frozen=True, slots=True)
class SearchPage:
    """One page of hits, best first. `next_cursor` fetches the next page; None on the last. `note` says why there are
    no hits, or what could not be searched."""

    hits: tuple[Hit, ...]
    next_cursor: str | None
    note: str | None = None

    @property
    def is_weak(self) -> bool:
        """Whether other wordings of the query may find more than this: nothing is near it."""
        return not self.hits or max(hit.score for hit in self.hits) < NEAR_FROM
