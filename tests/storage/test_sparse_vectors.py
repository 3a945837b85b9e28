"""Sparse vectors as bytes: the same 32 bits come back, counts cost a byte each, and damage is detected."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.domain.sparse_vectors import SparseVector
from kalito_mcp.storage.sparse_vectors import packed, unpacked

INDICES = st.lists(st.integers(0, 2**32 - 1), unique=True, max_size=40) | st.lists(
    st.integers(0, 16_383), unique=True, max_size=300
)
COUNTS = st.integers(1, 40)
NUMBERS = st.floats(-1e6, 1e6, width=32).filter(bool) | COUNTS.map(float)


def vector(indices: list[int], values: list[float]) -> SparseVector:
    return SparseVector(np.array(sorted(indices), np.uint32), np.array(values, np.float32))


def scaled(counts: list[int]) -> SparseVector:
    """The counts, at 0, 1, 2 and so on, to unit length."""
    return SparseVector.of_counts(np.arange(len(counts), dtype=np.uint32), np.array(counts, np.float64))


@st.composite
def vectors(draw: st.DrawFn) -> SparseVector:
    indices = draw(INDICES)
    size = {"min_size": len(indices), "max_size": len(indices)}
    if not draw(st.booleans()):
        return vector(indices, draw(st.lists(NUMBERS, **size)))
    return SparseVector.of_counts(np.array(sorted(indices), np.uint32), np.array(draw(st.lists(COUNTS, **size)), float))


def bits(one: SparseVector) -> tuple[list[int], bytes]:
    assert one.values.dtype == np.float32
    return one.indices.tolist(), one.values.tobytes()


@given(st.lists(vectors(), max_size=12))
def test_whatever_is_packed_comes_back_bit_for_bit_and_in_order(many: list[SparseVector]) -> None:
    assert [bits(one) for one in unpacked([packed(one) for one in many])] == [bits(one) for one in many]


@given(st.lists(st.integers(1, 255), min_size=1, max_size=300))
def test_counts_cost_a_byte_each_and_come_back_as_counts(counts: list[int]) -> None:
    [back] = unpacked([packed(scaled(counts))])
    assert back.is_counted
    assert back.weights.tolist() == counts
    assert len(packed(scaled(counts))) == 5 + 3 * len(counts)


def test_what_is_no_scaled_count_costs_four_bytes_and_an_index_beyond_65535_too() -> None:
    assert len(packed(SparseVector.of({1: 0.6, 2: 0.8}))) == 5 + 2 * 3
    assert len(packed(vector([1, 2], [0.123, 0.987]))) == 5 + 2 * 6
    assert len(packed(vector([1, 2], [-0.6, 0.8]))) == 5 + 2 * 6
    assert len(packed(SparseVector.of({7: 0.6, 65_535: 0.8}))) == 5 + 2 * 3
    assert len(packed(SparseVector.of({7: 0.6, 65_536: 0.8}))) == 5 + 2 * 5


def test_the_bytes_are_the_same_on_every_platform() -> None:
    assert packed(SparseVector.of({1: 0.6, 258: 0.8})).hex() == "03" + "02000000" + "0100" + "0201" + "0304"
    assert packed(vector([65_536], [-1.0])).hex() == "00" + "01000000" + "00000100" + "000080bf"
    assert packed(SparseVector.of({})).hex() == "03" + "00000000"


@pytest.mark.parametrize(
    "damaged", ["", "03", "0302000000", "03010000000100", "030100000001000101", "0401000000010001", "ff00000000"]
)
def test_bytes_that_packed_never_gave_are_refused(damaged: str) -> None:
    with pytest.raises(ValueError, match=r"cut short|not a vector"):
        unpacked([packed(vector([3], [1.0])), bytes.fromhex(damaged)])
