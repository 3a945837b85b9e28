"""Whole memories of a store in memory as entries of an archive, and back. Implements `ports.archive`."""

import json
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final

from kalito_mcp.domain.archive import FIELDS, ArchiveEntry, Selection, unstorable
from kalito_mcp.domain.graph import EdgeType, FeedbackLabel, GraphEdge, GraphNode, GraphState, NodeType, NodeWeights
from kalito_mcp.domain.memory_records import Editor, EditorType, EditType, StoredEdit
from kalito_mcp.domain.records import RecordType, Role, message_record_id
from kalito_mcp.domain.scope import PERSONAL
from kalito_mcp.domain.sessions import Session, SessionState
from kalito_mcp.ports.records import AlreadyStored
from kalito_mcp.storage.memory.graphs import STEPS
from kalito_mcp.storage.memory.state import Graph, State, StoredForgottenValue, StoredRecord, Tables, picked, range_of
from kalito_mcp.storage.record_fields import content_of, fields_of, origin_of, packed_list, stored_origin
from kalito_mcp.storage.sparse_vectors import packed as packed_vector
from kalito_mcp.storage.sparse_vectors import unpacked

_PAGE: Final = 500
_OF_PART: Final = {"projects", "agents", "sessions", "records", "memory_edits", "record_usage", "feedback"}
"""The kinds that an archive has that cannot be restored."""
_SESSION: Final = tuple(one.name for one in fields(Session) if one.name in FIELDS["sessions"])
_RECORD: Final = ("key", "type", "role", "tokens", "created_at", "client_key", "client", "revision", "purged_at")
_NODE: Final = ("id", "text", "canonical_key", "summary", "created_at", "last_access")
Row = Mapping[str, Any]


