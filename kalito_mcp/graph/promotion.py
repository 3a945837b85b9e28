"""Promotion: the best queries of a session go into the agent's graph, with their answers, feedback and entities.

A query that the agent knows already counts as met again, so the same question of ten sessions is one node. A dry run is
the same promotion on copies of the graphs.
"""

import logging
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from kalito_mcp.domain.graph import (
    FEEDBACK_DELTA,
    EdgeType,
    FeedbackLabel,
    GraphEdge,
    GraphNode,
    NodeType,
    NodeWeights,
    PromotionPolicy,
    PromotionReport,
)
from kalito_mcp.errors import GraphFull
from kalito_mcp.graph.ranking import UNDECAYED
from kalito_mcp.graph.store import GraphStore

_log: Final = logging.getLogger("kalito.graph")


def promotable(session: GraphStore, policy: PromotionPolicy) -> list[GraphNode]:
    """The queries that would be promoted, best first.

    Ranks are computed without decay: a session may last for months, or be an old one that was imported, and its
    beginning is worth no less for that.
    """
    return [
        node
        for rank, node in session.ranked(NodeType.QUERY, at_ms=UNDECAYED)
        if rank >= policy.min_rank and node.degree >= policy.min_degree
    ][: max(0, policy.max_promotions)]


def promote(session: GraphStore, agent: GraphStore, policy: PromotionPolicy) -> PromotionReport:
    """Merge the promotable queries, with their answers, feedback and entities, into the agent's graph.

    A node that belongs to several queries is merged once. If the agent's graph gets full, the worst queries are left
    out.
    """
    places: dict[str, str] = {}
    query_ids: dict[str, None] = {}
    counts = {EdgeType.RESPONDED_WITH: 0, EdgeType.REFERS_TO_ENTITY: 0}
    merged = 0

    def place(node: GraphNode) -> str:
        if node.id not in places:
            promoted = replace(_not_yet_counted(session, node) or node, pinned=False)
            # Unpinned, because a pin belongs to the session: in the long term, nodes that are not met again must be
            # evictable. Nodes that were just promoted are not evicted for the next ones.
            places[node.id] = agent.merge_node(promoted, carry_weights=policy.carry_weights, keep=places.values())
        return places[node.id]

    for query in promotable(session, policy):
        is_known = agent.has(query.id)
        try:
            if place(query) not in query_ids:
                query_ids[places[query.id]] = None
                merged += is_known
            for edge in _belongings(session, query.id):
                from_id, to_id = place(session.node(edge.from_id)), place(session.node(edge.to_id))
                if from_id != to_id:
                    agent.link(from_id, to_id, edge.type, edge.weight, at_ms=edge.last_access)
                if edge.from_id == query.id and edge.type in counts:
                    counts[edge.type] += 1
        except GraphFull as error:
            _log.warning("promoted only %d questions: %s", len(query_ids), error)
            break
    return PromotionReport(
        query_ids=tuple(query_ids),
        merged=merged,
        answers=counts[EdgeType.RESPONDED_WITH],
        entities=counts[EdgeType.REFERS_TO_ENTITY],
    )


def _belongings(session: GraphStore, query_id: str) -> Iterator[GraphEdge]:
    """The edges from a query to its answers, and from both to their feedback and entities.

    Similarity edges are left out: the agent's graph computes its own. So is feedback that it has counted in full.
    """
    for edge in _from(session, query_id):
        if edge.type is not EdgeType.SIMILAR_TO and _not_yet_counted(session, session.node(edge.to_id)) is not None:
            yield edge
        if edge.type is EdgeType.RESPONDED_WITH:
            yield from (
                one
                for one in _from(session, edge.to_id, EdgeType.HAS_FEEDBACK, EdgeType.REFERS_TO_ENTITY)
                if _not_yet_counted(session, session.node(one.to_id)) is not None
            )


def _from(session: GraphStore, node_id: str, *types: EdgeType) -> list[GraphEdge]:
    """The edges that leave a node, only of the given types if there are any: oldest first, equal ones by id."""
    leaving = [edge for edge in session.edges_of(node_id) if edge.from_id == node_id]
    chosen = [edge for edge in leaving if not types or edge.type in types]
    return sorted(chosen, key=lambda edge: (edge.created_at, edge.id))


def mark_already_counted(session: GraphStore, feedback_id: str, label: FeedbackLabel | str) -> None:
    """Note that the agent's graph counted a feedback when it was given: promotion must not count it again.

    The note is the sum of what was counted, in the feedback node's own `weights.feedback`. That weight is free: nobody
    gives feedback on feedback.
    """
    session.adjust_weights(feedback_id, feedback_delta=FEEDBACK_DELTA[FeedbackLabel(label)])


def _not_yet_counted(session: GraphStore, node: GraphNode) -> GraphNode | None:
    """The node with the weights that the agent's graph has not counted; None for feedback that it counted in full."""
    weights = node.weights
    if node.type is NodeType.FEEDBACK:
        label = (node.text or "").partition(":")[0]
        delta = FEEDBACK_DELTA[FeedbackLabel(label)] if label in tuple(FeedbackLabel) else math.inf
        times = abs(_already_counted(node) / delta)
        return replace(node, weights=NodeWeights(weights.repeat - times)) if times < weights.repeat else None
    feedback = [session.node(edge.to_id) for edge in _from(session, node.id, EdgeType.HAS_FEEDBACK)]
    return replace(node, weights=NodeWeights(weights.repeat, weights.feedback - sum(map(_already_counted, feedback))))


def _already_counted(feedback: GraphNode) -> float:
    """The feedback that the agent's graph has counted of this node, as `mark_already_counted` noted it."""
    return feedback.weights.feedback
