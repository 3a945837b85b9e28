"""Vectors of records: derived data, one index for each embedder, and what is nearest to a query.

Without an embedder there is no index, and every question has an empty answer. An index covers the records from the
newest at the time when it was opened, downwards and upwards; what is not covered yet is owed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from kalito_mcp.domain.scope import Scope

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """The vectors of one embedder. Only the active index is asked what is nearest; at most one is, and at most one
    other is being built.

    Every record from `first_key` to `done_key` has a vector or is owed one; all others are owed theirs.
    """

    key: int
    fingerprint: str
    dimension: int
    is_active: bool
    first_key: int
    done_key: int


@dataclass(frozen=True, slots=True)
class OwedVector:
    """A record without a vector, and the text to embed: what it says, after who says it or what it is called."""

    record_key: int
    text: str


class VectorReader(Protocol):
    """Reads of one consistent view."""

    async def indexes(self) -> Sequence[VectorIndex]:
        """The active index and the one that is being built, in this order, where there are any."""
        ...

    async def count(self, index: VectorIndex) -> int:
        """How many vectors the index has."""
        ...

    async def owed(self, index: VectorIndex | None, *, limit: int) -> Sequence[OwedVector]:
        """At most `limit` records without a vector: those that are new, then those that were changed, then the older
        ones, newest first. None stands for an index that is not opened yet."""
        ...

    async def owed_count(self, index: VectorIndex | None) -> int:
        """How many records have no vector. Reads every record that is not covered: for progress, not for each query."""
        ...

    async def nearest(
        self, scope: Scope, fingerprint: str, query: "NDArray[np.float32]", *, k: int
    ) -> Sequence[tuple[int, float]]:
        """The keys of the `k` records of the scope's agent (or session) nearest to the query, and their cosines, best
        first; of equal ones the newer first.

        `query` is (dimension,), of unit length. Empty unless the active index has this fingerprint.

        Raises:
            InvalidInput: the query has another dimension than the index.
        """
        ...

    async def similarities(
        self, fingerprint: str, query: "NDArray[np.float32]", record_keys: Sequence[int]
    ) -> Mapping[int, float]:
        """The cosine of each of these records, as `nearest` has it; those without a vector are left out.

        Raises:
            InvalidInput: the query has another dimension than the index.
        """
        ...


class VectorWriter(VectorReader, Protocol):
    """Writes of one transaction."""

    async def open_index(self, fingerprint: str, dimension: int) -> VectorIndex:
        """The index of this fingerprint, made where there is none: active if it is the first, else to be built; one
        that another embedder has begun to build is dropped then.

        Raises:
            Conflict: there is one of another dimension; nothing was written.
        """
        ...

    async def put(
        self, index: VectorIndex, owed: Sequence[OwedVector], vectors: "NDArray[np.float32]"
    ) -> VectorIndex | None:
        """Store the vectors (n, dimension) of what was owed, and give the index as it is now.

        A record that says something else by now, or is gone, gets none, and is owed it again if it is there. None, and
        nothing is written, if the index was dropped meanwhile.

        Raises:
            InvalidInput: the vectors are of another number or dimension, or not finite.
        """
        ...

    async def activate(self, index: VectorIndex) -> None:
        """Serve this index from now on, and drop the one that was served."""
        ...

    async def drop(self, index: VectorIndex) -> None:
        """Serve and build this index no more. Its vectors go by `clear`."""
        ...

    async def clear(self, *, limit: int) -> int:
        """Remove at most `limit` vectors of dropped indexes; how many those were, 0 when none are left."""
        ...
