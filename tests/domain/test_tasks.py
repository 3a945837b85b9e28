"""A task only moves forward. Its priority decides its importance."""

import itertools

import pytest

from kalito_mcp.domain.importance import importance_level
from kalito_mcp.domain.tasks import TaskPriority, TaskStatus, checked_transition, importance_of
from kalito_mcp.errors import Conflict

FORWARD = {
    ("pending", "in_progress"),
    ("pending", "completed"),
    ("pending", "failed"),
    ("in_progress", "completed"),
    ("in_progress", "failed"),
}


def test_a_task_moves_forward_or_stays_and_nothing_else() -> None:
    for before, after in itertools.product(TaskStatus, TaskStatus):
        if before is after or (before, after) in FORWARD:
            checked_transition(before, after)
        else:
            with pytest.raises(Conflict, match=f"a task that is {before} cannot become {after}"):
                checked_transition(before, after)


def test_a_refused_move_names_those_that_are_open_and_what_else_to_do() -> None:
    with pytest.raises(Conflict, match=r"it can only become completed or failed\. Revert it .* or create a new task"):
        checked_transition(TaskStatus.IN_PROGRESS, TaskStatus.PENDING)
    with pytest.raises(Conflict, match=r"failed is final\. Revert it .* or create a new task"):
        checked_transition(TaskStatus.FAILED, TaskStatus.COMPLETED)


def test_a_task_without_a_score_is_as_important_as_its_priority_says() -> None:
    for priority in TaskPriority:
        assert importance_level(importance_of(priority)) == priority
