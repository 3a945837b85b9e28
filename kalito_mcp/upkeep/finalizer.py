"""`finalize_session`: OPEN -> FINALIZING -> last summaries -> sleep cycle -> promotion -> checkpoint -> FINALIZED.

Each stage is marked as done in the transaction that stores its result. So a call after a crash continues after the
last completed stage. A call on a finalized session changes nothing, except that it writes a snapshot if it names one.
A dry run reports what would be merged and promoted.
"""

from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Final

from kalito_mcp.domain.finalizing import Finalized, FinalizeOptions, Progress
from kalito_mcp.domain.graph import PromotionReport
from kalito_mcp.domain.records import ConversationSummary, SemanticPin
from kalito_mcp.domain.scope import NO_LIMITS, Scope
from kalito_mcp.domain.sessions import FinalizeStage, Session, SessionState
from kalito_mcp.domain.sleep import SleepCycleReport, SleepCycleTrigger
from kalito_mcp.domain.time import DAY_MS
from kalito_mcp.errors import Conflict
from kalito_mcp.orchestrator.observer import Observer, observe_pins
from kalito_mcp.orchestrator.orchestrator import MemoryOrchestrator
from kalito_mcp.orchestrator.orchestrators import Orchestrators
from kalito_mcp.pins.collector import PinCollector
from kalito_mcp.ports.clock import Clock
from kalito_mcp.ports.store import ReadView, Store, WriteTransaction
from kalito_mcp.retrieval.known_names import find_session
from kalito_mcp.runtime.crash_points import crash_point
from kalito_mcp.summaries.keeper import SummaryKeeper

if TYPE_CHECKING:
    from kalito_mcp.graph.store import GraphStore

_MAX_ROUNDS: Final = 100
_STAGES: Final = tuple(FinalizeStage)
_STATES: Final = tuple(SessionState)


