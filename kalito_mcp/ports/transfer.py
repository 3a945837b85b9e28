"""What moves a whole database from one store to another, besides the entries of an archive."""

from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING, Protocol

from kalito_mcp.domain.transfer import Row
from kalito_mcp.ports.vectors import OwedVector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class TransferReader(Protocol):
    """Reads of one consistent view, of all owners."""

    async def owners(self) -> Sequence[str]:
        """Everybody who has anything in the store, by name. Others may be among them."""

    def rows(self, table: str, owner: str | None = None) -> AsyncGenerator[Sequence[Row]]:
        """The rows of a table of `domain.transfer.MOVED` in its order, some hundred at a time; those of an owner if the
        table is owned."""

    def vectors(self, fingerprint: str) -> "AsyncGenerator[tuple[Sequence[OwedVector], NDArray[np.float32]]]":
        """The vectors that an index has in the store, newest first, some hundred at a time, as `VectorWriter.put` takes
        them."""


class TransferWriter(TransferReader, Protocol):
    """Writes of one transaction."""

    async def begin(self, secret: bytes) -> None:
        """Take the secret of another database. From now on the store can only be opened to receive, until
        `ArchiveWriter.finish`."""

    async def add(self, table: str, rows: Sequence[Row], owner: str | None = None) -> None:
        """Store rows of a table of `domain.transfer.MOVED`. A table that always has one row has this one then.

        Raises:
            InvalidInput: a row cannot be stored.
        """
