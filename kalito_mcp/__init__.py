"""Long-term memory for AI assistants.

from kalito_mcp import NewMessage, Role, open_memory

async with open_memory("memory.db") as memory:
    await memory.record_messages("trip", [NewMessage(Role.USER, "We fly to Oslo on May 3.")])
    context = await memory.build_context("trip", 2000)

Names are imported when they are first used, so that the command line starts quickly.
"""

import importlib
from typing import TYPE_CHECKING, Any

from kalito_mcp.version import __version__

if TYPE_CHECKING:
    from kalito_mcp.contexts.manager import (
        MemoryManager,
    )
    from kalito_mcp.domain.context import (
        MemoryContext,
    )
    from kalito_mcp.domain.finalizing import (
        Finalized,
        FinalizeOptions,
    )
    from kalito_mcp.domain.graph import (
        EdgeType,
        FeedbackLabel,
        GraphConfig,
        GraphEdge,
        GraphHit,
        GraphNode,
        GraphScope,
        GraphStats,
        KeptFeedback,
        NodeType,
        NodeWeights,
        PastAnswer,
        PromotionPolicy,
        PromotionReport,
        SimilarQuery,
    )
    from kalito_mcp.domain.records import (
        ConversationSummary,
        CreatePinRequest,
        CreateSummaryRequest,
        MessageWithImportance,
        NewMessage,
        PinType,
        RecordType,
        Role,
        SemanticPin,
    )
    from kalito_mcp.domain.search import (
        Hit,
        SearchFilters,
        SearchPage,
        SearchRequest,
    )
    from kalito_mcp.domain.sessions import (
        MemoryStats,
    )
    from kalito_mcp.domain.sleep import (
        SleepCycleClusterReport,
        SleepCycleConfig,
        SleepCycleOptions,
        SleepCycleReport,
        SleepCycleTrigger,
    )
    from kalito_mcp.errors import (
        KalitoError,
    )
    from kalito_mcp.graph.store import (
        GraphStore,
    )
    from kalito_mcp.memory import (
        Memory,
    )
    from kalito_mcp.orchestrator.orchestrator import (
        MemoryOrchestrator,
        OrchestratorConfig,
    )
    from kalito_mcp.settings import (
        Settings,
        load_settings,
    )
    from kalito_mcp.wiring import (
        open_memory,
    )

_HOMES = {
    "ConversationSummary": "domain.records",
    "CreatePinRequest": "domain.records",
    "CreateSummaryRequest": "domain.records",
    "EdgeType": "domain.graph",
    "FeedbackLabel": "domain.graph",
    "FinalizeOptions": "domain.finalizing",
    "Finalized": "domain.finalizing",
    "GraphConfig": "domain.graph",
    "GraphEdge": "domain.graph",
    "GraphHit": "domain.graph",
    "GraphNode": "domain.graph",
    "GraphScope": "domain.graph",
    "GraphStats": "domain.graph",
    "KeptFeedback": "domain.graph",
    "GraphStore": "graph.store",
    "Hit": "domain.search",
    "KalitoError": "errors",
    "Memory": "memory",
    "MemoryContext": "domain.context",
    "MemoryManager": "contexts.manager",
    "MemoryOrchestrator": "orchestrator.orchestrator",
    "MemoryStats": "domain.sessions",
    "MessageWithImportance": "domain.records",
    "NewMessage": "domain.records",
    "NodeType": "domain.graph",
    "NodeWeights": "domain.graph",
    "OrchestratorConfig": "orchestrator.orchestrator",
    "PastAnswer": "domain.graph",
    "PinType": "domain.records",
    "PromotionPolicy": "domain.graph",
    "PromotionReport": "domain.graph",
    "RecordType": "domain.records",
    "Role": "domain.records",
    "SearchFilters": "domain.search",
    "SearchPage": "domain.search",
    "SearchRequest": "domain.search",
    "SemanticPin": "domain.records",
    "Settings": "settings",
    "SimilarQuery": "domain.graph",
    "SleepCycleClusterReport": "domain.sleep",
    "SleepCycleConfig": "domain.sleep",
    "SleepCycleOptions": "domain.sleep",
    "SleepCycleReport": "domain.sleep",
    "SleepCycleTrigger": "domain.sleep",
    "load_settings": "settings",
    "open_memory": "wiring",
}

__all__ = [
    "ConversationSummary",
    "CreatePinRequest",
    "CreateSummaryRequest",
    "EdgeType",
    "FeedbackLabel",
    "FinalizeOptions",
    "Finalized",
    "GraphConfig",
    "GraphEdge",
    "GraphHit",
    "GraphNode",
    "GraphScope",
    "GraphStats",
    "GraphStore",
    "Hit",
    "KalitoError",
    "KeptFeedback",
    "Memory",
    "MemoryContext",
    "MemoryManager",
    "MemoryOrchestrator",
    "MemoryStats",
    "MessageWithImportance",
    "NewMessage",
    "NodeType",
    "NodeWeights",
    "OrchestratorConfig",
    "PastAnswer",
    "PinType",
    "PromotionPolicy",
    "PromotionReport",
    "RecordType",
    "Role",
    "SearchFilters",
    "SearchPage",
    "SearchRequest",
    "SemanticPin",
    "Settings",
    "SimilarQuery",
    "SleepCycleClusterReport",
    "SleepCycleConfig",
    "SleepCycleOptions",
    "SleepCycleReport",
    "SleepCycleTrigger",
    "__version__",
    "load_settings",
    "open_memory",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'kalito_mcp' has no attribute {name!r}")
    return getattr(importlib.import_module(f"kalito_mcp.{_HOMES[name]}"), name)
