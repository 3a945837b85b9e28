"""Stores what was made of copies of graphs, if nobody changed the graphs meanwhile."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kalito_mcp.domain.graph import GraphState
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sleep import SleepCycleReport
from kalito_mcp.orchestrator.graph_cache import GraphCache
from kalito_mcp.ports.store import Overtaken, WriteTransaction

if TYPE_CHECKING:
    from kalito_mcp.graph.sleep import SleepPlan
    from kalito_mcp.graph.store import GraphStore

OnlyIf = Callable[[WriteTransaction], Awaitable[bool]]
"""Awaited in the transaction. If it is False, nothing is stored."""


async def merge_planned(
    scope: Scope,
    state: GraphState,
    plan: "SleepPlan",
    summaries: Mapping[str, str],
    only_if: OnlyIf | None,
    transaction: WriteTransaction,
    graphs: Sequence["GraphStore"],
) -> SleepCycleReport | None:
    """Do what was planned on a copy of the graph in this state. Raises Overtaken if the graph has changed since."""
    await _check_state(transaction, scope, state)
    if only_if is not None and not await only_if(transaction):
        return None
    [graph] = graphs
    return graph.apply_sleep_plan(replace(plan, version=graph.version), summaries)


async def save_copies(
    cache: GraphCache,
    copies: Sequence[tuple[Scope, "GraphStore", GraphState]],
    only_if: OnlyIf | None,
    transaction: WriteTransaction,
) -> bool:
    """Store copies that were changed; whether `only_if` let it. Raises Overtaken if a graph has changed since."""
    for scope, _, state in copies:
        await _check_state(transaction, scope, state)
    if only_if is not None and not await only_if(transaction):
        return False
    for scope, graph, state in copies:
        await cache.save_copy(transaction, scope, graph, state)
    return True


async def _check_state(transaction: WriteTransaction, scope: Scope, state: GraphState) -> None:
    if (await transaction.graphs.state(scope)).revision != state.revision:
        raise Overtaken
