"""Keeps recently used graphs in memory, each as fresh as what is stored.

A graph is loaded when first needed. It is updated when its stored revision has moved, and the least recently used
graphs are dropped. Graphs are changed inside a write transaction. If that fails, the changed graph is dropped from
memory and read again.

To change a graph, take the right to write before the graph's lock, and release the lock after the transaction. To read
one, open a view first, or ask what is stored and take the lock at once if it is what is in memory. So nobody waits for
a transaction while holding a graph's lock, and nobody reads what is not stored yet.
"""

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
import anyio.to_thread

from kalito_mcp.domain.graph import GraphContents, GraphState
from kalito_mcp.domain.scope import DEFAULT_AGENT, Scope
from kalito_mcp.errors import SessionNotFound
from kalito_mcp.gc_pause import gc_paused
from kalito_mcp.long_texts import read_aside
from kalito_mcp.ports.graphs import GraphReader
from kalito_mcp.ports.store import ReadView, Store, WriteTransaction

if TYPE_CHECKING:
    # It imports numpy, which is loaded only once a graph is needed.
    from kalito_mcp.graph.store import GraphStore

T = TypeVar("T")
_MAX_LOADED: Final = 32
_MOST_IN_LOOP: Final = 199


@dataclass(slots=True, eq=False)
class _Cached:
    """A cached graph. `state` is the stored state it matches; `version` is the graph's own version at that moment."""

    graph: "GraphStore"
    version: int
    state: GraphState = GraphState()
    lock: anyio.Lock = field(default_factory=partial(anyio.Lock, fast_acquire=True))

    @property
    def is_changed(self) -> bool:
        return self.graph.version != self.version or self.graph.slept_at != self.state.slept_at

    def mark_stored(self, state: GraphState) -> None:
        self.state, self.version = state, self.graph.version


class GraphCache:
    """Graphs by scope. A scope without a session means the agent's own graph."""

    def __init__(self, store: Store, new_graph: Callable[[Scope], "GraphStore"]) -> None:
        self._store = store
        self._new_graph = new_graph
        self._cached: OrderedDict[Scope, _Cached] = OrderedDict()
        self._is_warm = False

    async def warm_up(self) -> None:
        """Import what graphs need, in a thread: the first time that takes 70 ms."""
        if not self._is_warm:
            await anyio.to_thread.run_sync(self._new_graph, Scope())
            self._is_warm = True

    @asynccontextmanager
    async def reading(self, *scopes: Scope) -> AsyncIterator[list["GraphStore"]]:
        """The graphs as stored, for reading only. An unknown session's graph is empty. The block must not wait for a
        write."""
        async with AsyncExitStack() as stack:
            if (at_hand := await self._at_hand(stack, scopes)) is not None:
                yield at_hand
                return
            view = await stack.enter_async_context(self._store.view())
            graphs: list[GraphStore] = []
            for scope in scopes:
                if await _is_known(view, scope):
                    locked = self._lock(view.graphs, scope)
                    graphs.append((await stack.enter_async_context(locked)).graph)
                else:
                    graphs.append(self._new_graph(scope))
            yield graphs

    async def change(
        self,
        scopes: Sequence[Scope],
        work: Callable[[WriteTransaction, Sequence["GraphStore"]], Coroutine[Any, Any, T]],
    ) -> T:
        """The result of `work` in a write transaction, with the graphs as stored. What it changes in them is written
        with it. `work` awaits nothing but the transaction.

        Raises:
            SessionNotFound: a scope names an unknown session, or another agent's; nothing was written.
        """
        if any(_cache_key(scope) not in self._cached for scope in scopes):
            # Load before the transaction: a large graph takes a second, and all writers would wait.
            async with self.reading(*scopes):
                pass
        keys, held = [_cache_key(scope) for scope in scopes], list[_Cached]()

        async def lock() -> None:
            for key in keys:
                held.append(await locks.enter_async_context(self._locked(key)))

        async def change(transaction: WriteTransaction) -> tuple[T, list[GraphState]]:
            for scope, key, one in zip(scopes, keys, held, strict=True):
                await _check_known(transaction, scope)
                await _bring_up_to_date(one, transaction.graphs, key)
            made = await work(transaction, [one.graph for one in held])
            return made, [await _save(one, transaction, key) for key, one in zip(keys, held, strict=True)]

        async with AsyncExitStack() as locks:
            try:
                made, states = await self._store.write(change, before=lock)
            except BaseException:
                for key, one in zip(keys, held, strict=False):
                    if one.is_changed and self._cached.get(key) is one:
                        self.forget(key)
                raise
            for one, state in zip(held, states, strict=True):
                one.mark_stored(state)
        return made

    async def copy(self, scope: Scope) -> tuple["GraphStore", GraphState]:
        """A private copy of the stored graph, and its stored state. For long work that must not block others.

        Raises:
            SessionNotFound: the scope names an unknown session, or another agent's.
        """
        contents = await self._store.read(lambda view: self.contents(view, scope))
        return await self.built(scope, contents), contents.state

    async def contents(self, view: ReadView, scope: Scope) -> GraphContents:
        """The stored graph, for `built`. Raises SessionNotFound, as `copy`."""
        await _check_known(view, scope)
        return await view.graphs.load(_cache_key(scope))

    async def built(self, scope: Scope, contents: GraphContents) -> "GraphStore":
        """A graph of these contents that nobody else has, made in a thread."""
        graph = self._new_graph(scope)
        await anyio.to_thread.run_sync(lambda: graph.absorb(contents, is_whole=True))
        return graph

    async def save_copy(
        self, transaction: WriteTransaction, scope: Scope, graph: "GraphStore", state: GraphState
    ) -> None:
        """Write what was changed in a copy. `state` must still be the stored one. The graph in memory follows when it
        is next used."""
        await _save(_Cached(graph, graph.version, state), transaction, _cache_key(scope))

    def forget(self, scope: Scope) -> None:
        """Drop a graph from memory; it is read again when needed. A block that already has it keeps it."""
        self._cached.pop(_cache_key(scope), None)

    def loaded(self) -> list[Scope]:
        """The scopes of the graphs in memory, least recently used first."""
        return list(self._cached)

    async def _at_hand(self, locks: AsyncExitStack, scopes: Sequence[Scope]) -> list["GraphStore"] | None:
        """The graphs, locked, if all are in memory as they are stored, and nobody uses one. That takes one trip."""
        if not all(_cache_key(scope) in self._cached for scope in scopes):
            return None

        async def stored(view: ReadView) -> list[GraphState | None]:
            return [
                await view.graphs.state(_cache_key(scope)) if await _is_known(view, scope) else None for scope in scopes
            ]

        states = await self._store.read(stored)
        found = [self._cached.get(_cache_key(scope)) for scope in scopes]
        cached = [one for one in found if one is not None and not one.lock.locked()]
        if [one.state for one in cached] != states:
            return None
        for scope, one in zip(scopes, cached, strict=True):
            one.lock.acquire_nowait()
            locks.callback(one.lock.release)
            self._cached.move_to_end(_cache_key(scope))
        return [one.graph for one in cached]

    @asynccontextmanager
    async def _lock(self, graphs: GraphReader, scope: Scope) -> AsyncIterator[_Cached]:
        """The cached graph, brought up to date, under its lock."""
        key = _cache_key(scope)
        async with self._locked(key) as cached:
            try:
                await _bring_up_to_date(cached, graphs, key)
            except BaseException:
                self.forget(key)
                raise
            yield cached

    @asynccontextmanager
    async def _locked(self, key: Scope) -> AsyncIterator[_Cached]:
        """The cached graph as it is, under its lock."""
        while True:
            cached = self._cached.get(key)
            if cached is None:
                graph = self._new_graph(key)
                cached = self._cached[key] = _Cached(graph, graph.version)
            self._cached.move_to_end(key)
            async with cached.lock:
                # Dropped while this waited for its lock: it may contain changes that were never stored.
                if self._cached.get(key) is not cached:
                    continue
                yield cached
            break
        idle = [other for other, one in self._cached.items() if not one.lock.locked()]
        for other in idle[: max(0, len(self._cached) - _MAX_LOADED)]:
            del self._cached[other]


