"""Gives and takes back feedback in the graphs that have its target, and in the table that past answers read."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kalito_mcp.domain.graph import FeedbackLabel
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.validation import MESSAGE_ID_PREFIX, message_number
from kalito_mcp.errors import RecordNotFound
from kalito_mcp.ports.store import WriteTransaction

if TYPE_CHECKING:
    from kalito_mcp.graph.store import GraphStore


async def give(
    transaction: WriteTransaction,
    scope: Scope,
    graphs: Sequence["GraphStore"],
    target_id: str,
    label: FeedbackLabel | str,
    note: str | None,
    *,
    at_ms: int,
) -> str:
    """Record feedback on a target in each of the graphs, which are those of the scope's owner; see
    `MemoryOrchestrator.record_feedback`."""
    from kalito_mcp.graph.promotion import mark_already_counted  # noqa: PLC0415 - numpy comes with it

    targets = _targets(graphs, target_id)
    written = [graph.record_feedback(node_id, label, note) for graph, node_id in targets]
    if len(written) > 1:
        mark_already_counted(targets[0][0], written[0], label)
    if (number := _message_of(target_id, *targets[0])) is not None:
        await transaction.graphs.add_feedback(scope, number, FeedbackLabel(label), at_ms=at_ms)
    return written[0]


async def take_back(
    transaction: WriteTransaction,
    scope: Scope,
    graphs: Sequence["GraphStore"],
    target_id: str,
    label: FeedbackLabel | str,
) -> None:
    """Undo one `give`; see `MemoryOrchestrator.withdraw_feedback`."""
    targets = _targets(graphs, target_id)
    withdrawn = [graph.withdraw_feedback(node_id, label) for graph, node_id in targets]
    if (number := _message_of(target_id, *targets[0])) is not None:
        withdrawn.append(await transaction.graphs.withdraw_feedback(scope, number, FeedbackLabel(label)))
    if not any(withdrawn):
        raise RecordNotFound(f"{target_id!r} has no feedback {str(label)!r} to take back")


def _targets(graphs: Sequence["GraphStore"], target_id: str) -> list[tuple["GraphStore", str]]:
    """The graphs that have the target, and its node there.

    Raises:
        RecordNotFound: none has it.
    """
    found = [(graph, node_id) for graph in graphs if (node_id := _node_of(graph, target_id)) is not None]
    if not found:
        raise RecordNotFound(
            f"{target_id!r} is not a question or answer in this graph; use an id returned by search_memory"
        )
    return found


def _node_of(graph: "GraphStore", target_id: str) -> str | None:
    """The node with this id, or the node of the message with this id."""
    if graph.has(target_id):
        return target_id
    return graph.node_of_record(target_id)


def _message_of(target_id: str, graph: "GraphStore", node_id: str) -> int | None:
    """The number of the message that feedback on a node is about: the named one, or the newest of the node. None if it
    has no message."""
    named = (target_id, *reversed(graph.node(node_id).source_record_ids))
    found = next((one for one in named if one.startswith(MESSAGE_ID_PREFIX)), None)
    return None if found is None else message_number(found, "target_id")
