"""Scores and levels: each level begins at its bound and has a score of its own."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.importance import (
    ImportanceLevel,
    clamp_importance,
    importance_level,
    least_score,
    score_of_level,
)
from kalito_mcp.errors import InvalidInput


def test_the_score_of_a_level_lies_in_that_level() -> None:
    for level in ImportanceLevel:
        assert importance_level(score_of_level(level)) is importance_level(score_of_level(str(level))) is level


def test_what_is_no_level_is_refused_and_the_levels_are_named() -> None:
    for level in ("", "High", "urgent", "0.8"):
        with pytest.raises(
            InvalidInput, match=rf"importance='{level}' is not a level; use one of low, medium, high, critical"
        ):
            score_of_level(level)


@pytest.mark.parametrize(
    ("bound", "below", "level"), [(0.4, "low", "medium"), (0.7, "medium", "high"), (0.9, "high", "critical")]
)
def test_a_level_begins_at_its_bound(bound: float, below: str, level: str) -> None:
    assert (importance_level(math.nextafter(bound, 0)), importance_level(bound)) == (below, level)


@given(st.floats(allow_nan=False))
def test_any_number_is_clamped_and_has_the_level_of_what_it_becomes(value: float) -> None:
    clamped = clamp_importance(value)
    assert clamped == value or (clamped in (0.0, 1.0) and not 0 <= value <= 1)
    assert importance_level(value) is importance_level(clamped)
    with pytest.raises(InvalidInput, match="NaN"):
        importance_level(math.nan)


def test_the_least_score_of_a_level_is_where_it_begins() -> None:
    for level in list(ImportanceLevel):
        least = least_score(str(level))
        assert importance_level(least) is level
        assert least == 0.0 or importance_level(math.nextafter(least, 0)) is not level


def test_a_number_is_its_own_least_score() -> None:
    for asked, least in ((0, 0.0), (1, 1.0), (0.25, 0.25), ("0.5", 0.5), ("0", 0.0)):
        assert least_score(asked) == least


def test_what_is_no_score_and_no_level_is_refused_with_what_is() -> None:
    for asked in (True, None, "urgent", "", -0.1, 1.1, math.nan, "inf", [0.5], 10**400):
        with pytest.raises(ValueError, match=r"a number from 0 to 1, or low, medium, high, critical"):
            least_score(asked)
