"""Whole memories of a store in memory as entries of an archive, and back. Implements `ports.archive`."""

import json
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final

from kalito_mcp.domain.archive import FIELDS, ArchiveEntry, Selection, unstorable
from kalito_mcp.domain.graph import EdgeType, FeedbackLabel, GraphEdge, GraphNode, GraphState, NodeType, NodeWeights
from kalito_mcp.domain.memory_records import Editor, EditorType, EditType, StoredEdit
from kalito_mcp.domain.records import RecordType, Role, message_record_id
from kalito_mcp.domain.scope import PERSONAL
from kalito_mcp.domain.sessions import Session, SessionState
from kalito_mcp.domain.time import NEWEST_MS, OLDEST_MS
from kalito_mcp.ports.records import AlreadyStored
from kalito_mcp.storage.memory.graphs import STEPS
from kalito_mcp.storage.memory.state import Graph, GraphPlace, State, StoredRecord, Tables, picked
from kalito_mcp.storage.record_fields import content_of, fields_of, origin_of, packed_list, stored_origin
from kalito_mcp.storage.sparse_vectors import packed as packed_vector
from kalito_mcp.storage.sparse_vectors import unpacked

_PAGE: Final = 500
_OF_PART: Final = {"projects", "agents", "sessions", "records", "memory_edits", "record_usage", "feedback"}
"""The kinds that an archive has that cannot be restored."""
_SESSION: Final = tuple(one.name for one in fields(Session) if one.name in FIELDS["sessions"])
_RECORD: Final = ("key", "type", "role", "tokens", "created_at", "client_key", "client", "revision", "purged_at")
_NODE: Final = ("id", "text", "canonical_key", "summary", "created_at", "last_access")
_MERGED: Final = ("source_node_ids", "source_record_ids")
Row = Mapping[str, Any]


