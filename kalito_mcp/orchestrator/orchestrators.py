"""Creates the `MemoryOrchestrator` of an agent."""

from collections.abc import Callable

from kalito_mcp.domain.scope import DEFAULT_AGENT
from kalito_mcp.orchestrator.graph_cache import GraphCache
from kalito_mcp.orchestrator.orchestrator import Finalize, MemoryOrchestrator


class Orchestrators:
    """Orchestrators of all agents, which share one graph cache."""

    def __init__(self, cache: GraphCache, new: Callable[[str], MemoryOrchestrator]) -> None:
        self.cache = cache
        self.finalizer: Finalize | None = None
        """Closes sessions; set by `Finalizer` when it is created."""
        self._new = new

    def of(self, agent_id: str | None) -> MemoryOrchestrator:
        """A new orchestrator for the agent, or for the default agent. It has no state of its own."""
        orchestrator = self._new(agent_id or DEFAULT_AGENT)
        orchestrator.finalizer = self.finalizer
        return orchestrator
