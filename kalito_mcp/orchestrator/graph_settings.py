"""The settings of an agent's graphs, and new graphs that follow them."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread

from kalito_mcp.domain.graph import (
    CheckpointPolicy,
    GraphConfig,
    GraphPolicy,
    GraphScope,
    PromotionPolicy,
    SessionGraphConfig,
)
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sleep import (
    SleepCycleConfig,
    SleepCycleOptions,
    SleepCycleReport,
    SleepCycleSummarizer,
    SleepCycleTrigger,
)
from kalito_mcp.orchestrator.cluster_summary import ClusterSummarizer
from kalito_mcp.ports.clock import Clock

if TYPE_CHECKING:
    from kalito_mcp.graph.sleep import SleepPlan
    from kalito_mcp.graph.store import GraphStore

_log: Final = logging.getLogger("kalito.graph")


@dataclass(frozen=True, slots=True)
class OrchestratorConfig:
    """Every setting of the graphs.

    `emit` is called with each sleep cycle's graph kind and report once the cycle is stored. A cycle that makes room in
    a full graph calls it at once, maybe from another thread.
    """

    session_graph: GraphConfig = SessionGraphConfig()
    agent_graph: GraphConfig = GraphConfig()
    graph: GraphPolicy = GraphPolicy()
    promotion: PromotionPolicy = PromotionPolicy()
    checkpoint: CheckpointPolicy = CheckpointPolicy()
    sleep: SleepCycleOptions = SleepCycleOptions()
    run_on_finalize: bool = True
    summarizer: SleepCycleSummarizer | None = None
    summarizer_timeout_s: float = 30.0
    emit: Callable[[GraphScope, SleepCycleReport], None] | None = None


def new_graph(config: OrchestratorConfig, scope: Scope, clock: Clock) -> "GraphStore":
    """An empty graph for a session or for the agent, with its sleep cycle configured."""
    from kalito_mcp.graph.store import GraphStore  # noqa: PLC0415 - numpy comes with it

    graph = GraphStore(config.agent_graph if scope.session is None else config.session_graph, now_ms=clock.now_ms)
    sleep = sleep_config(config, kind_of(scope))

    def emit(report: SleepCycleReport) -> None:
        # Other cycles are reported by their caller, once they are stored.
        if report.trigger is SleepCycleTrigger.EVICTION and sleep.emit is not None:
            sleep.emit(report)

    # A full graph sleeps inside a write transaction, which must not wait for a user's summarizer.
    graph.configure_sleep_cycle(replace(sleep, summarizer=ClusterSummarizer(), emit=emit))
    return graph


def sleep_config(config: OrchestratorConfig, kind: GraphScope) -> SleepCycleConfig:
    """The sleep cycle's configuration for graphs of this kind."""
    emit = None if config.emit is None else partial(config.emit, kind)
    return SleepCycleConfig(config.summarizer or ClusterSummarizer(), config.sleep, emit)


def kind_of(scope: Scope) -> GraphScope:
    """Whether the scope means an agent's graph or a session's."""
    return GraphScope.AGENT if scope.session is None else GraphScope.SESSION


async def summarize(plan: "SleepPlan", config: OrchestratorConfig) -> Mapping[str, str]:
    """Summarize a plan's clusters. Empty if the summarizer is too slow; the anchors then keep their own texts."""
    from kalito_mcp.graph.sleep import summarize_clusters  # noqa: PLC0415 - numpy comes with it

    with anyio.move_on_after(config.summarizer_timeout_s):
        summarizer = config.summarizer or ClusterSummarizer()
        return await anyio.to_thread.run_sync(summarize_clusters, plan, summarizer, abandon_on_cancel=True)
    _log.warning("the sleep cycle goes on without its summarizer: it took over %s s", config.summarizer_timeout_s)
    return {}
