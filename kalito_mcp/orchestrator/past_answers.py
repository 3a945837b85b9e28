"""The past answers to a query that a search found. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from typing import TYPE_CHECKING, Final, NamedTuple

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
from kalito_mcp.text.questions import (
    answers_nothing,
    likeness,
    may_ask_alike,
    questions_in,
    terms_of_wordings,
    wordings,
)

if TYPE_CHECKING:
    from kalito_mcp.graph.store import GraphStore

_MAX_ANSWERS: Final = 3


class Asked(NamedTuple):
    """What is asked, and the content terms of its wordings."""

    text: str
    terms: Sequence[Set[str]]

    @classmethod
    def of(cls, text: str) -> "Asked":
        """What a text asks."""
        return cls(text, terms_of_wordings(wordings(text, questions_in(text))))


def past_answer(graph: "GraphStore", asked: Asked, hit: GraphHit, *, least: float) -> PastAnswer | None:
    """The query with its answers: best feedback first, then the newest.

    None if it is no question, or one whose likeness to what is asked is below `least`, or if no reply to it answers
    anything. The score is the query's, adjusted by its likeness and by the feedback on its best answer.
    """
    past = (text for text in graph.wordings(hit.id) if may_ask_alike(asked.terms, text, least))
    similarity = max((likeness(asked.text, text) for text in past if questions_in(text)), default=0.0)
    if not similarity or similarity < least:
        return None
    query = graph.node(hit.id)
    feedback = _feedback(graph, query.id)
    answers: list[GraphNode] = []
    for edge in graph.edges_of(query.id):
        if edge.type is EdgeType.RESPONDED_WITH and edge.from_id == query.id:
            answer = graph.node(edge.to_id)
            feedback.update(_feedback(graph, answer.id))
            if not answers_nothing(answer.text or ""):
                answers.append(answer)
    if not answers:
        return None
    answers.sort(key=lambda node: (-node.weights.feedback, -node.last_access, node.id))
    return PastAnswer(
        query_id=query.id,
        query=query.summary or query.text or "",
        score=hit.score * similarity * liking_factor(answers[0].weights.feedback),
        similarity=similarity,
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


def with_others(found: Iterable[PastAnswer], others: Iterable[PastAnswer], most: int) -> list[PastAnswer]:
    """The best of both, at most `most`, best first. Another one that only repeats answers is left out."""
    kept = list(found)
    known = {(one.query_id, answer.node_id) for one in kept for answer in one.answers}
    for one in sorted(others, key=_best_first):
        answers = {(one.query_id, answer.node_id) for answer in one.answers}
        if not answers <= known:
            kept.append(one)
            known |= answers
    return sorted(kept, key=_best_first)[:most]


def _best_first(one: PastAnswer) -> tuple[float, int, str]:
    return -one.score, -one.answers[0].given_at, one.query_id


def _feedback(graph: "GraphStore", node_id: str) -> Counter[str]:
    """How often the node received each feedback label."""
    labels: Counter[str] = Counter()
    for edge in graph.edges_of(node_id):
        if edge.type is EdgeType.HAS_FEEDBACK and edge.from_id == node_id:
            node = graph.node(edge.to_id)
            if node.type is NodeType.FEEDBACK and node.text:
                labels[node.text.partition(":")[0]] += round(node.weights.repeat)
    return labels
