"""What the user thought of questions and answers, in a graph, and taking it back."""

from kalito_mcp.domain.graph import FEEDBACK_DELTA, EdgeType, FeedbackLabel, GraphNode, NodeType
from kalito_mcp.domain.validation import checked_text
from kalito_mcp.errors import InvalidInput
from kalito_mcp.graph.canonical import canonical_key
from kalito_mcp.graph.indexed_graph import MAX_TEXT_BYTES, IndexedGraph


def record_feedback(graph: IndexedGraph, target_id: str, label: FeedbackLabel | str, note: str | None) -> str:
    """See `GraphStore.record_feedback`."""
    target, label = _target(graph, target_id), _checked(label)
    if note:
        checked_text(note, "note", max_bytes=MAX_TEXT_BYTES)
    text = f"{label}: {note}" if note else str(label)
    key = canonical_key(f"{target.id} {text}")
    links = {target.id: EdgeType.HAS_FEEDBACK}
    feedback = graph.upsert(NodeType.FEEDBACK, text, key=key, linked_from=links)
    # Looked up again: making room may have merged the target into another.
    _weigh(graph, graph.get(target.id), FEEDBACK_DELTA[label])
    return feedback.id


def withdraw_feedback(graph: IndexedGraph, target_id: str, label: FeedbackLabel | str) -> bool:
    """See `GraphStore.withdraw_feedback`."""
    target, label = _target(graph, target_id), _checked(label)
    edges = (edge for edge in graph.network.edges_of(target.id) if edge.type is EdgeType.HAS_FEEDBACK)
    nodes = (graph.network.nodes[edge.to_id] for edge in edges)
    given = [node for node in nodes if (node.text or "").partition(":")[0] == label]
    if not given:
        return False
    newest, delta = max(given[::-1], key=lambda node: node.last_access), FEEDBACK_DELTA[label]
    if newest.weights.repeat > 1:
        # In a session's graph, its own weight notes what the agent's has counted.
        is_counted = abs(newest.weights.feedback) >= abs(delta)
        newest.weights.gain(repeat=-1, feedback=-delta if is_counted else 0.0)
        graph.network.put_node(newest)
    else:
        graph.drop(newest.id)
    _weigh(graph, target, -delta)
    return True


def _target(graph: IndexedGraph, target_id: str) -> GraphNode:
    target = graph.get(target_id)
    if target.type not in (NodeType.QUERY, NodeType.ANSWER):
        raise InvalidInput(f"{target_id!r} is of type {target.type}; give feedback on a query or an answer")
    return target


def _checked(label: FeedbackLabel | str) -> FeedbackLabel:
    if label not in tuple(FeedbackLabel):
        raise InvalidInput(f"label={label!r} is not one of {', '.join(FeedbackLabel)}")
    return FeedbackLabel(label)


def _weigh(graph: IndexedGraph, target: GraphNode, delta: float) -> None:
    target.weights.gain(feedback=delta)
    graph.network.put_node(target)
    graph.diffuse_feedback(target, delta)
