"""All that a store in memory has, by table. Pure.

The state of a commit never changes: a transaction works on a copy of its tables, whose values are frozen.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from kalito_mcp.domain.access import Token
from kalito_mcp.domain.audit import AuditEntry
from kalito_mcp.domain.given import GivenEntry
from kalito_mcp.domain.graph import EdgeKey, FeedbackLabel, GraphEdge, GraphNode, GraphState
from kalito_mcp.domain.imports import FileRead
from kalito_mcp.domain.memory_records import EditDraft, MemoryRecord, StoredEdit, changed_fields, with_changes
from kalito_mcp.domain.records import Reach, RecordType, Visibility, message_record_id
from kalito_mcp.domain.scope import DEFAULT_AGENT, PERSONAL, Scope
from kalito_mcp.domain.sessions import Session
from kalito_mcp.domain.sign_in import Attempts, Client, Code, Grant, Passphrase, SignInRequest
from kalito_mcp.domain.spaces import Membership, SharedCopy, Space
from kalito_mcp.ports.records import AlreadyStored
from kalito_mcp.ports.vectors import VectorIndex
from kalito_mcp.storage.record_fields import content_of, fields_of
from kalito_mcp.text.analysis import IndexedText, index_text

if TYPE_CHECKING:
    import numpy as np
    from _typeshed import DataclassInstance
    from numpy.typing import NDArray

    from kalito_mcp.ports.search import SearchIndex

_Row = TypeVar("_Row", bound="DataclassInstance")
GraphPlace = tuple[str, str, str | None]
"""The owner, the agent, and the session; None for the agent's own graph."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRecord(MemoryRecord):
    """A record with what only its store knows of it. Of an erased one its place is left. One that is forgotten or
    erased is not `indexed`. A summary is covered if one of the next level has its messages."""

    key: int
    owner: str
    tokens: int
    indexed: IndexedText | None = None
    purged_at: int | None = None
    is_covered: bool = False

    @property
    def name(self) -> str | None:
        name: str | None = self.content.get("title" if self.type is RecordType.DOCUMENT else "name")
        return name

    @property
    def importance(self) -> float:
        return float(self.content["importance_score"])

    @property
    def is_internal(self) -> bool:
        return self.visibility is Visibility.INTERNAL

    @property
    def reach(self) -> Reach:
        return Reach(self.content.get("scope", Reach.SESSION))

    @property
    def embedded_text(self) -> str | None:
        """The text of its vector: the speaker or title, then the text. None if it has no vector."""
        named = f"{self.name}: {self.text}" if self.name else self.text
        return named if self.text and not self.is_deleted else None

    @property
    def unique(self) -> Iterator[tuple[Any, ...]]:
        """What no other record may have, too."""
        if self.client_key is not None:
            yield self.owner, self.agent_id, self.session_id, self.type, self.client_key
        if self.type is RecordType.DOCUMENT and {"source", "chunk_index"} <= self.content.keys():
            yield self.owner, self.agent_id, self.project, self.content["source"], self.content["chunk_index"]

    def with_content(self, changes: Mapping[str, Any], **others: Any) -> "StoredRecord":
        """The same with these fields of the content, and these others."""
        return replace(self, content=with_changes(self.content, changes), **others)


@dataclass(frozen=True, slots=True)
class Graph:
    """A stored graph. Its nodes and edges are nobody else's."""

    state: GraphState
    nodes: dict[str, GraphNode] = field(default_factory=dict)
    edges: dict[EdgeKey, GraphEdge] = field(default_factory=dict)


