"""A store that reports each commit made through it, so that a method that writes need not wake the workers itself."""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar

from kalito_mcp.ports.records import Swept
from kalito_mcp.ports.store import ReadView, Store, WriteTransaction

T = TypeVar("T")


class WatchedStore:
    """A `ports.store.Store` on top of another one."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._watchers: list[Callable[[], None]] = []

    def watch(self, on_commit: Callable[[], None]) -> None:
        """Call `on_commit` after every commit from now on. It must return at once and not raise."""
        self._watchers.append(on_commit)

    def read(self) -> AbstractAsyncContextManager[ReadView]:
        """As the store's."""
        return self._store.read()

    async def trip(self, work: Callable[[ReadView], Coroutine[Any, Any, T]]) -> T:
        """As the store's."""
        return await self._store.trip(work)

    @asynccontextmanager
    async def write(self) -> AsyncIterator[WriteTransaction]:
        """As the store's. Nothing is reported if the block raised, because nothing was committed."""
        async with self._store.write() as transaction:
            yield transaction
        self._report()

    async def write_trip(self, work: Callable[[WriteTransaction], Coroutine[Any, Any, T]]) -> T:
        """As the store's. Nothing is reported if `work` raised, because nothing was committed."""
        result = await self._store.write_trip(work)
        self._report()
        return result

    async def catch_up(self) -> bool:
        """As the store's. Not reported: nothing that is owed follows from it."""
        return await self._store.catch_up()

    async def build_ann_index(self) -> bool:
        """As the store's."""
        return await self._store.build_ann_index()

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

    def _report(self) -> None:
        for on_commit in self._watchers:
            on_commit()
