"""`finalize_session`: OPEN -> FINALIZING -> last summaries -> FINALIZED.

The state is stored before each step, so a call after a crash goes on where the last one stopped, and a call on a
finalized session changes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kalito_mcp.domain.records import ConversationSummary
from kalito_mcp.domain.scope import Scope
from kalito_mcp.domain.sessions import Session, SessionState
from kalito_mcp.engine.summary_keeper import SummaryKeeper
from kalito_mcp.errors import Conflict, SessionNotFound
from kalito_mcp.orchestrator.pin_collector import PinCollector
from kalito_mcp.ports.clock import Clock
from kalito_mcp.ports.store import Store

_MAX_ROUNDS: Final = 100


@dataclass(frozen=True, slots=True)
class Finalized:
    """The session as it is now, and the summaries that this call made."""

    session: Session
    summaries: Sequence[ConversationSummary]


class Finalizer:
    """Closes sessions."""

    def __init__(self, store: Store, summaries: SummaryKeeper, pins: PinCollector, clock: Clock) -> None:
        self._store = store
        self._summaries = summaries
        self._pins = pins
        self._clock = clock

    async def finalize(self, scope: Scope) -> Finalized:
        """Close the session: every message gets its summary, and no more records are taken.

        Raises:
            SessionNotFound: no such session.
            Conflict: other processes kept changing it; it stays FINALIZING, and calling again resumes.
        """
        session = await self._enter(scope)
        made: list[ConversationSummary] = []
        if session.state is not SessionState.FINALIZED:
            await self._pins.collect(scope)
            for _ in range(_MAX_ROUNDS):
                made += await self._summaries.summarize_all(scope)
                if await self._close(scope):
                    break
            else:
                raise Conflict(f"session {scope.session!r} is being changed elsewhere; call finalize_session again")
            session = await self._get(scope)
        return Finalized(session=session, summaries=made)

    async def _enter(self, scope: Scope) -> Session:
        async with self._store.write() as transaction:
            session = await transaction.sessions.get(scope)
            if session is None:
                raise SessionNotFound(scope.session or "")
            if session.state is SessionState.OPEN:
                await transaction.sessions.set_state(session, SessionState.FINALIZING, now_ms=self._clock.now_ms())
        return session

    async def _close(self, scope: Scope) -> bool:
        """FINALIZED, unless another process summarised in between and left a rest."""
        async with self._store.write() as transaction:
            session = await transaction.sessions.get(scope)
            if session is None or session.summarized_seq < session.message_count:
                return False
            if session.state is not SessionState.FINALIZED:
                await transaction.sessions.set_state(session, SessionState.FINALIZED, now_ms=self._clock.now_ms())
        return True

    async def _get(self, scope: Scope) -> Session:
        async with self._store.read() as view:
            session = await view.sessions.get(scope)
        if session is None:
            raise SessionNotFound(scope.session or "")
        return session
