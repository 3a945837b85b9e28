"""Keeps recently used graphs in memory, each as it is stored.

A graph is loaded when it is first needed, and again when its stored revision has moved; the least recently used graphs
are dropped. Long work is done on a copy, which is stored only if the graph has not changed meanwhile. Short changes are
made inside a write transaction. If that fails, the changed graph is dropped from memory and read again.

To change a graph, take the right to write before the graph's lock, and release the lock after the transaction. To read
one, open a view first. So nobody waits for a transaction while holding a graph's lock, and nobody reads what is not
stored yet.
"""

from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio

from kalito_mcp.domain.graph import GraphContents, GraphState
from kalito_mcp.domain.scope import DEFAULT_AGENT, Scope
from kalito_mcp.errors import SessionNotFound
from kalito_mcp.ports.graphs import GraphReader
from kalito_mcp.ports.store import ReadView, Store, WriteTransaction
from kalito_mcp.runtime.long_texts import aside

if TYPE_CHECKING:
    # It imports numpy, which is loaded only once a graph is needed.
    from kalito_mcp.graph.store import GraphStore

T = TypeVar("T")
_MAX_LOADED: Final = 32
_EMPTY: Final = GraphContents((), (), GraphState())


@dataclass(slots=True, eq=False)
class LoadedGraph:
    """A graph in memory, and the stored state that it was made from. `GraphCache.copy` gives one that nobody shares."""

    graph: "GraphStore"
    state: GraphState


@dataclass(slots=True, eq=False)
class _Cached(LoadedGraph):
    """A shared graph. `version` is what `graph.version` was when the graph last equalled what is stored."""

    version: int = 0
    lock: anyio.Lock = field(default_factory=partial(anyio.Lock, fast_acquire=True))

    @property
    def is_changed(self) -> bool:
        return self.graph.version != self.version or self.graph.slept_at != self.state.slept_at

    def become(self, graph: "GraphStore", state: GraphState) -> None:
        """Hold this graph, which is stored in this state."""
        self.graph, self.state, self.version = graph, state, graph.version


