"""The personal graph as values: nodes, edges, settings, reports. Pure.

A graph is an associative index of what was asked, answered, liked, and about what. It points at records and holds
none: merging or evicting a node never deletes what was said.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol

from kalito_mcp.domain.validation import Policy, bounded
from kalito_mcp.errors import InvalidInput

if TYPE_CHECKING:
    from kalito_mcp.domain.sparse_vectors import SparseVector

HOUR_MIN: Final = 60.0
DAY_MIN: Final = 24 * HOUR_MIN
MAX_WEIGHT: Final = 1e9
"""The largest weight of a node, either way: sums of such stay finite, and adding 1 still counts."""


class NodeType(StrEnum):
    """What a node stands for."""

    QUERY = "query"
    ANSWER = "answer"
    FEEDBACK = "feedback"
    ENTITY = "entity"


class EdgeType(StrEnum):
    """How two nodes belong together."""

    SIMILAR_TO = "similar_to"
    RESPONDED_WITH = "responded_with"
    HAS_FEEDBACK = "has_feedback"
    REFERS_TO_ENTITY = "refers_to_entity"


@dataclass(frozen=True, slots=True)
class KeptFeedback:
    """The id of the feedback's node, and what of its note was not kept."""

    id: str
    redacted: tuple[str, ...] = ()


class FeedbackLabel(StrEnum):
    """What the user thought of an answer. `retry` asks for another one, and is half a `down`."""

    UP = "up"
    DOWN = "down"
    RETRY = "retry"


class GraphScope(StrEnum):
    """Which of an agent's graphs: the one of a session, or the long-term one."""

    SESSION = "session"
    AGENT = "agent"


@dataclass(slots=True)
class NodeWeights:
    """`repeat` counts how often it was met, at least 1; `feedback` sums what was thought of it: +1, -1, -0.5."""

    repeat: float = 1.0
    feedback: float = 0.0

    def gain(self, *, repeat: float = 0.0, feedback: float = 0.0) -> None:
        """Add to both; `repeat` stays at least 1, and neither grows beyond `MAX_WEIGHT`, whatever is added."""
        self.repeat = min(max(self.repeat + repeat, 1.0), MAX_WEIGHT)
        self.feedback = min(max(self.feedback + feedback, -MAX_WEIGHT), MAX_WEIGHT)


@dataclass(slots=True)
class GraphNode:
    """One node. Moments are milliseconds since 1970.

    `canonical_key` is the key of exact duplicates. `source_node_ids` are the nodes that were merged into this one, and
    `source_record_ids` the records it was met in, both oldest first. `degree` counts its edges, in and out.
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
    """One edge. `type` and both ends name it: there is at most one such edge."""

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
        """The same as a tuple."""
        return self.from_id, self.type, self.to_id


@dataclass(frozen=True, slots=True)
class GraphConfig(Policy):
    """Size, forgetting and matching of one graph.

    `half_life_min` is in minutes. `tau_dup` and `tau_sim` are cosines: from `tau_sim` up two queries are linked, and
    from `tau_dup` up shown as one. `merge_near_duplicates` merges from `tau_dup` up, as the specification has it; off,
    only equal folded texts merge, because a number, a date, a negation or a name changed scores above 0.96.
    Nodes of at least `protect_min_degree` edges are never evicted. `diffusion` is the share of a feedback that
    similar queries get, by the weight of their edge; 0 switches it off.
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
        """Raises InvalidInput for what no graph can work with."""
        Policy.__post_init__(self)
        if self.tau_sim > self.tau_dup:
            raise InvalidInput(f"tau_sim={self.tau_sim} is above tau_dup={self.tau_dup}; lower it")


@dataclass(frozen=True, slots=True)
class SessionGraphConfig(GraphConfig):
    """The same with the defaults of one conversation's graph."""

    max_nodes: int = bounded(5_000, least=1)
    max_edges: int = 25_000
    half_life_min: float = bounded(DAY_MIN, above=0)


@dataclass(frozen=True, slots=True)
class GraphPolicy(Policy):
    """How the graphs take part in a memory. Switched off, nothing enters them and nothing is found in them.

    A search scores a session's own queries `search_bias_session_first` higher than those of the agent. It brings at
    most `past_answers`, of queries with a cosine of at least `min_similarity`. A message refers to at most
    `max_entities`. The graph of a finalized session is removed after `keep_sessions_days`: what was worth it has been
    promoted, and what was said stays.
    """

    enabled: bool = True
    search_bias_session_first: float = 0.1
    past_answers: int = bounded(3, most=100)
    min_similarity: float = bounded(0.3, most=1)
    max_entities: int = 8
    keep_sessions_days: float = 30.0


