"""Stores graphs. Every change of a graph also changes its revision.

The revision that callers see combines the graph's key and its step. A graph that was removed and created again has a
later key, so a process with the old graph in memory loads the new one as a whole.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import anyio.lowlevel

from kalito_mcp.domain.graph import FeedbackLabel, GraphChanges, GraphContents, GraphEdge, GraphNode, GraphState
from kalito_mcp.domain.scope import DEFAULT_AGENT, Scope
from kalito_mcp.errors import InvalidInput, SessionNotFound
from kalito_mcp.runtime.long_texts import read_aside
from kalito_mcp.storage import graph_rows as rows
from kalito_mcp.storage.graph_rows import EDGE_COLUMNS, NODE_COLUMNS, NODE_NAMES
from kalito_mcp.storage.intact_rows import intact_rows
from kalito_mcp.storage.numbered import message_key
from kalito_mcp.storage.postgres.queries import Queries, limits_of, within
from kalito_mcp.storage.postgres.session_changes import INSERT_AGENT
from kalito_mcp.storage.postgres.sessions import SESSIONS_WITH_AGENTS

_Item = TypeVar("_Item")
_AGENT_OR_DEFAULT: Final = f"coalesce(:agent, :limit_agent, '{DEFAULT_AGENT}')"
# An agent's graph is made of all its projects.
_AGENT_WITHIN: Final = "(:limit_agent IS NULL OR a.id = :limit_agent) AND :limit_project IS NULL"
_SESSION: Final = f"""
    s.owner_key = :owner AND s.id = :session AND (:agent IS NULL OR a.id = :agent) AND {within("s")}
"""
_AGENT: Final = f":session IS NULL AND a.owner_key = :owner AND a.id = {_AGENT_OR_DEFAULT} AND {_AGENT_WITHIN}"
_GRAPH_KEY: Final = f"""
    SELECT g.key FROM {SESSIONS_WITH_AGENTS}
    JOIN graphs g ON g.owner_key = :owner AND g.agent_key = s.agent_key AND g.session_key = s.key
    WHERE {_SESSION}
    UNION ALL
    SELECT g.key FROM agents a
    JOIN graphs g ON g.owner_key = :owner AND g.agent_key = a.key AND g.session_key IS NULL
    WHERE {_AGENT}
"""
_STATE_COLUMNS: Final = "key, revision, slept_at, embedder"
SELECT_GRAPH: Final = f"SELECT {_STATE_COLUMNS} FROM graphs WHERE owner_key = :owner AND key = ({_GRAPH_KEY})"
SELECT_NODES: Final = (
    f"SELECT {NODE_COLUMNS} FROM graph_nodes n WHERE n.owner_key = :owner AND n.graph_key = :graph_key"
)
SELECT_EDGES: Final = (
    f"SELECT {EDGE_COLUMNS} FROM graph_edges e WHERE e.owner_key = :owner AND e.graph_key = :graph_key"
)
SELECT_NODE_KEYS: Final = """
SELECT id, key FROM graph_nodes WHERE owner_key = :owner AND graph_key = :graph_key AND id = ANY(:ids)
"""
SELECT_IDLE_SESSIONS: Final = f"""
SELECT s.id FROM agents a
JOIN graphs g ON g.owner_key = :owner AND g.agent_key = a.key AND g.session_key IS NOT NULL
JOIN sessions s ON s.owner_key = :owner AND s.key = g.session_key
WHERE a.owner_key = :owner AND a.id = {_AGENT_OR_DEFAULT} AND s.state = 'FINALIZED'
    AND s.updated_at < :before_ms AND {within("s")}
ORDER BY s.updated_at, s.key LIMIT :limit
"""
INSERT_GRAPH: Final = f"""
INSERT INTO graphs (owner_key, agent_key, session_key)
SELECT :owner, s.agent_key, s.key FROM {SESSIONS_WITH_AGENTS} WHERE {_SESSION}
UNION ALL
SELECT :owner, a.key, NULL FROM agents a WHERE {_AGENT}
RETURNING key
"""
UPDATE_REVISION: Final = f"""
UPDATE graphs SET
    revision = revision + 1,
    removed_revision = CASE WHEN :removes::boolean THEN revision + 1 ELSE removed_revision END,
    embedder = :embedder
