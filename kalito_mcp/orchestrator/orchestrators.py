"""One `MemoryOrchestrator` for each agent, made when it is first asked for."""

from collections.abc import Callable

from kalito_mcp.domain.scope import DEFAULT_AGENT
from kalito_mcp.orchestrator.graph_cache import GraphCache
from kalito_mcp.orchestrator.orchestrator import Finalize, MemoryOrchestrator


class Orchestrators:
    """Orchestrators by agent, over one cache of graphs."""

    def __init__(self, cache: GraphCache, new: Callable[[str], MemoryOrchestrator]) -> None:
        self.cache = cache
        self.finalizer: Finalize | None = None
        """Who closes sessions; it makes itself known."""
        self._new = new

    def of(self, agent_id: str | None) -> MemoryOrchestrator:
        """The agent's orchestrator, the default agent's unless given. It holds nothing of its own."""
        orchestrator = self._new(agent_id or DEFAULT_AGENT)
        orchestrator.finalizer = self.finalizer
        return orchestrator