async def _bring_up_to_date(cached: _Cached, graphs: GraphReader, scope: Scope) -> None:
    state, known = await graphs.state(scope), cached.state
    if state.revision == known.revision:
        # A sleep cycle that merged nothing does not move the revision.
        cached.state, cached.graph.slept_at = state, state.slept_at
        return
    # The view is older than this process's own last write: keep the newer graph.
    if 0 < state.revision < known.revision:
        return
    is_whole = known.revision < state.removed_revision or state.revision < known.revision
    with gc_paused():
        contents = await graphs.load(scope, after=0 if is_whole else known.revision)
        size = len(contents.nodes) + len(contents.edges)
        await read_aside(size, lambda: cached.graph.absorb(contents, is_whole=is_whole), most=_MOST_IN_LOOP)
    cached.mark_stored(contents.state)


async def _save(cached: _Cached, transaction: WriteTransaction, scope: Scope) -> GraphState:
    """Write what changed in the graph. Returns its stored state after the commit."""
    graph, state = cached.graph, cached.state
    if changes := graph.drain_changes():
        if scope.session is not None:
            # Embeddings are recomputed on load: 0.1 s for the largest session, for half the bytes on disk.
            changes = replace(changes, nodes=[replace(node, embedding=None) for node in changes.nodes])
        state = await transaction.graphs.save(scope, changes, embedder=graph.embedder_fingerprint)
    if graph.slept_at is not None and graph.slept_at != state.slept_at:
        await transaction.graphs.set_slept_at(scope, graph.slept_at)
        state = replace(state, slept_at=graph.slept_at)
    return state


async def _is_known(view: ReadView | WriteTransaction, scope: Scope) -> bool:
    if scope.session is None:
        # An agent's graph is made of all its projects.
        return scope.limits.project is None and scope.limits.agent in (None, scope.agent or DEFAULT_AGENT)
    return await view.sessions.get(scope) is not None


async def _check_known(view: ReadView | WriteTransaction, scope: Scope) -> None:
    if not await _is_known(view, scope):
        raise SessionNotFound(scope.session or "")


def _cache_key(scope: Scope) -> Scope:
    """The scope without what may vary between callers: a session belongs to one agent, so its agent is left out."""
    if scope.session is None:
        return Scope(owner=scope.owner, agent=scope.agent or DEFAULT_AGENT)
    return Scope(owner=scope.owner, session=scope.session)