class Archive(Tables):
    """`ports.archive.ArchiveWriter`."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._names: dict[tuple[str, int | None], Any] = {}
        """What entries are called that have a number, by kind and number."""
        self._causes: dict[str, int] = {}

    async def entries(self, owner: str, selection: Selection) -> AsyncGenerator[Sequence[ArchiveEntry]]:
        rows = _Rows(self._state, _selected(self._state, owner, selection)).of_each_kind()
        for kind, names in FIELDS.items():
            if selection.is_restorable or kind in _OF_PART:
                found = [ArchiveEntry(kind, {name: row.get(name) for name in names}) for row in rows[kind]]
                for start in range(0, len(found), _PAGE):
                    yield found[start : start + _PAGE]

    async def is_empty(self) -> bool:
        return not (self._state.agents or self._state.projects or self._state.tombstones)

    async def add(self, owner: str, entries: Sequence[ArchiveEntry]) -> None:
        for entry in entries:
            try:
                self._add(owner, entry.kind, entry.fields)
            except (LookupError, TypeError, ValueError, AttributeError, AlreadyStored) as error:
                raise unstorable(entry, repr(error)) from None

    async def finish(self, owners: Sequence[str]) -> None:
        del owners
        state = self._state
        for record_id, cause in self._causes.items():
            if ("records", cause) in self._names:
                state.put(state.records[record_id].with_content({"caused_by": self._names["records", cause]}))
        state.records = dict(sorted(state.records.items(), key=lambda one: one[1].key))

    def _numbered(self, kind: str, key: int, name: Any) -> int:
        self._names[kind, key] = name
        self._state.last_keys[kind] = max(self._state.last_keys.get(kind, 0), key)
        return key

    def _name(self, kind: str, key: int | None) -> Any:
        return None if key is None else self._names[kind, key]

    def _add(self, owner: str, kind: str, row: Row) -> None:
        """Store an entry. Raises an error of another kind if it cannot be stored."""
        state, names = self._state, self._names
        agent, session, project, graph, record = (
            self._name(f"{one}s", row.get(f"{one}_key")) for one in ("agent", "session", "project", "graph", "record")
        )
        match kind:
            case "identity":
                state.secret = row["secret"]
            case "projects" | "agents":
                getattr(state, kind)[owner, row["id"]] = self._numbered(kind, row["key"], row["id"])
            case "sessions":
                names[kind, row["key"]] = row["id"]
                own = {**row, "state": SessionState(row["state"]), "is_placed": bool(row["is_placed"])}
                own = {name: own[name] for name in _SESSION}
                state.sessions[owner, row["id"]] = Session(owner=owner, agent=agent, project=project, **own)
            case "records":
                self._add_record(row, owner=owner, agent_id=agent, session_id=session, project=project)
            case "memory_edits":
                editor = Editor(EditorType(row["editor_type"]), row["editor_id"])
                said = (
                    row["version"],
                    EditType(row["edit_type"]),
                    editor,
                    row["edited_at"],
                    json.loads(row["changes"]),
                )
                state.edits[record] = (*state.edits.get(record, ()), StoredEdit(*said))
            case "record_usage":
                used = {name: row[name] for name in ("usage_count", "last_used")}
                state.put(replace(state.records[record], **used))
            case "feedback":
                given = {name: row[name] for name in ("count", "last_at")}
                state.feedback[record, FeedbackLabel(row["label"])] = given
            case "forgotten_values":
                self._numbered("forgotten", row["key"], None)
                value = {name: row[name] for name in ("key", "forgotten_at", "is_erased")}
                state.forgotten[owner, agent, project, row["value_hash"]] = value
            case "tombstones":
                state.tombstones[owner, row["record_id"], row["text_hash"]] = row
            case "sqlite_sequence":
                self._numbered(row["name"], row["seq"], None)
            case _:
                self._add_to_graph(kind, row, (owner, agent, session), graph)

    def _add_to_graph(self, kind: str, row: Row, place: GraphPlace, graph: GraphPlace) -> None:
        graphs, names = self._state.graphs, self._names
        match kind:
            case "graphs":
                self._numbered(kind, row["key"], place)
                revision = row["key"] * STEPS + row["revision"]
                graphs[place] = Graph(GraphState(revision, row["slept_at"], row["embedder"]))
            case "graph_nodes":
                names[kind, row["key"]] = row["id"]
                graphs[graph].nodes[row["id"]] = _node_of(row)
            case _:
                ends = (names["graph_nodes", row["from_key"]], names["graph_nodes", row["to_key"]])
                edge = GraphEdge(*ends, EdgeType(row["type"]), row["weight"], row["created_at"], row["last_access"])
                graphs[graph].edges[edge.key] = edge

    def _add_record(self, row: Row, **place: Any) -> None:
        record_id, role = row["id"] or message_record_id(row["key"]), row["role"]
        self._numbered("records", row["key"], record_id)
        if row["caused_by"] is not None:
            self._causes[record_id] = row["caused_by"]
        said = {**{name: row[name] for name in _RECORD}, "type": RecordType(row["type"]), "role": role and Role(role)}
        stored = StoredRecord(
            **said,
            **place,
            id=record_id,
            content=content_of({**row, "cause": None, "project": place["project"]}),
            origin=origin_of(role, row["origin"]),
            recorded_at=row["created_at"] if row["recorded_at"] is None else row["recorded_at"],
            seq=row["seq"] if row["type"] == RecordType.MESSAGE else None,
            is_covered=bool(row["is_covered"]),
        )
        self._state.put(stored)


def _node_of(row: Row) -> GraphNode:
    said: dict[str, Any] = {name: row[name] for name in _NODE}
    said |= {name: tuple(json.loads(row[name] or "[]")) for name in _MERGED}
    return GraphNode(
        **said,
        type=NodeType(row["type"]),
        weights=NodeWeights(row["repeat"], row["feedback"]),
        pinned=bool(row["is_pinned"]),
        embedding=None if row["embedding"] is None else unpacked([row["embedding"]])[0],
    )


def _selected(state: State, owner: str, selection: Selection) -> State:
    """The part of the state that is the owner's and of the selection."""
    part, asked, is_all = state.copy(), selection, selection.is_all

    def is_asked(agent: str, project: str | None) -> bool:
        return asked.agent in (None, agent) and asked.project in (None, project or PERSONAL)

    def is_in(agent: str, session_id: str | None, project: str | None) -> bool:
        """Whether it is of a session of the part, or of none and of what is asked for."""
        if session_id is not None:
            return (owner, session_id) in part.sessions
        return asked.session is None and is_asked(agent, project)

    theirs = {
        place: one for place, one in state.sessions.items() if place[0] == owner and is_asked(one.agent, one.project)
    }
    part.sessions = {place: one for place, one in theirs.items() if asked.session in (None, one.id)}
    records = (
        one for one in state.records.values() if one.owner == owner and is_in(one.agent_id, one.session_id, one.project)
    )
    since = OLDEST_MS if asked.since_ms is None else asked.since_ms
    until = NEWEST_MS if asked.until_ms is None else asked.until_ms
    said_then = (one for one in records if since <= one.created_at <= until)
    part.records = {one.id: one for one in said_then if not asked.types or one.type in asked.types}
    places = {(one.agent, one.project) for one in part.sessions.values()}
    places |= {(one.agent_id, one.project) for one in part.records.values()}
    agents, projects = ({(owner, place[at]) for place in places} for at in (0, 1))
    part.agents = {one: key for one, key in state.agents.items() if one in agents or (is_all and one[0] == owner)}
    part.projects = {one: key for one, key in state.projects.items() if one in projects or (is_all and one[0] == owner)}
    graphs = {
        place: one for place, one in state.graphs.items() if place[0] == owner and is_in(*place[1:], project=None)
    }
    part.graphs = {place: one for place, one in graphs.items() if place[2] or asked.project is None}
    forgotten = {place: one for place, one in state.forgotten.items() if place[:2] in part.agents}
    reached = {None, *(project for _, project in part.projects)}
    part.forgotten = {place: one for place, one in forgotten.items() if place[2] in reached}
    part.tombstones = {place: one for place, one in state.tombstones.items() if place[0] == owner}
    return part


