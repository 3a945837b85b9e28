"""Sparse vectors, compact enough to keep tens of thousands in memory. Pure."""

import math
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.errors import InvalidInput

# Rounding to float32 changes the length of a unit vector by less than this.
_UNIT_SLACK: Final = 1e-6
_LARGEST_COUNT: Final = 255
_SMALLEST_COUNTS: Final = (1, 2, 3)
"""The count that the smallest value may stand for. Nearly always 1; more if every n-gram occurs twice."""


@dataclass(frozen=True, slots=True, eq=False)
class SparseVector:
    """A vector of unit length, or the zero vector. `indices` (n,) are ascending and distinct, `values` (n,) not zero.

    `weights` (n,) are the values times `length`: counts of 1 to 255, in a quarter of the space, if the values are
    exactly counts scaled to unit length. Else they are the values themselves, and `length` is 1.
    """

    indices: NDArray[np.uint32] | NDArray[np.uint16]
    weights: NDArray[np.float32] | NDArray[np.uint8]
    length: float = 1.0

    @property
    def is_counted(self) -> bool:
        """Whether the weights are counts."""
        return self.weights.dtype == np.uint8

    @property
    def values(self) -> NDArray[np.float32]:
        """The components. Counts are converted on each call."""
        return (
            (self.weights / self.length).astype(np.float32) if self.is_counted else np.asarray(self.weights, np.float32)
        )

    @classmethod
    def of(cls, components: Mapping[int, float] | Iterable[tuple[int, float]]) -> Self:
        """Make a vector of the components, scaled to unit length. Zeros are dropped; only zeros make the zero vector.

        Components of unit length keep their float32 values bit for bit, so `of(vector.pairs())` equals the vector.

        Raises:
            InvalidInput: an index is negative, too large for 32 bits or repeated, or a value is not a finite number.
        """
        pairs = list(components.items() if isinstance(components, Mapping) else components)
        try:
            indices = np.array([operator.index(index) for index, _ in pairs], dtype=np.int64)
            values = np.array([value for _, value in pairs], dtype=np.float64).reshape(len(pairs))
        except (OverflowError, TypeError, ValueError):
            raise InvalidInput(
                "an embedding must be numbers, or pairs of a whole number and a number: [[index, value], ...]"
            ) from None
        if not np.isfinite(values).all():
            raise InvalidInput("an embedding has a value that is not finite; leave it out")
        if indices.size and (indices.min() < 0 or indices.max() >= 2**32 or np.unique(indices).size != indices.size):
            raise InvalidInput("an embedding has an index that is negative, too large for 32 bits or repeated")
        kept = values != 0
        order = np.argsort(indices[kept])
        indices, unit = indices[kept][order].astype(np.uint32), _unit(values[kept][order])
        if (counts := _counts(unit)) is None:
            return cls(indices, unit)
        return cls.of_counts(indices, counts)

    @classmethod
    def of_counts(cls, indices: NDArray[np.uint32], counts: NDArray[np.float64]) -> Self:
        """A vector of counts of at least 1, both (n,), scaled to unit length. `indices` are ascending and distinct."""
        length = math.sqrt(np.dot(counts, counts)) or 1.0
        if counts.max(initial=0) > _LARGEST_COUNT:
            return cls(indices, (counts / length).astype(np.float32))
        return cls(indices, counts.astype(np.uint8), length)

    def pairs(self) -> list[list[float]]:
        """`[[index, value], ...]`, JSON-ready: the form in snapshots."""
        return [list(pair) for pair in zip(self.indices.tolist(), self.values.tolist(), strict=True)]

    def dot(self, other: "SparseVector") -> float:
        """The inner product, which is the cosine of unit vectors."""
        _, mine, theirs = np.intersect1d(self.indices, other.indices, assume_unique=True, return_indices=True)
        return float(np.dot(self.values[mine].astype(np.float64), other.values[theirs].astype(np.float64)))

    def __len__(self) -> int:
        return len(self.indices)


def _unit(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """The values divided by their length, as float32."""
    largest = np.abs(values).max(initial=0.0)
    if largest == 0:
        return values.astype(np.float32)
    # Divide by the largest first: the square of a very large or small number overflows or becomes 0.
    scaled = values / largest
    length = np.sqrt(np.dot(scaled, scaled))
    is_unit = abs(length * largest - 1) < _UNIT_SLACK
    unit: NDArray[np.float64] = values if is_unit else scaled / length
    return unit.astype(np.float32)


def _counts(values: NDArray[np.float32]) -> NDArray[np.float64] | None:
    """The counts, (n,), that give these values bit for bit when scaled to unit length. None if there are no such."""
    smallest = float(values.min(initial=1.0))
    if smallest <= 0:
        return None
    for unit in _SMALLEST_COUNTS:
        counts = np.rint(values * np.float64(unit / smallest))
        if counts.max(initial=0) > _LARGEST_COUNT:
            return None
        if np.array_equal((counts / (np.sqrt(np.dot(counts, counts)) or 1.0)).astype(np.float32), values):
            return counts
    return None