@dataclass
class State:
    """The tables, each in the order in which its rows were added."""

    secret: bytes
    state_secret: bytes
    revision: int = 0
    last_keys: dict[str, int] = field(default_factory=dict)
    agents: dict[tuple[str, str], int] = field(default_factory=dict)
    projects: dict[tuple[str, str], int] = field(default_factory=dict)
    sessions: dict[tuple[str, str], Session] = field(default_factory=dict)
    records: dict[str, StoredRecord] = field(default_factory=dict)
    unique: dict[tuple[Any, ...], str] = field(default_factory=dict)
    edits: dict[str, tuple[StoredEdit, ...]] = field(default_factory=dict)
    tombstones: dict[tuple[str, str, str], Mapping[str, Any]] = field(default_factory=dict)
    """By owner, record and hash of a text: with the fields of an archive."""
    owed_erasures: dict[int, frozenset[str]] = field(default_factory=dict)
    forgotten: dict[tuple[str, str, str | None, str], Mapping[str, Any]] = field(default_factory=dict)
    """By owner, agent, project and hash: with fields of an archive."""
    feedback: dict[tuple[str, FeedbackLabel], Mapping[str, int]] = field(default_factory=dict)
    graphs: dict[GraphPlace, Graph] = field(default_factory=dict)
    imports: dict[tuple[str, str, str], tuple[FileRead, int]] = field(default_factory=dict)
    vector_indexes: dict[int, VectorIndex] = field(default_factory=dict)
    vectors: "dict[tuple[int, int], NDArray[np.float32]]" = field(default_factory=dict)
    """By index and record. Those of an index that was dropped are left until they are cleared."""
    tokens: dict[bytes, Token] = field(default_factory=dict)
    clients: dict[str, Client] = field(default_factory=dict)
    requests: dict[bytes, SignInRequest] = field(default_factory=dict)
    grants: dict[str, Grant] = field(default_factory=dict)
    codes: dict[bytes, Code] = field(default_factory=dict)
    passphrases: dict[str, Passphrase] = field(default_factory=dict)
    attempts: dict[str, Attempts] = field(default_factory=dict)
    spaces: dict[str, Space] = field(default_factory=dict)
    space_members: dict[tuple[str, str], Membership] = field(default_factory=dict)
    shared_copies: dict[tuple[str, str], SharedCopy] = field(default_factory=dict)
    """By space and record."""
    audit_log: dict[int, AuditEntry] = field(default_factory=dict)
    given: dict[tuple[str, int], GivenEntry] = field(default_factory=dict)
    searched: "dict[Scope, SearchIndex]" = field(default_factory=dict)
    """The indexes of searches of this state."""

    def copy(self) -> "State":
        tables = {one.name: copy.copy(getattr(self, one.name)) for one in fields(self)}
        return State(**{**tables, "searched": {}})

    def next_key(self, table: str) -> int:
        """A key that no row of the table ever had."""
        key = self.last_keys[table] = self.last_keys.get(table, 0) + 1
        return key

    def session(self, scope: Scope) -> Session | None:
        """The session that the scope names, if it is within the limits."""
        found = self.sessions.get((scope.owner, scope.session or ""))
        is_meant = found is not None and scope.agent in (None, found.agent)
        return found if found and is_meant and scope.limits.reaches(found.agent, found.project) else None

    def agent(self, scope: Scope, *, is_of_session: bool = False) -> str | None:
        """The agent that the scope names, else that of its session, else the default one, if the owner has it.
        `is_of_session`: None if the scope names an unknown session."""
        session = self.session(scope if is_of_session else replace(scope, agent=None))
        if is_of_session and scope.session is not None:
            return None if session is None else session.agent
        named = scope.agent or (session and session.agent) or scope.limits.agent or DEFAULT_AGENT
        return named if scope.limits.agent in (None, named) and (scope.owner, named) in self.agents else None

    def add_agent(self, owner: str, agent: str) -> None:
        if (owner, agent) not in self.agents:
            self.agents[owner, agent] = self.next_key("agents")

    def add_project(self, owner: str, project: str | None) -> str | None:
        """Add the project, if it is new. Its id; None for what is personal."""
        if project in (None, PERSONAL):
            return None
        if (owner, project) not in self.projects:
            self.projects[owner, project] = self.next_key("projects")
        return project

    def update_session(self, owner: str, session_id: str | None, **changes: Any) -> None:
        """Count what the session has, change other fields of it, and count its revision. None: of no session."""
        if session_id is None:
            return
        stored = self.sessions[owner, session_id]
        messages = self.of_session(stored, RecordType.MESSAGE)
        shown, moments = [one for one in messages if not one.is_deleted], [one.created_at for one in messages]
        pins, summaries = (
            sum(not one.is_deleted for one in self.of_session(stored, of_type))
            for of_type in (RecordType.PIN, RecordType.SUMMARY)
        )
        counted: dict[str, Any] = {
            "revision": stored.revision + 1,
            "message_count": len(messages),
            "hidden_count": len(messages) - len(shown),
            "pin_count": pins,
            "summary_count": summaries,
            "importance_sum": sum(one.importance for one in shown),
            "model": next((one.content["model_id"] for one in messages[::-1] if "model_id" in one.content), None),
            "oldest_message_at": min(moments, default=None),
            "newest_message_at": max(moments, default=None),
        }
        self.sessions[owner, session_id] = replace(stored, **{**counted, **changes})

    def of_agent(self, owner: str, agent: str | None) -> list[StoredRecord]:
        """The agent's records, oldest first, with forgotten ones and what is left of erased ones."""
        return [one for one in self.records.values() if one.agent_id == agent and one.owner == owner]

    def of_session(self, session: Session, record_type: RecordType) -> list[StoredRecord]:
        """The same of a session and a type."""
        theirs = self.of_agent(session.owner, session.agent)
        return [one for one in theirs if one.session_id == session.id and one.type is record_type]

    def add(self, owner: str, kind: RecordType, content: Mapping[str, Any], **others: Any) -> StoredRecord:
        """Add a record. What is the person's is of no project.

        Raises:
            AlreadyStored: its id is another's, or as `put`.
        """
        key = self.next_key("records")
        project = None if content.get("scope") == Reach.PERSON else others["project"]
        made = {"id": message_record_id(key), **others, "key": key, "owner": owner, "type": kind, "project": project}
        content = settled(kind, content, others["session_id"], project)
        if made["id"] in self.records:
            raise AlreadyStored
        return self.put(StoredRecord(**made, content=content, revision=1))

    def change(self, before: StoredRecord, after: StoredRecord, edit: EditDraft) -> StoredRecord:
        """Store the next version of a record, and add the edit to its history. Raises AlreadyStored as `put`."""
        after = self.put(replace(after, revision=before.revision + 1))
        changes = changed_fields(before.content, after.content)
        made = StoredEdit(after.revision, edit.type, edit.editor, edit.edited_at, changes)
        self.edits[after.id] = (*self.edits.get(after.id, ()), made)
        return after

    def put(self, stored: StoredRecord) -> StoredRecord:
        """Store a record, in place of the one with its id. Its terms are read here unless it has them. A vector of
        another text is removed.

        Raises:
            AlreadyStored: its client key, or its part of a source, is another's.
        """
        if any(self.unique.get(one, stored.id) != stored.id for one in stored.unique):
            raise AlreadyStored
        if (before := self.records.get(stored.id)) is not None:
            self._unlink(before, has_vectors=before.embedded_text == stored.embedded_text)
        if stored.indexed is None or stored.is_deleted:
            indexed = None if stored.is_deleted else index_text(stored.text, stored.name)
            stored = replace(stored, indexed=indexed)
        self.records[stored.id] = stored
        self.unique |= dict.fromkeys(stored.unique, stored.id)
        return stored

    def remove(self, stored: StoredRecord) -> None:
        self._unlink(stored, has_vectors=False)
        del self.records[stored.id]

    def _unlink(self, stored: StoredRecord, *, has_vectors: bool) -> None:
        for one in stored.unique:
            del self.unique[one]
        if not has_vectors:
            self.vectors = {place: vector for place, vector in self.vectors.items() if place[1] != stored.key}

    def superseding(self) -> Mapping[str, Sequence[StoredRecord]]:
        """The records that supersede each record, by its id. A forgotten record supersedes nothing."""
        found: dict[str, list[StoredRecord]] = {}
        for one in self.records.values():
            for record_id in () if one.is_deleted else one.content.get("supersedes", ()):
                named = self.records.get(record_id, one)
                if named is not one and (named.owner, named.agent_id) == (one.owner, one.agent_id):
                    found.setdefault(record_id, []).append(one)
        return found


