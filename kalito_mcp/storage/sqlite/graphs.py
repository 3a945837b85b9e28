"""Stores graphs. Every change of a graph also changes its revision.

The revision that callers see combines the graph's key and its step. A graph that was removed and created again has a
later key, so a process with the old graph in memory loads the new one as a whole.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from kalito_mcp.domain.graph import FeedbackLabel, GraphChanges, GraphContents, GraphEdge, GraphNode, GraphState
from kalito_mcp.domain.scope import DEFAULT_AGENT, Scope
from kalito_mcp.errors import InvalidInput, SessionNotFound
from kalito_mcp.runtime.long_texts import read_aside
from kalito_mcp.storage import graph_rows as rows
from kalito_mcp.storage.graph_rows import EDGE_COLUMNS, NODE_COLUMNS
from kalito_mcp.storage.intact_rows import intact_rows
from kalito_mcp.storage.numbered import message_key
from kalito_mcp.storage.sqlite.queries import Queries, limits_of, owned, within
from kalito_mcp.storage.sqlite.session_changes import INSERT_AGENT

_Item = TypeVar("_Item")
_AGENT_OR_DEFAULT: Final = f"coalesce(:agent, :limit_agent, '{DEFAULT_AGENT}')"
# An agent's graph is made of all its projects.
_AGENT_WITHIN: Final = "(:limit_agent IS NULL OR a.id = :limit_agent) AND :limit_project IS NULL"
_GRAPH_KEY: Final = f"""
    SELECT g.key FROM sessions s JOIN agents a ON a.key = s.agent_key
    JOIN graphs g ON g.agent_key = s.agent_key AND g.session_key = s.key
    WHERE s.owner = :owner AND s.id = :session AND (:agent IS NULL OR a.id = :agent) AND {within("s")}
    UNION ALL
    SELECT g.key FROM agents a JOIN graphs g ON g.agent_key = a.key AND g.session_key IS NULL
    WHERE :session IS NULL AND a.owner = :owner AND a.id = {_AGENT_OR_DEFAULT} AND {_AGENT_WITHIN}
"""
_STATE_COLUMNS: Final = "key, revision, slept_at, embedder"
SELECT_GRAPH: Final = f"SELECT {_STATE_COLUMNS} FROM graphs WHERE key = ({_GRAPH_KEY})"
SELECT_NODE_KEYS: Final = "SELECT n.key, n.id FROM graph_nodes n WHERE n.graph_key = :graph_key ORDER BY n.id"
SELECT_NODES: Final = f"""
SELECT {NODE_COLUMNS} FROM graph_nodes n WHERE n.key IN (SELECT value FROM json_each(:keys)) ORDER BY n.key
"""
SELECT_EDGES_FROM: Final = f"""
SELECT {EDGE_COLUMNS} FROM graph_edges e WHERE e.from_key IN (SELECT value FROM json_each(:keys))
"""
SELECT_IDLE_SESSIONS: Final = f"""
SELECT s.id FROM agents a JOIN graphs g ON g.agent_key = a.key AND g.session_key IS NOT NULL
JOIN sessions s ON s.key = g.session_key
WHERE a.owner = :owner AND a.id = {_AGENT_OR_DEFAULT} AND s.state = 'FINALIZED' AND s.updated_at < :before_ms
    AND {within("s")}
ORDER BY s.updated_at, s.key LIMIT :limit
"""
INSERT_GRAPH: Final = f"""
INSERT INTO graphs (agent_key, session_key)
SELECT s.agent_key, s.key FROM sessions s JOIN agents a ON a.key = s.agent_key
WHERE s.owner = :owner AND s.id = :session AND (:agent IS NULL OR a.id = :agent) AND {within("s")}
UNION ALL
SELECT a.key, NULL FROM agents a
WHERE :session IS NULL AND a.owner = :owner AND a.id = {_AGENT_OR_DEFAULT} AND {_AGENT_WITHIN}
"""
UPDATE_REVISION: Final = f"""
UPDATE graphs SET
    revision = revision + 1,
    removed_revision = CASE WHEN :removes THEN revision + 1 ELSE removed_revision END,
    embedder = :embedder
