"""Vectors that are kept outside the database, such as in Qdrant. The database says which there are.

A point stands for one row of the database, and its id is a hash of that row with its vector. So a point never changes,
and one that is not in the database any more, or is of another copy of it, is recognised by its id: it is no hit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from kalito_mcp.domain.records import RecordType

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class VectorTenant:
    """Whose vectors: one agent's, or one session's of it, in one index. `database` is a keyed hash."""

    database: str
    index_key: int
    dimension: int
    owner: str
    agent: str
    session_key: int | None


@dataclass(frozen=True, slots=True)
class VectorPoint:
    """A vector to be kept. `vector` is (dimension,), of any length."""

    id: bytes
    row_key: int
    type: RecordType
    tenant: VectorTenant
    vector: "NDArray[np.int8]"


@dataclass(frozen=True, slots=True)
class FoundPoint:
    """A point near to a query, and its cosine."""

    id: bytes
    row_key: int
    cosine: float


class VectorPoints(Protocol):
    """A place of points. Every method but `aclose` raises VectorsUnreachable if it cannot be reached in time."""

    @property
    def name(self) -> str:
        """The place in words for the user: `Qdrant at http://localhost:6333`. No key is in it."""

    @property
    def arrivals(self) -> int:
        """A number that changes when points may have been lost: with the first answer, and with each failure."""

    async def put(self, points: Sequence[VectorPoint]) -> None:
        """Keep these points, all of one dimension. Those that are there already stay the same."""

    async def remove(self, database: str, ids: Sequence[bytes]) -> None:
        """Remove these points of this database. Unknown ids are skipped."""

    async def nearest(self, tenant: VectorTenant, query: "NDArray[np.float32]", count: int) -> Sequence[FoundPoint]:
        """The `count` points of the tenant that are nearest to the query, best first."""

    async def similarities(
        self, database: str, query: "NDArray[np.float32]", ids: Mapping[RecordType, Sequence[bytes]]
    ) -> Mapping[bytes, float]:
        """The cosines of these points, as far as they are there, by id."""

    async def count(self, database: str) -> int:
        """How many points of this database there are."""

    async def ids(self, database: str) -> frozenset[bytes]:
        """The ids of all points of this database."""

    async def aclose(self) -> None:
        """End its connections."""