class _Rows:
    """The fields of the entries of each kind, for a part of a state."""

    def __init__(self, whole: State, part: State) -> None:
        self._whole, self._part = whole, part
        self._counts = Counter((one.owner, one.agent_id) for one in whole.records.values() if not one.is_deleted)
        self._keys: dict[str, dict[Any, int]] = {
            "agent": {place[1]: key for place, key in part.agents.items()},
            "project": {place[1]: key for place, key in part.projects.items()},
            "session": {session_id: key for key, (_, session_id) in enumerate(part.sessions, 1)},
        }
        nodes = [(place, node_id) for place, graph in part.graphs.items() for node_id in graph.nodes]
        self._nodes = {place: key for key, place in enumerate(nodes, 1)}

    def of_each_kind(self) -> Mapping[str, Iterable[Row]]:
        """By kind."""
        part = self._part
        return {
            "identity": [{"secret": part.secret}],
            "projects": [{"key": key, "id": project} for project, key in self._keys["project"].items()],
            "agents": [
                {"key": key, "id": place[1], "record_count": self._counts[place]} for place, key in part.agents.items()
            ],
            "sessions": map(self._session, part.sessions.values()),
            "records": map(self._record, part.records.values()),
            "memory_edits": (_edit(one, edit) for one in part.records.values() for edit in part.edits.get(one.id, ())),
            "record_usage": (
                {"record_key": one.key, **picked(one, "usage_count", "last_used")}
                for one in part.records.values()
                if one.usage_count
            ),
            "feedback": (
                {"record_key": part.records[record_id].key, "label": label, **given}
                for (record_id, label), given in part.feedback.items()
                if record_id in part.records
            ),
            "graphs": (self._graph(place, one.state) for place, one in part.graphs.items()),
            "graph_nodes": (
                {**_of_graph(graph.state), "key": self._nodes[place, one.id], **_node(one)}
                for place, graph in part.graphs.items()
                for one in graph.nodes.values()
            ),
            "graph_edges": (
                {**_of_graph(graph.state), **self._edge(place, one)}
                for place, graph in part.graphs.items()
                for one in graph.edges.values()
            ),
            "forgotten_values": (
                {**self._place(agent=agent, project=project), **one, "value_hash": value_hash}
                for (_, agent, project, value_hash), one in part.forgotten.items()
            ),
            "tombstones": part.tombstones.values(),
            "sqlite_sequence": [
                {"name": one, "seq": part.last_keys[one]} for one in ("graphs", "records") if one in part.last_keys
            ],
        }

    def _place(self, **named: str | None) -> Row:
        return {f"{kind}_key": self._keys[kind].get(name) for kind, name in named.items()}

    def _session(self, one: Session) -> Row:
        own = {**picked(one, *_SESSION), "key": self._keys["session"][one.id], "is_placed": int(one.is_placed)}
        return {**self._place(agent=one.agent, project=one.project), **own}

    def _record(self, one: StoredRecord) -> Row:
        cause = self._whole.records.get(one.content.get("caused_by", ""))
        return {
            **picked(one, *_RECORD),
            **self._place(agent=one.agent_id, session=one.session_id, project=one.project),
            **({"seq": one.seq} if one.type is RecordType.MESSAGE else {"id": one.id}),
            **fields_of(one.type, one.content, has_project=one.project is not None),
            "is_covered": int(one.is_covered) if one.type is RecordType.SUMMARY else None,
            "origin": stored_origin(one.role, one.origin),
            "recorded_at": None if one.recorded_at == one.created_at else one.recorded_at,
            "caused_by": cause and cause.key,
        }

    def _graph(self, place: GraphPlace, state: GraphState) -> Row:
        key, step = divmod(state.revision, STEPS)
        said = {"key": key, "revision": step, "removed_revision": step, **picked(state, "slept_at", "embedder")}
        return {**self._place(agent=place[1], session=place[2]), **said}

    def _edge(self, place: GraphPlace, edge: GraphEdge) -> Row:
        ends = {"from_key": self._nodes[place, edge.from_id], "to_key": self._nodes[place, edge.to_id]}
        return {**ends, **picked(edge, "type", "weight", "created_at", "last_access")}


def _edit(record: StoredRecord, edit: StoredEdit) -> Row:
    said = {"edit_type": edit.type, "editor_type": edit.editor.type, "editor_id": edit.editor.id}
    changes = json.dumps(edit.before, ensure_ascii=False, separators=(",", ":"))
    return {"record_key": record.key, **picked(edit, "version", "edited_at"), **said, "changes": changes}


def _of_graph(state: GraphState) -> Row:
    """The number of the graph, and the revision that the whole of it is of."""
    return dict(zip(("graph_key", "revision"), divmod(state.revision, STEPS), strict=True))


def _node(node: GraphNode) -> Row:
    return {
        **picked(node, *_NODE, "type"),
        **picked(node.weights, "repeat", "feedback"),
        **{name: packed_list(getattr(node, name)) for name in _MERGED},
        "is_pinned": int(node.pinned),
        "embedding": None if node.embedding is None else packed_vector(node.embedding),
    }
