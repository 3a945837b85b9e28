"""Promotion: the best queries of a session, with their answers and what they are about, go into the agent's graph.

What the agent knows already is met once more, so the same question of ten sessions is one node. Done on copies, it is
its own dry run.
"""

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from kalito_mcp.domain.graph import (
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
from kalito_mcp.graph.ranking import FEEDBACK_DELTA, UNDECAYED
from kalito_mcp.graph.store import GraphStore

_log: Final = logging.getLogger("kalito.graph")


def promotable(session: GraphStore, policy: PromotionPolicy) -> list[GraphNode]:
    """The queries that would be promoted, best first. Their ranks are taken without decay: a session may go on for
    months, or be an old one that was imported, and its beginning is worth no less for that."""
    return [
        node
        for rank, node in session.ranked(NodeType.QUERY, at_ms=UNDECAYED)
        if rank >= policy.min_rank and node.degree >= policy.min_degree
    ][: max(0, policy.max_promotions)]


def promote(session: GraphStore, agent: GraphStore, policy: PromotionPolicy) -> PromotionReport:
    """Merge the promotable queries, with their answers, feedback and entities, into the agent's graph.

    A node that belongs to several queries is merged once. A full agent's graph takes what it has room for, best first.
    """
    places: dict[str, str] = {}
    query_ids: dict[str, None] = {}
    counts = {EdgeType.RESPONDED_WITH: 0, EdgeType.REFERS_TO_ENTITY: 0}
    merged = 0

    def placed(node: GraphNode) -> str:
        if node.id not in places:
            news = _untold(session, node) or node
            # A pin is the session's: in the long term, what is not met again must be able to go. And what has just come
            # is not evicted for the rest.
            places[node.id] = agent.merge_node(
                replace(news, pinned=False), carry_weights=policy.carry_weights, keep=places.values()
            )
        return places[node.id]

    for query in promotable(session, policy):
        is_known = agent.has(query.id)
        try:
            if placed(query) not in query_ids:
                query_ids[places[query.id]] = None
                merged += is_known
            for edge in _belongings(session, query.id):
                from_id, to_id = placed(session.node(edge.from_id)), placed(session.node(edge.to_id))
                if from_id != to_id:
                    agent.link(from_id, to_id, edge.type, edge.weight, at_ms=edge.last_access)
                if edge.from_id == query.id and edge.type in counts:
                    counts[edge.type] += 1
        except GraphFull as error:
            _log.warning("promoted %d questions, and no more: %s", len(query_ids), error)
            break
    return PromotionReport(
        query_ids=tuple(query_ids),
        merged=merged,
        answers=counts[EdgeType.RESPONDED_WITH],
        entities=counts[EdgeType.REFERS_TO_ENTITY],
    )


def _belongings(session: GraphStore, query_id: str) -> Iterator[GraphEdge]:
    """The edges of a query, and of its answers, to what they say and are about. Similarities are found anew among what
    the agent knows, and of feedback that it knows all of nothing comes."""
    for edge in _from(session, query_id):
        if edge.type is not EdgeType.SIMILAR_TO and _untold(session, session.node(edge.to_id)) is not None:
            yield edge
        if edge.type is EdgeType.RESPONDED_WITH:
            yield from (
                one
                for one in _from(session, edge.to_id, EdgeType.HAS_FEEDBACK, EdgeType.REFERS_TO_ENTITY)
                if _untold(session, session.node(one.to_id)) is not None
            )


def _from(session: GraphStore, node_id: str, *types: EdgeType) -> list[GraphEdge]:
    """The edges that leave a node, of these types where some are given: oldest first, and in the same order wherever
    the graph was loaded."""
    leaving = [edge for edge in session.edges_of(node_id) if edge.from_id == node_id]
    chosen = [edge for edge in leaving if not types or edge.type in types]
    return sorted(chosen, key=lambda edge: (edge.created_at, edge.id))


def counted(session: GraphStore, feedback_id: str, label: FeedbackLabel | str) -> None:
    """Note that the agent's graph was told of a feedback when it was given: promotion must not tell it again.

    The feedback's own node keeps the sum, as its own `feedback`, for which it has no other use.
    """
    session.adjust_weights(feedback_id, feedback_delta=FEEDBACK_DELTA[FeedbackLabel(label)])


def _untold(session: GraphStore, node: GraphNode) -> GraphNode | None:
    """The node with what the agent's graph has not been told of it; None for a feedback that it knows all of."""
    weights = node.weights
    if node.type is NodeType.FEEDBACK:
        label = (node.text or "").partition(":")[0]
        told = abs(weights.feedback / FEEDBACK_DELTA[FeedbackLabel(label)]) if label in tuple(FeedbackLabel) else 0.0
        return replace(node, weights=NodeWeights(weights.repeat - told)) if told < weights.repeat else None
    told = sum(session.node(edge.to_id).weights.feedback for edge in _from(session, node.id, EdgeType.HAS_FEEDBACK))
    return replace(node, weights=NodeWeights(weights.repeat, weights.feedback - told))