class Tables:
    """The tables of one state for a port: what reads them and what writes them. The state of a view is never written,
    because the types of a view have the reads alone."""

    def __init__(self, state: State) -> None:
        self._state = state


def settled(
    kind: RecordType, content: Mapping[str, Any], session_id: str | None, project: str | None
) -> dict[str, Any]:
    """The content as every store returns it, with values of its own."""
    place = {"type": kind, "session_key": session_id, "project": project}
    return content_of({**place, **fields_of(kind, content, has_project=project is not None)})


def picked(source: object, *names: str) -> dict[str, Any]:
    """These attributes by name."""
    return {name: getattr(source, name) for name in names}


def made_of(made: Callable[..., _Row], stored: StoredRecord, **others: Any) -> _Row:
    """A value of a dataclass. Its fields are `others`, and what the record, or its content, has by the same names."""
    names = [one.name for one in fields(made)]  # type: ignore[arg-type]
    known = {**stored.content, **picked(stored, *(name for name in names if hasattr(stored, name))), **others}
    return made(**{name: known[name] for name in names if name in known})


def reads(scope: Scope, project: str | None) -> bool:
    """Whether the scope's project reads what is of a project: its own, and what is personal."""
    return scope.project is None or project in (None, scope.project)


def is_of(scope: Scope, project: str | None) -> bool:
    """Whether a project is the scope's. `PERSONAL` and None are of none."""
    return project == (None if scope.project == PERSONAL else scope.project)


def is_within(scope: Scope, stored: StoredRecord) -> bool:
    """Whether the record is the owner's, and within the limits."""
    return stored.owner == scope.owner and scope.limits.reaches(stored.agent_id, stored.project)


def update(table: dict[Any, _Row], is_meant: Callable[[_Row], bool], **changes: Any) -> list[_Row]:
    """Change fields of the rows that are meant. These rows, as they are now."""
    meant = [key for key, row in table.items() if is_meant(row)]
    table.update({key: replace(table[key], **changes) for key in meant})
    return [table[key] for key in meant]


def drop(table: dict[Any, _Row], is_gone: Callable[[_Row], bool]) -> None:
    """Remove rows."""
    for key in [key for key, row in table.items() if is_gone(row)]:
        del table[key]
