"""The store: consistent reads and atomic writes."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from kalito_mcp.domain.validation import Policy, bounded
from kalito_mcp.ports.conversations import ConversationReader, ConversationWriter
from kalito_mcp.ports.graphs import GraphReader, GraphWriter
from kalito_mcp.ports.records import RecordReader, RecordWriter, Swept
from kalito_mcp.ports.search import SearchReader
from kalito_mcp.ports.sessions import SessionReader, SessionWriter
from kalito_mcp.ports.text_index import TextIndexReader
from kalito_mcp.ports.vectors import VectorReader, VectorWriter


@dataclass(frozen=True, slots=True)
class StoragePolicy(Policy):
    """`busy_timeout_s`: how long a write waits for other processes. `readers`: parallel reads of this process."""

    busy_timeout_s: float = bounded(30.0, most=86_400)
    readers: int = bounded(4, least=1)


class ReadView(Protocol):
    """One snapshot of the store. Everything read through it belongs together."""

    @property
    def sessions(self) -> SessionReader: ...
    @property
    def conversations(self) -> ConversationReader: ...
    @property
    def search(self) -> SearchReader: ...
    @property
    def text(self) -> TextIndexReader: ...
    @property
    def graphs(self) -> GraphReader: ...
    @property
    def records(self) -> RecordReader: ...
    @property
    def vectors(self) -> VectorReader: ...


class WriteTransaction(Protocol):
    """One atomic change. Leaving the block commits, and only then is anything acknowledged; an error or a
    cancellation rolls everything back."""

    @property
    def sessions(self) -> SessionWriter: ...
    @property
    def conversations(self) -> ConversationWriter: ...
    @property
    def search(self) -> SearchReader: ...
    @property
    def text(self) -> TextIndexReader: ...
    @property
    def graphs(self) -> GraphWriter: ...
    @property
    def records(self) -> RecordWriter: ...
    @property
    def vectors(self) -> VectorWriter: ...


class Store(Protocol):
    """A database of memories."""

    def read(self) -> AbstractAsyncContextManager[ReadView]:
        """A consistent view. Keep it short: a long one keeps old pages alive."""
        ...

    def write(self) -> AbstractAsyncContextManager[WriteTransaction]:
        """The write transaction. One at a time, across all processes; never await a model inside.

        Raises:
            StorageBusy: another process held the lock too long.
            StorageFull, StorageReadOnly, StorageDamaged: as they say; nothing was written.
        """
        ...

    async def build_ann_index(self) -> bool:
        """Make what is near quick to find where there are very many vectors; whether anything was to be done. Takes
        minutes for a million vectors, in a thread; what is near is found meanwhile too, slower.

        Raises:
            StorageError: as it says; what is near is found all the same.
        """
        ...

    async def sweep(self, last: int = 0) -> Swept:
        """Make the file forget what was erased from it: the text index merged, the file written anew, the log cut.
        Takes seconds for a large database, and room for a second copy of it.

        `last` is that of `RecordReader.unswept`, where everything else is clean of these erasures: they are not unswept
        any more afterwards. Nothing is done where another call has finished them meanwhile. 0 always sweeps.

        Raises:
            StorageFull, StorageBusy: as they say; what was erased stays erased and unswept.
        """
        ...

    async def secret(self) -> bytes:
        """Sixteen random bytes that were made with the database and never leave it."""
        ...

    async def revision(self) -> int:
        """A number that changes whenever any process has committed a write."""
        ...
