"""How important a record is: a score in [0, 1], which is stored, and four named levels. Pure."""

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from kalito_mcp.errors import InvalidInput


class ImportanceLevel(StrEnum):
    """The four levels of a score."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


_LOWEST: Final[Mapping[ImportanceLevel, float]] = {
    ImportanceLevel.LOW: 0.0,
    ImportanceLevel.MEDIUM: 0.4,
    ImportanceLevel.HIGH: 0.7,
    ImportanceLevel.CRITICAL: 0.9,
}
_USUAL: Final[Mapping[ImportanceLevel, float]] = {
    ImportanceLevel.LOW: 0.2,
    ImportanceLevel.MEDIUM: 0.5,
    ImportanceLevel.HIGH: 0.8,
    ImportanceLevel.CRITICAL: 0.95,
}


def clamp_importance(value: float) -> float:
    """The nearest number in [0, 1], also for infinities.

    Raises:
        InvalidInput: the score is NaN.
    """
    if value != value:  # noqa: PLR0124 - only NaN differs from itself
        raise InvalidInput("importance_score is NaN; send a number between 0 and 1, or leave it out")
    return min(max(float(value), 0.0), 1.0)


def importance_level(score: float) -> ImportanceLevel:
    """The level of a score: low < 0.4 <= medium < 0.7 <= high < 0.9 <= critical.

    Raises:
        InvalidInput: the score is NaN.
    """
    score = clamp_importance(score)
    return next(level for level in reversed(ImportanceLevel) if score >= _LOWEST[level])


def least_score(value: Any) -> float:
    """The lowest score that a filter admits: 0.7 for the level `"high"`, or the number itself.

    Raises:
        ValueError: not a level, and not a number in [0, 1]; the message says what to send.
    """
    if isinstance(value, str) and value in _LOWEST:
        return _LOWEST[ImportanceLevel(value)]
    try:
        score = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        score = math.nan
    if not 0.0 <= score <= 1.0:
        raise ValueError(f"a number from 0 to 1, or {', '.join(ImportanceLevel)}")
    return score


def score_of_level(level: str) -> float:
    """The score of a record for which only a level was sent, such as `"high"`.

    Raises:
        InvalidInput: there is no such level; the message names the levels.
    """
    try:
        return _USUAL[ImportanceLevel(level)]
    except ValueError:
        raise InvalidInput(f"importance={level!r} is not a level; use one of {', '.join(ImportanceLevel)}") from None
