"""How important a record is: a score in [0, 1], which is what is stored, and its four named levels. Pure."""

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from kalito_mcp.errors import InvalidInput


class ImportanceLevel(StrEnum):
    """The score in words."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


_FROM: Final[Mapping[ImportanceLevel, float]] = {
    ImportanceLevel.LOW: 0.0,
    ImportanceLevel.MEDIUM: 0.4,
    ImportanceLevel.HIGH: 0.7,
    ImportanceLevel.CRITICAL: 0.9,
}
_SCORES: Final[Mapping[ImportanceLevel, float]] = {
    ImportanceLevel.LOW: 0.2,
    ImportanceLevel.MEDIUM: 0.5,
    ImportanceLevel.HIGH: 0.8,
    ImportanceLevel.CRITICAL: 0.95,
}


def clamp_importance(value: float) -> float:
    """The nearest number in [0, 1]; infinities are clamped like any other.

    Raises:
        InvalidInput: not a number.
    """
    if value != value:  # noqa: PLR0124 - only NaN differs from itself
        raise InvalidInput("importance_score is NaN; send a number between 0 and 1, or leave it out")
    return min(max(float(value), 0.0), 1.0)


def importance_level(score: float) -> ImportanceLevel:
    """The level of a score: low < 0.4 <= medium < 0.7 <= high < 0.9 <= critical.

    Raises:
        InvalidInput: not a number.
    """
    score = clamp_importance(score)
    return next(level for level in reversed(ImportanceLevel) if score >= _FROM[level])


def least_score(asked: Any) -> float:
    """The least score that passes: of a level its lower bound, `"high"` being 0.7; a number in [0, 1] is itself.

    Raises:
        ValueError: neither; the words say what is.
    """
    if isinstance(asked, str) and asked in _FROM:
        return _FROM[ImportanceLevel(asked)]
    try:
        score = math.nan if isinstance(asked, bool) else float(asked)
    except (TypeError, ValueError, OverflowError):
        score = math.nan
    if not 0.0 <= score <= 1.0:
        raise ValueError(f"a number from 0 to 1, or {', '.join(ImportanceLevel)}")
    return score


def score_of_level(level: str) -> float:
    """The score that stands for a level where only the level is given, as `"high"` or as `ImportanceLevel.HIGH`.

    Raises:
        InvalidInput: no such level; the message names those that there are.
    """
    try:
        return _SCORES[ImportanceLevel(level)]
    except ValueError:
        raise InvalidInput(f"importance={level!r} is no level; use one of {', '.join(ImportanceLevel)}") from None
