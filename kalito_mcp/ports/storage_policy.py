"""The settings of a store."""

from dataclasses import dataclass

from kalito_mcp.domain.validation import Policy, bounded


@dataclass(frozen=True, slots=True)
class StoragePolicy(Policy):
    """`busy_timeout_s`: how long a write waits for other processes. `readers`: parallel reads of this
    process. `query_s`: how long a search may compute before it is ended; 0: as long as it takes."""

    busy_timeout_s: float = bounded(30.0, most=86_400)
    readers: int = bounded(4, least=1)
    query_s: float = bounded(2.0, most=86_400)
