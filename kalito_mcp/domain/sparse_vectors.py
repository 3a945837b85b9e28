"""Sparse vectors, compact enough to keep tens of thousands in memory. Pure."""

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from kalito_mcp.errors import InvalidInput

# Rounding to float32 changes the length of a unit vector by less than this.
_UNIT_SLACK: Final = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class SparseVector:
    """A vector of unit length, or the zero vector. `indices` (n,) are ascending and distinct, `values` (n,) not zero.

    `weights` (n,) are the values themselves, or counts of 1 to 255 in a quarter of the space. Counts are the values
    times `length`.
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
        indices, values = indices[kept][order], values[kept][order]
        return cls(indices.astype(np.uint32), _unit(values))

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
