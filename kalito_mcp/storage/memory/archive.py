"""Whole memories of a store in memory as entries of an archive, and back. Implements `ports.archive`."""

import json
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
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
from kalito_mcp.storage.memory.state import Graph, State, StoredForgottenValue, StoredRecord, StoredTombstone, Tables
from kalito_mcp.storage.record_fields import content_of, fields_of, origin_of, packed_list, stored_origin

_PAGE: Final = 500
_OF_SESSION: Final = [one.name for one in fields(Session) if one.name in FIELDS["sessions"]]
_OF_RECORD: Final = ("key", "tokens", "created_at", "client_key", "client", "revision", "purged_at")
Row = Mapping[str, Any]


class ArchiveRead(Tables):
    """`ports.archive.ArchiveReader`."""

    async def entries(self, owner: str, selection: Selection) -> AsyncGenerator[Sequence[ArchiveEntry]]:
        for kind, rows in _Selected(self._state, owner, selection).rows().items():
            found = [ArchiveEntry(kind, {name: row.get(name) for name in FIELDS[kind]}) for row in rows]
            for start in range(0, len(found), _PAGE):
                yield found[start : start + _PAGE]


class _Selected:
    """What a selection of an owner has."""

    def __init__(self, state: State, owner: str, selection: Selection) -> None:
        self._state, self._owner, self._selection = state, owner, selection
        self._session_keys = {place: key for key, place in enumerate(state.sessions, 1)}
        self._sessions = [
            one
            for one in state.sessions.values()
            if one.owner == owner and selection.session in (None, one.id) and self._is_of(one.agent, one.project)
        ]
        self._records = [one for one in state.records.values() if one.owner == owner and self._has(one)]
        found = [(one.agent, one.project) for one in self._sessions]
        found += [(one.agent_id, one.project) for one in self._records]
        agents, projects = ({one[part] for one in found} for part in (0, 1))
        self._agents = [one for one in state.agents if one[0] == owner and (selection.is_all or one[1] in agents)]
        self._projects = [one for one in state.projects if one[0] == owner and (selection.is_all or one[1] in projects)]
        self._graphs = {place: one for place, one in state.graphs.items() if self._has_graph(*place)}
        self._node_keys = {
            (place, node_id): key
            for key, (place, node_id) in enumerate(
                ((place, node_id) for place, one in self._graphs.items() for node_id in one.nodes), 1
            )
        }

    def rows(self) -> Mapping[str, Iterator[Row]]:
        """The fields of the entries of each kind, in the order of an archive."""
        state, is_whole = self._state, self._selection.is_restorable
        tombstones = [one for one in state.tombstones.values() if is_whole and one.owner == self._owner]
        return {
            "identity": iter([{"secret": state.secret}] if is_whole else []),
            "projects": ({"key": state.projects[one], "id": one[1]} for one in self._projects),
            "agents": (
                {"key": state.agents[one], "id": one[1], "record_count": self._count(one[1])} for one in self._agents
            ),
            "sessions": map(self._session, self._sessions),
            "records": map(self._record, self._records),
            "memory_edits": (_edit(one.key, edit) for one in self._records for edit in state.edits.get(one.id, ())),
            "record_usage": (
                {"record_key": one.key, "usage_count": one.usage_count, "last_used": one.last_used}
                for one in self._records
                if one.usage_count
            ),
            "feedback": (
                {"record_key": one.key, "label": str(label), "count": given[0], "last_at": given[1]}
                for one in self._records
                for label in sorted(FeedbackLabel)
                if (given := state.feedback.get((one.id, label)))
            ),
            "graphs": (self._graph(place, one.state) for place, one in self._graphs.items()),
            "graph_nodes": (
                self._node(place, node, one.state) for place, one in self._graphs.items() for node in one.nodes.values()
            ),
            "graph_edges": (
                self._edge(place, edge, one.state) for place, one in self._graphs.items() for edge in one.edges.values()
            ),
            "forgotten_values": self._forgotten(),
            "tombstones": ({name: getattr(one, name) for name in FIELDS["tombstones"]} for one in tombstones),
            "sqlite_sequence": (
                {"name": name, "seq": state.last_keys[name]}
                for name in ("graphs", "records")
                if is_whole and name in state.last_keys
            ),
        }

    def _is_of(self, agent: str, project: str | None) -> bool:
        selection = self._selection
        return selection.agent in (None, agent) and selection.project in (None, project or PERSONAL)

    def _has(self, one: StoredRecord) -> bool:
        selection = self._selection
        if one.session_id is not None:
            is_in = any(session.id == one.session_id for session in self._sessions)
        else:
            is_in = selection.session is None and self._is_of(one.agent_id, one.project)
        is_late = selection.since_ms is None or one.created_at >= selection.since_ms
        is_early = selection.until_ms is None or one.created_at <= selection.until_ms
        return is_in and is_late and is_early and (not selection.types or one.type in selection.types)

    def _has_graph(self, owner: str, agent: str, session_id: str | None) -> bool:
        selection = self._selection
        if owner != self._owner or not selection.is_restorable:
            return False
        if session_id is not None:
            return any(one.id == session_id for one in self._sessions)
        return selection.session is None and selection.project is None and selection.agent in (None, agent)

    def _count(self, agent: str) -> int:
        return sum(not one.is_deleted for one in self._state.of_agent(self._owner, agent))

    def _place(self, agent: str, session_id: str | None, project: str | None) -> Row:
        return {
            "agent_key": self._state.agents[self._owner, agent],
            "session_key": self._session_keys.get((self._owner, session_id or "")),
            "project_key": self._state.projects.get((self._owner, project or "")),
        }

    def _session(self, one: Session) -> Row:
        own = {name: getattr(one, name) for name in _OF_SESSION}
        own |= {"key": self._session_keys[one.owner, one.id], "state": str(one.state), "is_placed": int(one.is_placed)}
        return {**self._place(one.agent, None, one.project), **own}

    def _record(self, one: StoredRecord) -> Row:
        content, role = one.content, None if one.role is None else str(one.role)
        is_message, cause = one.type is RecordType.MESSAGE, self._state.records.get(content.get("caused_by", ""))
        return {
            **{name: getattr(one, name) for name in _OF_RECORD},
            **self._place(one.agent_id, one.session_id, one.project),
            **{
                "seq": content.get("start_seq", one.seq),
                "end_seq": content.get("end_seq"),
                "level": content.get("level"),
            },
            **fields_of(one.type, content, has_project=one.project is not None),
            "type": str(one.type),
            "id": None if is_message else one.id,
            "is_covered": int(one.is_covered) if one.type is RecordType.SUMMARY else None,
            "role": role,
            "origin": stored_origin(role, one.origin),
            "recorded_at": None if one.recorded_at == one.created_at else one.recorded_at,
            "caused_by": None if cause is None else cause.key,
        }

    def _graph(self, place: tuple[str, str, str | None], state: GraphState) -> Row:
        key, step = divmod(state.revision, STEPS)
        said = {"key": key, "revision": step, "removed_revision": step}
        return {**self._place(place[1], place[2], None), **said, "slept_at": state.slept_at, "embedder": state.embedder}

    def _node(self, place: tuple[str, str, str | None], node: GraphNode, state: GraphState) -> Row:
        from kalito_mcp.storage.sparse_vectors import packed  # noqa: PLC0415 - numpy loads when first needed

        return {
            **{name: getattr(node, name) for name in ("id", "text", "canonical_key", "summary")},
            "key": self._node_keys[place, node.id],
            "graph_key": state.revision // STEPS,
            "type": str(node.type),
            "source_node_ids": packed_list(node.source_node_ids),
            "source_record_ids": packed_list(node.source_record_ids),
            "repeat": node.weights.repeat,
            "feedback": node.weights.feedback,
            "is_pinned": int(node.pinned),
            "created_at": node.created_at,
            "last_access": node.last_access,
            "embedding": None if node.embedding is None else packed(node.embedding),
            "revision": state.revision % STEPS,
        }

    def _edge(self, place: tuple[str, str, str | None], edge: GraphEdge, state: GraphState) -> Row:
        return {
            "from_key": self._node_keys[place, edge.from_id],
            "type": str(edge.type),
            "to_key": self._node_keys[place, edge.to_id],
            "graph_key": state.revision // STEPS,
            **{name: getattr(edge, name) for name in ("weight", "created_at", "last_access")},
            "revision": state.revision % STEPS,
        }

    def _forgotten(self) -> Iterator[Row]:
        for (owner, agent, project, value_hash), one in self._state.forgotten.items():
            is_of_project = project is None or (owner, project) in self._projects
            if self._selection.is_restorable and (owner, agent) in self._agents and is_of_project:
                yield {
                    **self._place(agent, None, project),
                    "key": one.key,
                    "value_hash": value_hash,
                    "forgotten_at": one.forgotten_at,
                    "is_erased": int(one.is_erased),
                }


