"""Rules that hold for every write of a memory, each in a layer around the store.

`Reporting` wakes what follows commits. `Pausing` takes no new words while the memory is paused. `CallsFirst` lets calls
go before background work. `Auditing` logs what a principal changed, and `OncePerKey` makes a repeated call one; both in
the transaction that makes the change.
"""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any, Final, TypeVar

import anyio

from kalito_mcp.domain.audit import NewEntry, action_name
from kalito_mcp.domain.imports import FileRead
from kalito_mcp.domain.scope import Scope
from kalito_mcp.errors import AlreadyTakenIn
from kalito_mcp.ports.maintenance import Maintenance, OwedErasures
from kalito_mcp.ports.store import ReadView, Schema, Store, WriteTransaction
from kalito_mcp.runtime.acting import acting
from kalito_mcp.runtime.call_keys import key_to_store

T = TypeVar("T")
Read = Callable[[ReadView], Coroutine[Any, Any, T]]
Write = Callable[[WriteTransaction], Coroutine[Any, Any, T]]
Before = Callable[[], Awaitable[None]] | None

MOST_WAIT_S: Final = 0.05
"""How long a transaction of background work waits for calls, however busy they are."""

CALLS: Final = "outbox"
"""The source of the keys of calls, among what was imported: an outbox is imported, too."""

_IS_BACKGROUND: Final = ContextVar("is_background", default=False)
_HAS_NO_NEW_WORDS: Final = ContextVar("has_no_new_words", default=False)


@contextmanager
def background_work() -> Iterator[None]:
    """Before each transaction of the block, this task waits while another task has one."""
    before = _IS_BACKGROUND.set(True)
    try:
        yield
    finally:
        _IS_BACKGROUND.reset(before)


@contextmanager
def no_new_words() -> Iterator[None]:
    """The block only hides, erases, brings back or moves what is stored, so it may write while the memory is paused."""
    before = _HAS_NO_NEW_WORDS.set(True)
    try:
        yield
    finally:
        _HAS_NO_NEW_WORDS.reset(before)


def scope_of_keys() -> Scope:
    """Where the key of this call is stored. A key counts once for each owner and limits."""
    called = acting()
    return Scope() if called is None else Scope(called.principal.owner, limits=called.principal.limits)


class StoreLayer:
    """A `ports.store.Store` that does what the store below does."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def is_read_only(self) -> bool:
        return self._store.is_read_only

    @property
    def maintenance(self) -> Maintenance:
        return self._store.maintenance

    async def read(self, work: Read[T], *, is_short: bool = False) -> T:
        return await self._store.read(work, is_short=is_short)

    def view(self) -> AbstractAsyncContextManager[ReadView]:
        return self._store.view()

    async def write(self, work: Write[T], *, before: Before = None) -> T:
        return await self._store.write(work, before=before)

    async def note(self, work: Write[T]) -> T:
        return await self._store.note(work)

    async def secret(self) -> bytes:
        return await self._store.secret()

    async def schema(self) -> Schema:
        return await self._store.schema()

    async def revision(self, owner: str) -> int:
        return await self._store.revision(owner)

    async def listen(self, owners: Callable[[], Collection[str]], heard: Callable[[], None]) -> None:
        await self._store.listen(owners, heard)


class Reporting(StoreLayer):
    """Reports each commit, so that no method that writes has to wake the workers."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._watchers: list[Callable[[], None]] = []

    def watch(self, on_commit: Callable[[], None]) -> None:
        """Call `on_commit` after every commit from now on. It must return at once and not raise."""
        self._watchers.append(on_commit)

    async def write(self, work: Write[T], *, before: Before = None) -> T:
        """As the store's, and reported if it may have been committed, even if it was cancelled."""
        try:
            result = await self._store.write(work, before=before)
        except Exception:
            raise
        except BaseException:
            self._report()
            raise
        self._report()
        return result

    @property
    def maintenance(self) -> Maintenance:
        """As the store's. What it may make owed is reported."""
        return _ReportedMaintenance(self._store.maintenance, self._report)

    def _report(self) -> None:
        for on_commit in self._watchers:
            on_commit()


