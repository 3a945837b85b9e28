"""What moves a whole database from one store to another. A store that ends with its process needs none of it."""

from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from kalito_mcp.domain.transfer import Row
from kalito_mcp.ports.store import OpenedStore, ReadView, WriteTransaction
from kalito_mcp.ports.vectors import OwedVector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")


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


class TransferView(ReadView, Protocol):
    """A view for a migration."""

    @property
    def transfer(self) -> TransferReader: ...


class TransferTransaction(WriteTransaction, Protocol):
    """A transaction for a migration."""

    @property
    def transfer(self) -> TransferWriter: ...


class TransferStore(OpenedStore, Protocol):
    """A store that a migration reads or writes."""

    def view(self) -> AbstractAsyncContextManager[TransferView]: ...

    async def write(self, work: Callable[[TransferTransaction], Coroutine[Any, Any, T]]) -> T: ...  # type: ignore[override]
