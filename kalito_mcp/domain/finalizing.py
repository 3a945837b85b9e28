"""The options and the result of finalizing a session."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kalito_mcp.domain.graph import PromotionReport
from kalito_mcp.domain.records import ConversationSummary
from kalito_mcp.domain.sessions import Session
from kalito_mcp.domain.sleep import SleepCycleReport
from kalito_mcp.domain.time import to_iso

Progress = Callable[[float, float | None, str | None], Awaitable[None]]
"""Called before each stage with the number of stages done, the total, and the name of the stage."""


@dataclass(frozen=True, slots=True)
class FinalizeOptions:
    """What to do with the session's graph. `checkpoint_name` defaults to the agent's own. With `dry_run` nothing is
    done; the result says what would be."""

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
    """The session as it is now, and what this call did. What an earlier call did is not included.

    `sleep` reports what was merged in the session's graph, and `promotion` what the agent's graph took over."""

    session: Session
    summaries: Sequence[ConversationSummary] = ()
    sleep: SleepCycleReport | None = None
    promotion: PromotionReport | None = None
    snapshot: SnapshotFile | None = None
    is_dry_run: bool = False
