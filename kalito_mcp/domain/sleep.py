"""The values of a sleep cycle: its bounds, its summarizer and its report."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Protocol

from kalito_mcp.domain.time import to_iso
from kalito_mcp.domain.validation import Policy, bounded
from kalito_mcp.errors import InvalidInput

_SHOWN_CLUSTERS: Final = 10
_DECIMALS: Final = 4


class SleepCycleTrigger(StrEnum):
    """Causes of a sleep cycle."""

    SESSION_FINALIZE = "session-finalize"
    EVICTION = "eviction"
    INTERVAL = "interval"


def checked_trigger(trigger: SleepCycleTrigger | str) -> SleepCycleTrigger:
    """The trigger of this name. Raises InvalidInput for an unknown one."""
    if trigger not in tuple(SleepCycleTrigger):
        raise InvalidInput(f"trigger={trigger!r} is not one of {', '.join(SleepCycleTrigger)}")
    return SleepCycleTrigger(trigger)


class SleepCycleSummarizer(Protocol):
    """Summarises the texts of merged queries."""

    def summarize(self, texts: Sequence[str], max_length: int) -> str:
        """One text of at most `max_length` characters."""
        ...


@dataclass(frozen=True, slots=True)
class SleepCycleOptions(Policy):
    """One sleep cycle's bounds.

    Only queries of a rank of at most `min_rank` are clustered, and of these the `max_inspect` lowest. Two queries join
    at a cosine of `similarity_threshold` or more. The largest `max_clusters` clusters of at least `min_cluster_size`
    are merged. A cycle within `cooldown_ms` of the last does nothing unless forced. A threshold of 0.8 merged
    questions about different things in nearly the same words.
    """

    max_clusters: int = 50
    max_inspect: int = 5_000
    min_cluster_size: int = bounded(2, least=2)
    similarity_threshold: float = bounded(0.9, above=0, most=1)
    min_rank: float = bounded(0.5, most=1)
    summary_max_length: int = bounded(240, least=1)
    cooldown_ms: int = 60_000


@dataclass(frozen=True, slots=True)
class SleepCycleClusterReport:
    """One cluster. The anchor stays; `merged_node_ids` were removed. Both ranks are the anchor's."""

    anchor_id: str
    merged_node_ids: tuple[str, ...]
    summary: str
    before_rank: float
    after_rank: float
    freed_nodes: int

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "anchor_id": self.anchor_id,
            "merged_node_ids": list(self.merged_node_ids),
            "summary": self.summary,
            "before_rank": round(self.before_rank, _DECIMALS),
            "after_rank": round(self.after_rank, _DECIMALS),
            "freed_nodes": self.freed_nodes,
        }


@dataclass(frozen=True, slots=True)
class SleepCycleReport:
    """The report of a sleep cycle, or of a dry run. `freed_capacity` counts the removed nodes."""

    trigger: SleepCycleTrigger
    clusters: tuple[SleepCycleClusterReport, ...]
    freed_capacity: int
    inspected: int
    timestamp: int

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, with the largest ten clusters."""
        return {
            "trigger": str(self.trigger),
            "inspected": self.inspected,
            "freed_capacity": self.freed_capacity,
            "clusters": [one.to_dict() for one in self.clusters[:_SHOWN_CLUSTERS]],
            "clusters_in_all": len(self.clusters),
            "timestamp": to_iso(self.timestamp),
        }


@dataclass(frozen=True, slots=True)
class SleepCycleConfig:
    """The summarizer and the default bounds. `emit` is called with each report."""

    summarizer: SleepCycleSummarizer
    defaults: SleepCycleOptions = SleepCycleOptions()
    emit: Callable[[SleepCycleReport], None] | None = None
