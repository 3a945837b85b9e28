"""The graphs that are in memory, each as fresh as what is stored.

A graph is loaded when it is first needed, brought up to date by its revision when another process changed it, and
dropped when others are needed more. Changes are made inside a write transaction, on what is stored, and belong to it:
where it fails, the graph in memory is dropped and read again.

Whoever changes a graph has the transaction before the graph's lock, and gives the lock back after it; whoever reads
it has a view before. So nobody waits for the other's transaction while it holds a lock, and nobody reads what is not
stored yet.
"""

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread

from kalito_mcp.domain.graph import GraphState
from kalito_mcp.domain.scope import DEFAULT_AGENT, Scope
from kalito_mcp.errors import SessionNotFound
from kalito_mcp.gc_pause import gc_paused
from kalito_mcp.ports.graphs import GraphReader
from kalito_mcp.ports.store import ReadView, Store, WriteTransaction

if TYPE_CHECKING:
    # numpy comes with it: not before a graph is needed.
    from kalito_mcp.graph.store import GraphStore

_MAX_LOADED: Final = 32
_IN_THREAD_FROM: Final = 200


@dataclass(slots=True, eq=False)
class _Shelved:
    """A graph, and what is stored that it equals: `state`, which it did at its own `version`."""

    graph: "GraphStore"
    version: int
    state: GraphState = GraphState()
    lock: anyio.Lock = field(default_factory=anyio.Lock)

    @property
    def is_changed(self) -> bool:
        return self.graph.version != self.version or self.graph.slept_at != self.state.slept_at

    def settle(self, state: GraphState) -> None:
        self.state, self.version = state, self.graph.version


class GraphCache:
    """Graphs by scope. A scope without a session is the agent's own graph."""

    def __init__(self, store: Store, new_graph: Callable[[Scope], "GraphStore"]) -> None:
        self._store = store
        self._new_graph = new_graph
        self._shelved: OrderedDict[Scope, _Shelved] = OrderedDict()

    @asynccontextmanager
    async def reading(self, *scopes: Scope) -> AsyncIterator[list["GraphStore"]]:
        """The graphs as stored, to be read; that of an unknown session is empty. The block must not wait for a
        write."""
        async with AsyncExitStack() as stack:
            view = await stack.enter_async_context(self._store.read())
            graphs: list[GraphStore] = []
            for scope in scopes:
                if await _is_known(view, scope):
                    held = self._held(view.graphs, scope)
                    graphs.append((await stack.enter_async_context(held)).graph)
                else:
                    graphs.append(self._new_graph(scope))
            yield graphs

    @asynccontextmanager
    async def changing(self, *scopes: Scope) -> AsyncIterator[tuple[WriteTransaction, list["GraphStore"]]]:
        """A write transaction with the graphs as stored; what the block changes in them is written with it.

        Raises:
            SessionNotFound: a scope names an unknown session, or another agent's; nothing was written.
        """
        if any(_agents(scope) not in self._shelved for scope in scopes):
            # A large graph takes a second to load: not while everybody waits for this transaction.
            async with self.reading(*scopes):
                pass
        held: list[_Shelved] = []
        async with AsyncExitStack() as locks:
            try:
                async with self._store.write() as transaction:
                    for scope in scopes:
                        await _check_known(transaction, scope)
                        entering = self._held(transaction.graphs, scope)
                        held.append(await locks.enter_async_context(entering))
                    yield transaction, [one.graph for one in held]
                    states = [
                        await _saved(one, transaction, _agents(scope)) for scope, one in zip(scopes, held, strict=True)
                    ]
            except BaseException:
                for scope, one in zip(scopes, held, strict=False):
                    if one.is_changed and self._shelved.get(_agents(scope)) is one:
                        self.forget(scope)
                raise
            for one, state in zip(held, states, strict=True):
                one.settle(state)

    async def copy(self, scope: Scope) -> tuple["GraphStore", GraphState]:
        """A graph of one's own, as stored, and where it stood: for long thoughts that disturb nobody.

        Raises:
            SessionNotFound: an unknown session, or another agent's.
        """
        async with self._store.read() as view:
            await _check_known(view, scope)
            contents = await view.graphs.load(_agents(scope))
        graph = self._new_graph(scope)
        await anyio.to_thread.run_sync(lambda: graph.absorb(contents, is_whole=True))
        return graph, contents.state

    def forget(self, scope: Scope) -> None:
        """Drop a graph from memory; it is read again when it is needed. Who holds it goes on with it."""
        self._shelved.pop(_agents(scope), None)

    def loaded(self) -> list[Scope]:
        """Which graphs are in memory, the one used last at the end."""
        return list(self._shelved)

    @asynccontextmanager
    async def _held(self, graphs: GraphReader, scope: Scope) -> AsyncIterator[_Shelved]:
        key = _agents(scope)
        while True:
            shelved = self._shelved.get(key)
            if shelved is None:
                graph = self._new_graph(key)
                shelved = self._shelved[key] = _Shelved(graph, graph.version)
            self._shelved.move_to_end(key)
            async with shelved.lock:
                # Dropped while this waited for it: it may hold what was never stored.
                if self._shelved.get(key) is not shelved:
                    continue
                try:
                    await _bring_up_to_date(shelved, graphs, key)
                except BaseException:
                    self.forget(key)
                    raise
                yield shelved
            break
        idle = [key for key, one in self._shelved.items() if not one.lock.locked()]
        for key in idle[: max(0, len(self._shelved) - _MAX_LOADED)]:
            del self._shelved[key]