class GraphCache:
    """Graphs by scope. A scope without a session means the agent's own graph."""

    def __init__(self, store: Store, new_graph: Callable[[Scope], "GraphStore"]) -> None:
        self._store = store
        self._new_graph = new_graph
        self._cached: OrderedDict[Scope, _Cached] = OrderedDict()

    @asynccontextmanager
    async def reading(self, *scopes: Scope) -> AsyncIterator[list["GraphStore"]]:
        """The graphs as stored, for reading only. An unknown session's graph is empty. The block must not wait for a
        write."""
        async with AsyncExitStack() as stack:
            view = await stack.enter_async_context(self._store.view())
            graphs: list[GraphStore] = []
            for scope in scopes:
                if await _is_within_reach(view, scope):
                    locked = self._current(view.graphs, scope)
                    graphs.append((await stack.enter_async_context(locked)).graph)
                else:
                    graphs.append(await self.built(scope, _EMPTY))
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
        # Load before the transaction: a large graph takes a second, and all writers would wait.
        async with self.reading(*scopes):
            pass
        keys, held = [_cache_key(scope) for scope in scopes], list[_Cached]()

        async def lock() -> None:
            for key in keys:
                held.append(await locks.enter_async_context(self._under_lock(key)))

        async def write(transaction: WriteTransaction) -> tuple[T, list[GraphState]]:
            for scope, key, one in zip(scopes, keys, held, strict=True):
                await _check_reached(transaction, scope)
                await self._bring_up_to_date(one, transaction.graphs, key)
            made = await work(transaction, [one.graph for one in held])
            return made, [await _save(one, transaction, key) for key, one in zip(keys, held, strict=True)]

        async with AsyncExitStack() as locks:
            try:
                made, states = await self._store.write(write, before=lock)
            except BaseException:
                for key, one in zip(keys, held, strict=False):
                    # Without a revision nothing is stored of it, perhaps because there is no such session.
                    if (one.is_changed or not one.state.revision) and self._cached.get(key) is one:
                        self.drop(key)
                raise
            for one, state in zip(held, states, strict=True):
                one.become(one.graph, state)
        return made

    async def copy(self, scope: Scope) -> LoadedGraph:
        """A private copy of the stored graph. For long work that must not block others.

        Raises:
            SessionNotFound: the scope names an unknown session, or another agent's.
        """
        contents = await self._store.read(lambda view: self.contents(view, scope))
        return LoadedGraph(await self.built(scope, contents), contents.state)

    async def contents(self, view: ReadView, scope: Scope) -> GraphContents:
        """The stored graph, for `built`. Raises SessionNotFound, as `copy`."""
        await _check_reached(view, scope)
        return await view.graphs.load(_cache_key(scope))

    async def built(self, scope: Scope, contents: GraphContents) -> "GraphStore":
        """A graph of these contents that nobody else has, made in a thread."""

        def build() -> "GraphStore":
            graph = self._new_graph(scope)
            graph.absorb(contents)
            return graph

        return await aside(build)

    async def store_copies(
        self, copies: Mapping[Scope, LoadedGraph], only_if: Callable[[WriteTransaction], Awaitable[bool]] | None = None
    ) -> bool | None:
        """Write what was changed in copies, all of it or nothing. True if it was written.

        False, and nothing is written, if a stored graph is no longer what was copied: copy it again. None, and nothing
        is written, if `only_if`, awaited in the same transaction, is False.
        """

        async def save(transaction: WriteTransaction) -> Sequence[GraphState] | bool | None:
            for scope, copy in copies.items():
                if (await transaction.graphs.state(_cache_key(scope))).revision != copy.state.revision:
                    return False
            if only_if is not None and not await only_if(transaction):
                return None
            return [await _save(copy, transaction, _cache_key(scope)) for scope, copy in copies.items()]

        states = await self._store.write(save)
        if not isinstance(states, list):
            return None if states is None else False
        for (scope, copy), state in zip(copies.items(), states, strict=True):
            copy.state = state
            self.drop(scope)
        return True

    def keep(self, scope: Scope, copy: LoadedGraph) -> None:
        """Keep a copy that was stored, in place of the graph in memory. The caller uses it no longer."""
        cached = self._cached[_cache_key(scope)] = _Cached(copy.graph, copy.state)
        cached.become(copy.graph, copy.state)

    def drop(self, scope: Scope) -> None:
        """Drop a graph from memory; it is read again when needed. A block that already has it keeps it."""
        self._cached.pop(_cache_key(scope), None)

    def loaded(self) -> list[Scope]:
        """The scopes of the graphs in memory, least recently used first."""
        return list(self._cached)

    @asynccontextmanager
    async def _current(self, graphs: GraphReader, scope: Scope) -> AsyncIterator[_Cached]:
        """The cached graph, brought up to date, under its lock."""
        key = _cache_key(scope)
        async with self._under_lock(key) as cached:
            try:
                await self._bring_up_to_date(cached, graphs, key)
            except BaseException:
                self.drop(key)
                raise
            yield cached

    @asynccontextmanager
    async def _under_lock(self, key: Scope) -> AsyncIterator[_Cached]:
        """The cached graph as it is, under its lock."""
        while True:
            if key not in self._cached:
                empty = await self.built(key, _EMPTY)
                self._cached.setdefault(key, _Cached(empty, GraphState(), empty.version))
            cached = self._cached[key]
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

    async def _bring_up_to_date(self, cached: _Cached, graphs: GraphReader, scope: Scope) -> None:
        state, known = await graphs.state(scope), cached.state
        if state.revision == known.revision:
            # A sleep cycle that merged nothing does not move the revision.
            cached.state, cached.graph.slept_at = state, state.slept_at
        # A view with a lower revision is older than our own last write: keep the graph. Revision 0: it was removed.
        elif not 0 < state.revision < known.revision:
            contents = await graphs.load(scope)
            cached.become(await self.built(scope, contents), contents.state)


async def _save(copy: LoadedGraph, transaction: WriteTransaction, scope: Scope) -> GraphState:
    """Write what changed in the graph. Returns its stored state after the commit."""
    graph, state = copy.graph, copy.state
    if changes := graph.drain_changes():
        if scope.session is not None:
            # Embeddings are recomputed on load: 0.1 s for the largest session, for half the bytes on disk.
            changes = replace(changes, nodes=[replace(node, embedding=None) for node in changes.nodes])
        state = await transaction.graphs.save(scope, changes, embedder=graph.embedder_fingerprint)
    if graph.slept_at is not None and graph.slept_at != state.slept_at:
        await transaction.graphs.set_slept_at(scope, graph.slept_at)
        state = replace(state, slept_at=graph.slept_at)
    return state


async def _is_within_reach(view: ReadView | WriteTransaction, scope: Scope) -> bool:
    if scope.session is None:
        # An agent's graph is made of all its projects.
        return scope.limits.project is None and scope.limits.agent in (None, scope.agent or DEFAULT_AGENT)
    return await view.sessions.get(scope) is not None


async def _check_reached(view: ReadView | WriteTransaction, scope: Scope) -> None:
    if not await _is_within_reach(view, scope):
        raise SessionNotFound(scope.session or "")


def _cache_key(scope: Scope) -> Scope:
    """The scope without what may vary between callers: a session belongs to one agent, so its agent is left out."""
    if scope.session is None:
        return Scope(owner=scope.owner, agent=scope.agent or DEFAULT_AGENT)
    return Scope(owner=scope.owner, session=scope.session)