@dataclass(frozen=True, slots=True)
class CheckpointPolicy(Policy):
    """What a snapshot contains: the `top_k` queries of the highest rank, with what they are linked to."""

    top_k: int = bounded(1_000, least=1)
    pretty: bool = False


@dataclass(frozen=True, slots=True)
class PastAnswer:
    """Something similar that was asked before, with its answers, best liked first; `up`, `down` and `retry` count what
    the user thought of question or answers. `record_ids` are the question's."""

    query_id: str
    query: str
    score: float
    similarity: float
    scope: "GraphScope"
    record_ids: tuple[str, ...]
    answers: tuple["AnswerFound", ...]
    up: int = 0
    down: int = 0
    retry: int = 0


@dataclass(frozen=True, slots=True)
class AnswerFound:
    """One answer to a past question: when it was given last, and the sum of what was thought of it."""

    node_id: str
    text: str
    record_ids: tuple[str, ...]
    given_at: int
    feedback: float = 0.0


@dataclass(frozen=True, slots=True)
class GraphHit:
    """One query of a session's or the agent's graph; `score` orders both together."""

    id: str
    score: float
    similarity: float
    scope: "GraphScope"
    text: str | None
    canonical_key: str | None


@dataclass(frozen=True, slots=True)
class PromotionPolicy(Policy):
    """Which queries of a session the agent keeps: of a rank of at least `min_rank`, taken without decay, and with at
    least `min_degree` edges, the best `max_promotions`. With `carry_weights` what was counted and liked comes along."""

    min_rank: float = bounded(0.25, most=1)
    max_promotions: int = 500
    min_degree: int = 1
    carry_weights: bool = True


@dataclass(frozen=True, slots=True)
class PromotionReport:
    """`query_ids` as they are in the agent's graph, best first; `merged` of them it knew already."""

    query_ids: tuple[str, ...]
    merged: int = 0
    answers: int = 0
    entities: int = 0


class EmbeddingProvider(Protocol):
    """Texts to vectors, the same in every process. Only `embed` is required.

    Optional are `export_state()`, what identifies the provider, JSON-ready; `import_state(state)`, which takes over a
    stored state or raises InvalidInput if it is another provider's; `embed_all(texts)`, faster than one by one; and
    `fingerprint`, a short text: vectors with different fingerprints are never compared.
    """

    def embed(self, text: str) -> "SparseVector | Mapping[int, float] | Sequence[float]":
        """The text's vector, of any length; zero for a text without content. A sequence has a number a dimension."""
        ...


@dataclass(frozen=True, slots=True)
class SimilarQuery:
    """One query near to what was asked. `score` orders: similarity, lifted by rank; `sim` is the cosine."""

    id: str
    score: float
    sim: float
    text: str | None
    canonical_key: str | None
    collapsed_ids: tuple[str, ...] = ()
    """Near-duplicates that are shown as this one."""


@dataclass(frozen=True, slots=True)
class GraphStats:
    """How large a graph is."""

    nodes: int
    edges: int


EdgeKey = tuple[str, EdgeType, str]
"""From, type, to."""


@dataclass(frozen=True, slots=True)
class GraphChanges:
    """What became of a graph since it was last stored: changed or new nodes and edges as they are now, and what is
    gone. A removed node takes its edges along; they are listed as well."""

    nodes: Sequence[GraphNode] = ()
    edges: Sequence[GraphEdge] = ()
    removed_nodes: Sequence[str] = ()
    removed_edges: Sequence[EdgeKey] = ()

    def __bool__(self) -> bool:
        return bool(self.nodes or self.edges or self.removed_nodes or self.removed_edges)


@dataclass(frozen=True, slots=True)
class GraphContents:
    """Nodes and edges as stored. `state` is as of the same moment."""

    nodes: Sequence[GraphNode]
    edges: Sequence[GraphEdge]
    state: "GraphState"


@dataclass(frozen=True, slots=True)
class GraphState:
    """`revision` moves with every change, `removed_revision` was the last that removed something: who read the graph
    at a later one need only read what changed since. `slept_at` is when it was last consolidated, `embedder` the
    fingerprint of its vectors."""

    revision: int = 0
    removed_revision: int = 0
    slept_at: int | None = None
    embedder: str | None = None