async def _bring_up_to_date(shelved: _Shelved, graphs: GraphReader, scope: Scope) -> None:
    state, known = await graphs.state(scope), shelved.state
    if state.revision == known.revision:
        # Sleep that merged nothing moves no revision.
        shelved.state, shelved.graph.slept_at = state, state.slept_at
        return
    # A view that is older than what this process has written meanwhile: newer does no harm, and goes nowhere.
    if 0 < state.revision < known.revision:
        return
    is_whole = known.revision < state.removed_revision or state.revision < known.revision
    with gc_paused():
        contents = await graphs.load(scope, after=0 if is_whole else known.revision)
        if len(contents.nodes) + len(contents.edges) < _IN_THREAD_FROM:
            shelved.graph.absorb(contents, is_whole=is_whole)
        else:
            await anyio.to_thread.run_sync(lambda: shelved.graph.absorb(contents, is_whole=is_whole))
    shelved.settle(contents.state)


async def _saved(shelved: _Shelved, transaction: WriteTransaction, scope: Scope) -> GraphState:
    """Write what changed in the graph; where it stands once that is committed."""
    graph, state = shelved.graph, shelved.state
    if changes := graph.drain_changes():
        if scope.session is not None:
            # Made anew when they are read: a tenth of a second for the largest session, and half the bytes on disk.
            changes = replace(changes, nodes=[replace(node, embedding=None) for node in changes.nodes])
        state = await transaction.graphs.save(scope, changes, embedder=graph.embedder_fingerprint)
    if graph.slept_at is not None and graph.slept_at != state.slept_at:
        await transaction.graphs.set_slept_at(scope, graph.slept_at)
        state = replace(state, slept_at=graph.slept_at)
    return state


async def _is_known(view: ReadView | WriteTransaction, scope: Scope) -> bool:
    return scope.session is None or await view.sessions.get(scope) is not None


async def _check_known(view: ReadView | WriteTransaction, scope: Scope) -> None:
    if not await _is_known(view, scope):
        raise SessionNotFound(scope.session or "")


def _agents(scope: Scope) -> Scope:
    """The scope by which a graph is shelved: a session's belongs to one agent, whoever names it."""
    if scope.session is None:
        return Scope(owner=scope.owner, agent=scope.agent or DEFAULT_AGENT)
    return Scope(owner=scope.owner, session=scope.session)
