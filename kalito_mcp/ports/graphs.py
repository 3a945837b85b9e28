"""Stored graphs, one for each session and one for each agent, and the feedback on messages. A scope without a session
names the agent's.

For a scope, there is no graph beyond its limits. An agent's is made of all its projects, so that with a limit to one
there is none.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from kalito_mcp.domain.graph import FeedbackLabel, GraphChanges, GraphContents, GraphState
from kalito_mcp.domain.scope import Scope


class GraphReader(Protocol):
    """Reads of one consistent view."""

    async def state(self, scope: Scope) -> GraphState:
        """The graph's revision and what belongs to it. Revision 0 if there is no graph."""

    async def load(self, scope: Scope) -> GraphContents:
        """The whole graph: nodes in order of id, without their degree, and edges in order of their ends."""

    async def idle_sessions(self, scope: Scope, *, before_ms: int, limit: int) -> Sequence[str]:
        """At most `limit` finalized sessions of the scope's agent that have a graph and were last written before
        `before_ms`, longest idle first."""

    async def due(self, owner: str, *, before_ms: int, since_ms: int, limit: int) -> Sequence[tuple[Scope, int | None]]:
        """At most `limit` graphs of the owner that last slept before `before_ms`, although something was written since,
        longest unwritten first, each with that moment.

        These are graphs of open sessions with a message since `since_ms`, stored or not; for one that never slept, its
        first write counts. Then the stored graphs of agents.
        """

    async def feedback(self, scope: Scope, message_ids: Sequence[str]) -> Mapping[str, Mapping[FeedbackLabel, int]]:
        """How often each of these messages got each label, by id. Those without feedback are left out, and those of
        another owner than the scope's."""


class GraphWriter(GraphReader, Protocol):
    """The same inside a write transaction."""

    async def save(self, scope: Scope, changes: GraphChanges, *, embedder: str) -> GraphState:
        """Store the changes under the next revision. Without changes nothing is written.

        `embedder` is the fingerprint of all vectors of the graph, so a caller that changes it must save every node.

        Raises:
            SessionNotFound: the scope names a session that does not exist.
            InvalidInput: an edge ends at no node of the graph, or its weight is not a number.
        """

    async def set_slept_at(self, scope: Scope, slept_at: int) -> None:
        """Store when the graph was last consolidated."""

    async def add_feedback(self, scope: Scope, number: int, label: FeedbackLabel, *, at_ms: int) -> None:
        """Count one more label for the message of this number. Nothing is written if it was erased, or if the scope's
        owner has no such message."""

    async def withdraw_feedback(self, scope: Scope, number: int, label: FeedbackLabel) -> bool:
        """Count one label less for the message of this number. False, and nothing is written, if it has none, or if the
        scope's owner has no such message."""

    async def remove(self, scope: Scope) -> int:
        """Remove the whole graph, including its row, and return how many nodes it had. Records stay."""
