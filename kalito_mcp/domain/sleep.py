"""The sleep cycle as values: its bounds, who sums up, and what it reports."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from kalito_mcp.domain.validation import Policy, bounded


class SleepCycleTrigger(StrEnum):
    """What started a sleep cycle."""

    SESSION_FINALIZE = "session-finalize"
    EVICTION = "eviction"
    INTERVAL = "interval"


class SleepCycleSummarizer(Protocol):
    """Sums up the texts of merged queries."""

    def summarize(self, texts: Sequence[str], max_length: int) -> str:
        """One text of at most `max_length` characters."""
        ...


@dataclass(frozen=True, slots=True)
class SleepCycleOptions(Policy):
    """One sleep cycle's bounds.

    The `max_inspect` queries of the lowest rank, all of a rank of at most `min_rank`, are clustered where their cosine
    is at least `similarity_threshold`; the largest `max_clusters` clusters of at least `min_cluster_size` are merged.
    Within `cooldown_ms` of the last cycle nothing is done, unless it is forced. At 0.8, questions about two different
    things in the same words became one; at 0.9 it takes more than a word.
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
    """One cluster: `merged_node_ids` are gone, the anchor stays. Ranks are the anchor's, before and after."""

    anchor_id: str
    merged_node_ids: tuple[str, ...]
    summary: str
    before_rank: float
    after_rank: float
    freed_nodes: int


@dataclass(frozen=True, slots=True)
class SleepCycleReport:
    """What a sleep cycle did, or would do. `freed_capacity` counts the nodes that are gone."""

    trigger: SleepCycleTrigger
    clusters: tuple[SleepCycleClusterReport, ...]
    freed_capacity: int
    inspected: int
    timestamp: int


@dataclass(frozen=True, slots=True)
class SleepCycleConfig:
    """The summarizer, the default bounds, and who hears of each report."""

    summarizer: SleepCycleSummarizer
    defaults: SleepCycleOptions = SleepCycleOptions()
    emit: Callable[[SleepCycleReport], None] | None = None
