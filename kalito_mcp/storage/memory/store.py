"""A store that is kept in this process alone, for tests: simple rather than fast, for a few thousand records.

A view is the state of the last commit, which never changes. A transaction works on a copy, which takes its place at
once. Nothing waits for a disk, so nothing runs in a thread.
"""

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

import anyio
import anyio.lowlevel

from kalito_mcp.ports.maintenance import OwedErasures
from kalito_mcp.ports.store import ReadView, WriteTransaction
from kalito_mcp.storage.memory.state import State
from kalito_mcp.storage.memory.views import TransactionOfMemory, ViewOfMemory

T = TypeVar("T")
_SECRET_BYTES: Final = 16
_STATE_SECRET_BYTES: Final = 32


class InMemoryStore:
    """`ports.store.Store` in memory. What it has goes when it goes."""

    is_read_only = False

    def __init__(self) -> None:
        self.state = State(secrets.token_bytes(_SECRET_BYTES), secrets.token_bytes(_STATE_SECRET_BYTES))
        self._write_lock = anyio.Lock()

    @property
    def maintenance(self) -> "MaintenanceOfMemory":
        """Its chores."""
        return MaintenanceOfMemory(self)

    async def read(self, work: Callable[[ReadView], Coroutine[Any, Any, T]], *, is_short: bool = False) -> T:
        """The result of `work` on the last commit."""
        del is_short
        async with self.view() as view:
            return await work(view)

    @asynccontextmanager
    async def view(self) -> AsyncIterator[ViewOfMemory]:
        """The last commit, for a block."""
        await anyio.lowlevel.checkpoint()
        yield ViewOfMemory(self.state)

    async def write(
        self,
        work: Callable[[WriteTransaction], Coroutine[Any, Any, T]],
        *,
        before: Callable[[], Awaitable[None]] | None = None,
    ) -> T:
        """The result of `work` in a transaction."""
        async with self.transaction(before) as transaction:
            return await work(transaction)

    @asynccontextmanager
    async def transaction(
        self, before: Callable[[], Awaitable[None]] | None = None
    ) -> AsyncIterator[TransactionOfMemory]:
        """A transaction for a block: committed when the block ends, forgotten if it raises or is cancelled."""
        async with self._write_lock:
            if before is not None:
                await before()
            state = self.state.copy()
            yield TransactionOfMemory(state)
            state.revision += 1
            self.state = state

    async def secret(self) -> bytes:
        """16 random bytes, or those of the archive that it was restored from."""
        return self.state.secret

    async def revision(self, owner: str) -> int:
        """The number of commits."""
        del owner
        return self.state.revision


class MaintenanceOfMemory:
    """`ports.maintenance.Maintenance`. There is no file to clean, and what is derived follows each write."""

    def __init__(self, store: InMemoryStore) -> None:
        self._store = store

    async def tidy(self) -> None:
        """Do nothing."""

    async def rebuild_derived(self) -> None:
        """Do nothing."""

    async def owed_erasures(self) -> OwedErasures:
        """The erasures that were not finished."""
        owed = self._store.state.owed_erasures
        return OwedErasures(max(owed, default=0), frozenset[str]().union(*owed.values()))

    async def finish_erasures(self, owed: OwedErasures | None = None) -> Mapping[str, str]:
        """Take the erasures off the list."""
        async with self._store.transaction() as transaction:
            transaction.records.finish_erasures(0 if owed is None else owed.last)
        return {}

    async def move_vectors(self, *, is_whole: bool = False) -> bool:
        """Do nothing. False: no vector is missing elsewhere."""
        del is_whole
        return False
