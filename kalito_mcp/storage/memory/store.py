"""A store that is kept in this process alone, for tests: simple rather than fast, for a few thousand records.

A view is the state of the last commit, which never changes. A transaction works on a copy, which takes its place at
once. Nothing waits for a disk, so nothing runs in a thread.
"""

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

import anyio
import anyio.lowlevel

from kalito_mcp.ports.records import Swept
from kalito_mcp.storage.memory.state import State
from kalito_mcp.storage.memory.views import TransactionOfMemory, ViewOfMemory

T = TypeVar("T")
_SECRET_BYTES: Final = 16
_STATE_SECRET_BYTES: Final = 32


class InMemoryStore:
    """`ports.store.Store` in memory. What it has goes when it goes."""

    is_read_only = False

    def __init__(self) -> None:
        self._state = State(secrets.token_bytes(_SECRET_BYTES), secrets.token_bytes(_STATE_SECRET_BYTES))
        self._write_lock = anyio.Lock()

    async def read(self, work: Callable[[ViewOfMemory], Coroutine[Any, Any, T]], *, is_short: bool = False) -> T:
        """The result of `work` on the last commit."""
        del is_short
        async with self.view() as view:
            return await work(view)

    @asynccontextmanager
    async def view(self) -> AsyncIterator[ViewOfMemory]:
        """The last commit, for a block."""
        await anyio.lowlevel.checkpoint()
        yield ViewOfMemory(self._state)

    async def write(
        self,
        work: Callable[[TransactionOfMemory], Coroutine[Any, Any, T]],
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
            state = self._state.copy()
            yield TransactionOfMemory(state)
            state.revision += 1
            self._state = state

    async def sweep(self, up_to: int = 0) -> Swept:
        """Take the erasures up to `up_to` off the list. There is no file from which anything had to be removed."""
        async with self.transaction() as transaction:
            transaction.records.take_off_unswept(up_to)
        return Swept({})

    async def rebuild_derived(self) -> None:
        """Do nothing: what is derived follows each write."""

    async def tidy(self) -> None:
        """Do nothing: there is nothing to merge."""

    async def move_vectors(self, *, is_whole: bool = False) -> bool:
        """Do nothing: vectors are kept here. False: none is missing elsewhere."""
        del is_whole
        return False

    async def secret(self) -> bytes:
        """The store's own 16 random bytes."""
        return self._state.secret

    async def revision(self) -> int:
        """The number of commits."""
        return self._state.revision
