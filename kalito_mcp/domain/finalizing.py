"""What closing a session may do, and what it did."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kalito_mcp.domain.graph import (
    PromotionReport,
)
from kalito_mcp.domain.records import ConversationSummary
from kalito_mcp.domain.sessions import Session
from kalito_mcp.domain.sleep import (
    SleepCycleReport,
)
from kalito_mcp.domain.time import to_iso

Progress = Callable[[float, float | None, str | None], Awaitable[None]]
"""Called before each stage: how many are done, of how many, and what comes now."""


@dataclass(frozen=True, slots=True)
class FinalizeOptions:
    """What is to be done with the session's graph. `checkpoint_name` is the agent's own unless given. With `dry_run`
    nothing is done, only told."""

    promote: bool = True
    checkpoint: bool = True
    checkpoint_name: str | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class SnapshotFile:
    """One snapshot file."""

    name: str
    path: Path
    size_bytes: int
    written_at: int

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"name": self.name, "bytes": self.size_bytes, "written_at": to_iso(self.written_at)}


@dataclass(frozen=True, slots=True)
class Finalized:
    """The session as it is now, and what this call did: the summaries that it made, what its graph merged and what the
    agent's took over, and the snapshot. What an earlier call had done is not in it."""

    session: Session
    summaries: Sequence[ConversationSummary] = ()
    sleep: SleepCycleReport | None = None
    promotion: PromotionReport | None = None
    snapshot: SnapshotFile | None = None
    is_dry_run: bool = False
