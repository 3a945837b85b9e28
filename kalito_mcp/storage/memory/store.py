"""A store that is kept in this process alone, for tests: simple rather than fast, for a few thousand records.

A view is the state of the last commit, which never changes. A transaction works on a copy, which takes its place at
once. Nothing waits for a disk, so nothing runs in a thread.
"""

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio
import anyio.lowlevel

from kalito_mcp.ports.maintenance import OwedErasures
from kalito_mcp.ports.store import ReadView, Schema, WriteTransaction
from kalito_mcp.storage.memory.access import Access
from kalito_mcp.storage.memory.archive import Archive
from kalito_mcp.storage.memory.audit import Audit
from kalito_mcp.storage.memory.conversations import Conversations
from kalito_mcp.storage.memory.given import GivenBack
from kalito_mcp.storage.memory.graphs import Graphs
from kalito_mcp.storage.memory.imports import Imports
from kalito_mcp.storage.memory.people import People
from kalito_mcp.storage.memory.records import Records
from kalito_mcp.storage.memory.search_index import Search
from kalito_mcp.storage.memory.sessions import Sessions
from kalito_mcp.storage.memory.sign_in import SignIn
from kalito_mcp.storage.memory.spaces import Spaces
from kalito_mcp.storage.memory.state import State
from kalito_mcp.storage.memory.timeline import Timeline
from kalito_mcp.storage.memory.vectors import Vectors
from kalito_mcp.storage.unshared import Unshared

T = TypeVar("T")


class Ports:
    """`ports.store.ReadView` of a state that is committed, and `WriteTransaction` of one that nobody else sees yet."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.sessions = Sessions(state)
        self.conversations = Conversations(state)
        self.search = Search(state)
        self.graphs = Graphs(state)
        self.records = Records(state)
        self.vectors = Vectors(state)
        self.archive = Archive(state)
        self.imports = Imports(state)
        self.access = Access(state)
        self.sign_in = SignIn(state)
        self.audit = Audit(state)
        self.timeline = Timeline(state)
        self.given = GivenBack(state)
        self.people = People(state)
        self.spaces = Spaces(state)


class InMemoryStore:
    """`ports.store.Store` in memory. What it has goes when it goes."""

    is_read_only = False

    def __init__(self) -> None:
        self.state = State(secret=secrets.token_bytes(16), state_secret=secrets.token_bytes(32))
        self.maintenance = MaintenanceOfMemory(self)
        self._write_lock = anyio.Lock()

    async def read(self, work: Callable[[ReadView], Coroutine[Any, Any, T]], *, is_short: bool = False) -> T:
        del is_short
        async with self.view() as view:
            return await work(view)

    @asynccontextmanager
    async def view(self) -> AsyncIterator[ReadView]:
        await anyio.lowlevel.checkpoint()
        yield Ports(self.state)

    async def write(
        self,
        work: Callable[[WriteTransaction], Coroutine[Any, Any, T]],
        *,
        before: Callable[[], Awaitable[None]] | None = None,
    ) -> T:
        async with self.transaction(before) as transaction:
            return await work(transaction)

    @asynccontextmanager
    async def transaction(self, before: Callable[[], Awaitable[None]] | None = None) -> AsyncIterator[Ports]:
        """A transaction for a block: committed when the block ends, forgotten if it raises or is cancelled."""
        async with self._write_lock:
            if before is not None:
                await before()
            state = self.state.copy()
            yield Ports(state)
            state.revision += 1
            self.state = state

    async def secret(self) -> bytes:
        return self.state.secret

    async def schema(self) -> Schema:
        return Schema("memory", 0, 0)

    async def revision(self, owner: str) -> int:
        del owner
        return self.state.revision

    async def listen(self, owners: Callable[[], Collection[str]], heard: Callable[[], None]) -> None:
        """No other process changes it."""


class MaintenanceOfMemory(Unshared):
    """`ports.maintenance.Maintenance`. There is no file to clean, and what is derived follows each write."""

    def __init__(self, store: InMemoryStore) -> None:
        self._store = store

    async def tidy(self) -> None:
        pass

    async def rebuild_derived(self) -> None:
        pass

    async def owed_erasures(self) -> OwedErasures:
        owed = self._store.state.owed_erasures
        return OwedErasures(max(owed, default=0), frozenset[str]().union(*owed.values()))

    async def finish_erasures(self, owed: OwedErasures | None = None) -> Mapping[str, str]:
        async with self._store.transaction() as transaction:
            state, last = transaction.state, 0 if owed is None else owed.last
            state.owed_erasures = {key: keys for key, keys in state.owed_erasures.items() if key > last}
        return {}

    async def move_vectors(self, *, is_whole: bool = False) -> bool:
        del is_whole
        return False
