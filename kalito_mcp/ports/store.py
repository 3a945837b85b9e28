"""The store: consistent reads and atomic writes."""

from collections.abc import Awaitable, Callable, Collection, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from kalito_mcp.ports.access import AccessReader, AccessWriter
from kalito_mcp.ports.archive import ArchiveReader, ArchiveWriter
from kalito_mcp.ports.audit import AuditReader, AuditWriter
from kalito_mcp.ports.conversations import ConversationReader, ConversationWriter
from kalito_mcp.ports.given import GivenReader, GivenWriter
from kalito_mcp.ports.graphs import GraphReader, GraphWriter
from kalito_mcp.ports.imports import ImportReader, ImportWriter
from kalito_mcp.ports.maintenance import Maintenance
from kalito_mcp.ports.people import PeopleReader, PeopleWriter
from kalito_mcp.ports.records import RecordReader, RecordWriter
from kalito_mcp.ports.search import SearchReader
from kalito_mcp.ports.sessions import SessionReader, SessionWriter
from kalito_mcp.ports.sign_in import SignInReader, SignInWriter
from kalito_mcp.ports.spaces import SpaceReader, SpaceWriter
from kalito_mcp.ports.timeline import TimelineReader
from kalito_mcp.ports.transfer import TransferReader, TransferWriter
from kalito_mcp.ports.vectors import VectorReader, VectorWriter

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Schema:
    """The schema of a store. `store` is `sqlite` or `postgres`; `applied` is the number of the newest step
    that the database has, `known` that of this release."""

    store: str
    applied: int
    known: int


class Overtaken(Exception):
    """Data that was read before the transaction has changed since, so its `work` wrote nothing. Read it again."""


class ReadView(Protocol):
    """One snapshot of the store. Everything read through it belongs together."""

    @property
    def sessions(self) -> SessionReader: ...
    @property
    def conversations(self) -> ConversationReader: ...
    @property
    def search(self) -> SearchReader: ...
    @property
    def graphs(self) -> GraphReader: ...
    @property
    def records(self) -> RecordReader: ...
    @property
    def vectors(self) -> VectorReader: ...
    @property
    def archive(self) -> ArchiveReader: ...
    @property
    def imports(self) -> ImportReader: ...
    @property
    def access(self) -> AccessReader: ...
    @property
    def sign_in(self) -> SignInReader: ...
    @property
    def audit(self) -> AuditReader: ...
    @property
    def timeline(self) -> TimelineReader: ...
    @property
    def given(self) -> GivenReader: ...
    @property
    def people(self) -> PeopleReader: ...
    @property
    def spaces(self) -> SpaceReader: ...
    @property
    def transfer(self) -> TransferReader: ...


class WriteTransaction(Protocol):
    """One atomic change."""

    @property
    def sessions(self) -> SessionWriter: ...
    @property
    def conversations(self) -> ConversationWriter: ...
    @property
    def graphs(self) -> GraphWriter: ...
    @property
    def records(self) -> RecordWriter: ...
    @property
    def vectors(self) -> VectorWriter: ...
    @property
    def archive(self) -> ArchiveWriter: ...
    @property
    def imports(self) -> ImportWriter: ...
    @property
    def access(self) -> AccessWriter: ...
    @property
    def sign_in(self) -> SignInWriter: ...
    @property
    def audit(self) -> AuditWriter: ...
    @property
    def given(self) -> GivenWriter: ...
    @property
    def people(self) -> PeopleWriter: ...
    @property
    def spaces(self) -> SpaceWriter: ...
    @property
    def transfer(self) -> TransferWriter: ...


class Store(Protocol):
    """A database of memories."""

    @property
    def is_read_only(self) -> bool:
        """Whether every write raises an error that says why."""

    @property
    def maintenance(self) -> Maintenance:
        """Its chores."""

    async def read(self, work: Callable[[ReadView], Coroutine[Any, Any, T]], *, is_short: bool = False) -> T:
        """The result of `work` on a consistent view. `work` awaits only the view: a store may run it on another thread,
        or again. `is_short`: it reads a row or two by their key, at once.

        Raises:
            StorageReplaced: the database was moved, deleted or replaced.
            StorageDamaged: the database cannot be read.
            StorageBusy: another program held the database for too long.
        """

    def view(self) -> AbstractAsyncContextManager[ReadView]:
        """A consistent view for a block that awaits other things, too, such as an export that is sent while it is read.
        Keep it short: while it is open, the store cannot drop what later writes replace.

        Raises:
            StorageReplaced, StorageDamaged: as `read`.
        """

    async def write(
        self,
        work: Callable[[WriteTransaction], Coroutine[Any, Any, T]],
        *,
        before: Callable[[], Awaitable[None]] | None = None,
    ) -> T:
        """The result of `work` in a write transaction, which is committed when `work` returns, and rolled back if it
        raises or is cancelled. One at a time, across all processes.

        `work` awaits only the transaction: a store may run it on another thread, or again. `before` is awaited when
        nobody else can write any more, and before `work`. It takes the locks of what `work` changes besides the store.
        If it raises, nothing was begun.

        Raises:
            StorageBusy: another process held the lock too long.
            StorageFull: there is no room to write; nothing was written.
            StorageReadOnly: the database is open for reading only; nothing was written.
            StorageDamaged: the database cannot be read; nothing was written.
            StorageReplaced: the database was moved, deleted, replaced or cut short.
        """

    async def note(self, work: Callable[[WriteTransaction], Coroutine[Any, Any, T]]) -> T:
        """As `write`, for what takes in no words and makes no work for the background."""

    async def secret(self) -> bytes:
        """The database's own 16 random bytes, which never change. Never show them."""

    async def schema(self) -> Schema:
        """The schema as the database has it now. Raises StorageError if it cannot be read."""

    async def revision(self, owner: str) -> int:
        """A number that changes whenever any process commits a change of the owner's memory, tokens, consents or
        memberships, or of a space that they are in. It stays while nobody writes, but may change when another owner's
        memory does."""

    async def listen(self, owners: Callable[[], Collection[str]], heard: Callable[[], None]) -> None:
        """Until cancelled, call `heard` soon after a process has committed a change for one of the owners, which are
        asked for each time. Some changes may be missed: look at `revision` now and then. Returns at once if the store
        has no way to hear of changes."""


class OpenedStore(Store, Protocol):
    """A store with its connections, for the composition root that opened it."""

    async def reindex(self) -> int:
        """Rebuild the text index; the number of records in it. If interrupted, the next call goes on."""

    async def close(self) -> None:
        """End its connections."""
