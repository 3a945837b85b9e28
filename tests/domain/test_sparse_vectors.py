"""Sparse vectors: unit length, ascending, and unchanged by a snapshot."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.sparse_vectors import SparseVector
from kalito_mcp.errors import InvalidInput

NUMBERS = st.floats(-1e6, 1e6).filter(lambda value: abs(value) > 1e-6)
COMPONENTS = st.dictionaries(st.integers(0, 2**32 - 1), NUMBERS, min_size=1, max_size=40)


@given(COMPONENTS)
def test_components_become_a_vector_of_unit_length_in_ascending_order(components: dict[int, float]) -> None:
    vector = SparseVector.of(components)
    assert vector.indices.tolist() == sorted(vector.indices.tolist())
    assert set(vector.indices.tolist()) <= set(components)
    assert math.isclose(vector.dot(vector), 1, abs_tol=1e-6)
    assert (vector.indices.dtype, vector.values.dtype) == (np.uint32, np.float32)


@given(COMPONENTS)
def test_the_pairs_of_a_vector_are_that_vector_bit_for_bit(components: dict[int, float]) -> None:
    vector = SparseVector.of(components)
    again = SparseVector.of((int(index), value) for index, value in vector.pairs())
    assert again.pairs() == vector.pairs()


@given(COMPONENTS, COMPONENTS)
def test_the_inner_product_is_that_of_the_shared_indices(one: dict[int, float], other: dict[int, float]) -> None:
    mine, theirs = SparseVector.of(one), SparseVector.of(other)
    values = dict(zip(theirs.indices.tolist(), theirs.values.tolist(), strict=True))
    expected = sum(value * values.get(int(index), 0.0) for index, value in mine.pairs())
    assert math.isclose(mine.dot(theirs), expected, abs_tol=1e-9)
    assert math.isclose(mine.dot(theirs), theirs.dot(mine), abs_tol=1e-12)


def test_zeros_are_dropped_and_nothing_else_is_the_zero_vector() -> None:
    assert SparseVector.of({5: 0.0, 3: 2.0}).pairs() == [[3, 1.0]]
    for nothing in (SparseVector.of({}), SparseVector.of({1: 0.0})):
        assert len(nothing) == 0
        assert nothing.pairs() == []
        assert nothing.dot(SparseVector.of({1: 1.0})) == 0.0


@given(st.lists(st.integers(1, 255), min_size=1, max_size=300).filter(lambda counts: min(counts) <= 3))
def test_components_that_are_scaled_counts_are_kept_as_counts(counts: list[int]) -> None:
    vector = SparseVector.of_counts(np.arange(len(counts), dtype=np.uint32), np.array(counts, np.float64))
    again = SparseVector.of((int(index), value) for index, value in vector.pairs())
    assert again.is_counted
    assert again.values.tobytes() == vector.values.tobytes()


def test_very_large_and_very_small_values_have_a_direction() -> None:
    for scale in (1e-300, 1e-30, 1e30, 1e300):
        assert SparseVector.of({1: 3 * scale, 2: 4 * scale}).values.tolist() == pytest.approx([0.6, 0.8])


def test_what_is_no_vector_is_refused() -> None:
    for index in (-1, 2**32, "a", 1.5):
        with pytest.raises(InvalidInput, match="embedding"):
            SparseVector.of([(index, 1.0)])  # type: ignore[list-item]
    for components in (
        [(1, 1.0), (1, 2.0)],
        [(1, math.nan)],
        [(1, math.inf)],
        [(1, None)],
        [(1,)],
        [(1, 2.0, 3.0)],
        [1],
    ):
        with pytest.raises(InvalidInput, match="embedding"):
            SparseVector.of(components)  # type: ignore[arg-type]
