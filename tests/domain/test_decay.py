"""Age lowers the rank of a record, less if it is important or used, and never below the floor."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.decay import DecayPolicy, decayed, retention

UNIT = st.floats(0, 1)
POLICIES = st.builds(
    DecayPolicy, half_life_days=st.floats(0.01, 10_000), importance_weight=st.floats(0, 100), floor=UNIT
)
RECORDS = st.fixed_dictionaries(
    {
        "importance": st.floats(),
        "usage_count": st.integers(-1, 10**12),
        "age_days": st.floats(),
        "is_critical": st.booleans(),
        "policy": POLICIES,
    }
)
# Logarithm and power are exact except for their last bit.
DUST = 1e-12


def left(**changes: Any) -> float:
    record: dict[str, Any] = {"importance": 0.0, "usage_count": 0, "age_days": 90.0, "is_critical": False}
    return retention(**record | changes)


@given(RECORDS)
def test_any_record_keeps_something_and_never_gains(record: dict[str, Any]) -> None:
    assert 0 < retention(**record) <= 1


@given(RECORDS, UNIT)
def test_a_score_falls_to_the_floor_at_the_most(record: dict[str, Any], score: float) -> None:
    policy = record["policy"]
    assert policy.floor * score <= decayed(score, retention(**record), policy) <= score
    assert decayed(score, 1.0, policy) == score


@given(RECORDS, st.floats(0, 100_000))
def test_a_critical_record_never_fades(record: dict[str, Any], age_days: float) -> None:
    assert retention(**record | {"is_critical": True, "age_days": age_days}) == 1.0


@pytest.mark.parametrize("age_days", [0.0, -0.0, -5.0, -math.inf, math.nan])
def test_what_is_not_old_has_lost_nothing(age_days: float) -> None:
    assert left(age_days=age_days) == 1.0


@given(RECORDS, UNIT, UNIT)
def test_what_matters_more_keeps_more(record: dict[str, Any], one: float, other: float) -> None:
    less, more = sorted((one, other))
    assert retention(**record | {"importance": less}) <= retention(**record | {"importance": more}) + DUST


@given(RECORDS, st.integers(0, 10**6), st.integers(0, 10**6))
def test_what_is_used_more_keeps_more(record: dict[str, Any], one: int, other: int) -> None:
    less, more = sorted((one, other))
    assert retention(**record | {"usage_count": less}) <= retention(**record | {"usage_count": more}) + DUST


@given(RECORDS, st.floats(0, 10**6), st.floats(0, 10**6))
def test_what_is_older_keeps_less(record: dict[str, Any], one: float, other: float) -> None:
    younger, older = sorted((one, other))
    assert retention(**record | {"age_days": younger}) >= retention(**record | {"age_days": older}) - DUST


@given(UNIT, UNIT, UNIT, POLICIES)
def test_decay_keeps_the_order_of_what_is_left(score: float, one: float, other: float, policy: DecayPolicy) -> None:
    less, more = sorted((one, other))
    assert decayed(score, less, policy) <= decayed(score, more, policy)


def test_the_half_life_is_as_it_is_set_longer_with_importance_and_with_use() -> None:
    assert left() == 0.5
    assert left(importance=1.0, age_days=450.0) == 0.5
    assert left(usage_count=3, age_days=270.0) == 0.5
    assert left(importance=0.5, usage_count=1, age_days=540.0) == 0.5
    assert left(policy=DecayPolicy(half_life_days=30.0), age_days=60.0) == 0.25


def test_a_score_half_decayed_has_lost_half_of_what_it_can_lose() -> None:
    assert decayed(0.8, 0.5, DecayPolicy(floor=0.5)) == pytest.approx(0.6)
    assert decayed(0.8, left(age_days=math.inf)) == pytest.approx(0.72)


@pytest.mark.parametrize(("importance", "same_as"), [(-1.0, 0.0), (7.0, 1.0), (math.inf, 1.0), (math.nan, 0.0)])
def test_an_importance_outside_its_range_is_clamped(importance: float, same_as: float) -> None:
    assert left(importance=importance) == left(importance=same_as)
