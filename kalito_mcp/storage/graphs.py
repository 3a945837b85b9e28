"""Stores graphs. Every change of a graph also changes its revision.

The revision that callers see combines the graph's key and its step. A graph that was removed and created again has a
later key, so a process with the old graph in memory loads the new one as a whole.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from kalito_mcp.domain.graph import FeedbackLabel, GraphChanges, GraphContents, GraphEdge, GraphNode, GraphState
from kalito_mcp.domain.scope import DEFAULT_AGENT, Scope
from kalito_mcp.errors import InvalidInput, SessionNotFound
from kalito_mcp.runtime.long_texts import read_aside
from kalito_mcp.storage import graph_rows as rows
from kalito_mcp.storage.intact_rows import intact_rows
from kalito_mcp.storage.numbered import message_key
from kalito_mcp.storage.queries import Queries, places_of

_Item = TypeVar("_Item")
_STEPS: Final = 1 << 32
# The event loop runs other tasks between two pages: reading 1,000 nodes or writing 200 takes 5 ms.
_READ_PAGE: Final = 1_000
_WRITE_PAGE: Final = 200


class GraphQueries(Queries):
    """`ports.graphs.GraphReader`."""

    async def state(self, scope: Scope) -> GraphState:
        found = await self._all(self._sql.graphs.SELECT_GRAPH, **places_of(scope))
        return next(map(_state, found), GraphState())

    async def load(self, scope: Scope) -> GraphContents:
        for row in await self._all(self._sql.graphs.SELECT_GRAPH, **places_of(scope)):
            return await self._whole(scope.owner, row)
        return GraphContents(nodes=(), edges=(), state=GraphState())

    async def idle_sessions(self, scope: Scope, *, before_ms: int, limit: int) -> Sequence[str]:
        bounds = {"before_ms": before_ms, "limit": limit}
        return [row[0] for row in await self._all(self._sql.graphs.SELECT_IDLE_SESSIONS, **places_of(scope), **bounds)]

    async def due(self, owner: str, *, before_ms: int, since_ms: int, limit: int) -> Sequence[tuple[Scope, int | None]]:
        bounds = {"before_ms": before_ms, "since_ms": since_ms, "limit": limit}
        found = await self._all(self._sql.graphs.SELECT_DUE, owner=owner, **bounds)
        return [(Scope(owner, agent, session=session), slept_at) for agent, session, slept_at in found]

    async def feedback(self, scope: Scope, message_ids: Sequence[str]) -> Mapping[str, Mapping[FeedbackLabel, int]]:
        given: dict[str, dict[FeedbackLabel, int]] = {}
        numbers = [number for number in map(message_key, message_ids) if number is not None]
        found = await self._all(self._sql.graphs.SELECT_FEEDBACK, owner=scope.owner, numbers=numbers)
        with intact_rows():
            for message_id, label, count in found:
                given.setdefault(message_id, {})[FeedbackLabel(label)] = count
        return given

    async def _whole(self, owner: str, graph: Sequence[Any]) -> GraphContents:
        sql = self._sql.graphs
        ids = dict(await self._all(sql.SELECT_NODE_KEYS, owner=owner, graph_key=graph[0]))
        nodes: dict[int, GraphNode] = {}
        edges: list[GraphEdge] = []
        # By key, as they are stored: by id, every node would be on another page of the file.
        for keys in _pages(sorted(ids), _READ_PAGE):
            nodes |= rows.nodes(await self._all(sql.SELECT_NODES, owner=owner, keys=keys))
            edges += rows.edges(await self._all(sql.SELECT_EDGES_FROM, owner=owner, keys=keys), ids)
        await read_aside(len(edges), lambda: edges.sort(key=lambda edge: edge.key), most=_READ_PAGE)
        with intact_rows():
            return GraphContents(nodes=[nodes[key] for key in ids], edges=edges, state=_state(graph))


class GraphStatements(GraphQueries):
    """`ports.graphs.GraphWriter`."""

    async def save(self, scope: Scope, changes: GraphChanges, *, embedder: str) -> GraphState:
        if not changes:
            return await self.state(scope)
        sql, owner = self._sql.graphs, scope.owner
        removes = bool(changes.removed_nodes or changes.removed_edges)
        step = {**places_of(scope), "removes": removes, "embedder": embedder}
        found = await self._all(sql.UPDATE_REVISION, **step)
        if not found:
            await self._create(scope)
            found = await self._all(sql.UPDATE_REVISION, **step)
        graph_key, revision, *_ = found[0]
        removed_edges = [rows.edge_names(graph_key, *edge) for edge in changes.removed_edges]
        await self._many(sql.DELETE_EDGE, removed_edges, owner=owner)
        if changes.removed_nodes:
            await self._all(sql.DELETE_NAMED_NODES, owner=owner, graph_key=graph_key, ids=list(changes.removed_nodes))
        for nodes in _pages(changes.nodes, _WRITE_PAGE):
            await self._many(sql.UPSERT_NODE, rows.node_rows(graph_key, revision, nodes), owner=owner)
        for edges in _pages(changes.edges, _WRITE_PAGE):
            ends = {end for edge in edges for end in (edge.from_id, edge.to_id)}
            keys = dict(await self._all(sql.SELECT_KEYS_OF_NODES, owner=owner, graph_key=graph_key, ids=list(ends)))
            if ends - keys.keys() or any(math.isnan(edge.weight) for edge in edges):
                raise InvalidInput("an edge's weight is not a number, or one of its ends is not in the graph")
            linked = [rows.edge_row(graph_key, revision, edge, keys) for edge in edges]
            await self._many(sql.UPSERT_EDGE, linked, owner=owner)
        return _state(found[0])

    async def set_slept_at(self, scope: Scope, slept_at: int) -> None:
        if not await self._all(self._sql.graphs.UPDATE_SLEPT_AT, slept_at=slept_at, **places_of(scope)):
            await self._create(scope)
            await self._all(self._sql.graphs.UPDATE_SLEPT_AT, slept_at=slept_at, **places_of(scope))

    async def remove(self, scope: Scope) -> int:
        removed = 0
        for row in await self._all(self._sql.graphs.SELECT_GRAPH, **places_of(scope)):
            removed = await self._count_changed(self._sql.graphs.DELETE_NODES, owner=scope.owner, graph_key=row[0])
            await self._all(self._sql.graphs.DELETE_GRAPH, owner=scope.owner, graph_key=row[0])
        return removed

    async def add_feedback(self, scope: Scope, number: int, label: FeedbackLabel, *, at_ms: int) -> None:
        named = {"owner": scope.owner, "number": number, "label": str(label)}
        await self._all(self._sql.graphs.UPSERT_FEEDBACK, **named, at_ms=at_ms)

    async def withdraw_feedback(self, scope: Scope, number: int, label: FeedbackLabel) -> bool:
        named = {"owner": scope.owner, "number": number, "label": str(label)}
        is_last = await self._count_changed(self._sql.graphs.DELETE_LAST_FEEDBACK, **named) > 0
        return is_last or await self._count_changed(self._sql.graphs.UPDATE_FEEDBACK, **named) > 0

    async def _create(self, scope: Scope) -> None:
        if scope.session is None:
            agent = scope.agent or scope.limits.agent or DEFAULT_AGENT
            await self._all(self._sql.session_changes.INSERT_AGENT, owner=scope.owner, agent=agent)
        if not await self._all(self._sql.graphs.INSERT_GRAPH, **places_of(scope)):
            raise SessionNotFound(scope.session or "")


def _state(row: Sequence[Any]) -> GraphState:
    key, step, slept_at, embedder = row
    with intact_rows():
        return GraphState(revision=key * _STEPS + step, slept_at=slept_at, embedder=embedder)


def _pages(items: Sequence[_Item], size: int) -> Iterator[Sequence[_Item]]:
    return (items[start : start + size] for start in range(0, len(items), size))
