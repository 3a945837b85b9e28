"""Small graphs under a scripted clock for the tests of the graph, and comparisons of them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from kalito_mcp.domain.graph import (
    GraphConfig,
    GraphEdge,
)
from kalito_mcp.domain.sleep import (
    SleepCycleConfig,
    SleepCycleOptions,
    SleepCycleReport,
)
from kalito_mcp.graph.canonical import canonical_key
from kalito_mcp.graph.store import GraphStore
from tests.scripted import ScriptedClock


@dataclass
class Listening:
    """A summarizer that returns a fixed text and remembers its calls. Also a listener of reports."""

    reply: Any = "summed up"
    asked: list[tuple[Sequence[str], int]] = field(default_factory=list)
    reports: list[SleepCycleReport] = field(default_factory=list)

    def summarize(self, texts: Sequence[str], max_length: int) -> str:
        self.asked.append((texts, max_length))
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply  # type: ignore[no-any-return]


def graph_of(clock: ScriptedClock, **config: Any) -> GraphStore:
    """An empty graph with these settings."""
    return GraphStore(GraphConfig(**config), now_ms=clock.now_ms)


def sleeping(graph: GraphStore, reply: Any = "summed up", **defaults: Any) -> Listening:
    """Run a sleep cycle with this summarizer and listener."""
    listening = Listening(reply)
    graph.configure_sleep_cycle(
        SleepCycleConfig(
            listening, SleepCycleOptions(**{"similarity_threshold": 0.8, **defaults}), listening.reports.append
        )
    )
    return listening


def query_id(text: str) -> str:
    """The id of a query with this text."""
    return f"query_{canonical_key(text)}"


def seen(graph: GraphStore) -> dict[str, Any]:
    """The whole graph in a comparable form, whatever its order."""
    graph_part = graph.to_snapshot()["graph"]
    return {kind: sorted(graph_part[kind], key=lambda one: str(one["id"])) for kind in ("nodes", "edges")}


def weighed(graph: GraphStore) -> dict[str, tuple[float, float]]:
    """The repeat count and the feedback of each node."""
    return {node.id: (node.weights.repeat, node.weights.feedback) for node in graph.nodes()}


def linked(graph: GraphStore) -> dict[str, float]:
    """The weight of each edge."""
    return {edge.id: edge.weight for edge in graph.edges()}


def edge_of(graph: GraphStore, from_id: str, to_id: str) -> GraphEdge | None:
    """The edge between two nodes, in either direction."""
    return next((edge for edge in graph.edges_of(from_id) if {edge.from_id, edge.to_id} == {from_id, to_id}), None)


@contextmanager
def unchanged(graph: GraphStore) -> Iterator[None]:
    """Check that the block changes nothing in the graph and leaves nothing to store."""
    graph.drain_changes()
    before = graph.to_snapshot()
    yield
    assert graph.to_snapshot() == before
    assert not graph.drain_changes()
