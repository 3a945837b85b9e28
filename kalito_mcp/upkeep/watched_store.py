"""A store that says when something was committed through it: who pays what is owed for it then need not be told by
every verb that writes."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from kalito_mcp.ports.records import Swept
from kalito_mcp.ports.store import ReadView, Store, WriteTransaction


class WatchedStore:
    """Implements `ports.store.Store` on another one. `committed` must return at once, and not raise."""

    def __init__(self, store: Store, committed: Callable[[], None]) -> None:
        self._store = store
        self._committed = committed

    def read(self) -> AbstractAsyncContextManager[ReadView]:
        """As the store's."""
        return self._store.read()

    @asynccontextmanager
    async def write(self) -> AsyncIterator[WriteTransaction]:
        """As the store's; a block that raised has committed nothing, and nobody is told."""
        async with self._store.write() as transaction:
            yield transaction
        self._committed()

    async def build_ann_index(self) -> bool:
        """As the store's."""
        return await self._store.build_ann_index()

    async def sweep(self, last: int = 0) -> Swept:
        """As the store's. Told too: it removes what makes vectors quick to find."""
        swept = await self._store.sweep(last)
        self._committed()
        return swept

    async def secret(self) -> bytes:
        """As the store's."""
        return await self._store.secret()

    async def revision(self) -> int:
        """As the store's."""
        return await self._store.revision()