class Archive(Tables):
    """`ports.archive.ArchiveWriter`."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._names: dict[tuple[str, int | None], Any] = {}
        """What entries are called that have a number, by kind and number."""
        self._causes: dict[str, int] = {}

    async def entries(self, owner: str, selection: Selection) -> AsyncGenerator[Sequence[ArchiveEntry]]:
        rows = _Rows(_selected(self._state, owner, selection))
        for kind, names in FIELDS.items():
            if selection.is_restorable or kind in _OF_PART:
                found = [ArchiveEntry(kind, {name: row.get(name) for name in names}) for row in getattr(rows, kind)()]
                for start in range(0, len(found), _PAGE):
                    yield found[start : start + _PAGE]

    async def is_empty(self) -> bool:
        return not (self._state.agents or self._state.projects or self._state.tombstones)

    async def add(self, owner: str, entries: Sequence[ArchiveEntry]) -> None:
        for entry in entries:
            try:
                getattr(self, f"_add_{entry.kind}")(owner, entry.fields)
            except (LookupError, TypeError, ValueError, AttributeError, AlreadyStored) as error:
                raise unstorable(entry, repr(error)) from None

    async def finish(self) -> None:
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

    def _place(self, row: Row) -> dict[str, Any]:
        """The agent, the session and the project that an entry is of."""
        kinds = {"agent_id": "agent", "session_id": "session", "project": "project"}
        return {name: self._name(f"{one}s", row.get(f"{one}_key")) for name, one in kinds.items()}

    def _add_identity(self, _: str, row: Row) -> None:
        self._state.secret = row["secret"]

    def _add_projects(self, owner: str, row: Row) -> None:
        self._state.projects[owner, row["id"]] = self._numbered("projects", row["key"], row["id"])

    def _add_agents(self, owner: str, row: Row) -> None:
        self._state.agents[owner, row["id"]] = self._numbered("agents", row["key"], row["id"])

    def _add_sessions(self, owner: str, row: Row) -> None:
        self._names["sessions", row["key"]] = row["id"]
        made = {name: row[name] for name in _SESSION} | {"state": SessionState(row["state"])}
        made |= {"is_placed": bool(row["is_placed"]), "project": self._place(row)["project"]}
        self._state.sessions[owner, row["id"]] = Session(owner=owner, agent=self._place(row)["agent_id"], **made)

    def _add_records(self, owner: str, row: Row) -> None:
        record_id, place, role = row["id"] or message_record_id(row["key"]), self._place(row), row["role"]
        self._numbered("records", row["key"], record_id)
        if row["caused_by"] is not None:
            self._causes[record_id] = row["caused_by"]
        said = {name: row[name] for name in _RECORD} | place
        said |= {"type": RecordType(row["type"]), "role": None if role is None else Role(role)}
        stored = StoredRecord(
            **said,
            owner=owner,
            id=record_id,
            content=content_of({**row, "cause": None, "project": place["project"]}),
            origin=origin_of(role, row["origin"]),
            recorded_at=row["created_at"] if row["recorded_at"] is None else row["recorded_at"],
            seq=row["seq"] if row["type"] == RecordType.MESSAGE else None,
            is_covered=bool(row["is_covered"]),
        )
        self._state.put(stored)

    def _add_memory_edits(self, _: str, row: Row) -> None:
        record_id, editor = self._names["records", row["record_key"]], EditorType(row["editor_type"])
        said = (EditType(row["edit_type"]), Editor(editor, row["editor_id"]), row["edited_at"])
        made = StoredEdit(row["version"], *said, json.loads(row["changes"]))
        self._state.edits[record_id] = (*self._state.edits.get(record_id, ()), made)

    def _add_record_usage(self, _: str, row: Row) -> None:
        stored = self._state.records[self._names["records", row["record_key"]]]
        self._state.put(replace(stored, usage_count=row["usage_count"], last_used=row["last_used"]))

    def _add_feedback(self, _: str, row: Row) -> None:
        place = (self._names["records", row["record_key"]], FeedbackLabel(row["label"]))
        self._state.feedback[place] = row["count"], row["last_at"]

    def _add_graphs(self, owner: str, row: Row) -> None:
        place, state = (
            self._place(row),
            GraphState(row["key"] * STEPS + row["revision"], row["slept_at"], row["embedder"]),
        )
        self._numbered("graphs", row["key"], (owner, place["agent_id"], place["session_id"]))
        self._state.graphs[owner, place["agent_id"], place["session_id"]] = Graph(state)

    def _add_graph_nodes(self, _: str, row: Row) -> None:
        self._names["graph_nodes", row["key"]] = row["id"]
        embedding = row["embedding"]
        self._state.graphs[self._names["graphs", row["graph_key"]]].nodes[row["id"]] = GraphNode(
            **{name: row[name] for name in _NODE},
            type=NodeType(row["type"]),
            source_node_ids=tuple(json.loads(row["source_node_ids"] or "[]")),
            source_record_ids=tuple(json.loads(row["source_record_ids"] or "[]")),
            weights=NodeWeights(row["repeat"], row["feedback"]),
            pinned=bool(row["is_pinned"]),
            embedding=None if embedding is None else unpacked([embedding])[0],
        )

    def _add_graph_edges(self, _: str, row: Row) -> None:
        from_id, to_id = (self._names["graph_nodes", row[end]] for end in ("from_key", "to_key"))
        edge = GraphEdge(from_id, to_id, EdgeType(row["type"]), row["weight"], row["created_at"], row["last_access"])
        self._state.graphs[self._names["graphs", row["graph_key"]]].edges[edge.key] = edge

    def _add_forgotten_values(self, owner: str, row: Row) -> None:
        place, key = self._place(row), self._numbered("forgotten", row["key"], None)
        value = StoredForgottenValue(row["forgotten_at"], bool(row["is_erased"]), key)
        self._state.forgotten[owner, place["agent_id"], place["project"], row["value_hash"]] = value

    def _add_tombstones(self, owner: str, row: Row) -> None:
        self._state.tombstones[owner, row["record_id"], row["text_hash"]] = row

    def _add_sqlite_sequence(self, _: str, row: Row) -> None:
        self._numbered(row["name"], row["seq"], None)


def _selected(state: State, owner: str, selection: Selection) -> State:
    """The part of the state that is the owner's and of the selection."""
    part, asked, is_all = state.copy(), selection, selection.is_all

    def is_in(agent: str, session_id: str | None, project: str | None) -> bool:
        """Whether what is of a session is of one of the part; what is of none, of its agents and projects."""
        if session_id is not None:
            return (owner, session_id) in part.sessions
        is_there = asked.agent in (None, agent) and asked.project in (None, project or PERSONAL)
        return asked.session is None and is_there

    part.sessions = {
        place: one
        for place, one in state.sessions.items()
        if place[0] == owner
        and asked.session in (None, one.id)
        and asked.agent in (None, one.agent)
        and asked.project in (None, one.project or PERSONAL)
    }
    part.records = {
        one.id: one
        for one in state.records.values()
        if one.owner == owner
        and is_in(one.agent_id, one.session_id, one.project)
        and (not asked.types or one.type in asked.types)
        and (asked.since_ms is None or one.created_at >= asked.since_ms)
        and (asked.until_ms is None or one.created_at <= asked.until_ms)
    }
    places = {(one.agent, one.project) for one in part.sessions.values()}
    places |= {(one.agent_id, one.project) for one in part.records.values()}
    agents, projects = ({(owner, place[at]) for place in places} for at in (0, 1))
    part.agents = {one: key for one, key in state.agents.items() if one in agents or (is_all and one[0] == owner)}
    part.projects = {one: key for one, key in state.projects.items() if one in projects or (is_all and one[0] == owner)}
    part.graphs = {
        place: one
        for place, one in state.graphs.items()
        if place[0] == owner and is_in(*place[1:], project=None) and (place[2] or asked.project is None)
    }
    part.forgotten = {
        place: one
        for place, one in state.forgotten.items()
        if place[:2] in part.agents and (place[2] is None or (owner, place[2]) in part.projects)
    }
    part.tombstones = {place: one for place, one in state.tombstones.items() if place[0] == owner}
    return part


