"""Vectors of records: derived data, with one index for each embedder, named by its fingerprint.

Without an embedder there is no index, and every method returns an empty result. Records without a vector are owed one.
How far an index has come is the store's own affair.
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
    """The vectors of one embedder. Searches use the active index. At most one is active, and at most one other is being
    built."""

    fingerprint: str
    dimension: int
    is_active: bool


@dataclass(frozen=True, slots=True)
class OwedVector:
    """A record without a vector, by its key, whose record it is, and the text to embed: the speaker or title, then the
    record's text."""

    record_key: int
    owner: str
    text: str


class VectorReader(Protocol):
    """Reads of one consistent view."""

    @property
    def outage(self) -> str | None:
        """Why `nearest` or `similarities` of this view compared no vectors, in words for the user: they are kept where
        they cannot be reached. None if nothing was in the way."""

    async def indexes(self) -> Sequence[VectorIndex]:
        """The active index, then the one that is being built. Either may be missing."""

    async def count(self, fingerprint: str, owner: str | None = None) -> int:
        """How many vectors the index has, of an owner or of all."""

    async def owed(self, fingerprint: str, *, limit: int, is_claimed: bool = False) -> Sequence[OwedVector]:
        """At most `limit` records without a vector in this index: new ones, then changed ones, then older ones, each
        newest first. Without this index: of all records. `is_claimed`: only those that no other process makes (see
        `Maintenance.claim_vectors`)."""

    async def owed_count(self, fingerprint: str) -> int:
        """How many records have no vector in this index. Slow, because it may read every record."""

    async def nearest(
        self,
        scope: Scope,
        fingerprint: str,
        query: "NDArray[np.float32]",
        *,
        k: int,
        among: "NDArray[np.int64] | None" = None,
    ) -> Sequence[tuple[int, float]]:
        """The keys (see `SearchIndex.keys`) of the `k` records of the scope's agent (or session) nearest to the query,
        and the inner products of their unit vectors with it, best first. Ties: newest first. With a limit to a project,
        only those within it.

        `query` is (dimension,), of any length: the mean of several unit vectors gives the mean of their cosines.
        `among`: only records with these keys, ascending; None: all. Empty unless the active index has this fingerprint,
        and if there is an `outage`.

        Raises:
            InvalidInput: the query has another dimension than the index.
        """

    async def similarities(
        self, scope: Scope, fingerprint: str, query: "NDArray[np.float32]", record_keys: Sequence[int]
    ) -> Mapping[int, float]:
        """The inner product of each of these records' unit vectors with the query, as in `nearest`. Records without a
        vector are left out, and those of another owner than the scope's. Empty if there is an `outage`.

        Raises:
            InvalidInput: the query has another dimension than the index.
        """


class VectorWriter(VectorReader, Protocol):
    """Writes of one transaction."""

    async def open_index(self, fingerprint: str, dimension: int) -> None:
        """Create the index of this fingerprint if it is missing: active if it is the first, else to be built. Then an
        unfinished index of another embedder is dropped.

        Raises:
            Conflict: the index has another dimension; nothing was written.
        """

    async def put(self, fingerprint: str, owed: Sequence[OwedVector], vectors: "NDArray[np.float32]") -> None:
        """Store the vectors (n, dimension) of what was owed.

        A record that changed meanwhile gets no vector and is owed one again; one that is gone, or not the record of the
        owner that it was owed for, is skipped.

        Raises:
            Conflict: the index was dropped meanwhile; nothing was written.
            InvalidInput: the vectors have the wrong number or dimension, or are not finite; nothing was written.
        """

    async def activate(self, fingerprint: str) -> None:
        """Make this index the active one, and drop the one that was active.

        Raises:
            Conflict: it was dropped meanwhile; nothing was written.
        """

    async def drop(self, fingerprint: str) -> None:
        """Stop using and building this index. `clear` removes its vectors."""

    async def clear(self, *, limit: int) -> int:
        """Remove at most `limit` vectors of dropped indexes and return how many; 0 if none are left."""
