"""The values of the personal graph: nodes, edges, settings, reports. Pure.

A graph is an index of what was asked, what was answered, what was liked, and what it was about. It refers to records
and contains none: merging or evicting a node never deletes a record.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Protocol

from kalito_mcp.domain.validation import Policy, bounded
from kalito_mcp.errors import InvalidInput

if TYPE_CHECKING:
    from kalito_mcp.domain.sparse_vectors import SparseVector

HOUR_MIN: Final = 60.0
DAY_MIN: Final = 24 * HOUR_MIN
MAX_WEIGHT: Final = 1e9
"""The largest absolute weight of a node: sums stay finite, and adding 1 still changes it."""


class NodeType(StrEnum):
    """Kinds of nodes."""

    QUERY = "query"
    ANSWER = "answer"
    FEEDBACK = "feedback"
    ENTITY = "entity"


class EdgeType(StrEnum):
    """How two nodes are related."""

    SIMILAR_TO = "similar_to"
    RESPONDED_WITH = "responded_with"
    HAS_FEEDBACK = "has_feedback"
    REFERS_TO_ENTITY = "refers_to_entity"


@dataclass(frozen=True, slots=True)
class KeptFeedback:
    """The id of the feedback's node, and what was removed from its note."""

    id: str
    redacted: tuple[str, ...] = ()


class FeedbackLabel(StrEnum):
    """The user's opinion of an answer. `retry` asks for another one and counts half a `down`."""

    UP = "up"
    DOWN = "down"
    RETRY = "retry"


FEEDBACK_DELTA: Final = {FeedbackLabel.UP: 1.0, FeedbackLabel.DOWN: -1.0, FeedbackLabel.RETRY: -0.5}
"""The value that each label adds to the feedback of a question or an answer."""


def liking_factor(feedback: float) -> float:
    """The factor of feedback in a score: 1 without feedback, up to 1.5 if positive, down to 0 if negative."""
    return 1 + feedback / (2 * (1 + feedback)) if feedback >= 0 else 1 / (1 - feedback)


class GraphScope(StrEnum):
    """An agent's graph: of one session, or the long-term one."""

    SESSION = "session"
    AGENT = "agent"


@dataclass(slots=True)
class NodeWeights:
    """`repeat` counts its occurrences, at least 1. `feedback` sums its labels: up +1, down -1, retry -0.5."""

    repeat: float = 1.0
    feedback: float = 0.0

    def gain(self, *, repeat: float = 0.0, feedback: float = 0.0) -> None:
        """Add to both. `repeat` stays at least 1, and both stay within `MAX_WEIGHT`."""
        self.repeat = min(max(self.repeat + repeat, 1.0), MAX_WEIGHT)
        self.feedback = min(max(self.feedback + feedback, -MAX_WEIGHT), MAX_WEIGHT)


@dataclass(slots=True)
class GraphNode:
    """One node. Moments are milliseconds since 1970.

    Exact duplicates share a `canonical_key`. `source_node_ids` were merged into this node, and `source_record_ids`
    contain it; both are oldest first. `degree` counts its edges, in and out.
    """

    id: str
    type: NodeType
    created_at: int
    last_access: int
    text: str | None = None
    canonical_key: str | None = None
    summary: str | None = None
    source_node_ids: tuple[str, ...] = ()
    source_record_ids: tuple[str, ...] = ()
    embedding: "SparseVector | None" = None
    weights: NodeWeights = field(default_factory=NodeWeights)
    degree: int = 0
    pinned: bool = False


@dataclass(slots=True)
class GraphEdge:
    """One edge. There is at most one of each `type` from one node to another."""

    from_id: str
    to_id: str
    type: EdgeType
    weight: float
    created_at: int
    last_access: int

    @property
    def id(self) -> str:
        """`from::type::to`."""
        return f"{self.from_id}::{self.type}::{self.to_id}"

    @property
    def key(self) -> "EdgeKey":
        """The id as a tuple."""
        return self.from_id, self.type, self.to_id


@dataclass(frozen=True, slots=True)
class GraphConfig(Policy):
    """Size, forgetting and matching of an agent's graph.

    `half_life_min` is in minutes. Two queries are linked from a cosine of `tau_sim`, and shown as one from `tau_dup`.
    `merge_near_duplicates` merges them from `tau_dup`, as the specification says. It is off by default, so that only
    equal folded texts merge: a changed number, date, negation or name still scores above 0.96. Nodes with at least
    `protect_min_degree` edges are never evicted. Similar queries get the share `diffusion` of feedback, times the
    weight of their edge; 0 turns this off. `enable_inverted_index` is the specification's, and has no effect.
    """

    max_nodes: int = bounded(50_000, least=1)
    max_edges: int = 200_000
    half_life_min: float = bounded(30 * DAY_MIN, above=0)
    tau_dup: float = bounded(0.96, above=0, most=1)
    tau_sim: float = bounded(0.75, above=0, most=1)
    protect_min_degree: int = 64
    enable_inverted_index: bool = True
    merge_near_duplicates: bool = False
    diffusion: float = bounded(0.1, most=1)

    def __post_init__(self) -> None:
        """Raises InvalidInput for a number out of bounds, or if `tau_sim` is above `tau_dup`."""
        Policy.__post_init__(self)
        if self.tau_sim > self.tau_dup:
            raise InvalidInput(
                f"tau_sim={self.tau_sim} is above tau_dup={self.tau_dup}; lower the one or raise the other"
            )