def _edit(record_key: int, edit: StoredEdit) -> Row:
    return {
        "record_key": record_key,
        "version": edit.version,
        "edit_type": str(edit.type),
        "editor_type": str(edit.editor.type),
        "editor_id": edit.editor.id,
        "changes": json.dumps(edit.before, ensure_ascii=False, separators=(",", ":")),
        "edited_at": edit.edited_at,
    }


class ArchiveWritten(ArchiveRead):
    """`ports.archive.ArchiveWriter`."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._names: dict[tuple[str, int | None], Any] = {}
        """What has a number in the archive, by kind and number."""
        self._causes: dict[str, int] = {}

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

    def _name(self, kind: str, key: int | None) -> Any:
        return None if key is None else self._names[kind, key]

    def _numbered(self, kind: str, key: int, name: Any) -> int:
        self._names[kind, key] = name
        self._state.last_keys[kind] = max(self._state.last_keys.get(kind, 0), key)
        return key

    def _add_identity(self, owner: str, row: Row) -> None:
        del owner
        self._state.secret = row["secret"]

    def _add_projects(self, owner: str, row: Row) -> None:
        self._state.projects[owner, row["id"]] = self._numbered("projects", row["key"], row["id"])

    def _add_agents(self, owner: str, row: Row) -> None:
        self._state.agents[owner, row["id"]] = self._numbered("agents", row["key"], row["id"])

    def _add_sessions(self, owner: str, row: Row) -> None:
        self._names["sessions", row["key"]] = row["id"]
        own = {name: row[name] for name in _OF_SESSION}
        own |= {"state": SessionState(row["state"]), "is_placed": bool(row["is_placed"])}
        agent, project = self._name("agents", row["agent_key"]), self._name("projects", row["project_key"])
        self._state.sessions[owner, row["id"]] = Session(owner=owner, agent=agent, project=project, **own)

    def _add_records(self, owner: str, row: Row) -> None:
        kind, role, project = RecordType(row["type"]), row["role"], self._name("projects", row["project_key"])
        record_id = row["id"] or message_record_id(row["key"])
        self._numbered("records", row["key"], record_id)
        if row["caused_by"] is not None:
            self._causes[record_id] = row["caused_by"]
        stored = StoredRecord(
            **{name: row[name] for name in _OF_RECORD},
            owner=owner,
            id=record_id,
            type=kind,
            agent_id=self._name("agents", row["agent_key"]),
            session_id=self._name("sessions", row["session_key"]),
            project=project,
            content=content_of({**row, "cause": None, "project": project}),
            origin=origin_of(role, row["origin"]),
            recorded_at=row["created_at"] if row["recorded_at"] is None else row["recorded_at"],
            role=None if role is None else Role(role),
            seq=row["seq"] if kind is RecordType.MESSAGE else None,
            is_covered=bool(row["is_covered"]),
            indexed=None,
        )
        self._state.put(stored.reindexed())

    def _add_memory_edits(self, owner: str, row: Row) -> None:
        del owner
        record_id, editor = (
            self._names["records", row["record_key"]],
            Editor(EditorType(row["editor_type"]), row["editor_id"]),
        )
        changes = json.loads(row["changes"])
        made = StoredEdit(row["version"], EditType(row["edit_type"]), editor, row["edited_at"], changes)
        self._state.edits[record_id] = (*self._state.edits.get(record_id, ()), made)

    def _add_record_usage(self, owner: str, row: Row) -> None:
        del owner
        stored = self._state.records[self._names["records", row["record_key"]]]
        self._state.put(replace(stored, usage_count=row["usage_count"], last_used=row["last_used"]))

    def _add_feedback(self, owner: str, row: Row) -> None:
        del owner
        record_id = self._names["records", row["record_key"]]
        self._state.feedback[record_id, FeedbackLabel(row["label"])] = row["count"], row["last_at"]

    def _add_graphs(self, owner: str, row: Row) -> None:
        place = (owner, self._name("agents", row["agent_key"]), self._name("sessions", row["session_key"]))
        self._numbered("graphs", row["key"], place)
        revision = row["key"] * STEPS + row["revision"]
        self._state.graphs[place] = Graph(
            GraphState(revision, slept_at=row["slept_at"], embedder=row["embedder"]), {}, {}
        )

    def _add_graph_nodes(self, owner: str, row: Row) -> None:
        from kalito_mcp.storage.sparse_vectors import unpacked  # noqa: PLC0415 - numpy loads when first needed

        del owner
        self._names["graph_nodes", row["key"]] = row["id"]
        graph = self._state.graphs[self._names["graphs", row["graph_key"]]]
        node = GraphNode(
            **{name: row[name] for name in ("id", "text", "canonical_key", "summary", "created_at", "last_access")},
            type=NodeType(row["type"]),
            source_node_ids=tuple(json.loads(row["source_node_ids"] or "[]")),
            source_record_ids=tuple(json.loads(row["source_record_ids"] or "[]")),
            weights=NodeWeights(row["repeat"], row["feedback"]),
            pinned=bool(row["is_pinned"]),
            embedding=None if row["embedding"] is None else unpacked([row["embedding"]])[0],
        )
        graph.nodes[row["id"]] = node

    def _add_graph_edges(self, owner: str, row: Row) -> None:
        del owner
        from_id, to_id = (self._names["graph_nodes", row[end]] for end in ("from_key", "to_key"))
        edge = GraphEdge(from_id, to_id, EdgeType(row["type"]), row["weight"], row["created_at"], row["last_access"])
        self._state.graphs[self._names["graphs", row["graph_key"]]].edges[edge.key] = edge

    def _add_forgotten_values(self, owner: str, row: Row) -> None:
        place = (owner, self._name("agents", row["agent_key"]), self._name("projects", row["project_key"]))
        key = self._numbered("forgotten", row["key"], None)
        value = StoredForgottenValue(row["forgotten_at"], bool(row["is_erased"]), key)
        self._state.forgotten[(*place, row["value_hash"])] = value

    def _add_tombstones(self, owner: str, row: Row) -> None:
        made = StoredTombstone(**{**row, "type": RecordType(row["type"]), "owner": owner})
        self._state.tombstones[made.record_id, made.text_hash] = made

    def _add_sqlite_sequence(self, owner: str, row: Row) -> None:
        del owner
        self._state.last_keys[row["name"]] = max(self._state.last_keys.get(row["name"], 0), row["seq"])
