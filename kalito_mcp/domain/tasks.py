"""What a task goes through, and how much a task matters where nobody says. Pure.

    pending ──> in_progress ──> completed
       │             └────────> failed
       └──────> completed, failed

There is no way back: what was done, or failed, stays in the task's history. An earlier version is had again by
reverting, which is an edit like any other, and not a move.
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

# Each lies in the importance level of its own name.
_IMPORTANCE: Final[Mapping[TaskPriority, float]] = {
    TaskPriority.LOW: 0.3,
    TaskPriority.MEDIUM: 0.5,
    TaskPriority.HIGH: 0.8,
    TaskPriority.CRITICAL: 0.95,
}


def checked_transition(before: TaskStatus, after: TaskStatus) -> None:
    """Nothing, where a task may go from one status to the other; staying where it is changes nothing and may be.

    Raises:
        Conflict: it may not; the message names the moves that are open.
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
    """The importance score of a task that was given none."""
    return _IMPORTANCE[priority]
