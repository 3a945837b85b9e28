"""The past answers to a query that a search found. Pure."""

from collections import Counter
from typing import TYPE_CHECKING, Final

from kalito_mcp.domain.graph import (
    AnswerFound,
    EdgeType,
    FeedbackLabel,
    GraphHit,
    GraphNode,
    NodeType,
    PastAnswer,
)
from kalito_mcp.graph.ranking import liking_factor

if TYPE_CHECKING:
    from kalito_mcp.graph.store import GraphStore

_MAX_ANSWERS: Final = 3


def past_answer(graph: "GraphStore", hit: GraphHit) -> PastAnswer | None:
    """The query with its answers: best feedback first, then the newest. None if it has no answer.

    The score is the query's, adjusted by the feedback on its best answer.
    """
    query = graph.node(hit.id)
    feedback = _feedback(graph, query.id)
    answers: list[GraphNode] = []
    for edge in graph.edges_of(query.id):
        if edge.type is EdgeType.RESPONDED_WITH and edge.from_id == query.id:
            answers.append(graph.node(edge.to_id))
            feedback.update(_feedback(graph, edge.to_id))
    if not answers:
        return None
    answers.sort(key=lambda node: (-node.weights.feedback, -node.last_access, node.id))
    return PastAnswer(
        query_id=query.id,
        query=query.summary or query.text or "",
        score=hit.score * liking_factor(answers[0].weights.feedback),
        similarity=hit.similarity,
        scope=hit.scope,
        record_ids=query.source_record_ids,
        answers=tuple(
            AnswerFound(node.id, node.text or "", node.source_record_ids, node.last_access, node.weights.feedback)
            for node in answers[:_MAX_ANSWERS]
        ),
        up=feedback[FeedbackLabel.UP],
        down=feedback[FeedbackLabel.DOWN],
        retry=feedback[FeedbackLabel.RETRY],
    )


def _feedback(graph: "GraphStore", node_id: str) -> Counter[str]:
    """How often the node received each feedback label."""
    labels: Counter[str] = Counter()
    for edge in graph.edges_of(node_id):
        if edge.type is EdgeType.HAS_FEEDBACK and edge.from_id == node_id:
            node = graph.node(edge.to_id)
            if node.type is NodeType.FEEDBACK and node.text:
                labels[node.text.partition(":")[0]] += round(node.weights.repeat)
    return labels
