"""The graphs of a store in memory, and the feedback on messages. Implements `ports.graphs`."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from kalito_mcp.domain.graph import FeedbackLabel, GraphChanges, GraphContents, GraphNode, GraphState
from kalito_mcp.domain.records import message_record_id
from kalito_mcp.domain.scope import DEFAULT_AGENT, Scope
from kalito_mcp.domain.sessions import SessionState
from kalito_mcp.errors import InvalidInput, SessionNotFound
from kalito_mcp.storage.memory.state import Graph, GraphPlace, Tables, drop

STEPS: Final = 1 << 32
"""A graph's revision is its key times this, and its step."""


class Graphs(Tables):
    """`ports.graphs.GraphWriter`."""

    async def state(self, scope: Scope) -> GraphState:
        return self._graph(scope).state

    async def load(self, scope: Scope) -> GraphContents:
        found = self._graph(scope)
        nodes = [_copied(found.nodes[node_id]) for node_id in sorted(found.nodes)]
        edges = [replace(found.edges[key]) for key in sorted(found.edges)]
        return GraphContents(nodes=nodes, edges=edges, state=found.state)

    async def idle_sessions(self, scope: Scope, *, before_ms: int, limit: int) -> Sequence[str]:
        agent = scope.agent or scope.limits.agent or DEFAULT_AGENT
        place, sessions = (scope.owner, agent, SessionState.FINALIZED), self._state.sessions.values()
        done = [one for one in sessions if (one.owner, one.agent, one.state) == place and one.updated_at < before_ms]
        kept = [one for one in done if (one.owner, one.agent, one.id) in self._state.graphs]
        reached = [one for one in kept if scope.limits.reaches(one.agent, one.project)]
        return [one.id for one in sorted(reached, key=lambda one: one.updated_at)[:limit]]

    async def feedback(self, scope: Scope, message_ids: Sequence[str]) -> Mapping[str, Mapping[FeedbackLabel, int]]:
        given: dict[str, dict[FeedbackLabel, int]] = {}
        for (record_id, label), said in self._state.feedback.items():
            if record_id in message_ids and self._state.records[record_id].owner == scope.owner:
                given.setdefault(record_id, {})[label] = said["count"]
        return given

    def _graph(self, scope: Scope) -> Graph:
        place = self._place(scope)
        return (place and self._state.graphs.get(place)) or Graph(GraphState())

    def _place(self, scope: Scope) -> GraphPlace | None:
        """Where the scope's graph is. An agent's is made of all its projects."""
        if scope.session is None:
            agent = scope.agent or scope.limits.agent or DEFAULT_AGENT
            is_reached = scope.limits.project is None and scope.limits.agent in (None, agent)
            return (scope.owner, agent, None) if is_reached else None
        session = self._state.session(scope)
        return None if session is None else (session.owner, session.agent, session.id)

    async def save(self, scope: Scope, changes: GraphChanges, *, embedder: str) -> GraphState:
        if not changes:
            return await self.state(scope)
        place, graph = self._existing(scope)
        gone, unlinked = {*changes.removed_nodes}, {*changes.removed_edges}
        nodes = {node_id: node for node_id, node in graph.nodes.items() if node_id not in gone}
        nodes |= {node.id: _copied(node) for node in changes.nodes}
        left = {key: edge for key, edge in graph.edges.items() if key not in unlinked}
        edges = {key: edge for key, edge in left.items() if gone.isdisjoint((edge.from_id, edge.to_id))}
        for edge in changes.edges:
            if math.isnan(edge.weight) or not {edge.from_id, edge.to_id} <= nodes.keys():
                raise InvalidInput("an edge's weight is not a number, or one of its ends is not in the graph")
            edges[edge.key] = replace(edge)
        state = replace(graph.state, revision=graph.state.revision + 1, embedder=embedder)
        self._state.graphs[place] = Graph(state, nodes, edges)
        return state

    async def set_slept_at(self, scope: Scope, slept_at: int) -> None:
        place, graph = self._existing(scope)
        self._state.graphs[place] = replace(graph, state=replace(graph.state, slept_at=slept_at))

    async def remove(self, scope: Scope) -> int:
        removed = self._graph(scope)
        drop(self._state.graphs, lambda one: one is removed)
        return len(removed.nodes)

    async def add_feedback(self, scope: Scope, number: int, label: FeedbackLabel, *, at_ms: int) -> None:
        found = self._state.records.get(message_record_id(number))
        if found is not None and found.owner == scope.owner and found.purged_at is None:
            said = self._state.feedback.get((found.id, label), {"count": 0, "last_at": at_ms})
            said = {"count": said["count"] + 1, "last_at": max(said["last_at"], at_ms)}
            self._state.feedback[found.id, label] = said

    async def withdraw_feedback(self, scope: Scope, number: int, label: FeedbackLabel) -> bool:
        found = self._state.records.get(message_record_id(number))
        if found is None or found.owner != scope.owner:
            return False
        said = self._state.feedback.pop((found.id, label), None)
        if said is not None and said["count"] > 1:
            self._state.feedback[found.id, label] = {**said, "count": said["count"] - 1}
        return said is not None

    def _existing(self, scope: Scope) -> tuple[GraphPlace, Graph]:
        """The scope's graph and its place; a new one, if it has none."""
        place = self._place(scope)
        if place is None:
            raise SessionNotFound(scope.session or "")
        if place not in self._state.graphs:
            self._state.add_agent(*place[:2])
            # A graph that was removed and made again has a later revision.
            self._state.graphs[place] = Graph(GraphState(self._state.next_key("graphs") * STEPS))
        return place, self._state.graphs[place]


def _copied(node: GraphNode) -> GraphNode:
    return replace(node, weights=replace(node.weights), degree=0)