WHERE owner_key = :owner AND key = ({_GRAPH_KEY})
RETURNING {_STATE_COLUMNS}
"""
UPDATE_SLEPT_AT: Final = f"""
UPDATE graphs SET slept_at = :slept_at WHERE owner_key = :owner AND key = ({_GRAPH_KEY}) RETURNING key
"""
UPSERT_NODE: Final = """
INSERT INTO graph_nodes (
    owner_key, graph_key, id, type, text, canonical_key, summary, source_node_ids, source_record_ids, repeat, feedback,
    is_pinned, created_at, last_access, embedding, revision, hash
) VALUES (
    :owner, :graph_key, :id, :type, :text, :canonical_key, :summary, :source_node_ids, :source_record_ids, :repeat,
    :feedback, :is_pinned, :created_at, :last_access, :embedding, :revision, :hash
)
ON CONFLICT (owner_key, graph_key, id) DO UPDATE SET
    type = excluded.type, text = excluded.text, canonical_key = excluded.canonical_key, summary = excluded.summary,
    source_node_ids = excluded.source_node_ids, source_record_ids = excluded.source_record_ids,
    repeat = excluded.repeat, feedback = excluded.feedback, is_pinned = excluded.is_pinned,
    created_at = excluded.created_at, last_access = excluded.last_access, embedding = excluded.embedding,
    revision = excluded.revision, hash = excluded.hash
"""
UPSERT_EDGE: Final = """
INSERT INTO graph_edges (
    owner_key, from_key, type, to_key, graph_key, weight, created_at, last_access, revision, hash
) VALUES (:owner, :from_key, :type, :to_key, :graph_key, :weight, :created_at, :last_access, :revision, :hash)
ON CONFLICT (owner_key, from_key, type, to_key) DO UPDATE SET
    weight = excluded.weight, created_at = excluded.created_at, last_access = excluded.last_access,
    revision = excluded.revision, hash = excluded.hash