class _Rows:
    """The fields of the entries of each kind, for a part of a state."""

    def __init__(self, part: State) -> None:
        self._part = part
        self._sessions = {session_id: key for key, (_, session_id) in enumerate(part.sessions, 1)}
        nodes = [(place, node_id) for place, graph in part.graphs.items() for node_id in graph.nodes]
        self._nodes = {place: key for key, place in enumerate(nodes, 1)}
        self._agents, self._projects = (
            {one[1]: key for one, key in table.items()} for table in (part.agents, part.projects)
        )

    def _place(self, agent: str, session_id: str | None, project: str | None) -> Row:
        keys = (self._agents[agent], self._sessions.get(session_id or ""), self._projects.get(project or ""))
        return dict(zip(("agent_key", "session_key", "project_key"), keys, strict=True))

    def identity(self) -> Iterable[Row]:
        yield {"secret": self._part.secret}

    def projects(self) -> Iterable[Row]:
        return ({"key": key, "id": project} for project, key in self._projects.items())

    def agents(self) -> Iterable[Row]:
        for (owner, agent), key in self._part.agents.items():
            count = sum(not one.is_deleted for one in self._part.of_agent(owner, agent))
            yield {"key": key, "id": agent, "record_count": count}

    def sessions(self) -> Iterable[Row]:
        for one in self._part.sessions.values():
            own = {**picked(one, *_SESSION), "key": self._sessions[one.id], "is_placed": int(one.is_placed)}
            yield {**self._place(one.agent, None, one.project), **own}

    def records(self) -> Iterable[Row]:
        for one in self._part.records.values():
            cause = self._part.records.get(one.content.get("caused_by", ""))
            yield {
                **picked(one, *_RECORD),
                **self._place(one.agent_id, one.session_id, one.project),
                **range_of(one.content),
                **({"seq": one.seq, "id": None} if one.type is RecordType.MESSAGE else {"id": one.id}),
                **fields_of(one.type, one.content, has_project=one.project is not None),
                "is_covered": int(one.is_covered) if one.type is RecordType.SUMMARY else None,
                "origin": stored_origin(one.role, one.origin),
                "recorded_at": None if one.recorded_at == one.created_at else one.recorded_at,
                "caused_by": cause and cause.key,
            }

    def memory_edits(self) -> Iterable[Row]:
        for record in self._part.records.values():
            for one in self._part.edits.get(record.id, ()):
                editor = {"editor_type": one.editor.type, "editor_id": one.editor.id}
                said = {"edit_type": one.type, "changes": json.dumps(one.before, ensure_ascii=False), **editor}
                yield {"record_key": record.key, **picked(one, "version", "edited_at"), **said}

    def record_usage(self) -> Iterable[Row]:
        used = (one for one in self._part.records.values() if one.usage_count)
        return ({"record_key": one.key, **picked(one, "usage_count", "last_used")} for one in used)

    def feedback(self) -> Iterable[Row]:
        for (record_id, label), (count, last_at) in sorted(self._part.feedback.items()):
            if (one := self._part.records.get(record_id)) is not None:
                yield {"record_key": one.key, "label": label, "count": count, "last_at": last_at}

    def graphs(self) -> Iterable[Row]:
        for (_, agent, session_id), graph in self._part.graphs.items():
            key, step = divmod(graph.state.revision, STEPS)
            said = {"key": key, "revision": step, "removed_revision": step}
            yield {**self._place(agent, session_id, None), **said, **picked(graph.state, "slept_at", "embedder")}

    def graph_nodes(self) -> Iterable[Row]:
        for place, graph in self._part.graphs.items():
            for one in graph.nodes.values():
                yield {
                    **picked(one, *_NODE, "type"),
                    "key": self._nodes[place, one.id],
                    **_step(graph.state),
                    "source_node_ids": packed_list(one.source_node_ids),
                    "source_record_ids": packed_list(one.source_record_ids),
                    **picked(one.weights, "repeat", "feedback"),
                    "is_pinned": int(one.pinned),
                    "embedding": None if one.embedding is None else packed_vector(one.embedding),
                }

    def graph_edges(self) -> Iterable[Row]:
        for place, graph in self._part.graphs.items():
            for one in graph.edges.values():
                ends = {"from_key": self._nodes[place, one.from_id], "to_key": self._nodes[place, one.to_id]}
                yield {**ends, **_step(graph.state), **picked(one, "type", "weight", "created_at", "last_access")}

    def forgotten_values(self) -> Iterable[Row]:
        for (_, agent, project, value_hash), one in self._part.forgotten.items():
            said = {"key": one.key, "forgotten_at": one.forgotten_at, "is_erased": int(one.is_erased)}
            yield {**self._place(agent, None, project), **said, "value_hash": value_hash}

    def tombstones(self) -> Iterable[Row]:
        return self._part.tombstones.values()

    def sqlite_sequence(self) -> Iterable[Row]:
        last_keys = self._part.last_keys
        return ({"name": name, "seq": last_keys[name]} for name in ("graphs", "records") if name in last_keys)


def _step(state: GraphState) -> Row:
    """The number of a node's graph, and the revision that it is of: the graph's."""
    return dict(zip(("graph_key", "revision"), divmod(state.revision, STEPS), strict=True))
