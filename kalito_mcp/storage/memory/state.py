"""All that a store in memory has, by table. Pure.

The state of a commit never changes: a transaction works on a copy of its tables, whose values are frozen.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from kalito_mcp.domain.access import Token
from kalito_mcp.domain.graph import EdgeKey, FeedbackLabel, GraphEdge, GraphNode, GraphState
from kalito_mcp.domain.imports import FileRead
from kalito_mcp.domain.memory_records import MemoryRecord, StoredEdit
from kalito_mcp.domain.records import Reach, RecordType, Visibility
from kalito_mcp.domain.scope import DEFAULT_AGENT, PERSONAL, Scope
from kalito_mcp.domain.sessions import Session
from kalito_mcp.domain.sign_in import Attempts, Client, Code, Grant, Passphrase, SignInRequest
from kalito_mcp.ports.records import ForgottenValue
from kalito_mcp.ports.vectors import VectorIndex
from kalito_mcp.text.analysis import IndexedText

if TYPE_CHECKING:
    import numpy as np
    from _typeshed import DataclassInstance
    from numpy.typing import NDArray

    from kalito_mcp.ports.search import RecordColumns


_Row = TypeVar("_Row", bound="DataclassInstance")


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record, and what only its store knows of it. One that is forgotten or erased is not `indexed`. A summary is
    covered if one of the next level has its messages."""

    owner: str
    record: MemoryRecord
    tokens: int
    indexed: IndexedText | None
    is_erased: bool = False
    is_covered: bool = False

    @property
    def content(self) -> Mapping[str, Any]:
        """The content of the record."""
        return self.record.content

    @property
    def name(self) -> str | None:
        """The speaker, or the title of a document."""
        name: str | None = self.content.get("title" if self.record.type is RecordType.DOCUMENT else "name")
        return name

    @property
    def is_internal(self) -> bool:
        """Whether it is shown on request only."""
        return self.record.visibility is Visibility.INTERNAL

    @property
    def reach(self) -> Reach | None:
        """Where it is known besides its session."""
        reach = self.content.get("scope")
        return None if reach is None else Reach(reach)

    @property
    def embedded_text(self) -> str | None:
        """The text of its vector: the speaker or title, then the text. None if it has no vector."""
        if self.record.is_deleted or not self.record.text:
            return None
        return f"{self.name}: {self.record.text}" if self.name else self.record.text

    def with_content(self, changes: Mapping[str, Any]) -> "StoredRecord":
        """The same with these fields, and without those that are None, as the same revision."""
        content = {name: value for name, value in {**self.content, **changes}.items() if value is not None}
        return replace(self, record=replace(self.record, content=content))


@dataclass(frozen=True, slots=True)
class StoredTombstone:
    """The tombstone of a record for one of its texts."""

    record_id: str
    text: str
    owner: str
    type: RecordType
    key: int
    seq: int | None
    client_key: str | None
    created_at: int
    purged_at: int


@dataclass(frozen=True, slots=True)
class Graph:
    """A stored graph. Its nodes and edges are nobody else's."""

    state: GraphState
    nodes: Mapping[str, GraphNode] = field(default_factory=dict)
    edges: Mapping[EdgeKey, GraphEdge] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IndexedAgent:
    """The columns of an agent's records, and the places of each term by how often they contain it at least."""

    columns: "RecordColumns"
    places: "Mapping[tuple[str, int], NDArray[np.int32]]"