class Finalizer:
    """Closes sessions."""

    def __init__(
        self,
        store: Store,
        summaries: SummaryKeeper,
        pins: PinCollector,
        observer: Observer,
        orchestrators: Orchestrators,
        clock: Clock,
    ) -> None:
        self._store = store
        self._summaries = summaries
        self._pins = pins
        self._observer = observer
        self._orchestrators = orchestrators
        self._clock = clock

    async def finalize(
        self, scope: Scope, options: FinalizeOptions | None = None, progress: Progress | None = None
    ) -> Finalized:
        """Close the session: it takes no more records, every message is summarized, and the best of its graph is
        promoted to the agent's.

        Raises:
            SessionNotFound: no such session.
            InvalidInput: the snapshot's name is not plain; nothing was changed.
            Conflict: other processes kept changing the session. It stays FINALIZING; calling again resumes.
        """
        options = options or FinalizeOptions()
        if options.checkpoint_name is not None:
            scope.limits.check_none("a snapshot")
        session = await self._store.read(lambda view: find_session(view, scope))
        agent = self._orchestrators.of(Scope(scope.owner, session.agent))
        agent.check_snapshot_name(options.checkpoint_name)
        if options.dry_run:
            return await self._preview(scope, session, agent, options)
        await self._set_state(scope, SessionState.FINALIZING)
        crash_point("finalize.entered")
        made: list[ConversationSummary] = []
        sleep = promotion = snapshot = None
        for place, stage in enumerate(_STAGES):
            is_named_snapshot = stage is FinalizeStage.CHECKPOINT and options.checkpoint_name is not None
            if _is_done(session, stage) and not is_named_snapshot:
                continue
            if progress is not None:
                await progress(place, len(_STAGES), str(stage))
            match stage:
                case FinalizeStage.SUMMARIES:
                    made = await self._summarize(scope)
                case FinalizeStage.SLEEP:
                    sleep = await self._sleep(scope, agent)
                case FinalizeStage.PROMOTION:
                    promotion = await self._promote(scope, agent, options)
                case FinalizeStage.CHECKPOINT:
                    saves = options.checkpoint and agent.config.graph.enabled and scope.limits == NO_LIMITS
                    snapshot = await agent.save_snapshot(options.checkpoint_name) if saves else None
                    crash_point("finalize.checkpoint.written")
                    await self._store.write(_marking(scope, stage))
            crash_point(f"finalize.{stage}")
        session = await self._set_state(scope, SessionState.FINALIZED)
        await agent.gc_sessions(round(agent.config.graph.keep_sessions_days * DAY_MS))
        if progress is not None:
            await progress(len(_STAGES), len(_STAGES), "finalized")
        # A caller limited to one project must not learn what the agent knew of others.
        shown = promotion if scope.limits.project is None else None
        return Finalized(session, made, sleep, shown, snapshot)

    async def _preview(
        self, scope: Scope, session: Session, agent: MemoryOrchestrator, options: FinalizeOptions
    ) -> Finalized:
        """The report of what the remaining sleep and promotion stages would do now. Owed work is done first: pins are
        collected and messages enter the graph."""
        policy = agent.config.graph
        if session.state is SessionState.FINALIZED or not policy.enabled:
            return Finalized(session, is_dry_run=True)
        await self._pins.collect(scope)

        async def look(view: ReadView) -> tuple[Session, Sequence[SemanticPin]]:
            now = await view.sessions.get(scope) or session
            return now, (await view.conversations.view(now, tail=1, pins=now.pin_count)).pins

        session, pins = await self._store.read(look)
        graph = await agent.get_session_store(session.id)
        if not _is_done(session, FinalizeStage.SUMMARIES):
            observe_pins(graph, pins, policy)
        shows_agent = scope.limits.project is None
        sleep, promotion = await agent.preview(
            graph,
            sleeps=agent.config.run_on_finalize and not _is_done(session, FinalizeStage.SLEEP),
            promotes=options.promote and shows_agent and not _is_done(session, FinalizeStage.PROMOTION),
        )
        return Finalized(session, sleep=sleep, promotion=promotion, is_dry_run=True)

    async def _set_state(self, scope: Scope, state: SessionState) -> Session:
        """Bring the session to this state, unless it is further. Returns it as it is then."""

        async def change(transaction: WriteTransaction) -> Session:
            session = await find_session(transaction, scope)
            if _STATES.index(session.state) < _STATES.index(state):
                await transaction.sessions.set_state(session, state, now_ms=self._clock.now_ms())
                session = await find_session(transaction, scope)
            return session

        return await self._store.write(change)

    async def _summarize(self, scope: Scope) -> list[ConversationSummary]:
        await self._pins.collect(scope)
        await self._observer.observe(scope)
        made: list[ConversationSummary] = []
        for _ in range(_MAX_ROUNDS):
            made += await self._summaries.summarize_all(scope)
            if await self._close_summaries(scope):
                return made
        raise Conflict(f"session {scope.session!r} is being changed elsewhere; call finalize_session again")

    async def _close_summaries(self, scope: Scope) -> bool:
        """Pin the pinned nodes and mark the stage. False, and nothing is written, if unsummarized messages remain."""
        policy = self._observer.policy

        async def close(transaction: WriteTransaction, graphs: Sequence["GraphStore"]) -> bool:
            session = await find_session(transaction, scope)
            if session.summarized_seq < session.message_count:
                return False
            if await _mark_unless_done(transaction, session, FinalizeStage.SUMMARIES):
                view = await transaction.conversations.view(session, tail=1, pins=session.pin_count)
                for graph in graphs:
                    observe_pins(graph, view.pins, policy)
            return True

        return await self._orchestrators.cache.change([scope] if policy.enabled else [], close)

    async def _sleep(self, scope: Scope, agent: MemoryOrchestrator) -> SleepCycleReport | None:
        marks, session_id = _marking(scope, FinalizeStage.SLEEP), scope.session or ""
        if agent.config.run_on_finalize and agent.config.graph.enabled:
            return await agent.run_sleep_cycle(
                session_id, SleepCycleTrigger.SESSION_FINALIZE, force=True, only_if=marks
            )
        await self._store.write(marks)
        return None

    async def _promote(
        self, scope: Scope, agent: MemoryOrchestrator, options: FinalizeOptions
    ) -> PromotionReport | None:
        marks = _marking(scope, FinalizeStage.PROMOTION)
        if options.promote and agent.config.graph.enabled:
            return await agent.promote(scope.session or "", only_if=marks)
        await self._store.write(marks)
        return None


def _is_done(session: Session, stage: FinalizeStage) -> bool:
    if session.state is SessionState.FINALIZED:
        return True
    return session.stage is not None and _STAGES.index(FinalizeStage(session.stage)) >= _STAGES.index(stage)


def _marking(scope: Scope, stage: FinalizeStage) -> Callable[[WriteTransaction], Coroutine[Any, Any, bool]]:
    """Marks the stage as done. False, and nothing is written, if another call already did."""

    async def mark(transaction: WriteTransaction) -> bool:
        return await _mark_unless_done(transaction, await find_session(transaction, scope), stage)

    return mark


async def _mark_unless_done(transaction: WriteTransaction, session: Session, stage: FinalizeStage) -> bool:
    if _is_done(session, stage):
        return False
    await transaction.sessions.set_stage(session, stage)
    crash_point(f"finalize.{stage}.uncommitted")
    return True
