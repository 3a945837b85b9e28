"""Personal graphs as stored: one for each session, and one for each agent, which a scope without a session means."""

from collections.abc import Sequence
from typing import Protocol

from kalito_mcp.domain.graph import GraphChanges, GraphContents, GraphState
from kalito_mcp.domain.scope import Scope


class GraphReader(Protocol):
    """Reads of one consistent view."""

    async def state(self, scope: Scope) -> GraphState:
        """Where the graph stands; revision 0 where there is none."""
        ...

    async def load(self, scope: Scope, *, after: int = 0) -> GraphContents:
        """The nodes and edges that changed after revision `after`: all of them for 0. Nodes by id, edges by their
        ends. Only a whole graph's nodes have their degree; part of one does not tell it, and theirs is 0."""
        ...

    async def idle_sessions(self, scope: Scope, *, before_ms: int, limit: int) -> Sequence[str]:
        """Finalized sessions of the scope's agent that have a graph and were last written before `before_ms`."""
        ...


class GraphWriter(GraphReader, Protocol):
    """The same inside a write transaction."""

    async def save(self, scope: Scope, changes: GraphChanges, *, embedder: str) -> GraphState:
        """Store the changes under the next revision; nothing where there are none.

        `embedder` is the fingerprint of the vectors, kept for the graph as a whole: who changes it saves every node.
        """
        ...

    async def set_slept_at(self, scope: Scope, slept_at: int) -> None:
        """Remember when the graph was last consolidated."""
        ...

    async def remove(self, scope: Scope) -> int:
        """Remove the whole graph, its row included; how many nodes that were. Records stay."""
        ...