"""
SELECT_FEEDBACK: Final = """
SELECT 'msg_' || record_key, label, count FROM feedback WHERE owner_key = :owner AND record_key = ANY(:numbers)
"""
UPSERT_FEEDBACK: Final = """
INSERT INTO feedback (owner_key, record_key, label, count, last_at)
SELECT :owner, key, :label, 1, :at_ms FROM records
WHERE owner_key = :owner AND key = :number AND type = 'message' AND purged_at IS NULL
ON CONFLICT (owner_key, record_key, label)
DO UPDATE SET count = feedback.count + 1, last_at = greatest(feedback.last_at, excluded.last_at)
"""
DELETE_LAST_FEEDBACK: Final = """
DELETE FROM feedback WHERE owner_key = :owner AND record_key = :number AND label = :label AND count <= 1
"""
UPDATE_FEEDBACK: Final = """
UPDATE feedback SET count = count - 1 WHERE owner_key = :owner AND record_key = :number AND label = :label
"""
DELETE_EDGE: Final = """
DELETE FROM graph_edges
WHERE owner_key = :owner AND type = :type AND from_key = (
    SELECT key FROM graph_nodes WHERE owner_key = :owner AND graph_key = :graph_key AND id = :from_id
) AND to_key = (
    SELECT key FROM graph_nodes WHERE owner_key = :owner AND graph_key = :graph_key AND id = :to_id
)
"""
DELETE_NAMED_NODES: Final = """
DELETE FROM graph_nodes WHERE owner_key = :owner AND graph_key = :graph_key AND id = ANY(:ids)
"""
DELETE_NODES: Final = "DELETE FROM graph_nodes WHERE owner_key = :owner AND graph_key = :graph_key"
DELETE_GRAPH: Final = "DELETE FROM graphs WHERE owner_key = :owner AND key = :graph_key"

_STEPS: Final = 1 << 32
# The event loop runs other tasks between two pages.
_READ_PAGE: Final = 1_000
_WRITE_PAGE: Final = 500


class GraphQueries(Queries):
    """`ports.graphs.GraphReader`."""

    async def state(self, scope: Scope) -> GraphState:
        return next((_state(row) for row in await self._all(SELECT_GRAPH, **_names(scope))), GraphState())

    async def load(self, scope: Scope) -> GraphContents:
        for row in await self._all(SELECT_GRAPH, **_names(scope)):
            return await self._whole(scope.owner, row)
        return GraphContents(nodes=(), edges=(), state=GraphState())

    async def idle_sessions(self, scope: Scope, *, before_ms: int, limit: int) -> Sequence[str]:
        found = await self._all(SELECT_IDLE_SESSIONS, **_names(scope), before_ms=before_ms, limit=limit)
        return [row[0] for row in found]

    async def feedback(self, scope: Scope, message_ids: Sequence[str]) -> Mapping[str, Mapping[FeedbackLabel, int]]:
        given: dict[str, dict[FeedbackLabel, int]] = {}
        numbers = [number for number in map(message_key, message_ids) if number is not None]
        for message_id, label, count in await self._all(SELECT_FEEDBACK, owner=scope.owner, numbers=numbers):
            with intact_rows():
                given.setdefault(message_id, {})[FeedbackLabel(label)] = count
        return given

    async def _whole(self, owner: str, graph: Sequence[Any]) -> GraphContents:
        nodes: dict[int, GraphNode] = {}
        edges: list[GraphEdge] = []
        for page in _pages(await self._all(SELECT_NODES, owner=owner, graph_key=graph[0]), _READ_PAGE):
            nodes |= rows.nodes(page)
            await anyio.lowlevel.checkpoint()
        ids = {key: node.id for key, node in nodes.items()}
        for page in _pages(await self._all(SELECT_EDGES, owner=owner, graph_key=graph[0]), _READ_PAGE):
            edges += rows.edges(page, ids)
            await anyio.lowlevel.checkpoint()
        await read_aside(len(edges), lambda: edges.sort(key=lambda edge: edge.key), most=_READ_PAGE)
        in_order = sorted(nodes.values(), key=lambda node: node.id)
        return GraphContents(nodes=in_order, edges=edges, state=_state(graph))


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
        graph_key, revision, *_ = found[0]
        place = {"owner": scope.owner, "graph_key": graph_key}
        removed = [rows.edge_names(graph_key, *edge) for edge in changes.removed_edges]
        await self._many(DELETE_EDGE, removed, owner=scope.owner)
        if changes.removed_nodes:
            await self._all(DELETE_NAMED_NODES, **place, ids=list(changes.removed_nodes))
        for nodes in _pages(changes.nodes, _WRITE_PAGE):
            named = [dict(zip(NODE_NAMES, row, strict=True)) for row in rows.node_rows(graph_key, revision, nodes)]
            await self._many(UPSERT_NODE, named, owner=scope.owner)
        for edges in _pages(changes.edges, _WRITE_PAGE):
            ends = {end for edge in edges for end in (edge.from_id, edge.to_id)}
            keys = dict(await self._all(SELECT_NODE_KEYS, **place, ids=list(ends)))
            if ends - keys.keys() or any(math.isnan(edge.weight) for edge in edges):
                raise InvalidInput("an edge's weight is not a number, or one of its ends is not in the graph")
            linked = [
                {
                    **rows.edge_row(graph_key, revision, edge),
                    "from_key": keys[edge.from_id],
                    "to_key": keys[edge.to_id],
                }
                for edge in edges
            ]
            await self._many(UPSERT_EDGE, linked, owner=scope.owner)
        return _state(found[0])

    async def set_slept_at(self, scope: Scope, slept_at: int) -> None:
        if not await self._all(UPDATE_SLEPT_AT, slept_at=slept_at, **_names(scope)):
            await self._create(scope)
            await self._all(UPDATE_SLEPT_AT, slept_at=slept_at, **_names(scope))

    async def remove(self, scope: Scope) -> int:
        removed = 0
        for row in await self._all(SELECT_GRAPH, **_names(scope)):
            removed = await self._count_changed(DELETE_NODES, owner=scope.owner, graph_key=row[0])
            await self._all(DELETE_GRAPH, owner=scope.owner, graph_key=row[0])
        return removed

    async def add_feedback(self, scope: Scope, number: int, label: FeedbackLabel, *, at_ms: int) -> None:
        await self._all(UPSERT_FEEDBACK, owner=scope.owner, number=number, label=str(label), at_ms=at_ms)

    async def withdraw_feedback(self, scope: Scope, number: int, label: FeedbackLabel) -> bool:
        named = {"owner": scope.owner, "number": number, "label": str(label)}
        is_last = await self._count_changed(DELETE_LAST_FEEDBACK, **named) > 0
        return is_last or await self._count_changed(UPDATE_FEEDBACK, **named) > 0

    async def _create(self, scope: Scope) -> None:
        if scope.session is None:
            await self._all(INSERT_AGENT, owner=scope.owner, agent=scope.agent or scope.limits.agent or DEFAULT_AGENT)
        if not await self._all(INSERT_GRAPH, **_names(scope)):
            raise SessionNotFound(scope.session or "")


def _names(scope: Scope) -> dict[str, Any]:
    return {"owner": scope.owner, "agent": scope.agent, "session": scope.session, **limits_of(scope)}


def _state(row: Sequence[Any]) -> GraphState:
    key, step, slept_at, embedder = row
    with intact_rows():
        return GraphState(revision=key * _STEPS + step, slept_at=slept_at, embedder=embedder)


def _pages(items: Sequence[_Item], size: int) -> Iterator[Sequence[_Item]]:
    return (items[start : start + size] for start in range(0, len(items), size))
