"""The statuses of a task, and the default importance of a task. Pure.

    pending ──> in_progress ──> completed
       │             └────────> failed
       └──────> completed, failed

A task never moves back. To undo a mistake, revert it to an earlier version: that is an edit, not a move.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from kalito_mcp.errors import Conflict


class TaskStatus(StrEnum):
    """How far a task is."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"


class TaskPriority(StrEnum):
    """How urgent a task is."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


_NEXT: Final[Mapping[TaskStatus, tuple[TaskStatus, ...]]] = {
    TaskStatus.PENDING: (TaskStatus.IN_PROGRESS, TaskStatus.COMPLETED, TaskStatus.FAILED),
    TaskStatus.IN_PROGRESS: (TaskStatus.COMPLETED, TaskStatus.FAILED),
    TaskStatus.COMPLETED: (),
    TaskStatus.FAILED: (),
}

# Each score has the importance level of the same name.
_IMPORTANCE: Final[Mapping[TaskPriority, float]] = {
    TaskPriority.LOW: 0.3,
    TaskPriority.MEDIUM: 0.5,
    TaskPriority.HIGH: 0.8,
    TaskPriority.CRITICAL: 0.95,
}


def checked_transition(before: TaskStatus, after: TaskStatus) -> None:
    """Check a change of status. Keeping the same status is allowed.

    Raises:
        Conflict: the task cannot move from `before` to `after`; the message names the possible moves.
    """
    if after is before or after in _NEXT[before]:
        return
    following = " or ".join(_NEXT[before])
    moves = f"it can only become {following}" if following else f"{before} is final"
    raise Conflict(
        f"a task that is {before} cannot become {after}: {moves}. "
        "Revert it to an earlier version if the status was a mistake, or create a new task"
    )


def importance_of(priority: TaskPriority) -> float:
    """The importance score of a task for which none was sent."""
    return _IMPORTANCE[priority]