@dataclass
class State:
    """The tables. Those of records are in the order of their keys."""

    secret: bytes
    state_secret: bytes
    revision: int = 0
    last_keys: dict[str, int] = field(default_factory=dict)
    agents: dict[tuple[str, str], int] = field(default_factory=dict)
    projects: dict[tuple[str, str], int] = field(default_factory=dict)
    sessions: dict[tuple[str, str], Session] = field(default_factory=dict)
    records: dict[int, StoredRecord] = field(default_factory=dict)
    keys_by_id: dict[str, int] = field(default_factory=dict)
    edits: dict[int, tuple[StoredEdit, ...]] = field(default_factory=dict)
    tombstones: tuple[StoredTombstone, ...] = ()
    unswept: dict[int, frozenset[str]] = field(default_factory=dict)
    forgotten: dict[tuple[str, str, str | None, str], ForgottenValue] = field(default_factory=dict)
    feedback: dict[int, Mapping[FeedbackLabel, int]] = field(default_factory=dict)
    graphs: dict[tuple[str, str, str | None], Graph] = field(default_factory=dict)
    imports: dict[tuple[str, str, str], FileRead] = field(default_factory=dict)
    vector_indexes: dict[int, VectorIndex] = field(default_factory=dict)
    dropped_indexes: frozenset[int] = frozenset()
    vectors: "dict[tuple[int, int], NDArray[np.float32]]" = field(default_factory=dict)
    tokens: dict[bytes, Token] = field(default_factory=dict)
    clients: dict[str, Client] = field(default_factory=dict)
    requests: dict[bytes, SignInRequest] = field(default_factory=dict)
    grants: dict[str, Grant] = field(default_factory=dict)
    codes: dict[bytes, Code] = field(default_factory=dict)
    passphrases: dict[str, Passphrase] = field(default_factory=dict)
    attempts: dict[str, Attempts] = field(default_factory=dict)
    search_indexes: dict[tuple[str, str], IndexedAgent] = field(default_factory=dict)
    """Of the agents that were searched since their records changed."""

    def copy(self) -> "State":
        """A state with the same values, whose tables can be changed."""
        return State(**{one.name: copy.copy(getattr(self, one.name)) for one in fields(self)})

    def next_key(self, table: str) -> int:
        """A key that no row of the table ever had."""
        key = self.last_keys[table] = self.last_keys.get(table, 0) + 1
        return key

    # Whose it is

    def session(self, scope: Scope) -> Session | None:
        """The session that the scope names, if it is within the limits."""
        found = self.sessions.get((scope.owner, scope.session or ""))
        if found is None or scope.agent not in (None, found.agent):
            return None
        return found if scope.limits.reaches(found.agent, found.project) else None

    def agent(self, scope: Scope) -> str | None:
        """The agent that the scope names, else that of its session, else the default one, if the owner has it."""
        session = self.session(Scope(scope.owner, session=scope.session, limits=scope.limits))
        named = scope.agent or (session and session.agent) or scope.limits.agent or DEFAULT_AGENT
        is_reached = scope.limits.agent in (None, named)
        return named if is_reached and (scope.owner, named) in self.agents else None

    def place(self, scope: Scope) -> tuple[str, Session | None] | None:
        """The agent and the session that the scope names; None if the owner has no such agent or session."""
        if scope.session is None:
            agent = self.agent(scope)
            return None if agent is None else (agent, None)
        session = self.session(scope)
        return None if session is None else (session.agent, session)

    def add_agent(self, owner: str, agent: str) -> None:
        """Add the agent, if it is new."""
        if (owner, agent) not in self.agents:
            self.agents[owner, agent] = self.next_key("agents")

    def add_project(self, owner: str, project: str | None) -> str | None:
        """Add the project, if it is new. Its id; None for what is personal."""
        if project in (None, PERSONAL):
            return None
        if (owner, project) not in self.projects:
            self.projects[owner, project] = self.next_key("projects")
        return project

    def update_session(self, owner: str, session_id: str, **changes: Any) -> Session:
        """Change fields of a session, and count its revision."""
        session = self.sessions[owner, session_id]
        changed = replace(session, **{"revision": session.revision + 1, **changes})
        self.sessions[owner, session_id] = changed
        return changed

    # Records

    def of_agent(self, owner: str, agent: str) -> Iterator[StoredRecord]:
        """The agent's records, oldest first, with forgotten ones and what is left of erased ones."""
        return (one for one in self.records.values() if one.record.agent_id == agent and one.owner == owner)

    def of_session(self, session: Session, record_type: RecordType) -> list[StoredRecord]:
        """The session's records of a type, oldest first, with forgotten ones and what is left of erased ones."""
        return [
            one
            for one in self.records.values()
            if one.record.session_id == session.id and one.record.type is record_type and one.owner == session.owner
        ]

    def by_id(self, record_id: str) -> StoredRecord | None:
        """The record of this id, or what is left of it."""
        return self.records.get(self.keys_by_id.get(record_id, 0))

    def put(self, stored: StoredRecord) -> None:
        """Store a record, in place of the one with its key. A vector of another text is removed."""
        key = stored.record.key
        before = self.records.get(key)
        if before is not None and before.embedded_text != stored.embedded_text:
            self._remove_vectors(key)
        self.records[key] = stored
        self.keys_by_id[stored.record.id] = key
        self.search_indexes.pop((stored.owner, stored.record.agent_id), None)

    def add_edit(self, key: int, edit: StoredEdit) -> None:
        """Add an edit to the history of a record."""
        self.edits[key] = (*self.edits.get(key, ()), edit)

    def remove(self, stored: StoredRecord) -> None:
        """Remove a record and all that is kept for it."""
        key = stored.record.key
        del self.records[key], self.keys_by_id[stored.record.id]
        self.edits.pop(key, None)
        self._remove_vectors(key)
        self.search_indexes.pop((stored.owner, stored.record.agent_id), None)

    def _remove_vectors(self, record_key: int) -> None:
        for index_key in (*self.vector_indexes, *self.dropped_indexes):
            self.vectors.pop((index_key, record_key), None)

    def effects(self) -> Mapping[str, Sequence[str]]:
        """The ids of the records that each record caused, oldest first, by the id of the cause."""
        found: dict[str, list[str]] = {}
        for one in self.records.values():
            if (cause := one.content.get("caused_by")) is not None:
                found.setdefault(cause, []).append(one.record.id)
        return found

    def superseding(self) -> Mapping[str, Sequence[StoredRecord]]:
        """The records that supersede each record, by its id. A forgotten record supersedes nothing."""
        found: dict[str, list[StoredRecord]] = {}
        for one in self.records.values():
            for record_id in () if one.record.is_deleted else one.content.get("supersedes", ()):
                named = self.by_id(record_id)
                is_same_agent = named is not None and _agent_of(named) == _agent_of(one)
                if is_same_agent and record_id != one.record.id:
                    found.setdefault(record_id, []).append(one)
        return found


def _agent_of(stored: StoredRecord) -> tuple[str, str]:
    return stored.owner, stored.record.agent_id


def reads(scope: Scope, project: str | None) -> bool:
    """Whether the scope's project reads what is of a project: its own, and what is personal."""
    return scope.project is None or project in (None, scope.project)


def is_of(scope: Scope, project: str | None) -> bool:
    """Whether a project is the scope's. `PERSONAL` and None are of none."""
    return project == (None if scope.project == PERSONAL else scope.project)


def is_within(scope: Scope, stored: StoredRecord) -> bool:
    """Whether the record is the owner's, and within the limits."""
    record = stored.record
    return stored.owner == scope.owner and scope.limits.reaches(record.agent_id, record.project)


def update(table: dict[Any, _Row], is_meant: Callable[[_Row], bool], **changes: Any) -> list[_Row]:
    """Change fields of the rows that are meant. These rows, as they are now."""
    meant = [key for key, row in table.items() if is_meant(row)]
    table.update({key: replace(table[key], **changes) for key in meant})
    return [table[key] for key in meant]


def drop(table: dict[Any, _Row], is_gone: Callable[[_Row], bool]) -> None:
    """Remove rows."""
    for key in [key for key, row in table.items() if is_gone(row)]:
        del table[key]
