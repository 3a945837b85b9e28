"""Creates the `MemoryOrchestrator` of an agent."""

from kalito_mcp.domain.scope import DEFAULT_AGENT, Scope
from kalito_mcp.graph.snapshot_folder import SnapshotFolder
from kalito_mcp.orchestrator.graph_cache import GraphCache
from kalito_mcp.orchestrator.graph_settings import OrchestratorConfig
from kalito_mcp.orchestrator.orchestrator import Finalize, MemoryOrchestrator
from kalito_mcp.ports.clock import Clock
from kalito_mcp.ports.store import Store


class Orchestrators:
    """Orchestrators of all agents, which share one graph cache."""

    def __init__(
        self, config: OrchestratorConfig, *, store: Store, cache: GraphCache, snapshots: SnapshotFolder, clock: Clock
    ) -> None:
        self.cache = cache
        self._config = config
        self._store = store
        self._snapshots = snapshots
        self._clock = clock

    def of(self, scope: Scope, *, finalize: Finalize | None = None) -> MemoryOrchestrator:
        """A new orchestrator for the scope's agent, or for the default agent. It has no state of its own. Without
        `finalize` it cannot close sessions."""
        return MemoryOrchestrator(
            scope.agent or scope.limits.agent or DEFAULT_AGENT,
            self._config,
            store=self._store,
            cache=self.cache,
            snapshots=self._snapshots.of(scope.owner),
            clock=self._clock,
            finalize=finalize,
            owner=scope.owner,
            limits=scope.limits,
        )
