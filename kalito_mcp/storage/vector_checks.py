"""What every store refuses of vectors. Pure."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kalito_mcp.errors import Conflict, InvalidInput
from kalito_mcp.ports.vectors import OwedVector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def check_query(query: "NDArray[np.float32]", dimension: int) -> None:
    """Raises InvalidInput if a query cannot be compared with vectors of this dimension."""
    if query.shape != (dimension,):
        raise InvalidInput(f"the query's vector has the shape {query.shape}, but the index needs ({dimension},)")


def check_vectors(owed: Sequence[OwedVector], vectors: "NDArray[np.float32]", dimension: int) -> None:
    """Raises InvalidInput if these are not the vectors of what was owed."""
    if vectors.shape != (len(owed), dimension):
        raise InvalidInput(f"the vectors have the shape {vectors.shape}, but it must be ({len(owed)}, {dimension})")


def check_dimension(fingerprint: str, stored: int, dimension: int) -> None:
    """Raises Conflict if an embedder returns other vectors than those that its index has."""
    if stored != dimension:
        raise Conflict(
            f"the vectors of {fingerprint!r} have {stored} dimensions, but the embedder returns {dimension} now; "
            "configure it as before, or under another name"
        )


def dropped() -> Conflict:
    """What a write to an index is refused with that is not there any more."""
    return Conflict("another process started to index with another embedder; run `kalito-mcp reindex` again")