class _ReportedMaintenance:
    """The chores of a store, with a report of vectors that were missing where they are kept: they are owed again."""

    def __init__(self, maintenance: Maintenance, report: Callable[[], None]) -> None:
        self._report = report
        self.tidy = maintenance.tidy
        self.rebuild_derived = maintenance.rebuild_derived
        self.owed_erasures = maintenance.owed_erasures
        self.move_vectors = maintenance.move_vectors
        self.lease_s = maintenance.lease_s
        self.held = maintenance.held
        self.claim_owed = maintenance.claim_owed
        self.settle_owed = maintenance.settle_owed
        self.claim_vectors = maintenance.claim_vectors
        self._finish_erasures = maintenance.finish_erasures

    async def finish_erasures(self, owed: OwedErasures | None = None) -> Mapping[str, str]:
        """As the store's, and reported."""
        left = await self._finish_erasures(owed)
        self._report()
        return left


class Pausing(StoreLayer):
    """Refuses new words while the memory is paused: `check` raises then. Background work goes on."""

    def __init__(self, store: Store, check: Callable[[], None]) -> None:
        super().__init__(store)
        self._check = check

    async def write(self, work: Write[T], *, before: Before = None) -> T:
        """As the store's. Raises what `check` raises."""
        if not _IS_BACKGROUND.get() and not _HAS_NO_NEW_WORDS.get():
            self._check()
        return await self._store.write(work, before=before)


class CallsFirst(StoreLayer):
    """Lets background work wait while a call has a transaction. A short read holds nobody up."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._calls = 0
        self._no_calls = anyio.Event()

    async def calls_first(self) -> None:
        """Wait until no call has a transaction, but at most `MOST_WAIT_S`."""
        if self._calls:
            with anyio.move_on_after(MOST_WAIT_S):
                while self._calls:
                    await self._no_calls.wait()

    async def read(self, work: Read[T], *, is_short: bool = False) -> T:
        if is_short:
            return await self._store.read(work, is_short=True)
        async with self._turn():
            return await self._store.read(work)

    @asynccontextmanager
    async def view(self) -> AsyncIterator[ReadView]:
        async with self._turn(), self._store.view() as view:
            yield view

    async def write(self, work: Write[T], *, before: Before = None) -> T:
        async with self._turn():
            return await self._store.write(work, before=before)

    async def note(self, work: Write[T]) -> T:
        async with self._turn():
            return await self._store.note(work)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        if _IS_BACKGROUND.get():
            await self.calls_first()
            yield
            return
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1
            if not self._calls:
                self._no_calls.set()
                self._no_calls = anyio.Event()


class Auditing(StoreLayer):
    """Adds what a principal changed to the audit log. `now_ms` gives its times."""

    def __init__(self, store: Store, now_ms: Callable[[], int]) -> None:
        super().__init__(store)
        self._now_ms = now_ms

    async def write(self, work: Write[T], *, before: Before = None) -> T:
        """As the store's. Nothing is logged if nothing was changed, or if nobody called."""
        called = acting()  # known to this task, not to a thread of the store
        if called is None:
            return await self._store.write(work, before=before)
        who, action = called.principal, action_name(called.action)

        async def logged(transaction: WriteTransaction) -> T:
            result, changes = await transaction.audit.changes_of(lambda: work(transaction))
            if changes:
                entry = NewEntry(self._now_ms(), who.id, who.owner, action, who.client, changes=tuple(changes))
                await transaction.audit.add(entry)
            return result

        return await self._store.write(logged, before=before)


class OncePerKey(StoreLayer):
    """Stores the key of a call that may be sent again with the first write of the call."""

    async def write(self, work: Write[T], *, before: Before = None) -> T:
        """As the store's. Raises AlreadyTakenIn if the key is stored; nothing was written."""
        call, scope = key_to_store(), scope_of_keys()
        if call is None:
            return await self._store.write(work, before=before)
        key = scope.limits.own_session(call.key)

        async def marked(transaction: WriteTransaction) -> T:
            if await transaction.imports.is_kept(scope, CALLS, key):
                raise AlreadyTakenIn
            kept = FileRead(CALLS, key, size=0, modified_ns=0, read_to=0, fingerprint="")
            await transaction.imports.keep(scope, kept, now_ms=time.time_ns() // 1_000_000)
            return await work(transaction)

        result = await self._store.write(marked, before=before)
        call.is_stored = True
        return result