@dataclass(frozen=True, slots=True)
class SessionGraphConfig(GraphConfig):
    """The graph of one session: the same fields as the agent's graph, with less space and a shorter half-life."""

    max_nodes: int = bounded(5_000, least=1)
    max_edges: int = 25_000
    half_life_min: float = bounded(DAY_MIN, above=0)


@dataclass(frozen=True, slots=True)
class GraphPolicy(Policy):
    """How a memory uses its graphs. If not `enabled`, nothing is added to them and nothing is found in them.

    A search of graphs adds `search_bias_session_first` to the scores of the session's own queries. A message refers to
    at most `max_entities`. The graph of a finalized session is removed after `keep_sessions_days`; promoted queries and
    all records stay. Without `sleep_on_finalize`, finalizing merges no similar queries.

    The graph of a session that nobody finalizes, if it was written to in the last `keep_sessions_days`, and the agent's
    graph have a sleep cycle in the background every `sleep_interval_min` minutes if something came since; 0: never.
    """

    enabled: bool = True
    search_bias_session_first: float = 0.1
    max_entities: int = 8
    keep_sessions_days: float = 30.0
    sleep_on_finalize: bool = True
    sleep_interval_min: float = DAY_MIN


@dataclass(frozen=True, slots=True)
class CheckpointPolicy(Policy):
    """The content of a snapshot: the `top_k` queries of the highest rank, with the nodes they are linked to.

    Snapshots are next to the database, in `memory.db.snapshots`, or that folder is in `folder`: a whole path, or one
    that begins with `~`. With `pretty` the files are indented.
    """

    top_k: int = bounded(1_000, least=1)
    pretty: bool = False
    folder: str = ""


@dataclass(frozen=True, slots=True)
class GraphHit:
    """One query of a session's or the agent's graph. `score` compares across both."""

    id: str
    score: float
    similarity: float
    scope: "GraphScope"
    text: str | None
    canonical_key: str | None


@dataclass(frozen=True, slots=True)
class PromotionPolicy(Policy):
    """Which queries of a session enter the agent's graph: the best `max_promotions` with a rank, before decay, of at
    least `min_rank` and with at least `min_degree` edges. `carry_weights` also copies their weights."""

    min_rank: float = bounded(0.25, most=1)
    max_promotions: int = 500
    min_degree: int = 1
    carry_weights: bool = True


@dataclass(frozen=True, slots=True)
class PromotionReport:
    """`query_ids` are in the agent's graph, best first; `merged` were before. `answers` and `entities` count links."""

    query_ids: tuple[str, ...]
    merged: int = 0
    answers: int = 0
    entities: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The counts, JSON-ready."""
        return {
            "questions": len(self.query_ids),
            "merged_with_known": self.merged,
            "answers": self.answers,
            "entities": self.entities,
        }


class EmbeddingProvider(Protocol):
    """Turns texts into vectors, the same in every process. Only `embed` is required.

    Optional, and also found in camelCase: `export_state()` returns the provider's state, JSON-ready.
    `import_state(state)` restores it, or raises InvalidInput if it is another provider's. `embed_all(texts)` is faster
    than one by one. `fingerprint` is a short text: vectors with different fingerprints are never compared.
    """

    def embed(self, text: str) -> "SparseVector | Mapping[int, float] | Sequence[float]":
        """The vector, of any length; zero for a text without content. A sequence has one number per dimension."""
        ...


@dataclass(frozen=True, slots=True)
class SimilarQuery:
    """A query similar to the one asked. `sim` is the cosine, and `score` is similarity raised by rank."""

    id: str
    score: float
    sim: float
    text: str | None
    canonical_key: str | None
    collapsed_ids: tuple[str, ...] = ()
    """Near-duplicates shown as this one."""


@dataclass(frozen=True, slots=True)
class GraphStats:
    """How large a graph is."""

    nodes: int
    edges: int


EdgeKey = tuple[str, EdgeType, str]
"""From, type, to."""


@dataclass(frozen=True, slots=True)
class GraphChanges:
    """The changes of a graph since it was last stored: changed and new nodes and edges as they are now, and removed
    ones, even if they were never stored. Removing a node removes its edges; these are listed too."""

    nodes: Sequence[GraphNode] = ()
    edges: Sequence[GraphEdge] = ()
    removed_nodes: Sequence[str] = ()
    removed_edges: Sequence[EdgeKey] = ()

    def __bool__(self) -> bool:
        return bool(self.nodes or self.edges or self.removed_nodes or self.removed_edges)


@dataclass(frozen=True, slots=True)
class GraphContents:
    """Nodes and edges as stored, with the `state` of the same moment."""

    nodes: Sequence[GraphNode]
    edges: Sequence[GraphEdge]
    state: "GraphState"


@dataclass(frozen=True, slots=True)
class GraphState:
    """`revision` grows with every change. `slept_at` is the moment of the last sleep cycle. `embedder` is the
    fingerprint of its vectors."""

    revision: int = 0
    slept_at: int | None = None
    embedder: str | None = None
