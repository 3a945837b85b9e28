"""`MemoryOrchestrator`: one agent's graphs: the long-term one and its session graphs.

It implements the specification's orchestrator, method by method. A graph is stored in the transaction that changes it,
so a call's result survives a crash, and other processes see it.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread

from kalito_mcp.domain.arguments import checks_arguments
from kalito_mcp.domain.finalizing import Finalized, FinalizeOptions, Progress, SnapshotFile
from kalito_mcp.domain.graph import FeedbackLabel, GraphHit, GraphScope, PromotionReport
from kalito_mcp.domain.scope import DEFAULT_AGENT, LOCAL_OWNER, NO_LIMITS, Limits, Scope
from kalito_mcp.domain.sessions import SessionState
from kalito_mcp.domain.sleep import SleepCycleReport, SleepCycleTrigger, checked_trigger
from kalito_mcp.errors import ConfigurationError, Conflict, InvalidInput, SessionFinalized, SessionNotFound
from kalito_mcp.graph.files import read_json, write_made
from kalito_mcp.graph.snapshot_folder import SnapshotFolder, default_name
from kalito_mcp.orchestrator import feedback
from kalito_mcp.orchestrator.graph_cache import GraphCache
from kalito_mcp.orchestrator.graph_settings import OrchestratorConfig, kind_of, new_graph, sleep_config, summarize
from kalito_mcp.orchestrator.hits import best_hits
from kalito_mcp.orchestrator.observer import Observer
from kalito_mcp.orchestrator.overview import overview
from kalito_mcp.orchestrator.snapshot_import import clean_restored
from kalito_mcp.ports.clock import Clock
from kalito_mcp.ports.store import Store, WriteTransaction
from kalito_mcp.runtime.call_keys import before_the_write
from kalito_mcp.safety.redaction import checked_handle, cleaned

if TYPE_CHECKING:
    from kalito_mcp.graph.store import GraphStore

__all__ = ["Finalize", "MemoryOrchestrator", "OrchestratorConfig", "new_graph"]

Finalize = Callable[[Scope, FinalizeOptions | None, Progress | None], Awaitable[Finalized]]
_MAX_PLANS: Final = 5
_GC_PAGE: Final = 100


@checks_arguments
class MemoryOrchestrator:
    """The graphs of one agent."""

    def __init__(
        self,
        agent_id: str,
        config: OrchestratorConfig,
        *,
        store: Store,
        cache: GraphCache,
        snapshots: SnapshotFolder,
        clock: Clock,
        finalize: Finalize | None = None,
        owner: str = LOCAL_OWNER,
        limits: Limits = NO_LIMITS,
    ) -> None:
        self.agent_id = agent_id or DEFAULT_AGENT
        self.config = config
        self._store = store
        self._cache = cache
        self._snapshots = snapshots
        self._clock = clock
        self._everywhere = Scope(owner, self.agent_id, limits=limits)
        self._finalize = finalize
        self._observer = Observer(store, cache, config.graph)

    async def get_session_store(self, session_id: str) -> "GraphStore":
        """A copy of the session's graph, with all of its messages. Raises SessionNotFound for an unknown session; in
        this class, that includes a session of another agent."""
        graph = await self._observer.copy(self._session(session_id))
        self._report_no_cycles(graph, GraphScope.SESSION)
        return graph

    async def get_agent_store(self) -> "GraphStore":
        """A copy of the agent's stored graph."""
        graph = (await self._cache.copy(self._agent())).graph
        self._report_no_cycles(graph, GraphScope.AGENT)
        return graph

    async def upsert_query(self, session_id: str, text: str) -> str:
        """Add the query to the session's graph. Returns its node id. Raises SessionNotFound, SessionFinalized if it is
        closed, and what `GraphStore.upsert_query` raises."""
        scope = self._session(session_id)
        kept, _ = cleaned(text)

        async def add(transaction: WriteTransaction, graphs: Sequence["GraphStore"]) -> str:
            session = await transaction.sessions.get(scope)
            if session is not None and session.state is not SessionState.OPEN:
                raise SessionFinalized(session.id, session.state)
            return graphs[0].upsert_query(kept)

        return await self._cache.change([scope], add)

    async def record_feedback(
        self, session_id: str | None, target_id: str, label: FeedbackLabel | str, note: str | None = None
    ) -> str:
        """Store feedback on a query or an answer, named by its node id or message id. Returns the feedback's node id.

        It is written to each of the session's and the agent's graph that contains the target; without a session, only
        to the agent's.

        Raises: nothing was written in any case.
            RecordNotFound: no graph contains the target. SessionNotFound: no such session.
            InvalidInput, GraphFull: see `GraphStore.record_feedback`.
        """
        scopes = self._scopes(session_id)
        if session_id is not None:
            with before_the_write():
                await self._observer.observe(scopes[0])

        async def add(transaction: WriteTransaction, graphs: Sequence["GraphStore"]) -> str:
            at_ms = self._clock.now_ms()
            return await feedback.give(transaction, self._everywhere, graphs, target_id, label, note, at_ms=at_ms)

        return await self._cache.change(scopes, add)

    async def withdraw_feedback(self, session_id: str | None, target_id: str, label: FeedbackLabel | str) -> None:
        """Take back the newest feedback of this label on a query or an answer, wherever `record_feedback` wrote it.

        Raises: nothing was written in any case.
            RecordNotFound: no graph contains the target, or it has no such feedback. SessionNotFound: no such session.
            InvalidInput: see `GraphStore.withdraw_feedback`.
        """
        scopes = self._scopes(session_id)
        if session_id is not None:
            with before_the_write():
                await self._observer.observe(scopes[0])

        async def remove(transaction: WriteTransaction, graphs: Sequence["GraphStore"]) -> None:
            await feedback.take_back(transaction, self._everywhere, graphs, target_id, label)

        await self._cache.change(scopes, remove)

    async def search(self, session_id: str | None, text: str, k: int = 10) -> Sequence[GraphHit]:
        """The k most similar queries of the session's and the agent's graph, best first. `search_bias_session_first`
        raises the scores of the session's own. A query in both graphs is returned once.

        Raises:
            InvalidInput: a blank text, or k outside 1 to 1,000.
        """
        own: list[tuple[GraphScope, GraphStore]] = []
        if session_id is not None:
            with suppress(SessionNotFound):
                own.append((GraphScope.SESSION, await self.get_session_store(session_id)))
        async with self._cache.reading(*self._scopes(None)) as graphs:
            everywhere = [*own, *((GraphScope.AGENT, graph) for graph in graphs)]
            return best_hits(everywhere, text, k, self.config.graph.search_bias_session_first)

    async def run_sleep_cycle(
        self,
        session_id: str | None = None,
        trigger: SleepCycleTrigger | str = SleepCycleTrigger.INTERVAL,
        *,
        force: bool = False,
        dry_run: bool = False,
        only_if: Callable[[WriteTransaction], Awaitable[bool]] | None = None,
        **options: Any,
    ) -> SleepCycleReport | None:
        """Consolidate the session's graph, or the agent's. Returns None within the cooldown, unless forced.

        The cycle runs on a copy, in a thread, without blocking others. If the graph changes meanwhile, it runs
        again. With `dry_run` the report says what would be merged, and nothing is written. `only_if` is
        awaited in the transaction; if it is False, nothing is done and the result is None.

        Raises:
            Conflict: the graph kept changing; nothing was merged. InvalidInput: an unknown trigger or option.
        """
        from kalito_mcp.graph import sleep  # noqa: PLC0415 - numpy comes with it

        trigger = checked_trigger(trigger)
        scope = self._agent() if session_id is None else self._session(session_id)
        if session_id is not None:
            await self._observer.observe(scope)
        for _ in range(_MAX_PLANS):
            copy = await self._cache.copy(scope)
            if copy.graph.is_rested(**options) and not force:
                return None
            plan = await anyio.to_thread.run_sync(partial(copy.graph.plan_sleep_cycle, trigger, **options))
            summaries = await summarize(plan, self.config)
            if dry_run:
                return sleep.preview_report(plan, summaries)
            report = await anyio.to_thread.run_sync(copy.graph.apply_sleep_plan, plan, summaries)
            is_stored = await self._cache.store_copies({scope: copy}, only_if)
            if is_stored is None:
                return None
            if is_stored:
                self._cache.keep(scope, copy)
                sleep.notify(sleep_config(self.config, kind_of(scope)), report)
                return report
        raise Conflict("the graph kept changing during its sleep cycle; try again later")

    async def promote(
        self, session_id: str, *, only_if: Callable[[WriteTransaction], Awaitable[bool]] | None = None
    ) -> PromotionReport | None:
        """Merge the best of the session's graph into the agent's, by the promotion policy. `only_if` is awaited in the
        same transaction; if it is False, nothing is done and the result is None.

        Copies are merged, in a thread, without blocking others, and again if a graph changes meanwhile. If they keep
        changing, the graphs are merged in the transaction.
        """
        from kalito_mcp.graph.promotion import promote  # noqa: PLC0415 - numpy comes with it

        scopes = (self._session(session_id), self._agent())
        await self._observer.observe(scopes[0])
        for _ in range(_MAX_PLANS):
            copies = {scope: await self._cache.copy(scope) for scope in scopes}
            session, agent = (copy.graph for copy in copies.values())
            report = await anyio.to_thread.run_sync(promote, session, agent, self.config.promotion)
            is_stored = await self._cache.store_copies(copies, only_if)
            if is_stored is None:
                return None
            if is_stored:
                for scope, copy in copies.items():
                    self._cache.keep(scope, copy)
                return report

        async def merge(transaction: WriteTransaction, graphs: Sequence["GraphStore"]) -> PromotionReport | None:
            if only_if is not None and not await only_if(transaction):
                return None
            session, agent = graphs
            return promote(session, agent, self.config.promotion)

        return await self._cache.change(scopes, merge)

    async def preview(
        self, graph: "GraphStore", *, sleeps: bool, promotes: bool
    ) -> tuple[SleepCycleReport | None, PromotionReport | None]:
        """What a sleep cycle of a session's graph, and then its promotion, would report. `graph` must be a copy: it is
        changed. Nothing is stored."""
        from kalito_mcp.graph.promotion import promote  # noqa: PLC0415 - numpy comes with it

        sleep = promotion = None
        if sleeps:
            plan = await anyio.to_thread.run_sync(graph.plan_sleep_cycle, SleepCycleTrigger.SESSION_FINALIZE)
            summaries = await summarize(plan, self.config)
            sleep = await anyio.to_thread.run_sync(graph.apply_sleep_plan, plan, summaries)
        if promotes:
            agent = await self.get_agent_store()
            promotion = await anyio.to_thread.run_sync(promote, graph, agent, self.config.promotion)
        return sleep, promotion

    async def finalize_session(
        self,
        session_id: str,
        *,
        promote: bool = True,
        checkpoint: bool = True,
        checkpoint_name: str | None = None,
    ) -> Finalized:
        """Close the session: see `Finalizer.finalize`.

        Raises:
            ConfigurationError: this orchestrator does not belong to an opened memory.
        """
        if self._finalize is None:
            raise ConfigurationError("only an opened memory can close sessions: take memory.orchestrator()")
        return await self._finalize(
            self._session(session_id), FinalizeOptions(promote, checkpoint, checkpoint_name), None
        )

    def check_snapshot_name(self, name: str | None) -> None:
        """Raises InvalidInput if a snapshot cannot have this name."""
        self._snapshot_path(name or default_name(self.agent_id))

    def _snapshot_path(self, name: str) -> Path:
        path = self._snapshots.path(name)
        checked_handle(name, "checkpoint_name")
        return path

    async def gc_sessions(self, older_than_ms: int) -> int:
        """Remove the graphs of finalized sessions that were last written more than `older_than_ms` ago; their best is
        promoted already. Their records stay. Returns how many were removed. Raises InvalidInput for less than 0."""
        if older_than_ms < 0:
            raise InvalidInput(f"older_than_ms={older_than_ms} must be at least 0")
        before_ms = self._clock.now_ms() - older_than_ms
        removed = 0

        async def remove(transaction: WriteTransaction) -> Sequence[str]:
            idle = await transaction.graphs.idle_sessions(self._agent(), before_ms=before_ms, limit=_GC_PAGE)
            for session_id in idle:
                await transaction.graphs.remove(self._session(session_id))
            return idle

        while True:
            idle = await self._store.write(remove)
            for session_id in idle:
                self._cache.drop(self._session(session_id))
            removed += len(idle)
            if len(idle) < _GC_PAGE:
                return removed

    def get_active_sessions(self) -> list[str]:
        """The owner's sessions, of any agent, whose graphs are in memory; least recently used first."""
        owner = self._everywhere.owner
        return [one.session for one in self._cache.loaded() if one.session is not None and one.owner == owner]

    async def save_snapshot(self, name: str | None = None) -> SnapshotFile:
        """Write the agent's best `top_k` queries, with their linked nodes, to a snapshot. It replaces the snapshot of
        the same name; the default name is the agent's.

        Raises:
            InvalidInput: the name is not plain. StorageFull, StorageReadOnly: the file cannot be written.
        """
        from kalito_mcp.graph.top_subgraph import top_subgraph  # noqa: PLC0415 - numpy comes with it

        name = name or default_name(self.agent_id)
        path, policy = self._snapshot_path(name), self.config.checkpoint

        async def best_subgraph() -> Mapping[str, Any]:
            graph = await self.get_agent_store()
            chosen = await anyio.to_thread.run_sync(top_subgraph, graph, policy.top_k)
            return await anyio.to_thread.run_sync(chosen.to_snapshot)

        await write_made(path, best_subgraph, is_pretty=policy.pretty)
        return self._snapshots.file(name)

    def list_snapshots(self) -> list[SnapshotFile]:
        """All snapshots of the database, of any agent, newest first."""
        return self._snapshots.all()

    async def read_snapshot(self, name: str) -> Mapping[str, Any]:
        """A snapshot's content. Raises NotFound if it does not exist, and InvalidInput if it is damaged."""
        data: Mapping[str, Any] = await read_json(self._snapshots.existing(name), named=f"snapshot {name!r}")
        return data

    async def snapshot_overview(self, name: str) -> dict[str, Any]:
        """A snapshot's overview. Raises what `restore_snapshot` raises."""
        graph = await self._graph_in(name)
        return self._snapshots.file(name).to_dict() | await anyio.to_thread.run_sync(overview, graph)

    async def snapshot_graph(self, name: str) -> dict[str, Any]:
        """A snapshot's nodes and edges, without the vectors of queries. Raises what `restore_snapshot` raises."""
        content = (await anyio.to_thread.run_sync((await self._graph_in(name)).to_snapshot))["graph"]
        nodes = [{key: value for key, value in node.items() if key != "embedding"} for node in content["nodes"]]
        return {"name": name, "nodes": nodes, "edges": content["edges"]}

    def snapshot_file(self, name: str) -> SnapshotFile:
        """A snapshot's file. Raises NotFound if it does not exist, InvalidInput if no snapshot can have the name."""
        return self._snapshots.file(name)

    async def graph_overview(self, session_id: str | None = None) -> dict[str, Any]:
        """The overview of the session's graph, or of the agent's."""
        graph = await self.get_agent_store() if session_id is None else await self.get_session_store(session_id)
        owner = {"agent_id": self.agent_id} | ({} if session_id is None else {"session_id": session_id})
        return owner | await anyio.to_thread.run_sync(overview, graph)

    async def restore_snapshot(self, name: str) -> int:
        """Replace the agent's graph with a snapshot. Returns its number of nodes. Forgotten and erased records are left
        out, and so are message ids that name other messages in this memory.

        Raises: the graph is unchanged in any case.
            NotFound: no such snapshot. InvalidInput: it cannot be read, or has another version or embedder.
        """
        data = await self.read_snapshot(name)
        agent = self._agent()

        # In one transaction: a concurrent purge cleans either the snapshot's file before or the graph after.
        async def restore(transaction: WriteTransaction, graphs: Sequence["GraphStore"]) -> int:
            graphs[0].from_snapshot(data)
            await clean_restored(graphs[0], transaction.records, agent)
            return graphs[0].stats().nodes

        return await self._cache.change([agent], restore)

    async def _graph_in(self, snapshot: str) -> "GraphStore":
        graph = new_graph(self.config, self._agent(), self._clock)
        await anyio.to_thread.run_sync(graph.from_snapshot, await self.read_snapshot(snapshot))
        return graph

    def _report_no_cycles(self, graph: "GraphStore", kind: GraphScope) -> None:
        """Report no sleep cycles of a copy, because nothing that happens to it is stored."""
        graph.configure_sleep_cycle(replace(sleep_config(self.config, kind), emit=None))

    def _scopes(self, session_id: str | None) -> list[Scope]:
        of_agent = [self._agent()] if self._everywhere.limits.project is None else []  # it has all projects
        return of_agent if session_id is None else [self._session(session_id), *of_agent]

    def _session(self, session_id: str) -> Scope:
        return self._everywhere.of_session(session_id)

    def _agent(self) -> Scope:
        return self._everywhere
