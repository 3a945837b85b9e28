"""The rank of a node, and the score that a search derives from it. Pure; computed when read, never stored.

rank = recency * usefulness, in [0, 1], and 1 for a pinned node, where
    recency = 2 ^ (-minutes since last_access / half_life_min)
    usefulness = 0.3 * repeats + 0.4 * liking + 0.3 * ties
    repeats = 1 - 1 / (1 + log2(repeat)), which is 0 for a node that was met once
    liking = (1 + f / (1 + |f|)) / 2 for the feedback f, which is one half without feedback
    ties = degree / (degree + 4)
It rises with repeat, feedback, degree and last_access. Each of them is bounded: a question asked a thousand times does
not drown one that was liked.

A search orders by similarity * (0.75 + 0.25 * rank) * factor. The factor is 1 / (1 + |f|) for negative feedback and
1 + 0.5 * f / (1 + f) for positive. One `down` halves the score: a wrong answer comes after any answer to nearly the
same question. With three quarters instead of a half, it did so for only 45 % of LoCoMo's questions, asked in two
sessions.
"""

import math
from typing import Final

from kalito_mcp.domain.graph import GraphEdge, GraphNode, liking_factor

_REPEATS, _LIKING, _TIES = 0.3, 0.4, 0.3
_HALF_TIED: Final = 4
_RANK_SHARE: Final = 0.25
_MS_PER_MIN: Final = 60_000
UNDECAYED: Final = 0
"""As the moment of a rank: nothing is old then, so nothing decays."""


def rank(node: GraphNode, *, now_ms: int, half_life_min: float) -> float:
    """The node's rank at a moment. A later access counts as one at that moment."""
    if node.pinned:
        return 1.0
    repeats = 1 - 1 / (1 + math.log2(max(1.0, node.weights.repeat)))
    liking = (1 + _bounded(node.weights.feedback)) / 2
    ties = node.degree / (node.degree + _HALF_TIED)
    usefulness = _REPEATS * repeats + _LIKING * liking + _TIES * ties
    return usefulness * _recency(node.last_access, now_ms, half_life_min)


def edge_rank(edge: GraphEdge, *, now_ms: int, half_life_min: float) -> float:
    """The edge's weight, halved with every half-life since its last access."""
    return edge.weight * _recency(edge.last_access, now_ms, half_life_min)


def search_score(similarity: float, *, rank: float, feedback: float) -> float:
    """The score that orders a search: above 0 and at most 1.5 times the similarity."""
    return similarity * (1 - _RANK_SHARE + _RANK_SHARE * rank) * liking_factor(feedback)


def _bounded(feedback: float) -> float:
    """Feedback scaled into (-1, 1); 0.5 for a feedback of 1."""
    return feedback / (1 + abs(feedback))


def _recency(last_access: int, now_ms: int, half_life_min: float) -> float:
    minutes: float = max(0, now_ms - last_access) / _MS_PER_MIN
    return float(2.0 ** -(minutes / half_life_min))