WHERE key = ({_GRAPH_KEY})
RETURNING {_STATE_COLUMNS}
"""
UPDATE_SLEPT_AT: Final = f"UPDATE graphs SET slept_at = :slept_at WHERE key = ({_GRAPH_KEY}) RETURNING key"
UPSERT_NODE: Final = """
INSERT INTO graph_nodes (
    graph_key, id, type, text, canonical_key, summary, source_node_ids, source_record_ids, repeat, feedback, is_pinned,
    created_at, last_access, embedding, revision, hash
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (graph_key, id) DO UPDATE SET
    type = excluded.type, text = excluded.text, canonical_key = excluded.canonical_key, summary = excluded.summary,
    source_node_ids = excluded.source_node_ids, source_record_ids = excluded.source_record_ids,
    repeat = excluded.repeat, feedback = excluded.feedback, is_pinned = excluded.is_pinned,
    created_at = excluded.created_at, last_access = excluded.last_access, embedding = excluded.embedding,
    revision = excluded.revision, hash = excluded.hash
"""
UPSERT_EDGE: Final = """
INSERT INTO graph_edges (from_key, type, to_key, graph_key, weight, created_at, last_access, revision, hash)
VALUES (
    (SELECT key FROM graph_nodes WHERE graph_key = :graph_key AND id = :from_id), :type,
    (SELECT key FROM graph_nodes WHERE graph_key = :graph_key AND id = :to_id),
    :graph_key, :weight, :created_at, :last_access, :revision, :hash
)
ON CONFLICT (from_key, type, to_key) DO UPDATE SET
    weight = excluded.weight, created_at = excluded.created_at, last_access = excluded.last_access,
    revision = excluded.revision, hash = excluded.hash
"""
_OF_OWNED: Final = f"EXISTS (SELECT 1 FROM records r WHERE r.key = feedback.record_key AND {owned('r')})"
SELECT_FEEDBACK: Final = f"""
SELECT 'msg_' || record_key, label, count FROM feedback
WHERE record_key IN (SELECT value FROM json_each(:numbers)) AND {_OF_OWNED}
"""
UPSERT_FEEDBACK: Final = f"""
INSERT INTO feedback (record_key, label, count, last_at)
SELECT key, :label, 1, :at_ms FROM records
WHERE key = :number AND type = 'message' AND purged_at IS NULL AND {owned("records")}
ON CONFLICT (record_key, label) DO UPDATE SET count = count + 1, last_at = max(last_at, excluded.last_at)
"""
UPDATE_FEEDBACK: Final = f"""
UPDATE feedback SET count = count - 1 WHERE record_key = :number AND label = :label AND {_OF_OWNED}
"""
DELETE_NO_FEEDBACK: Final = f"""
DELETE FROM feedback WHERE record_key = :number AND label = :label AND count <= 0 AND {_OF_OWNED}
"""
DELETE_NODE: Final = "DELETE FROM graph_nodes WHERE graph_key = :graph_key AND id = :id"
DELETE_EDGE: Final = """
DELETE FROM graph_edges
WHERE from_key = (SELECT key FROM graph_nodes WHERE graph_key = :graph_key AND id = :from_id) AND type = :type
    AND to_key = (SELECT key FROM graph_nodes WHERE graph_key = :graph_key AND id = :to_id)
"""
DELETE_NODES: Final = "DELETE FROM graph_nodes WHERE graph_key = :graph_key"
DELETE_GRAPH: Final = "DELETE FROM graphs WHERE key = :graph_key"

_STEPS: Final = 1 << 32
# The event loop runs other tasks between two pages: reading 1,000 nodes or writing 200 takes 5 ms.
_READ_PAGE: Final = 1_000
_WRITE_PAGE: Final = 200


class GraphQueries(Queries):
    """`ports.graphs.GraphReader`."""

    async def state(self, scope: Scope) -> GraphState:
        return next((_state(row) for row in await self._all(SELECT_GRAPH, **_names(scope))), GraphState())

    async def load(self, scope: Scope) -> GraphContents:
        for row in await self._all(SELECT_GRAPH, **_names(scope)):
            return await self._whole(row)
        return GraphContents(nodes=(), edges=(), state=GraphState())

    async def idle_sessions(self, scope: Scope, *, before_ms: int, limit: int) -> Sequence[str]:
        found = await self._all(SELECT_IDLE_SESSIONS, **_names(scope), before_ms=before_ms, limit=limit)
        return [row[0] for row in found]

    async def feedback(self, scope: Scope, message_ids: Sequence[str]) -> Mapping[str, Mapping[FeedbackLabel, int]]:
        given: dict[str, dict[FeedbackLabel, int]] = {}
        numbers = json.dumps([message_key(one) for one in message_ids])
        for message_id, label, count in await self._all(SELECT_FEEDBACK, owner=scope.owner, numbers=numbers):
            with intact_rows():
                given.setdefault(message_id, {})[FeedbackLabel(label)] = count
        return given

    async def _whole(self, graph: Sequence[Any]) -> GraphContents:
        ids = dict(await self._all(SELECT_NODE_KEYS, graph_key=graph[0]))
        nodes: dict[int, GraphNode] = {}
        edges: list[GraphEdge] = []
        # By key, as in the file: by id, every node would be on another page.
        for page in _pages(sorted(ids), _READ_PAGE):
            keys = json.dumps(page)
            nodes |= rows.nodes(await self._all(SELECT_NODES, keys=keys))
            edges += rows.edges(await self._all(SELECT_EDGES_FROM, keys=keys), ids)
        await read_aside(len(edges), lambda: edges.sort(key=lambda edge: edge.key), most=_READ_PAGE)
        with intact_rows():
            return GraphContents(nodes=[nodes[key] for key in ids], edges=edges, state=_state(graph))


class GraphStatements(GraphQueries):
    """`ports.graphs.GraphWriter`."""

    async def save(self, scope: Scope, changes: GraphChanges, *, embedder: str) -> GraphState:
        if not changes:
            return await self.state(scope)
        step = {
            **_names(scope),
            "removes": bool(changes.removed_nodes or changes.removed_edges),
            "embedder": embedder,
        }
        found = await self._all(UPDATE_REVISION, **step)
        if not found:
            await self._create(scope)
            found = await self._all(UPDATE_REVISION, **step)
        [[graph_key, revision, *_]] = found
        await self._many(DELETE_EDGE, [rows.edge_names(graph_key, *edge) for edge in changes.removed_edges])
        await self._many(DELETE_NODE, [{"graph_key": graph_key, "id": node_id} for node_id in changes.removed_nodes])
        for nodes in _pages(changes.nodes, _WRITE_PAGE):
            await self._many(UPSERT_NODE, rows.node_rows(graph_key, revision, nodes))
        try:
            for edges in _pages(changes.edges, _WRITE_PAGE):
                await self._many(UPSERT_EDGE, [rows.edge_row(graph_key, revision, edge) for edge in edges])
        except sqlite3.IntegrityError as error:
            raise InvalidInput("an edge's weight is not a number, or one of its ends is not in the graph") from error
        return _state(found[0])

    async def set_slept_at(self, scope: Scope, slept_at: int) -> None:
        if not await self._all(UPDATE_SLEPT_AT, slept_at=slept_at, **_names(scope)):
            await self._create(scope)
            await self._all(UPDATE_SLEPT_AT, slept_at=slept_at, **_names(scope))

    async def remove(self, scope: Scope) -> int:
        removed = 0
        for row in await self._all(SELECT_GRAPH, **_names(scope)):
            removed = await self._count_changed(DELETE_NODES, graph_key=row[0])
            await self._all(DELETE_GRAPH, graph_key=row[0])
        return removed

    async def add_feedback(self, scope: Scope, number: int, label: FeedbackLabel, *, at_ms: int) -> None:
        await self._all(UPSERT_FEEDBACK, owner=scope.owner, number=number, label=str(label), at_ms=at_ms)

    async def withdraw_feedback(self, scope: Scope, number: int, label: FeedbackLabel) -> bool:
        named = {"owner": scope.owner, "number": number, "label": str(label)}
        is_less = await self._count_changed(UPDATE_FEEDBACK, **named) > 0
        await self._all(DELETE_NO_FEEDBACK, **named)
        return is_less

    async def _create(self, scope: Scope) -> None:
        if scope.session is None:
            await self._all(INSERT_AGENT, owner=scope.owner, agent=scope.agent or scope.limits.agent or DEFAULT_AGENT)
        await self._all(INSERT_GRAPH, **_names(scope))
        if not await self._all(SELECT_GRAPH, **_names(scope)):
            raise SessionNotFound(scope.session or "")

    async def _many(self, statement: str, parameters: Sequence[Any]) -> None:
        if parameters:
            await self._connection.executemany(statement, parameters)


def _names(scope: Scope) -> dict[str, Any]:
    return {"owner": scope.owner, "agent": scope.agent, "session": scope.session, **limits_of(scope)}


def _state(row: Sequence[Any]) -> GraphState:
    key, step, slept_at, embedder = row
    with intact_rows():
        return GraphState(revision=key * _STEPS + step, slept_at=slept_at, embedder=embedder)


def _pages(items: Sequence[_Item], size: int) -> Iterator[Sequence[_Item]]:
    return (items[start : start + size] for start in range(0, len(items), size))
