"""A store that reports each commit made through it, so that a method that writes need not wake the workers itself, that
lets calls go before background work, that takes no new words while the memory is paused, and that adds to the audit log
what a principal changed, in the transaction that changes it.
"""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any, Final, TypeVar

import anyio

from kalito_mcp.acting import Acting, acting
from kalito_mcp.call_keys import CallKey, key_to_store
from kalito_mcp.domain.audit import NewEntry, action_name
from kalito_mcp.domain.imports import FileRead
from kalito_mcp.domain.scope import Scope
from kalito_mcp.errors import AlreadyTakenIn
from kalito_mcp.ports.records import Swept
from kalito_mcp.ports.store import ReadView, Store, WriteTransaction

T = TypeVar("T")

MOST_WAIT_S: Final = 0.05
"""So long a transaction of background work gives way to calls. Then it goes on, however busy the calls are."""

_IS_BACKGROUND: Final = ContextVar("is_background", default=False)
_HAS_NO_NEW_WORDS: Final = ContextVar("has_no_new_words", default=False)


@contextmanager
def background_work() -> Iterator[None]:
    """What this task does in the block gives way to calls: before each transaction, while another task has one."""
    before = _IS_BACKGROUND.set(True)
    try:
        yield
    finally:
        _IS_BACKGROUND.reset(before)


@contextmanager
def no_new_words() -> Iterator[None]:
    """What this task writes in the block hides, erases, brings back or moves what is stored: it is also done while the
    memory is paused."""
    before = _HAS_NO_NEW_WORDS.set(True)
    try:
        yield
    finally:
        _HAS_NO_NEW_WORDS.reset(before)


CALLS: Final = "outbox"
"""The source of the keys of calls, among what was imported: an outbox is imported, too."""


def scope_of_keys() -> Scope:
    """Whose keys those of this call are: one that was used by another owner, or within other limits, is new."""
    called = acting()
    return Scope() if called is None else Scope(called.principal.owner, limits=called.principal.limits)


async def _store_key(call: CallKey, scope: Scope, transaction: WriteTransaction) -> None:
    """Store the key of a call with its write. Raises AlreadyTakenIn if it is stored."""
    key = scope.limits.own_session(call.key)
    if await transaction.imports.is_kept(scope, CALLS, key):
        raise AlreadyTakenIn
    kept = FileRead(CALLS, key, size=0, modified_ns=0, read_to=0, fingerprint="")
    await transaction.imports.keep(scope, kept, now_ms=time.time_ns() // 1_000_000)


class WatchedStore:
    """A `ports.store.Store` on top of another one.

    `check` raises while nothing may be remembered. Then only background work and `no_new_words` write. `now_ms` is the
    time of the audit log.
    """

    def __init__(
        self,
        store: Store,
        check: Callable[[], None] = lambda: None,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._store = store
        self._check = check
        self._now_ms = now_ms
        self._watchers: list[Callable[[], None]] = []
        self._calls = 0
        self._no_calls = anyio.Event()

    def watch(self, on_commit: Callable[[], None]) -> None:
        """Call `on_commit` after every commit from now on. It must return at once and not raise."""
        self._watchers.append(on_commit)

    @property
    def is_read_only(self) -> bool:
        """As the store's."""
        return self._store.is_read_only

    async def read(self, work: Callable[[ReadView], Coroutine[Any, Any, T]], *, is_short: bool = False) -> T:
        """As the store's. What is short does not hold background work up."""
        if is_short:
            return await self._store.read(work, is_short=True)
        async with self._turn():
            return await self._store.read(work)

    @asynccontextmanager
    async def view(self) -> AsyncIterator[ReadView]:
        """As the store's."""
        async with self._turn(), self._store.view() as view:
            yield view

    @asynccontextmanager
    async def write(self) -> AsyncIterator[WriteTransaction]:
        """As the store's. Nothing is reported if the block raised, because nothing was committed. Raises what `check`
        raises."""
        self._check_words()
        called, call, scope = acting(), key_to_store(), scope_of_keys()
        async with self._turn(), self._store.write() as transaction:
            if call is not None:
                await _store_key(call, scope, transaction)
            if called is not None:
                await transaction.audit.begin()
            yield transaction
            if called is not None:
                await self._log(called, transaction)
        if call is not None:
            call.is_stored = True
        self._report()

    async def write_trip(
        self,
        work: Callable[[WriteTransaction], Coroutine[Any, Any, T]],
        *,
        before: Callable[[], Awaitable[None]] | None = None,
    ) -> T:
        """As the store's. Nothing is reported if `work` raised, because nothing was committed. Raises what `check`
        raises."""
        self._check_words()
        # Before the trip: its thread does not know who calls.
        call, scope = key_to_store(), scope_of_keys()

        async def marked(transaction: WriteTransaction) -> T:
            if call is not None:
                await _store_key(call, scope, transaction)
            return await work(transaction)

        async with self._turn():
            result = await self._store.write_trip(self._logged(work if call is None else marked), before=before)
        if call is not None:
            call.is_stored = True
        self._report()
        return result

    async def rebuild_derived(self) -> None:
        """As the store's. Not reported: nothing that is owed follows from it."""
        await self._store.rebuild_derived()

    async def tidy(self) -> None:
        """As the store's. Not reported: nothing that is owed follows from it."""
        await self._store.tidy()

    async def move_vectors(self, *, is_whole: bool = False) -> bool:
        """As the store's. Not reported: nothing that is owed to a session follows from it."""
        return await self._store.move_vectors(is_whole=is_whole)

    async def sweep(self, up_to: int = 0) -> Swept:
        """As the store's. Also reported: it removes the vector index file, to be rebuilt."""
        swept = await self._store.sweep(up_to)
        self._report()
        return swept

    async def secret(self) -> bytes:
        """As the store's."""
        return await self._store.secret()

    async def revision(self) -> int:
        """As the store's."""
        return await self._store.revision()

    async def calls_first(self) -> None:
        """Wait until no call has a transaction, but not for long."""
        if self._calls:
            with anyio.move_on_after(MOST_WAIT_S):
                while self._calls:
                    await self._no_calls.wait()

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Background work waits here for calls."""
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

    def _logged(
        self, work: Callable[[WriteTransaction], Coroutine[Any, Any, T]]
    ) -> Callable[[WriteTransaction], Coroutine[Any, Any, T]]:
        """The same work, with what it changes in the audit log if somebody called."""
        called = acting()
        if called is None:
            return work

        async def logged(transaction: WriteTransaction) -> T:
            await transaction.audit.begin()
            result = await work(transaction)
            await self._log(called, transaction)
            return result

        return logged

    async def _log(self, called: Acting, transaction: WriteTransaction) -> None:
        """Add to the audit log what the transaction changed on behalf of who called, if it changed anything."""
        changes = tuple(await transaction.audit.end())
        if changes:
            who = called.principal
            entry = NewEntry(self._now_ms(), who.id, who.owner, action_name(called.action), who.client, changes=changes)
            await transaction.audit.add(entry)

    def _check_words(self) -> None:
        if not _IS_BACKGROUND.get() and not _HAS_NO_NEW_WORDS.get():
            self._check()

    def _report(self) -> None:
        for on_commit in self._watchers:
            on_commit()
