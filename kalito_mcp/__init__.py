"""Long-term memory for AI assistants.

from kalito_mcp import NewMessage, Role, open_memory

async with open_memory("memory.db") as memory:
    await memory.record_messages("trip", [NewMessage(Role.USER, "We fly to Oslo on May 3.")])
    context = await memory.build_context("trip", 2000)

Names are imported when they are first used, so that the command line starts quickly. `__init__.pyi` tells type checkers
where they are.
"""

import importlib
from typing import Any

_NAMES_BY_MODULE = {
    "contexts.manager": "MemoryManager",
    "domain.context": "Include MemoryContext",
    "domain.digest": "Digest KeptDigest",
    "domain.erasing": "ForgetPreview ForgetRequest PurgeReport",
    "domain.finalizing": "FinalizeOptions Finalized Progress",
    "domain.graph": (
        "CheckpointPolicy EdgeType FeedbackLabel GraphConfig GraphEdge GraphHit GraphNode GraphPolicy GraphScope "
        "GraphStats KeptFeedback NodeType NodeWeights PromotionPolicy PromotionReport SessionGraphConfig SimilarQuery"
    ),
    "domain.memory_records": "Editor EditorType MemoryRecord",
    "domain.past_answers": "PastAnswer",
    "domain.records": (
        "ConversationSummary CreatePinRequest CreateSummaryRequest MessageWithImportance NewMessage Origin "
        "PinType RecordType Repetition Role SemanticPin"
    ),
    "domain.search": "Hit SearchFilters SearchPage SearchRequest",
    "domain.sessions": "MemoryStats Session",
    "domain.sleep": "SleepCycleClusterReport SleepCycleConfig SleepCycleOptions SleepCycleReport SleepCycleTrigger",
    "domain.sparse_vectors": "SparseVector",
    "errors": (
        "AlreadyTakenIn BudgetTooSmall ClientKeyReused ConfigurationError Conflict GraphFull InvalidInput KalitoError "
        "ModelError ModelReplyInvalid ModelUnavailable NotFound RecordErased RecordNotFound RevisionConflict "
        "SchemaTooNew SchemaUnknown SessionFinalized SessionNotFound StorageBusy StorageDamaged StorageError "
        "StorageFull StorageReadOnly StorageReplaced SummaryRangeConflict TextTooLarge VectorsUnreachable"
    ),
    "graph.store": "GraphStore",
    "memory": "Memory",
    "memory_tool.tool": "MemoryTool",
    "orchestrator.orchestrator": "MemoryOrchestrator OrchestratorConfig",
    "records.recorder": "Recorded",
    "config.settings": "Settings load_settings",
    "version": "__version__",
    "wiring": "open_memory",
}
_HOMES = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names.split()}
__all__ = sorted(_HOMES)  # noqa: PLE0605 - type checkers read the stub


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'kalito_mcp' has no attribute {name!r}")
    return getattr(importlib.import_module(f"kalito_mcp.{_HOMES[name]}"), name)
